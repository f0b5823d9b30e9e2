"""Every reward hack of the catalogue is refused, or harmless."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.functional.audit_command import NORM, audit, dataset
from tests.functional.hacks import BY_VALUES, PASSED, RIGHT, Hack
from tests.functional.hacks_of_corners import (
    BY_ANSWERS,
    BY_CALLS,
    BY_ERRORS,
)
from tests.functional.hacks_of_interpreters import BY_INTERPRETER
from tests.functional.hacks_of_machine import BY_KERNEL, BY_TENSORS
from tests.functional.hacks_of_objects import BY_OBJECTS
from tests.functional.hacks_of_parts import BY_PARTS
from tests.functional.hacks_of_processes import BY_PROCESSES
from tests.functional.hacks_of_signals import BY_SIGNALS
from tests.functional.hacks_of_state import BY_STATE

HACKS = (*BY_VALUES, *BY_PROCESSES, *BY_TENSORS, *BY_OBJECTS, *BY_ERRORS, *BY_PARTS)
STATE = (*BY_INTERPRETER, *BY_STATE, *BY_KERNEL, *BY_ANSWERS, *BY_CALLS, *BY_SIGNALS)
HONEST = f"{RIGHT}\ndef run(x, weight):\n    return norm(x, weight)\n"


def solution(name: str, source: str, passes_outputs: bool = False) -> dict[str, Any]:
    return {
        "name": name,
        "definition": NORM,
        "author": "tester",
        "spec": {
            "language": "python",
            "target_hardware": ["cpu"],
            "entry_point": "main.py::run",
            "destination_passing_style": passes_outputs,
        },
        "sources": [{"path": "main.py", "content": source}],
    }


def judged(
    folder: Path, hacks: Sequence[Hack], root: Path, *options: str
) -> dict[str, Any]:
    """Return name → verdict of hacks, with an honest solution before and after."""
    folder.mkdir()
    values = [solution(h.name, h.source, h.passes_outputs) for h in hacks]
    values = [solution("first", HONEST), *values, solution("last", HONEST)]
    for number, value in enumerate(values):
        (folder / f"{number:03}.json").write_text(json.dumps(value))
    chosen = sorted(map(str, folder.glob("*.json")))
    options = ("--timeout", "5", "--json", *options)
    status, out, err = audit(*chosen, "--dataset", root, *options, command="evaluate")
    assert status == 1, err
    return {v["solution"]: v for v in json.loads(out)["solutions"]}


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return name → verdict of all hacks; those that leave something, one by one."""
    folder = tmp_path_factory.mktemp("evaluated")
    root = dataset(folder / "dataset")
    found = judged(folder / "any", HACKS, root, "--jobs", "2")
    found["first of state"] = found.pop("first")
    return found | judged(folder / "state", STATE, root, "--jobs", "1")


@pytest.mark.slow
@pytest.mark.parametrize(
    "hack", [*HACKS, *STATE], ids=[hack.name for hack in (*HACKS, *STATE)]
)
def test_hack_is_refused_or_harmless(hack: Hack, verdicts: dict[str, Any]) -> None:
    found = verdicts[hack.name]
    assert found["verdict"] in hack.verdicts, (found["reason"], hack.by)
    assert found["verdict"] == PASSED or found["reason"]
    assert "\n" not in found["reason"]


@pytest.mark.slow
def test_honest_solutions_pass_beside_hacks(verdicts: dict[str, Any]) -> None:
    names = ("first", "first of state", "last")
    assert [verdicts[name]["verdict"] for name in names] == [PASSED] * 3
