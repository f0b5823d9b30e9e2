"""MCP tools about a dataset; they return the commands' JSON values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from generator import api
from generator.dataset.atomic_write import write_below
from generator.dataset.file_reading import read_bytes, walk_files
from generator.dataset.paths import is_portable
from generator.problems import Failure
from generator.problems.messages import did_you_mean, one_line, plural, quote
from generator.reports import printed
from generator.validation.validate import validation_report

_TRACE_BYTES = 16 << 20
_MOST_NAME = 200


def list_definitions(
    dataset: api.Dataset, op_type: str, contains: str, limit: int, offset: int
) -> dict[str, Any]:
    """Return names of definitions, sorted, those of an op_type or with a text in them."""
    op_types = sorted({file.op_type for file in dataset.files})
    if op_type and op_type not in op_types:
        known = did_you_mean(op_type, op_types)
        raise Failure(f"No op_type is named {quote(op_type)}.{known}")
    definitions = [
        file
        for file in dataset.files
        if op_type in ("", file.op_type) and contains in file.name
    ]
    shown = definitions[offset : offset + limit]
    return {
        "total": len(definitions),
        "op_types": op_types,
        "definitions": [{"name": f.name, "op_type": f.op_type} for f in shown],
    }


def show_definition(dataset: api.Dataset, name: str) -> dict[str, Any]:
    """Return the JSON value of a definition's file."""
    (file,) = dataset.of(name).files
    dataset.definition(name)
    value = json.loads(read_bytes(dataset.root, file.path))
    assert isinstance(value, dict)
    return value


def ground_truth(dataset: api.Dataset, name: str) -> dict[str, Any]:
    """Return which providers can be a definition's ground truth here, and why not."""
    resolutions = api.resolve(dataset.of(name))
    if not resolutions:
        raise Failure(f"{quote(name)} can't be rendered: validate_definition says why.")
    return resolutions[0].as_dict()


def list_cases(dataset: api.Dataset, name: str) -> dict[str, Any]:
    """Return the cases of a definition's op by name, size and axes, and its workloads."""
    from generator.rules.subjects import subject_of
    from kernel_judge.definition import LIMITS

    subject = subject_of(dataset.definition(name))
    cases = subject.cases(["small", "medium", "large", LIMITS])
    return {
        "cases": [
            {"name": case.name, "size": case.size, "axes": dict(case.axes)}
            for case in cases
        ],
        "workloads": dataset.workloads(name),
    }


def validate(dataset: api.Dataset, name: str, text: str) -> dict[str, Any]:
    """Return what `validate --json` says of a definition, or of the text of one."""
    if bool(name) == bool(text):
        raise Failure("give the name of a definition, or the text of one.")
    if name:
        return _validated(dataset.of(name))
    try:
        value = json.loads(text)
        op_type, own = str(value["op_type"]), str(value["name"])
    except (ValueError, TypeError, KeyError, RecursionError):
        raise Failure("the text is no JSON object with `name` and `op_type`.") from None
    for part in (op_type, own):
        if "/" in part or not is_portable(part) or not 0 < len(part) <= _MOST_NAME:
            raise Failure(f"{quote(part)} can't be the name of a file on all systems.")
        if part.startswith("."):
            raise Failure(f"{quote(part)} begins with a dot.")
    with TemporaryDirectory(prefix="trace-dataset-validate-") as folder:
        root = Path(folder)
        content = text.encode("utf-8", "backslashreplace")
        write_below(root, f"definitions/{op_type}/{own}.json", content)
        return _validated(api.Dataset(root))


def _validated(dataset: api.Dataset) -> dict[str, Any]:
    checked = api.validate(dataset)
    report = validation_report(checked.problems, checked.counts, notes=True)
    value = json.loads("".join(printed(report, "json")))
    assert isinstance(value, dict)
    return value


def times(dataset: api.Dataset, name: str, hardware: str) -> dict[str, Any]:
    """Return for each workload the light on a GPU, and the best time that traces state."""
    from generator.evaluation.against import times_in
    from generator.evaluation.clock.light import PEAKS, peak_of

    peak = peak_of(hardware)
    if peak is None:
        raise Failure(
            f"{quote(hardware)} has no known peaks. Known are: {', '.join(PEAKS)}."
        )
    definition = dataset.definition(name)
    paths = [
        path
        for path in sorted(walk_files(dataset.root, "traces", ".jsonl"))
        if path.endswith(f"/{definition.op_type}/{name}.jsonl")
    ]
    read = ((path, read_bytes(dataset.root, path, _TRACE_BYTES)) for path in paths)
    stated = {key: time for key, time in times_in(read).items() if key[0] == name}
    rows = []
    for workload in dataset.workloads(name):
        mine = {
            solution: time
            for (_, where, solution, uuid), time in stated.items()
            if uuid == workload.get("uuid") and where.startswith(hardware)
        }
        best = min(mine, key=lambda solution: mine[solution].latency, default=None)
        light, why = _light(definition, workload, peak)
        row = {"uuid": workload.get("uuid"), "axes": workload.get("axes")}
        row |= {"light_ms": light, "no_light_because": why, "best": best}
        row |= {"best_ms": mine[best].latency if best else None}
        rows.append(row)
    return {"definition": name, "hardware": hardware, "workloads": rows}


def _light(
    definition: Any, workload: Mapping[str, Any], peak: Any
) -> tuple[float | None, str]:
    """Return the least milliseconds of a workload, or why no bound is known."""
    import torch

    from generator.evaluation.clock.light import bound
    from generator.ops.work import work_of
    from generator.rules.subjects import declared_definition
    from kernel_judge.inputs.memory import dtype_of, shape_of

    known = declared_definition(definition)
    try:
        axes = {**known.axes, **workload["axes"]}
        inputs: dict[str, Any] = {}
        for input_name, spec in known.interface.input_specs.items():
            stated = workload["inputs"][input_name]
            if spec.shape is None:
                inputs[input_name] = stated.get("value")
            else:
                shape = shape_of(spec, axes)
                # shapes alone: nothing is allocated
                inputs[input_name] = torch.empty(
                    shape, dtype=dtype_of(spec.dtype), device="meta"
                )
        work = work_of(known, workload["axes"], inputs)
    except (ArithmeticError, KeyError, TypeError, ValueError, RuntimeError) as error:
        return None, one_line(f"the work depends on values ({type(error).__name__})")
    return bound(work, peak, 0).milliseconds, ""


def count_line(dataset: api.Dataset) -> str:
    """Return how many definitions there are: `3 definitions of 2 op_types`."""
    op_types = {file.op_type for file in dataset.files}
    of = plural(len(op_types), "op_type")
    return f"{plural(len(dataset.files), 'definition')} of {of}"
