"""The examples of docs/api.md run as they stand; a run can be cancelled."""

from __future__ import annotations

import json
import re
import shutil
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from generator import api
from generator.dataset.paths import find_root
from generator.evaluation.evaluate import EvaluationRequest
from generator.execution.local import Cancelled
from generator.execution.sandbox import refusal
from generator.problems import Failure
from tests.builders import ROOT
from tests.functional.audit_command import audit
from tests.functional.reviewed import commit, git

NAME = "rmsnorm_h4096"
COPIED = (
    f"definitions/rmsnorm/{NAME}.json",
    f"workloads/rmsnorm/{NAME}.jsonl",
    f"solutions/examples/rmsnorm/{NAME}/{NAME}_torch.json",
)
BLOCKS = re.findall(
    r"```python\n(.*?)```", (ROOT / "docs/api.md").read_text(), re.DOTALL
)
confined = pytest.mark.skipif(refusal() is not None, reason=f"no sandbox: {refusal()}")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a dataset in a repository of two commits; its folder is the current one."""
    for path in COPIED:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, tmp_path / path)
    git(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path)
    with (tmp_path / COPIED[1]).open("a") as file:
        line = json.loads((ROOT / COPIED[1]).read_text().splitlines()[0])
        line["workload"]["uuid"] = "11111111-1111-4111-8111-111111111111"
        line["workload"]["axes"]["batch_size"] = 3
        file.write(json.dumps(line) + "\n")
    commit(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@confined
def test_the_examples_of_the_page_run(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    solution = f"{NAME}_torch"
    arguments = (solution, "--workloads", "dataset", "--output", root / "evaluated")
    audit(*arguments, "--dataset", root, command="evaluate")
    names: dict[str, object] = {}
    for block in BLOCKS:
        exec(compile(block, "docs/api.md", "exec"), names)  # noqa: S102
    printed = capsys.readouterr().out
    assert "rmsnorm 4096 9\n" in printed
    assert "1 definition in 1 test file" in printed
    assert "1 9\n" in printed
    assert "\nneeds a " in printed or "\nchanges needed" in printed
    assert f"{solution} PASSED \n" in printed
    assert f"{solution} PASSED 7\n" in printed
    assert (root / "tests/references/test_rmsnorm.py").is_file()


@confined
def test_a_run_is_cancelled_from_another_thread(root: Path) -> None:
    dataset = api.open_dataset()
    path = root / COPIED[2]
    solution = json.loads(path.read_text())
    source = "import time\n\ndef run(*values):\n    time.sleep(300)\n"
    solution["sources"] = [{"path": "main.py", "content": source}]
    path.write_text(json.dumps(solution))
    solutions = api.read_solutions(dataset)
    with closing(api.Evaluator()) as evaluator:
        threading.Timer(6.0, evaluator.cancel).start()
        begun = time.monotonic()
        with pytest.raises(Cancelled):
            evaluator.evaluate(dataset, solutions, EvaluationRequest(timeout=400.0))
        assert time.monotonic() - begun < 30
        # and the next one is evaluated
        shutil.copyfile(ROOT / COPIED[2], path)
        solutions = api.read_solutions(dataset)
        asks = EvaluationRequest(workloads="dataset")
        (verdict,) = evaluator.evaluate(dataset, solutions, asks)
    assert verdict.verdict == "PASSED"


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        ({"workloads": "datasets"}, "workloads: 'datasets' is none of cases, dataset,"),
        ({"device": "gpu"}, "device: 'gpu' is none of cpu, cuda."),
        ({"conditions": ["stridden"]}, "conditions: 'stridden' is none of "),
        ({"sanitizers": ["memory"]}, "sanitizers: 'memory' is none of memcheck, "),
    ],
)
def test_a_question_that_is_none_is_refused(asked: Any, line: str) -> None:
    with pytest.raises(Failure) as raised:
        EvaluationRequest(**asked)
    assert str(raised.value).startswith(line)


def test_a_text_is_one_name(root: Path) -> None:
    dataset = api.open_dataset(root, op_types="rmsnorm", names="rmsnorm_h4096")
    assert (dataset.op_types, dataset.names) == (("rmsnorm",), ("rmsnorm_h4096",))
    name = "rmsnorm_h4096_torch"
    assert api.read_solutions(dataset, name) == api.read_solutions(dataset, [name])
    assert list(api.validate(dataset, rules="schema")) == []
    with pytest.raises(Failure, match="is named 'shema'"):
        api.validate(dataset, rules="shema")


def test_a_dataset_is_found_from_its_folders(tmp_path: Path) -> None:
    (tmp_path / "data/definitions/gemm").mkdir(parents=True)
    inside = tmp_path / "data/definitions/gemm"
    assert find_root(inside) == tmp_path / "data"
    assert find_root(tmp_path) == tmp_path
    # a repository's root is where its dataset ends
    (tmp_path / "data/other/.git").mkdir(parents=True)
    assert find_root(tmp_path / "data/other") == tmp_path / "data/other"


@pytest.mark.parametrize(
    "call",
    [
        lambda root: api.open_dataset(root / "nowhere"),
        lambda root: api.open_dataset(root).definition("rmsnorm_h4097"),
        lambda root: api.open_dataset(root, names=["x"]).loaded,
        lambda root: api.validate(api.open_dataset(root), rules=["no-such-rule"]),
        lambda root: api.read_results(root / "results.json"),
        lambda root: api.read_results(root / COPIED[0]),
        lambda root: api.read_solutions(api.open_dataset(root), ["nobody"]),
    ],
)
def test_what_can_not_be_done_is_one_line(root: Path, call) -> None:
    with pytest.raises(Failure) as caught:
        call(root)
    assert "\n" not in str(caught.value)
