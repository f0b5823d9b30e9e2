"""flashinfer-bench's own models judge generated variants beside the rules here."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from generator.dataset.schema import check
from generator.problems import Problem, has_errors
from tests.validating import validate

data = pytest.importorskip(
    "flashinfer_bench.data",
    reason="tools/dev.py installs it; pip install --no-deps flashinfer-bench==0.1.2",
)
pydantic = pytest.importorskip("pydantic")

ROOT = Path(__file__).resolve().parents[3]
ABSENT = object()
DEFINITION: dict[str, Any] = {
    "name": "scale_n4",
    "op_type": "scale",
    "description": "Double.",
    "tags": ["status:unverified"],
    "axes": {
        "m": {"type": "var", "description": "Rows."},
        "n": {"type": "const", "value": 4},
    },
    "constraints": ["n == 4"],
    "inputs": {
        "x": {"shape": ["m", "n"], "dtype": "float32", "description": "Values."}
    },
    "outputs": {"y": {"shape": ["m", "n"], "dtype": "float32"}},
    "reference": "def run(x):\n    return 2 * x\n",
}
SOLUTION: dict[str, Any] = {
    "name": "fast",
    "definition": "scale_n4",
    "author": "alice",
    "spec": {
        "language": "python",
        "target_hardware": ["cuda"],
        "entry_point": "main.py::run",
        "dependencies": ["torch"],
        "destination_passing_style": False,
        "binding": None,
    },
    "sources": [{"path": "main.py", "content": "def run(x):\n    return x + x\n"}],
    "description": "Adds.",
}
WORKLOAD: dict[str, Any] = {
    "uuid": "u",
    "axes": {"m": 3},
    "inputs": {"x": {"type": "random"}},
}
TRACE: dict[str, Any] = {
    "definition": "scale_n4",
    "workload": WORKLOAD,
    "solution": "fast",
    "evaluation": {
        "status": "PASSED",
        "environment": {"hardware": "H100", "libs": {"torch": "2.8"}},
        "timestamp": "2026-01-01T00:00:00",
        "log": "",
        "correctness": {
            "max_relative_error": 0.0,
            "max_absolute_error": 0.0,
            "extra": None,
        },
        "performance": {
            "latency_ms": 1.0,
            "reference_latency_ms": 2.0,
            "speedup_factor": 2.0,
        },
    },
}
VALUES: tuple[Any, ...] = (ABSENT, None, "", "x", 0, -1, 1.5, [], {}, ["a"], {"a": 1})
STATUSES = (
    *("PASSED", "INCORRECT_SHAPE", "INCORRECT_NUMERICAL", "INCORRECT_DTYPE"),
    *("RUNTIME_ERROR", "COMPILE_ERROR", "TIMEOUT"),
)


def variants(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a document with each of its fields replaced by each of some values."""
    for path in _paths(document):
        for value in VALUES:
            changed = copy.deepcopy(document)
            holder: Any = changed
            for step in path[:-1]:
                holder = holder[step]
            if value is ABSENT:
                del holder[path[-1]]
            else:
                holder[path[-1]] = copy.deepcopy(value)
            shown = "absent" if value is ABSENT else json.dumps(value)
            yield f"{'/'.join(map(str, path))}={shown}", changed


def _paths(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    pairs: Any = ()
    if isinstance(value, dict):
        pairs = value.items()
    elif isinstance(value, list):
        pairs = enumerate(value)
    for key, child in pairs:
        yield (*before, key)
        yield from _paths(child, (*before, key))


def accepted(model: Any, document: Any) -> bool:
    """Return whether a model of flashinfer-bench takes a document."""
    try:
        model.model_validate_json(json.dumps(document))
    except (pydantic.ValidationError, ValueError, TypeError, AttributeError, KeyError):
        return False
    return True


def judged(tmp_path: Path, kind: str, document: Any) -> tuple[Problem, ...]:
    """Return what `validate` finds in a dataset with this one file changed."""
    files = {
        "definitions/scale/scale_n4.json": DEFINITION,
        "solutions/alice/scale/scale_n4/fast.json": SOLUTION,
        "traces/alice/scale/scale_n4.jsonl": TRACE,
    }
    names = dict(zip(("definition", "solution", "trace"), files, strict=True))
    files[names[kind]] = document
    lines = {"definition": "scale_n4", "workload": WORKLOAD}
    files["workloads/scale/scale_n4.jsonl"] = {
        **lines,
        "solution": None,
        "evaluation": None,
    }
    for name, value in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value), "utf-8")
    return tuple(p for p in validate(tmp_path) if p.file == names[kind])


CASES = {"definition": DEFINITION, "solution": SOLUTION, "trace": TRACE}
MODELS = {"definition": data.Definition, "solution": data.Solution, "trace": data.Trace}


@pytest.mark.parametrize("kind", CASES)
def test_nothing_passes_that_its_models_refuse(kind: str, tmp_path: Path) -> None:
    """What flashinfer-bench refuses has a Problem here."""
    missed = []
    count = 0
    for name, document in variants(CASES[kind]):
        count += 1
        if accepted(MODELS[kind], document):
            continue
        found = check(document, kind, "file")  # type: ignore[arg-type]
        if not found and not _is_said(judged(tmp_path, kind, document)):
            missed.append(name)
    assert count > 100
    assert not missed


def _is_said(problems: tuple[Problem, ...]) -> bool:
    return has_errors(problems) or any(p.rule.startswith("loader-") for p in problems)


@pytest.mark.parametrize(
    ("status", "parts"),
    list(itertools.product(STATUSES, itertools.product((True, False), repeat=2))),
)
def test_status_and_measurements_agree(
    status: str, parts: tuple[bool, bool], tmp_path: Path
) -> None:
    """A status goes with the measurements that flashinfer-bench wants for it."""
    trace = copy.deepcopy(TRACE)
    trace["evaluation"]["status"] = status
    for part, is_there in zip(("correctness", "performance"), parts, strict=True):
        if not is_there:
            trace["evaluation"][part] = None
    found = [p for p in judged(tmp_path, "trace", trace) if p.rule == "loader-trace"]
    assert bool(found) is not accepted(data.Trace, trace)


def written() -> Iterator[tuple[str, Any]]:
    """Yield documents as flashinfer-bench's models write them."""
    for name, number in (("inf", float("inf")), ("nan", float("nan")), ("one", 1.0)):
        trace = copy.deepcopy(TRACE)
        trace["evaluation"]["status"] = "INCORRECT_NUMERICAL"
        trace["evaluation"]["performance"] = None
        trace["evaluation"]["correctness"]["max_relative_error"] = number
        trace["evaluation"]["correctness"]["max_absolute_error"] = number
        yield f"trace-{name}", data.Trace(**trace)
    yield "trace", data.Trace(**TRACE)
    yield "solution", data.Solution(**SOLUTION)
    yield "definition", data.Definition(**DEFINITION)
    bare = copy.deepcopy(DEFINITION)
    del bare["description"]
    bare["axes"] = {"m": data.AxisVar(), "n": data.AxisConst(value=4)}
    yield "definition-bare", data.Definition(**bare)


@pytest.mark.parametrize(("name", "model"), list(written()), ids=lambda v: str(v)[:20])
@pytest.mark.parametrize("unset", [True, False])
def test_what_it_writes_has_no_error(
    name: str, model: Any, unset: bool, tmp_path: Path
) -> None:
    """A file that flashinfer-bench wrote, with or without unset fields, has no error."""
    kind = name.split("-")[0]
    document = json.loads(model.model_dump_json(exclude_unset=unset))
    assert not [p for p in judged(tmp_path, kind, document) if has_errors([p])]


def test_a_dataset_that_passes_loads(tmp_path: Path) -> None:
    """A dataset without an error loads in flashinfer-bench's TraceSet."""
    assert not has_errors(judged(tmp_path, "trace", TRACE))
    assert not has_errors(validate(tmp_path))
    loaded = data.TraceSet.from_path(str(tmp_path))
    assert list(loaded.definitions) == ["scale_n4"]
    assert len(loaded.traces["scale_n4"]) == 1


def test_the_dataset_of_this_repository_loads(tmp_path: Path) -> None:
    """Its TraceSet reads every definition and workload that lies here."""
    for folder in ("definitions", "workloads"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    loaded = data.TraceSet.from_path(str(tmp_path))
    names = {path.stem for path in (ROOT / "definitions").rglob("*.json")}
    assert set(loaded.definitions) == names
    lines = (ROOT / "workloads").rglob("*.jsonl")
    count = sum(len(path.read_text("utf-8").splitlines()) for path in lines)
    assert sum(map(len, loaded.workloads.values())) == count > 1000


def test_a_solution_name_twice_is_refused_by_both(tmp_path: Path) -> None:
    """Its loader wants a solution's name once in the whole dataset."""
    judged(tmp_path, "solution", SOLUTION)
    other = {**DEFINITION, "name": "scale_other"}
    twin = {**SOLUTION, "definition": "scale_other"}
    for name, value in (
        ("definitions/scale/scale_other.json", other),
        ("solutions/alice/scale/scale_other/fast.json", twin),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(json.dumps(value), "utf-8")
    assert "solution-duplicate" in {p.rule for p in validate(tmp_path)}
    with pytest.raises(ValueError, match="fast"):
        data.TraceSet.from_path(str(tmp_path))
