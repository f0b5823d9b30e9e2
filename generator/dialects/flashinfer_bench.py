"""flashinfer-bench's datasets: what it writes is read, what it can't load is named.

Both formats have the same files; its loader knows neither uint8 nor optional inputs, and
drops unknown fields. It writes definitions without the fields that nobody set.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from generator.dataset.definition import LoadedDefinition
from generator.dataset.file_reading import walk_files
from generator.dataset.json_file import read_json, read_json_lines
from generator.dataset.schema import check, load_schema
from generator.dialects.exported import interface
from generator.dialects.imported import Changes, Import, ImportRefused


def read(source: Path) -> Iterator[Import]:
    """Yield what each definition of a dataset becomes, with its workloads."""
    workloads: dict[str, list[Any]] = {}
    for name in walk_files(source, "workloads", ".jsonl"):
        for _, line in read_json_lines(source, name).lines:
            if isinstance(line, dict):
                workloads.setdefault(str(line.get("definition")), []).append(line)
    solutions: dict[str, list[Any]] = {}
    for name in walk_files(source, "solutions", ".json"):
        read = read_json(source, name)
        if read.ok and isinstance(read.value, dict):
            solutions.setdefault(str(read.value.get("definition")), []).append(
                read.value
            )
    for name in walk_files(source, "definitions", ".json"):
        changes = Changes()
        try:
            yield _definition(source, name, changes, workloads, solutions)
        except ImportRefused as error:
            yield Import(name, reason=str(error), changes=changes.lines)


def _definition(
    source: Path,
    name: str,
    changes: Changes,
    workloads: Mapping[str, list[Any]],
    solutions: Mapping[str, list[Any]],
) -> Import:
    read = read_json(source, name)
    if not read.ok or read.problems:
        raise ImportRefused(read.problems[0].message)
    value = _known(read.value, load_schema("definition"), "", changes)
    if isinstance(value, dict):
        for axis, fields in (value.get("axes") or {}).items():
            if isinstance(fields, dict) and "type" not in fields:
                fields["type"] = "const" if "value" in fields else "var"
                changes.add(f"the axis {axis} is {fields['type']}")
    broken = check(value, "definition", name)
    if broken:
        raise ImportRefused(f"{broken[0].pointer}: {broken[0].message}")
    of_definition = [_sorted_line(line) for line in workloads.get(value["name"], ())]
    return Import(
        name,
        value,
        changes=changes.lines,
        workloads=of_definition,
        folder=source,
        solutions=[
            s
            for s in solutions.get(value["name"], ())
            if not check(s, "solution", name)
        ],
    )


def _sorted_line(line: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "definition": line.get("definition"),
        "workload": line.get("workload"),
        "solution": None,
        "evaluation": None,
    }


def _known(value: Any, schema: Mapping[str, Any], where: str, changes: Changes) -> Any:
    """Return an object without nulls and without the fields that no model has."""
    if not isinstance(value, dict):
        return value
    known = schema.get("properties", {})
    for field in [f for f in value if f not in known]:
        changes.add(f"left out the field {field}, which is not one of the format's")
    kept = {f: v for f, v in value.items() if f in known and v is not None}
    tensor = set(schema["$defs"]["tensor"]["properties"])
    axis = set(schema["$defs"]["axis"]["properties"])
    for group, fields in (("axes", axis), ("inputs", tensor), ("outputs", tensor)):
        if isinstance(kept.get(group), dict):
            kept[group] = {
                name: {
                    f: v
                    for f, v in spec.items()
                    if f in fields and (v is not None or f == "shape")
                }
                if isinstance(spec, dict)
                else spec
                for name, spec in kept[group].items()
            }
    return kept


def export(
    definition: LoadedDefinition, workloads: list[Mapping[str, Any]]
) -> tuple[dict[str, str], list[str]]:
    """Return the files of one definition, by path, and what is lost on the way.

    Raises Refused for what its models don't have.
    """
    lost: list[str] = []
    axes, tensors = interface(definition, "flashinfer-bench", lost)
    value: dict[str, Any] = {"name": definition.name, "op_type": definition.op_type}
    if definition.description:
        value["description"] = definition.description
    value |= {"tags": list(definition.tags), "axes": axes}
    value |= {"constraints": list(definition.constraints), **tensors}
    value["reference"] = definition.reference
    path = f"{definition.op_type}/{definition.name}"
    files = {
        f"definitions/{path}.json": json.dumps(value, indent=2, ensure_ascii=False)
        + "\n"
    }
    if workloads:
        text = "".join(f"{json.dumps(line)}\n" for line in workloads)
        files[f"workloads/{path}.jsonl"] = text
    return files, lost
