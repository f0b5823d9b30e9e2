"""`trace-dataset evaluate`: choosing, verdicts, files and exit status."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from generator.dataset.paths import discover_definitions
from generator.evaluation.evaluate import EvaluationRequest
from generator.evaluation.evaluate import evaluate as evaluate_here
from generator.evaluation.solution import read_solutions
from generator.evaluation.verdict import SolutionVerdict
from generator.execution.local import LocalExecutor
from tests.functional.audit_command import NORM, audit, dataset
from tests.functional.test_evaluate_hacks import HONEST, solution

WRONG = "import torch\n\n\ndef run(x, weight):\n    return torch.zeros_like(x)\n"


def evaluate(*arguments: str | Path) -> tuple[int, str, str]:
    return audit(*arguments, command="evaluate")


AGAIN = f"""{HONEST}
honest, answers = run, {{}}


def run(x, weight):
    return answers.setdefault(x.shape, honest(x, weight))
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    found = dataset(tmp_path / "dataset")
    for name, source in (("right", HONEST), ("wrong", WRONG)):
        path = found / f"solutions/tester/rmsnorm/{NORM}/{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(solution(name, source)))
    return found


def verdicts(out: str) -> dict[str, str]:
    return {v["solution"]: v["verdict"] for v in json.loads(out)["solutions"]}


def test_author_is_judged(root: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    options = ("--dataset", root, "--author", "tester", "--fuzz", "2")
    status, out, err = evaluate(*options, "--output", output, "--json")
    assert status == 1
    assert verdicts(out) == {"right": "PASSED", "wrong": "INCORRECT_NUMERICAL"}
    results = json.loads((output / "results.json").read_text())
    assert len(results["solutions"]) == 2
    fuzzed = [
        case["case"]
        for case in results["solutions"][0]["cases"]
        if case["case"].startswith("fuzz")
    ]
    assert len(fuzzed) == 2
    assert "1 PASSED, 1 INCORRECT_NUMERICAL" in err


@pytest.mark.slow
def test_an_answer_that_is_returned_again_is_named(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "again.json"
    path.write_text(json.dumps(solution("again", AGAIN)))
    status, out, _ = evaluate(path, "--dataset", root, "--json")
    assert status == 1
    (one,) = json.loads(out)["solutions"]
    assert one["verdict"] == "INCORRECT_NUMERICAL"
    assert "it returned memory that it had returned before" in one["reason"]


def test_one_name_passes(root: Path) -> None:
    status, out, _ = evaluate("right", "--dataset", root)
    assert status == 0
    assert "PASSED" in out


def judged(out: str) -> dict[str, Any]:
    """Return the verdict, the cases and their errors by solution."""
    return {
        one["solution"]: (
            one["verdict"],
            sorted((c["case"], c["verdict"], str(c["metrics"])) for c in one["cases"]),
        )
        for one in json.loads(out)["solutions"]
    }


@pytest.mark.slow
def test_one_seed_asks_the_same(root: Path) -> None:
    def cases(*more: str) -> Any:
        return judged(evaluate("wrong", "--dataset", root, "--json", *more)[1])

    assert cases("--seed", "3") == cases("--seed", "3")
    assert cases("--seed", "3") != cases()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Say what to evaluate"),
        (["right", "--author", "tester"], "not both"),
        (["righ"], "No solution is named"),
        ([NORM], "That is a definition: --definition-name"),
        (["missing.json"], "missing.json"),
        (["--author", "testr"], "author 'testr'. Did you mean 'tester'?"),
        (["--op-type", "rmsnor"], "No op_type"),
        (["right", "--timing"], "--timing goes with --device cuda"),
        (["right", "--starts", "4"], "--starts goes with --timing"),
        *(
            (["right", "--device", "cuda", "--timing", "--starts", text], said)
            for text, said in (
                ("0", "'--starts': 0 is not in the range 1<=x<=64."),
                ("-1", "'--starts': -1 is not in the range 1<=x<=64."),
                ("1000000000", "1000000000 is not in the range 1<=x<=64."),
                ("1e9", "'--starts': '1e9' is not a valid integer range."),
                ("", "'--starts': '' is not a valid integer range."),
            )
        ),
        (["right", "--timeout", "nan"], "'nan' is no number of seconds"),
        (["right", "--budget", "inf"], "not in the range"),
        (["right", "--memory-limit", "9" * 30], "not in the range"),
    ],
)
def test_wrong_usage_is_one_line(root: Path, arguments: list[str], said: str) -> None:
    status, out, err = evaluate(*arguments, "--dataset", root)
    assert (status, out) == (2, "")
    assert said in err


def test_a_dataset_without_solutions_says_where_they_lie(root: Path) -> None:
    shutil.rmtree(root / "solutions")
    status, out, err = evaluate("--all", "--dataset", root)
    assert (status, out) == (2, "")
    assert "solutions/<author>/<op_type>/<definition>/<name>.json" in err


def test_definition_that_is_not_there_is_invalid(root: Path, tmp_path: Path) -> None:
    value = {**solution("lost", HONEST), "definition": "rmsnorm_h64"}
    path = tmp_path / "lost.json"
    path.write_text(json.dumps(value))
    status, out, _ = evaluate(path, "right", "--dataset", root, "--json")
    assert status == 2
    assert verdicts(out) == {"lost": "INVALID", "right": "PASSED"}


@pytest.mark.parametrize("language", ["triton", "cuda"])
def test_language_that_needs_a_gpu_is_skipped(
    root: Path, tmp_path: Path, language: str
) -> None:
    value = solution("far", HONEST)
    value["spec"]["language"] = language
    path = tmp_path / "far.json"
    path.write_text(json.dumps(value))
    status, out, _ = evaluate(path, "--dataset", root, "--json")
    assert status == 0
    (found,) = json.loads(out)["solutions"]
    assert found["reason"] == f"{language} needs --device cuda"


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
def test_ray_judges_the_same(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    options = ("--author", "tester", "--dataset", root, "--seed", "5", "--json")
    _, local, _ = evaluate(*options)
    cluster = ray.init(num_cpus=2, include_dashboard=False)
    try:
        monkeypatch.setenv("RAY_ADDRESS", cluster.address_info["address"])
        _, far, err = evaluate(*options, "--executor", "ray")
    finally:
        ray.shutdown()
    assert judged(far) == judged(local), err


def _without_order(verdict: SolutionVerdict) -> SolutionVerdict:
    """Leave out the seconds, and of sums the last digits: more threads add in another order."""
    cases = [
        replace(c, metrics={k: float(f"{v:.12g}") for k, v in c.metrics.items()})
        for c in verdict.cases
    ]
    return replace(verdict, seconds=0.0, seconds_of={}, cases=cases)


def test_places_on_gpus_judge_the_same(root: Path) -> None:
    # on a CPU a place only binds CUDA to a GPU, which nobody asks for
    loaded = discover_definitions(root).files
    solutions = read_solutions(root, loaded, (), ("tester",))
    found = [
        evaluate_here(
            solutions,
            loaded,
            root,
            EvaluationRequest(workloads="cases", secret=5, gpus=gpus),
            LocalExecutor(jobs),
            jobs,
        )
        for jobs, gpus in ((1, ()), (2, ("0", "1")))
    ]
    first, second = ([_without_order(v) for v in one] for one in found)
    assert first == second
    assert [v.verdict for v in first] == ["PASSED", "INCORRECT_NUMERICAL"]
