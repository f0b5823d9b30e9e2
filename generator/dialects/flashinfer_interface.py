"""Inputs and outputs of a definition, derived from a dump of a FlashInfer call."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

from generator.dataset.schema import load_schema
from generator.dialects.imported import Changes, ImportRefused
from generator.dialects.reference_text import (
    Function,
    parameters,
)

OPEN_DTYPE = "bfloat16"
"""The dtype of tensors whose dtype a template leaves to the caller."""

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_QUANTISED = re.compile(r"fp4|fp8|mxfp|int4|nvfp|quant|scales?$|_sf$")
_INDICES = re.compile(r"(indptr|indices|ids|lens?|table|positions)$")
_OPERAND = re.compile(r"weights?$|hidden_states$|^[aAbBxqkv]$|cache$")
# what a description calls a tensor → its dtype, and that of its scales
_STATED = {
    "fp4|e2m1": ("uint8", "float8_e4m3fn"),
    "int4": ("uint8", "bfloat16"),
    "bf16|bfloat16": ("bfloat16", "float32"),
    "fp8|e4m3": ("float8_e4m3fn", "float32"),
}
_SCALARS = {"int32": int, "int64": int, "float32": (int, float), "bool": (bool, int)}
# dtypes that the format does not have → those that hold the same bits
CARRIERS = {"float8_e8m0fnu": "uint8", "uint32": "int32"}
_REQUIRED = {"name": str, "op_type": str, "axes": dict, "inputs": dict, "outputs": dict}


class DumpInterface:
    """The inputs and outputs of one dump; the fields are the definition so far."""

    def __init__(
        self, sketch: Mapping[str, Any], changes: Changes, version: str
    ) -> None:
        if "failure" in sketch:
            raise ImportRefused(str(sketch["failure"]))
        self.sketch, self.changes, self.version = sketch, changes, version
        self.dump: Mapping[str, Any] = sketch["dump"]
        self.init: Mapping[str, Any] = sketch.get("init") or {}
        self.made: Mapping[str, Any] = self.init.get("made", {})
        self.sizes: dict[str, int] = {}
        self.axes: dict[str, Any] = {}
        self.inputs: dict[str, dict[str, Any]] = {}
        self.outputs: dict[str, dict[str, Any]] = {}
        # inputs that were tuples → the inputs that they became
        self.split: dict[str, list[str]] = {}
        # input or output → its dtype where another one carries its bits
        self.bits: dict[str, str] = {}
        # output → how what the reference returns becomes of its dtype
        self.casts: dict[str, str] = {}
        self.dtypes = load_schema("definition")["$defs"]["tensor"]["properties"][
            "dtype"
        ]["enum"]

    def _check_form(self) -> None:
        if not isinstance(self.dump, Mapping):
            raise ImportRefused("it is no JSON object")
        for field, kind in _REQUIRED.items():
            if not isinstance(self.dump.get(field), kind):
                raise ImportRefused(
                    f"its field {field} is missing or has the wrong type"
                )
        for field in ("inputs", "outputs"):
            for name, spec in self.dump[field].items():
                shape = spec.get("shape") if isinstance(spec, dict) else 0
                is_list = isinstance(shape, list) and all(
                    isinstance(d, str) for d in shape
                )
                if not (shape is None or is_list):
                    raise ImportRefused(f"{field}/{name} has no shape of axis names")
                if not isinstance(spec.get("dtype"), str):
                    raise ImportRefused(f"{field}/{name} has no dtype")
                if not NAME.fullmatch(name):
                    raise ImportRefused(
                        f"the name {name!r} of {field} is no identifier"
                    )
        if not NAME.fullmatch(self.dump["op_type"]):
            raise ImportRefused(
                f"its op_type {self.dump['op_type']!r} is no identifier"
            )
        if not self.dump["outputs"]:
            raise ImportRefused("it has no outputs")

    def _made(self, name: str) -> Mapping[str, Any] | None:
        """Return what init makes of an input, None where it makes nothing."""
        facts = self.sketch.get("inputs", {}).get(name, {})
        argument = facts.get("param") or name
        made = self.made.get(argument)
        if argument not in self.made and facts:
            made = self.made.get(self._alias(name, argument))
        place = facts.get("tuple_idx")
        if made is not None and place is not None:
            items = made.get("items", [])
            made = items[place] if place < len(items) else None
        return None if made == {"value": None} else made

    def _alias(self, name: str, argument: str) -> str:
        """Return the one argument of init whose name ends an input's: `indptr`."""
        if argument in self.made:
            return argument
        ends = [
            n
            for n in self.made
            if argument.endswith(f"_{n}") or n.endswith(f"_{argument}")
        ]
        if len(ends) == 1 and ends[0] not in self.dump["inputs"]:
            self.changes.add(f"{name} is what init calls {ends[0]}")
            return ends[0]
        return argument

    def _is_needed(self, name: str, function: Function) -> bool:
        """Return whether the reference does not do without an optional input."""
        if name in self.sketch.get("needed", ()):
            return True
        if parameters(function).get(name, True):
            return False
        compared = {
            node.left.id
            for node in ast.walk(function)
            if isinstance(node, ast.Compare)
            and isinstance(node.left, ast.Name)
            and isinstance(node.ops[0], (ast.Is, ast.IsNot))
        }
        return name not in compared

    def _passes_none(self, name: str) -> bool:
        """Return whether init says that an optional input is not given."""
        facts = self.sketch.get("inputs", {}).get(name, {})
        return self.made.get(facts.get("param") or name) == {"value": None}

    def _find_inputs(self, function: Function) -> None:
        for name, spec in self.dump["inputs"].items():
            made = self._made(name)
            if spec["shape"] is None:
                self._scalar(name, spec, made, function)
            elif (
                spec.get("optional")
                and made is None
                and (self._passes_none(name) or not self._is_needed(name, function))
            ):
                self.changes.add(f"left out the optional input {name}")
            elif made is not None and made.get("items"):
                self._tuple(name, spec, made["items"])
            else:
                self._tensor(name, spec, made)
        if not self.inputs:
            raise ImportRefused("no input is left that is always passed")

    def _scalar(
        self,
        name: str,
        spec: Mapping[str, Any],
        made: Mapping[str, Any] | None,
        function: Function,
    ) -> None:
        known = parameters(function)
        kind: Any = _SCALARS.get(spec["dtype"])
        if made is not None and "tensor" in made and not made["tensor"]:
            self.inputs[name] = self._spec(spec, shape=[], dtype=made["dtype"])
            self.changes.add(f"{name} is a 0-d tensor, as init makes it")
        elif made is not None and not (kind and isinstance(made.get("value"), kind)):
            self.changes.add(f"fixed {name} to what init passes: {_words(made)}")
        elif made is None and (spec.get("optional") or known.get(name) or self.init):
            if kind is None or not self._is_needed(name, function):
                self.changes.add(
                    f"left out the scalar {name}, which is not always passed"
                )
                return
            self.changes.add(f"the optional input {name} is required: run() reads it")
            self.inputs[name] = self._spec(spec, shape=None, dtype=spec["dtype"])
        elif kind is None:
            raise ImportRefused(f"the scalar {name} is of the type {spec['dtype']}")
        else:
            if spec.get("optional"):
                self.changes.add(
                    f"the optional input {name} is required: init passes it"
                )
            self.inputs[name] = self._spec(spec, shape=None, dtype=spec["dtype"])

    def _tuple(
        self, name: str, spec: Mapping[str, Any], items: list[Mapping[str, Any]]
    ) -> None:
        if not all("tensor" in item for item in items):
            raise ImportRefused(f"init makes a tuple of {name}, not only of tensors")
        self.split[name] = [f"{name}_{i}" for i in range(len(items))]
        for part, item in zip(self.split[name], items, strict=True):
            self._tensor(part, {**spec, "dtype": item["dtype"]}, item)
        self.changes.add(f"{name} is a tuple: became {', '.join(self.split[name])}")

    def _tensor(
        self, name: str, spec: Mapping[str, Any], made: Mapping[str, Any] | None
    ) -> None:
        if made is not None and "tensor" not in made:
            raise ImportRefused(f"init makes {_words(made)} of {name}, not a tensor")
        shape, dtype = list(spec["shape"]), spec["dtype"]
        if made is not None:
            if len(made["tensor"]) != len(shape):
                self.changes.add(
                    f"{name} has {len(made['tensor'])} dimensions, as init makes it, "
                    f"not {len(shape)}"
                )
                shape = [f"{name}_dim{i}" for i in range(len(made["tensor"]))]
            if dtype == "unknown":
                self.changes.add(f"{name} is {made['dtype']}, as init makes it")
            dtype = made["dtype"]
            shape = self._fit(name, shape, made["tensor"])
            if spec.get("optional"):
                self.changes.add(
                    f"the optional input {name} is required: init passes it"
                )
        if dtype == "unknown":
            dtype = self._open_dtype(name)
        dtype = self._carried(name, dtype)
        shape = self._named(name, shape)
        self.inputs[name] = self._spec(spec, shape=shape, dtype=dtype)

    def _carried(self, name: str, dtype: str) -> str:
        """Return the dtype that holds the bits of one; raise Refused where none does."""
        if dtype in CARRIERS:
            self.changes.add(f"{name} is {CARRIERS[dtype]}: the bits of {dtype}")
            self.bits[name] = dtype
            return CARRIERS[dtype]
        if dtype not in self.dtypes:
            raise ImportRefused(f"{name} is {dtype}, which the format does not have")
        return dtype

    def _open_dtype(self, name: str) -> str:
        facts = self.sketch.get("inputs", {}).get(name, {})
        if facts.get("dtype"):
            self.changes.add(f"{name} is {facts['dtype']}, as its template hints")
            return str(facts["dtype"])
        words = f"{name} {self.dump['inputs'][name].get('description') or ''}"
        dtype = _dtype_in_words(words, self._title())
        if dtype is not None:
            self.changes.add(f"{name} is {dtype}, by its description")
            return dtype
        if _QUANTISED.search(words.lower()) or (
            _QUANTISED.search(self._title()) and _OPERAND.search(name)
        ):
            why = self.sketch.get("why") or "the dump does not say"
            raise ImportRefused(f"the dtype of {name} is not known: {why}")
        dtype = "int32" if _INDICES.search(name) else OPEN_DTYPE
        self.changes.add(f"{name} is {dtype}: its dtype is left to the caller")
        return dtype

    def _title(self) -> str:
        """Return what the dump says of itself besides its inputs, in small letters."""
        words = [self.dump["name"], self.dump["op_type"], *self.dump.get("tags", ())]
        return " ".join(map(str, words)).lower()

    def _fit(self, name: str, shape: list[str], made: list[int]) -> list[str]:
        """Return the axes of a tensor; one of another size is an axis of its own."""
        fitted = []
        for place, (axis, size) in enumerate(zip(shape, made, strict=True)):
            known = self.sizes.get(axis, self._const(axis))
            if not NAME.fullmatch(axis) or (known is not None and known != size):
                renamed = f"{name}_dim{place}"
                self.changes.add(
                    f"dimension {place} of {name} is {renamed}, not {axis}"
                )
                axis = renamed
            self.sizes[axis] = size
            fitted.append(axis)
        return fitted

    def _named(self, name: str, shape: list[str]) -> list[str]:
        """Return the axes of a tensor; a size in place of one is an axis of its own."""
        sizes = list(shape)
        for i, axis in enumerate(sizes):
            if not NAME.fullmatch(axis):
                sizes[i] = f"{name}_dim{i}"
                self.sizes[sizes[i]] = int(axis) if axis.isdigit() else 1
                self.changes.add(f"dimension {i} of {name} is {sizes[i]}, not {axis}")
        return sizes

    def _const(self, axis: str) -> int | None:
        declared = self.dump["axes"].get(axis) or {}
        value = declared.get("value") if declared.get("type") == "const" else None
        return value if isinstance(value, int) else None

    @staticmethod
    def _spec(spec: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
        described = {**fields}
        if spec.get("description"):
            described["description"] = str(spec["description"])
        return described

    # ---- outputs

    def _find_outputs(self) -> None:
        returned = self.init.get("returned") or self.sketch.get("returned") or []
        outputs = dict(self.dump["outputs"])
        for place, (name, spec) in enumerate(outputs.items()):
            facts = self.sketch.get("outputs", {}).get(name, {})
            shown = returned[place] if len(returned) == len(outputs) else None
            new = name
            if name in self.split:
                for part in self.split[name]:
                    self.outputs[f"{part}_out"] = dict(self.inputs[part])
                parts = ", ".join(f"{part}_out" for part in self.split[name])
                self.changes.add(f"the output {name}, written in place, became {parts}")
                continue
            if name in self.dump["inputs"]:
                new = f"{name}_out"
                self.changes.add(f"the output {name}, written in place, became {new}")
            dtype = spec["dtype"]
            shape = spec["shape"]
            if shown is not None and "tensor" in shown:
                dtype = self._dtype_returned(new, name, spec, shown["dtype"])
                if shape is not None and len(shown["tensor"]) != len(shape):
                    shape = [f"{new}_dim{i}" for i in range(len(shown["tensor"]))]
                    self.changes.add(f"{new} has the shape that the reference returns")
                shape = self._fit(new, list(shape or ()), shown["tensor"])
            if dtype == "unknown":
                dtype = self._dtype_of_output(new, name, spec, facts)
            dtype = self._carried(new, dtype)
            named = None if shape is None else self._named(new, shape)
            self.outputs[new] = self._spec(spec, shape=named, dtype=dtype)

    def _dtype_returned(
        self, new: str, name: str, spec: Mapping[str, Any], returned: str
    ) -> str:
        """Return the dtype of an output that the reference returns in one of its own.

        The kernel's is that of the buffer it fills, else what the template declares.
        """
        buffer = self.made.get(spec.get("param") or name) or {}
        dtype = str(buffer.get("dtype") or spec["dtype"])
        if returned == dtype or dtype == "unknown":
            return returned
        plain = {"float32", "float16", "bfloat16"}
        if {returned, dtype} <= plain or ("dtype" in buffer and dtype in plain):
            self.casts[new] = f".to(torch.{dtype})"
        elif {returned, dtype} <= {"uint8", "float8_e4m3fn", "float8_e8m0fnu"}:
            self.casts[new] = f".view(torch.{dtype})"
        else:
            self.changes.add(
                f"{new} is {returned}, as the reference returns it, not {dtype}"
            )
            return returned
        self.changes.add(f"{new} is made {dtype}: the reference returns {returned}")
        return dtype

    def _dtype_of_output(
        self, new: str, name: str, spec: Mapping[str, Any], facts: Mapping[str, Any]
    ) -> str:
        shape = spec["shape"] or ()
        likely = [facts.get("dtype_from"), facts.get("param"), name]
        likely += [
            n for n, s in self.inputs.items() if set(s["shape"] or ()) & set(shape)
        ]
        for other in likely:
            if other in self.inputs and self.inputs[other]["shape"] is not None:
                dtype = str(self.inputs[other]["dtype"])
                self.changes.add(f"{new} is {dtype}, as the input {other} is")
                return dtype
        raise ImportRefused(f"the dtype of the output {name} is not known")

    # ---- the reference


def _dtype_in_words(words: str, title: str) -> str | None:
    """Return the dtype that the words about a tensor state; of scales also the title."""
    words = words.lower()
    is_scale = "scale" in words or words.endswith("_sf")
    if re.search(r"ue8m0|e8m0", words):
        return "uint8"
    for where in (words, title) if is_scale else (words,):
        for word, dtypes in _STATED.items():
            if re.search(word, where):
                return dtypes[is_scale]
    return None


def _words(made: Mapping[str, Any]) -> str:
    if "value" in made:
        return repr(made["value"])
    return str(made.get("torch") or made.get("object") or "a tensor or a list")
