"""FlashInfer's traces as definitions: dumps, and the templates of an installed one.

A dump is read as text. Of an installed FlashInfer more is known: which arguments the
inputs are, and what its `init` makes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from generator.dataset.python_source import Unparsable, parse_expression
from generator.dialects.custom_text import custom_text
from generator.dialects.flashinfer_interface import CARRIERS, NAME, DumpInterface
from generator.dialects.imported import Changes, Import, ImportRefused
from generator.dialects.reference_text import (
    Function,
    as_run,
    default_of,
    parameters,
    reference_function,
    returned_count,
    with_helpers,
    without_quantisers,
)
from generator.rules.constraints import names_in
from generator.rules.static import written_inputs

_FREE_SIZE = 8

_PLUS_ONE = re.compile(r"(\w+)_plus_(\d+)")
_DIVIDED = re.compile(r"(\w+)_div_(\w+)")


def convert(sketch: Mapping[str, Any], version: str = "") -> Import:
    """Return the definition of one dump, or why it can't become one.

    `sketch` has the `dump`, and of an installed FlashInfer what its template says
    besides; see `template_child`.
    """
    source = str(sketch["template"])
    changes = Changes()
    try:
        value, custom = _Conversion(sketch, changes, version).result()
    except ImportRefused as error:
        return Import(source, reason=str(error), changes=changes.lines)
    return Import(source, value, changes=changes.lines, custom=custom)


class _Conversion(DumpInterface):
    """The conversion of one dump, whose inputs and outputs the base finds."""

    def result(self) -> tuple[dict[str, Any], str]:
        """Return the definition's JSON and the text of its custom inputs."""
        self._check_form()
        source = self.dump.get("reference")
        if not source:
            raise ImportRefused("it has no reference")
        reference_function(source)
        module = self.sketch.get("module")
        if module:
            source = without_quantisers(source)
        source = with_helpers(source, Path(module) if module else None, self.changes)
        function = reference_function(source)
        self._find_inputs(function)
        self._find_outputs()
        reference = self._reference(source, function)
        self._declare_axes()
        value: dict[str, Any] = {"name": self._name(), "op_type": self.dump["op_type"]}
        if self.dump.get("description"):
            value["description"] = self.dump["description"]
        value["tags"] = self._tags()
        value["axes"] = self.axes
        constraints = self._constraints()
        if constraints:
            value["constraints"] = constraints
        value["inputs"], value["outputs"] = self.inputs, self.outputs
        value["reference"] = reference
        return value, self._custom(value, function)

    def _name(self) -> str:
        name = self.dump["name"]
        safe = re.sub(r"[^A-Za-z0-9_]+", "_", name)[:200]
        if not NAME.fullmatch(safe):
            raise ImportRefused(f"its name {name!r} is no identifier")
        if safe != name:
            self.changes.add(f"name {name} written {safe}")
        return safe

    def _tags(self) -> list[str]:
        tags = [t for t in self.dump.get("tags", ()) if isinstance(t, str)]
        chosen = [t for t in tags if t not in ("fi_api:", "status:verified")]
        chosen += [f"fi_api:{api}" for api in self.sketch.get("apis", ())]
        if "status:verified" in tags:
            self.changes.add(
                "status:verified became status:unverified: no run shows it"
            )
            chosen.append("status:unverified")
        return list(dict.fromkeys(chosen))

    # ---- inputs

    def _reference(self, source: str, function: Function) -> str:
        written = [n for n in written_inputs(function) if n in self.inputs]
        tensors = [n for n in written if self.inputs[n]["shape"] is not None]
        for name in self.dump["outputs"]:
            tensors += self.split.get(name, [])
        returned = self._returned(source, function)
        return as_run(
            source,
            function,
            list(self.inputs),
            dict(self._arguments(function)),
            list(dict.fromkeys(tensors)),
            returned,
            self.changes,
        )

    def _arguments(self, function: Function) -> Iterator[tuple[str, str]]:
        """Yield each parameter of the reference with the expression that is passed."""
        facts = self.sketch.get("inputs", {})
        for name, has_default in parameters(function).items():
            of_param = [
                n for n, f in facts.items() if f["param"] == name and n in self.inputs
            ]
            if name in self.inputs:
                bits = f".view(torch.{self.bits[name]})" if name in self.bits else ""
                yield name, f"{name}{bits}"
            elif of_param and facts[of_param[0]]["tuple_idx"] is not None:
                ordered = sorted(of_param, key=lambda n: facts[n]["tuple_idx"])
                yield name, f"({', '.join(ordered)},)"
            elif name in self.split:
                yield name, f"({', '.join(self.split[name])},)"
            elif of_param:
                self.changes.add(f"the parameter {name} gets the input {of_param[0]}")
                yield name, of_param[0]
            elif (fixed := _literal(self.made.get(name))) is not None:
                if not has_default or repr(_default(function, name)) != fixed:
                    self.changes.add(f"bound {name} to {fixed}, as init passes it")
                    yield name, fixed
            elif has_default:
                const = self._const(name)
                if const is not None and _default(function, name) != const:
                    self.changes.add(f"bound {name} to the size of the axis: {const}")
                    yield name, str(const)
            elif (size := self._size(name)) is not None:
                self.changes.add(f"bound {name} to the size of the axis: {size}")
                yield name, size
            elif name in self.dump["inputs"]:
                self.changes.add(f"bound the optional input {name} to None")
                yield name, "None"
            elif name in self.made or name.startswith("workspace"):
                self.changes.add(f"bound {name} to None: a buffer of the kernel")
                yield name, "None"
            else:
                raise ImportRefused(f"its reference requires {name}, which is no input")
        if function.args.kwarg is None:
            unread = [n for n in self.inputs if n not in parameters(function)]
            passed = {n for n, f in facts.items() if f["param"] in parameters(function)}
            for name in unread:
                if name not in passed:
                    self.changes.add(f"the reference does not read {name}")

    def _size(self, axis: str) -> str | None:
        """Return the expression of an axis' size, None where no input has it."""
        const = self._const(axis)
        if const is None and (self.dump["axes"].get(axis) or {}).get("type") == "const":
            const = (self.sketch.get("axes") or {}).get(axis)
        if const is not None:
            return str(const)
        for name, spec in self.inputs.items():
            if axis in (spec["shape"] or ()):
                return f"{name}.shape[{spec['shape'].index(axis)}]"
        return None

    def _returned(self, source: str, function: Function) -> list[str] | None:
        """Return the expressions that `run` returns, None for all of the reference's.

        Outputs that the reference does not compute are left out.
        """
        dumped = self.init.get("returned") or self.sketch.get("returned")
        count = len(dumped) if dumped else returned_count(source, function)
        if dumped and dumped[0] == {"value": None}:
            count = 0
        carried = [n for n in self.outputs if n in self.bits or n in self.casts]
        if count is None or count == len(self.outputs):
            if not carried:
                return None
            if count is None:
                raise ImportRefused(
                    "how many outputs its reference returns is not clear"
                )
        if len(self.outputs) != len(self.dump["outputs"]):
            raise ImportRefused("its reference does not return the parts of a tuple")
        names = list(zip(self.outputs, self.dump["outputs"].items(), strict=True))
        written = set(written_inputs(function))
        expressions: list[str] = []
        for place, (new, (name, spec)) in enumerate(names):
            param = spec.get("param") or name
            if place < count:
                bits = self.casts.get(new, "")
                if new in self.bits:
                    bits += f".view(torch.{CARRIERS[self.bits[new]]})"
                one = "returned" if count == 1 else f"returned[{place}]"
                expressions.append(f"{one}{bits}")
            elif {param, name} & written & set(self.inputs):
                expressions.append(param if param in self.inputs else name)
                self.changes.add(f"{new} is what the reference writes to {param}")
            else:
                del self.outputs[new]
                self.changes.add(
                    f"left out the output {new}, which the reference does not return"
                )
        if not expressions:
            raise ImportRefused("its reference neither returns nor writes its outputs")
        if count and len(expressions) == count and not carried:
            return None
        return expressions

    # ---- axes and constraints

    def _declare_axes(self) -> None:
        tensors = {**self.inputs, **self.outputs}
        used = [axis for spec in tensors.values() for axis in spec["shape"] or ()]
        of_inputs = {a for spec in self.inputs.values() for a in spec["shape"] or ()}
        known = {*self.dump["axes"], *used, *self.inputs}
        constraints = [set(_names(c)) for c in self.dump.get("constraints", ())]
        named = {n for names in constraints if names <= known for n in names}
        sizes = {**(self.sketch.get("axes") or {}), **self.sizes}
        for axis, declared in self.dump["axes"].items():
            if axis not in used and axis not in named:
                if declared.get("type") != "const":
                    self.changes.add(f"left out the axis {axis}: no shape has it")
                    continue
                if declared.get("value", sizes.get(axis)) is None:
                    self.changes.add(f"left out the axis {axis}: it has no value")
                    continue
            fields = {"type": declared.get("type", "var")}
            is_returned = not self.init and axis in self.sizes and axis not in of_inputs
            if fields["type"] == "var" and is_returned:
                fields = {"type": "const", "value": self.sizes[axis]}
                self.changes.add(
                    f"the axis {axis} is {self.sizes[axis]}, as the reference returns it"
                )
            elif fields["type"] == "const":
                value = declared.get("value", sizes.get(axis))
                if value is None:
                    raise ImportRefused(f"its constant axis {axis} has no value")
                if "value" not in declared:
                    self.changes.add(f"the axis {axis} is {value}, {self._who(axis)}")
                fields["value"] = value
            if declared.get("description"):
                fields["description"] = str(declared["description"])
            self.axes[axis] = fields
        for axis in dict.fromkeys(used):
            if axis not in self.axes:
                self.axes[axis] = {"type": "var"}
                self.changes.add(f"declared the axis {axis}")
        lowered: dict[str, str] = {}
        for axis in self.axes:
            other = lowered.setdefault(axis.upper(), axis)
            if other != axis:
                raise ImportRefused(f"its axes {other} and {axis} differ only by case")

    def _who(self, axis: str) -> str:
        """Return who gives the size of a constant axis that the template leaves open."""
        if self.init:
            return "as init makes it"
        stated = self.sketch.get("stated", {}).get(axis)
        return f"{stated} by its description" if stated else "as templates have it"

    def _constraints(self) -> list[str]:
        known = {*self.axes, *self.inputs}
        constraints = []
        for constraint in self.dump.get("constraints", ()):
            unknown = sorted(set(_names(constraint)) - known)
            if unknown or not _parses(constraint):
                self.changes.add(f"left out the constraint {constraint!r}")
            else:
                constraints.append(constraint)
        for axis, declared in self.axes.items():
            stated = self.sketch.get("stated", {}).get(axis)
            if axis not in self.dump["axes"]:
                constraints += self._derived(axis)
            elif (
                stated
                and declared["type"] == "var"
                and known.issuperset(names_in(stated))
            ):
                constraints.append(f"{axis} == {stated}")
        return constraints

    def _derived(self, axis: str) -> Iterator[str]:
        """Yield what the name of an undeclared axis says, where its size agrees."""
        size = self.sizes.get(axis)
        plus, divided = _PLUS_ONE.fullmatch(axis), _DIVIDED.fullmatch(axis)
        if plus and self.sizes.get(plus[1], self._const(plus[1])) is not None:
            yield f"{axis} == {plus[1]} + {plus[2]}"
        elif divided and size:
            by = divided[2]
            whole = self.sizes.get(divided[1], self._const(divided[1]))
            part = int(by) if by.isdigit() else self.sizes.get(by, self._const(by))
            if whole is not None and part and whole == size * part:
                yield f"{axis} == {divided[1]} // {by}"

    # ---- custom inputs

    def _custom(self, value: Mapping[str, Any], function: Function) -> str:
        sizes = {**(self.sketch.get("axes") or {}), **self.sizes}
        variable = [n for n, a in self.axes.items() if a["type"] == "var"]
        # a default of 0 says that the size follows from others
        defaults = {n: v for n, v in self.init.get("defaults", {}).items() if v}
        for axis, size in {**defaults, **self.init.get("call", {})}.items():
            if sizes.get(axis) is None:
                sizes[axis] = size
        unknown = [axis for axis in variable if sizes.get(axis) is None]
        if "inputs" not in self.sketch:
            if self.dump.get("init"):
                self.changes.add("left out init: what it makes is not known")
            return ""
        if unknown and self.init:
            self.init = {}
            of_axes = ", ".join(unknown)
            self.changes.add(f"left out init: the sizes of {of_axes} are not known")
        sizes |= dict.fromkeys(unknown, _FREE_SIZE)
        facts = self.sketch["inputs"]
        arguments = {
            name: (
                self._alias(name, facts[name]["param"] or name),
                facts[name]["tuple_idx"],
            )
            for name in self.inputs
            if name in facts
        }
        for name, parts in self.split.items():
            param = facts[name]["param"] or name
            arguments |= {part: (param, i) for i, part in enumerate(parts)}
        outputs = {}
        for place, (name, spec) in enumerate(self.dump["outputs"].items()):
            new = name if name in self.outputs else f"{name}_out"
            if new in self.outputs:
                argument = spec.get("param") or (name if new != name else None)
                source = self.sketch.get("outputs", {}).get(name, {}).get("dtype_from")
                is_silent = self.sketch.get("returns_nothing") and not argument
                if is_silent and source not in (None, new):
                    argument = source
                    self.changes.add(
                        f"{new} is read from {argument}, which its dtype is from: the "
                        "function returns nothing"
                    )
                outputs[new] = (place, argument)
            for number, part in enumerate(self.split.get(name, ())):
                outputs[f"{part}_out"] = (number, spec.get("param") or name)
        return custom_text(
            value["name"],
            f"FlashInfer {self.version}".strip(),
            str(self.sketch["template"]),
            call=self.init.get("call", {}),
            case={axis: sizes[axis] for axis in variable},
            arguments=arguments,
            outputs=outputs,
            apis=self.sketch["apis"],
            init=str(self.dump["init"]) if self.init else "",
            module=Path(where) if (where := self.sketch.get("init_module")) else None,
            check=str(self.dump.get("check", "")),
        )


def _literal(description: Mapping[str, Any] | None) -> str | None:
    """Return the expression of a plain value, None of what has none."""
    if description is None:
        return None
    if "value" in description:
        return repr(description["value"])
    return str(description["torch"]) if "torch" in description else None


def _default(function: Function, name: str) -> Any:
    try:
        return default_of(function, name)
    except KeyError:
        return ast


def _names(constraint: Any) -> list[str]:
    return sorted(names_in(constraint)) if isinstance(constraint, str) else []


def _parses(constraint: Any) -> bool:
    try:
        parse_expression(constraint)
    except (Unparsable, AttributeError):
        return False
    return True
