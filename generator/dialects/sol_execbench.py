"""SOL-ExecBench's problems as definitions with workloads, and the way back.

A problem is a folder with definition.json, workload.jsonl of bare workloads and perhaps
solution.json. What the format here does not have is kept in tags, in the constraints or
in a comment of the reference, so that an export finds it again.
"""

from __future__ import annotations

import ast
import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from generator.dataset.definition import LoadedDefinition
from generator.dataset.file_reading import walk_files
from generator.dataset.json_file import read_json, read_json_lines
from generator.dataset.python_source import Unparsable, parse_expression
from generator.dataset.schema import load_schema
from generator.dialects.exported import interface
from generator.dialects.imported import Changes, Import, ImportRefused
from generator.dialects.reference_text import as_run, parameters, reference_function

_KEPT = "# sol-execbench: "
"""Before the JSON of what has no field here, in the last line of the reference."""

_OPERATORS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def read(source: Path) -> Iterator[Import]:
    """Yield what each problem below a folder becomes; nothing of it is executed."""
    for path in walk_files(source, "", "/definition.json"):
        name = path.rpartition("/")[0]
        folder = source / name
        changes = Changes()
        try:
            yield _problem(name, folder, changes)
        except ImportRefused as error:
            yield Import(name, reason=str(error), changes=changes.lines)


def _json(folder: Path, name: str) -> Any:
    read = read_json(folder, name)
    if not read.ok or read.problems:
        raise ImportRefused(f"{name}: {read.problems[0].message}")
    return read.value


def _problem(source: str, folder: Path, changes: Changes) -> Import:
    problem = _json(folder, "definition.json")
    if not isinstance(problem, dict):
        raise ImportRefused("definition.json is no object")
    for field in ("name", "axes", "inputs", "outputs", "reference"):
        if not problem.get(field):
            raise ImportRefused(f"its definition has no {field}")
    fields: dict[str, Any] = {}
    name = re.sub(r"\W+", "_", str(problem["name"]), flags=re.ASCII)
    if not _NAME.match(name):
        name = f"sol_{name}"
    if name != problem["name"]:
        fields["name"] = problem["name"]
        changes.add(f"name {problem['name']} written {name}")
    op_type = problem.get("op_type")
    if not isinstance(op_type, str) or not _NAME.fullmatch(op_type):
        changes.add(f"op_type {op_type!r} became sol_execbench")
        fields["op_type"] = op_type
        op_type = "sol_execbench"
    axes, constraints = _axes(problem["axes"], fields, changes)
    inputs = _tensors(problem["inputs"], axes, fields, changes)
    outputs = _tensors(problem["outputs"], axes, fields, changes)
    for field in ("hf_id", "custom_inputs_entrypoint"):
        if problem.get(field):
            fields[field] = problem[field]
            changes.add(f"kept {field} in a comment of the reference")
    reference = _reference(str(problem["reference"]), list(inputs), changes)
    workloads = list(_workloads(folder, name, fields, changes))
    if fields:
        reference = f"{reference.rstrip()}\n\n{_KEPT}{json.dumps(fields)}\n"
    value: dict[str, Any] = {"name": name, "op_type": op_type}
    if problem.get("description"):
        value["description"] = problem["description"]
    value |= {"tags": ["status:unverified"], "axes": axes}
    if constraints:
        value["constraints"] = constraints
    value |= {"inputs": inputs, "outputs": outputs, "reference": reference}
    return Import(
        source, value, changes=changes.lines, workloads=workloads, folder=folder
    )


def _axes(
    specs: Mapping[str, Any], kept: dict[str, Any], changes: Changes
) -> tuple[dict[str, Any], list[str]]:
    """Return axes and constraints; an expression over constants is a constant."""
    axes: dict[str, Any] = {}
    constraints = []
    for name, axis in specs.items():
        if not isinstance(axis, dict):
            raise ImportRefused(f"its axis {name} is no object")
        kind = axis.get("type")
        described = (
            {"description": axis["description"]} if axis.get("description") else {}
        )
        if kind != "expr":
            fields = {"type": kind, "value": axis.get("value")}
            axes[name] = {n: v for n, v in fields.items() if v is not None} | described
            continue
        expression = str(axis.get("expression"))
        kept.setdefault("axes", {})[name] = axis
        constants = {n: a["value"] for n, a in axes.items() if "value" in a}
        try:
            size = evaluate(expression, constants)
        except KeyError:
            axes[name] = {"type": "var"} | described
            constraints.append(f"{name} == {expression}")
            changes.add(f"axis {name} is variable, with the constraint {expression}")
        else:
            axes[name] = {"type": "const", "value": size} | described
            changes.add(f"axis {name} = {expression} evaluated to {size}")
    return axes, constraints


def evaluate(expression: str, sizes: Mapping[str, int]) -> int:
    """Return the integer of an expression over axes.

    Raises KeyError for an axis without a size, Refused for another expression.
    """

    def of(node: ast.expr) -> Any:
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            return node.value
        if isinstance(node, ast.Name):
            return sizes[node.id]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -of(node.operand)
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            left, right = of(node.left), of(node.right)
            if isinstance(node.op, ast.Pow) and not 0 <= right <= 64:
                raise ImportRefused(
                    f"the expression {expression!r} has too large a power"
                )
            return _OPERATORS[type(node.op)](left, right)
        raise ImportRefused(f"the expression {expression!r} is not one of sizes")

    try:
        value = of(parse_expression(expression))
    except (Unparsable, ArithmeticError, RecursionError) as error:
        raise ImportRefused(f"the expression {expression!r} has no value") from error
    if value != int(value) or not 0 <= value < 2**63:
        raise ImportRefused(f"the expression {expression!r} gives {value}, no size")
    return int(value)


def _tensors(
    specs: Any, axes: dict[str, Any], kept: dict[str, Any], changes: Changes
) -> dict[str, Any]:
    dtypes = load_schema("definition")["$defs"]["tensor"]["properties"]["dtype"]["enum"]
    tensors = {}
    for name, spec in specs.items():
        dtype = {"float4_e2m1fn_x2": "float4_e2m1"}.get(
            spec.get("dtype"), spec.get("dtype")
        )
        if dtype != spec.get("dtype"):
            kept.setdefault("dtypes", {})[name] = spec["dtype"]
            changes.add(f"{name} is {dtype}, which is {spec['dtype']} in torch")
        if dtype not in dtypes:
            raise ImportRefused(f"{name} is {dtype}, which the format does not have")
        shape = spec.get("shape")
        if shape is not None:
            for place, dim in enumerate(shape):
                if str(dim).isdigit():
                    shape = [*shape[:place], f"dim_{dim}", *shape[place + 1 :]]
                    axes.setdefault(f"dim_{dim}", {"type": "const", "value": int(dim)})
                    changes.add(
                        f"the literal size {dim} of {name} is the axis dim_{dim}"
                    )
        tensors[name] = {"shape": shape, "dtype": dtype}
        if spec.get("description"):
            tensors[name]["description"] = spec["description"]
    return tensors


def _reference(source: str, inputs: list[str], changes: Changes) -> str:
    function = reference_function(source)
    names = list(parameters(function))
    if len(names) < len(inputs):
        raise ImportRefused("its run() takes fewer parameters than there are inputs")
    # its parameters are the inputs in order, whatever they are called
    arguments = dict(zip(names, inputs, strict=False))
    return as_run(source, function, inputs, arguments, [], None, changes)


def _workloads(
    folder: Path, name: str, kept: dict[str, Any], changes: Changes
) -> Iterator[dict[str, Any]]:
    if not (folder / "workload.jsonl").is_file():
        return
    lines = read_json_lines(folder, "workload.jsonl")
    if lines.problems:
        raise ImportRefused(f"workload.jsonl: {lines.problems[0].message}")
    for number, workload in lines.lines:
        if not isinstance(workload, dict) or "uuid" not in workload:
            raise ImportRefused(f"workload.jsonl line {number} is no workload")
        given = workload.get("inputs", {})
        if not isinstance(given, dict) or any(
            not isinstance(value, dict) for value in given.values()
        ):
            raise ImportRefused(
                f"workload.jsonl line {number}#/inputs: each is an object"
            )
        inputs = {}
        custom = []
        for input_name, value in given.items():
            if value.get("type") == "custom":
                custom.append(input_name)
                value = {"type": "random"}
            inputs[input_name] = value
        lost = {}
        if workload.get("tolerance"):
            lost["tolerance"] = workload["tolerance"]
            changes.add("kept each workload's tolerance in a comment of the reference")
        if custom:
            lost["custom"] = custom
            changes.add("custom inputs became random ones; their names are kept")
        if lost:
            kept.setdefault("workloads", {})[str(workload["uuid"])] = lost
        yield {
            "definition": name,
            "workload": {
                "uuid": str(workload["uuid"]),
                "axes": workload.get("axes", {}),
                "inputs": inputs,
            },
            "solution": None,
            "evaluation": None,
        }


def export(
    definition: LoadedDefinition, workloads: list[Mapping[str, Any]]
) -> tuple[dict[str, str], list[str]]:
    """Return the files of a problem, by name, and what is lost on the way."""
    lost: list[str] = []
    source, _, line = definition.reference.rpartition(_KEPT)
    kept = json.loads(line) if source else {}
    reference = source.rstrip() + "\n" if source else definition.reference
    own_axes = kept.get("axes", {})
    if definition.tags:
        lost.append(f"tags: {', '.join(definition.tags)}")
    derived = {f"{name} == {axis['expression']}" for name, axis in own_axes.items()}
    plain = [c for c in definition.constraints if c not in derived]
    if plain:
        lost.append(f"constraints: {', '.join(plain)}")
    literal = {n for n in definition.axes if re.fullmatch(r"dim_[0-9]+", n)}
    axes, tensors = interface(definition, "SOL-ExecBench", lost)
    axes = {n: own_axes.get(n, axis) for n, axis in axes.items() if n not in literal}
    for name in definition.inputs:
        if name in definition.axes:
            raise ImportRefused(f"the input {name} is named as an axis")
    for spec_of in tensors.values():
        for name, spec in spec_of.items():
            spec["dtype"] = kept.get("dtypes", {}).get(name, spec["dtype"])
            if spec["shape"] is not None:
                spec["shape"] = [
                    d.removeprefix("dim_") if d in literal else d for d in spec["shape"]
                ]
    problem: dict[str, Any] = {"name": kept.get("name", definition.name)}
    op_type = kept.get("op_type", definition.op_type)
    if op_type:
        problem["op_type"] = op_type
    if definition.description:
        problem["description"] = definition.description
    for field in ("hf_id", "custom_inputs_entrypoint"):
        if field in kept:
            problem[field] = kept[field]
    problem |= {"axes": axes, **tensors, "reference": reference}
    lines = []
    for workload in workloads:
        bare = dict(workload["workload"])
        extra = kept.get("workloads", {}).get(bare["uuid"], {})
        if "tolerance" in extra:
            bare["tolerance"] = extra["tolerance"]
        if "custom" in extra:
            custom = {name: {"type": "custom"} for name in extra["custom"]}
            bare["inputs"] = {**bare["inputs"], **custom}
        lines.append(json.dumps(bare))
    files = {
        "definition.json": json.dumps(problem, indent=2, ensure_ascii=False) + "\n"
    }
    if lines:
        files["workload.jsonl"] = "\n".join(lines) + "\n"
    return files, lost
