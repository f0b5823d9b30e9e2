"""`trace-dataset audit --executor ray`: the same results, whatever happens to a node."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.builders import ROOT
from tests.functional.audit_command import audit, dataset, of_definition, start
from tests.functional.test_evaluate import WRONG
from tests.functional.test_evaluate_hacks import HONEST, solution

HAS_RAY = find_spec("ray") is not None
needs_ray = pytest.mark.skipif(not HAS_RAY, reason="ray is not installed")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("cluster", "--executor 'cluster': choose local, ray or ray://HOST:PORT."),
        ("ray://127.0.0.1:1", "--executor ray://127.0.0.1:1: no Ray cluster answers: "),
        ("ray://nowhere", "--executor ray://nowhere: no Ray cluster answers: "),
    ],
)
@pytest.mark.parametrize("more", [(), ("--seeds", "1"), ("--tolerances",)])
def test_an_address_of_no_cluster_is_one_line_and_exits_2(
    tmp_path, address, said, more
):
    if not HAS_RAY and address.startswith("ray"):
        said = (
            f"--executor {address}: Ray is not installed: pip install 'gen-tests[ray]'"
        )
    root = dataset(tmp_path)
    status, out, err = audit(
        *("--all", "--dataset", root, "--executor", address, *more)
    )
    assert (status, out) == (2, "")
    assert said in err.splitlines()[-1]
    assert "Traceback" not in err


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Start a head without cores and three nodes of one core each."""
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "include_dashboard": False}
    nodes = Cluster(initialize_head=True, head_node_args=head)
    monkeypatch.setenv("RAY_ADDRESS", nodes.address)
    try:
        yield nodes, [nodes.add_node(num_cpus=1) for _ in range(3)]
    finally:
        nodes.shutdown()


def judged(text: str) -> list[Any]:
    """Return the verdict on each mutant; which case is first to catch one is chance."""
    return [
        (
            of["definition"],
            of["error"],
            [(m["name"], m["status"]) for m in of["mutants"]],
        )
        for of in json.loads(text)["definitions"]
    ]


@needs_ray
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_node_that_is_killed_loses_nothing(cluster, tmp_path):
    nodes, (first, *_) = cluster
    options: Sequence[str | Path] = (
        "--op-type",
        "sampling",
        "--dataset",
        ROOT,
        "--json",
    )
    begun = time.monotonic()
    process = start(*options, "--resume", tmp_path / "ray", "--executor", "ray")
    assert process.stderr is not None
    told = [process.stderr.readline() for _ in range(2)]
    nodes.remove_node(first, allow_graceful=False)
    out, err = process.communicate(timeout=1500)
    seconds = time.monotonic() - begun
    told += err.splitlines()
    local = start(*options, "--resume", tmp_path / "local", "--jobs", "2")
    here, _ = local.communicate(timeout=1500)
    assert (process.returncode, local.returncode) == (0, 0), err
    assert judged(out) == judged(here)
    names = [line.split()[1] for line in told if "/" in line.split()[0]]
    assert len(names) == len(set(names)) == len(judged(here)), told
    print(f"three nodes, one killed: {seconds:.0f} s")


@needs_ray
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_seeds_and_tolerances_run_on_a_cluster(cluster, tmp_path):
    root = dataset(tmp_path)
    base = ("--all", "--dataset", root, "--executor", "ray")
    status, out, err = audit(
        *base, "--seeds", "2", "--json", "--resume", tmp_path / "s"
    )
    assert status == 0, err
    assert of_definition(out)["is_fine"]
    status, _, err = audit(*base, "--tolerances")
    assert "1/1 rmsnorm_h128: " in err


@needs_ray
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_evaluation_is_the_same_on_a_cluster(cluster, tmp_path):
    files = []
    for name, source in (("right", HONEST), ("wrong", WRONG)):
        files.append(tmp_path / f"{name}.json")
        files[-1].write_text(json.dumps(solution(name, source)))
    options = (*files, "--dataset", dataset(tmp_path / "dataset"), "--seed", "3")

    def cases(*more: str) -> Any:
        _, out, err = audit(*options, "--json", *more, command="evaluate")
        assert out, err
        return [(v["verdict"], v["cases"]) for v in json.loads(out)["solutions"]]

    found = cases("--executor", "ray")
    assert [verdict for verdict, _ in found] == ["PASSED", "INCORRECT_NUMERICAL"]
    assert found == cases()
