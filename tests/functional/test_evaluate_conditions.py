"""Solutions that pass plainly, under the conditions in which engines call them."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.functional.audit_command import audit, dataset
from tests.functional.hacks import PASSED, run
from tests.functional.planted import PLANTED, UNSUPPORTED, Planted
from tests.functional.test_evaluate_hacks import HONEST, solution

Judged = Callable[[str], dict[str, Any]]


def judged(folder: Path, planted: list[Planted], *options: str) -> dict[str, Any]:
    """Return name → verdict of solutions."""
    folder.mkdir(exist_ok=True)
    for number, one in enumerate(planted):
        value = solution(one.name, one.source, one.passes_outputs)
        (folder / f"{number:03}.json").write_text(json.dumps(value))
    chosen = sorted(map(str, folder.glob("*.json")))
    options = ("--jobs", "2", "--json", *options)
    root = dataset(folder / "dataset")
    _, out, err = audit(*chosen, "--dataset", root, *options, command="evaluate")
    assert out, err
    return {v["solution"]: v for v in json.loads(out)["solutions"]}


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> Judged:
    """Return what gives the verdicts on all that is planted for a condition."""

    @cache
    def found(under: str) -> dict[str, Any]:
        planted = [one for one in PLANTED if one.under == under]
        folder = tmp_path_factory.mktemp(under)
        return judged(
            folder, planted, "--as", under, "--soak", "4", "--workloads", "cases"
        )

    return found


@pytest.mark.slow
@pytest.mark.parametrize("one", PLANTED, ids=[f"{p.under}: {p.name}" for p in PLANTED])
def test_condition_is_judged(one: Planted, verdicts: Judged) -> None:
    found = verdicts(one.under)[one.name]
    assert found["verdict"] == PASSED, found["reason"]
    condition = found["conditions"][one.under]
    assert condition["verdict"] == one.verdict, condition
    assert one.reason in condition["reason"]
    assert "\n" not in condition["reason"]


@pytest.mark.slow
def test_required_condition_refuses(tmp_path: Path) -> None:
    refuses = next(p for p in PLANTED if p.verdict == UNSUPPORTED)
    honest = Planted("honest", "strided", HONEST, "holds")
    output = tmp_path / "output"
    options = ("--require", "strided", "--output", str(output))
    found = judged(tmp_path / "solutions", [refuses, honest], *options)
    assert found[refuses.name]["verdict"] == "RUNTIME_ERROR"
    assert found[refuses.name]["case"] == "as strided"
    assert found["honest"]["verdict"] == PASSED


@pytest.mark.slow
def test_what_needs_a_gpu_is_skipped_and_never_holds(tmp_path: Path) -> None:
    honest = Planted("honest", "graph", HONEST, "skipped")
    options = ("--as", "graph,stream", "--sanitize", "racecheck,memcheck")
    found = judged(tmp_path / "solutions", [honest], *options)
    conditions = found["honest"]["conditions"]
    assert list(conditions) == ["graph", "stream", "memcheck", "racecheck"]
    assert {c["verdict"] for c in conditions.values()} == {"skipped"}
    assert all("CUDA" in c["reason"] for c in conditions.values())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--as", "graphs"), "'graphs' is not one of graph, stream"),
        (("--require", "graph"), "--require graph goes with --device cuda"),
        (("--as", ""), "'' is not one of"),
        (("--sanitize", "valgrind"), "'valgrind' is not one of memcheck, racecheck"),
    ],
)
def test_wrong_condition_is_wrong_usage(options: tuple[str, ...], said: str) -> None:
    status, out, err = audit("--all", *options, command="evaluate")
    assert status == 2
    assert not out
    assert said in " ".join(err.split())


@pytest.mark.slow
def test_case_without_memory_is_out_of_memory_and_the_next_is_judged(
    tmp_path: Path,
) -> None:
    # one row is asked whatever the secret draws
    source = run(
        "torch.ones(1 << 30, dtype=torch.float64) if x.shape[0] == 1 else None\n"
        "return norm(x, weight)"
    )
    greedy = Planted("greedy", "batch", source, "")
    python = run(
        "bytearray(3 << 30) if x.shape[0] == 1 else None\nreturn norm(x, weight)"
    )
    of_python = Planted("of Python", "batch", python, "")
    output = tmp_path / "output"
    options = ("--memory-limit", "2048", "--as", "batch", "--output", str(output))
    found = judged(tmp_path / "solutions", [greedy, of_python], *options)
    for name, said in (("greedy", "8589934592 bytes"), ("of Python", "MemoryError")):
        verdict = found[name]
        assert verdict["verdict"] == "OUT_OF_MEMORY", verdict["reason"]
        assert said in verdict["reason"]
        assert "its limit: 2048 MiB" in verdict["reason"]
        passed = [case["verdict"] for case in verdict["cases"]].count(PASSED)
        assert passed > 10, "others are judged"
        assert not verdict["conditions"], "what did not pass is asked under none"
