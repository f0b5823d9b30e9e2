"""Review honest and lying pull requests on a GPU, whose claims are measured again there.

`python -m tools.review_on_gpu FOLDER`, on a machine with a GPU, FlashInfer and the
sandbox. A repository is made with two norms of this dataset and what is on record of
them. A triton solution is measured by `evaluate`, and its traces go into pull requests:
as they are, with halved latencies, with doubled speedups, as those of another GPU, and
beside a solution that is wrong by 2 %. Two more bring a definition of which nothing is
on record: as it is, and with another eps. Each is reviewed with `--execute --device
cuda`; what the reviews said lies in FOLDER. Exit status: 0 if each verdict was as
wanted.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pygit2

from tools.pull_request_example import add
from tools.review_example import ROOT, render, take

NAME, BESIDE, FRESH = "rmsnorm_h4096", "fused_add_rmsnorm_h4096", "rmsnorm_h2048"
SOLUTION = f"solutions/examples/rmsnorm/{NAME}/{NAME}_triton.json"
TRACES = f"traces/examples/rmsnorm/{NAME}.jsonl"
APPROVE, CHANGES, GPU = 0, 1, 3
_CLI = (sys.executable, "-m", "generator.cli.trace_dataset")


def commit(root: Path) -> None:
    """Commit all that lies there on the branch that is checked out."""
    repository = pygit2.Repository(str(root))
    who = pygit2.Signature("example", "example@example.com")
    repository.index.add_all()
    repository.index.write()
    parents = [] if repository.head_is_unborn else [repository.head.target]
    tree = repository.index.write_tree()
    repository.create_commit("HEAD", who, who, "change", tree, parents)


def base(root: Path) -> None:
    """Make the repository before any of the pull requests."""
    root.mkdir(parents=True)
    for name in (BESIDE, NAME):
        add(root, name)
    shutil.rmtree(root / "tests")
    render(root)
    pygit2.init_repository(str(root), initial_head="main")
    commit(root)


def honest_solution(root: Path) -> None:
    """Add the solution, and what this machine measured of it."""
    (root / SOLUTION).parent.mkdir(parents=True)
    shutil.copyfile(ROOT / SOLUTION, root / SOLUTION)
    found = root.parent / "measured"
    if not found.is_dir():
        asked = (f"{NAME}_triton", "--timing", "--workloads", "dataset")
        command = [*_CLI, "evaluate", *asked, "--device", "cuda"]
        command += ["--dataset", str(root), "--output", str(found)]
        subprocess.run(command, cwd=ROOT, check=True)
    (root / TRACES).parent.mkdir(parents=True)
    shutil.copyfile(found / TRACES, root / TRACES)


def _rewritten(root: Path, change: Callable[[dict[str, Any]], None]) -> None:
    honest_solution(root)
    lines = [
        json.loads(line) for line in (root / TRACES).read_text("utf-8").split("\n")[:-1]
    ]
    for line in lines:
        change(line["evaluation"])
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (root / TRACES).write_text(text, "utf-8")


def _halve(evaluation: dict[str, Any]) -> None:
    evaluation["performance"]["latency_ms"] /= 2
    # what does not fit together is refused without a run
    evaluation["performance"]["speedup_factor"] *= 2


def halved(root: Path) -> None:
    """Claim half of each latency, and the speedup that goes with it."""
    _rewritten(root, _halve)


def doubled(root: Path) -> None:
    """Claim twice each speedup, of the same latency."""

    def change(evaluation: dict[str, Any]) -> None:
        for name in ("speedup_factor", "reference_latency_ms"):
            evaluation["performance"][name] *= 2

    _rewritten(root, change)


def elsewhere(root: Path) -> None:
    """Claim half of each latency, on a GPU that is not here."""

    def change(evaluation: dict[str, Any]) -> None:
        _halve(evaluation)
        evaluation["environment"]["hardware"] = "NVIDIA B200"

    _rewritten(root, change)


def wrong(root: Path) -> None:
    """Claim the traces of a right solution for one that is wrong by 2 %."""
    honest_solution(root)
    text = (root / SOLUTION).read_text("utf-8")
    bent = text.replace(
        "values * inverse * factors", "values * inverse * factors * 1.02"
    )
    if bent == text:
        raise SystemExit(f"{SOLUTION} has no such product any more.")
    (root / SOLUTION).write_text(bent, "utf-8")


def fresh_definition(root: Path) -> None:
    """Add a definition of which nothing is on record."""
    take(root, FRESH)
    render(root)


def fresh_wrong(root: Path) -> None:
    """Add it with an eps a hundred times as large."""
    take(root, FRESH)
    path = root / f"definitions/rmsnorm/{FRESH}.json"
    text = path.read_text("utf-8")
    bent = text.replace("+ EPS)", "+ 100 * EPS)")
    if bent == text:
        raise SystemExit(f"{path.name} has no such sum any more.")
    path.write_text(bent, "utf-8")
    render(root)


PULL_REQUESTS: tuple[tuple[Callable[[Path], None], int], ...] = (
    (honest_solution, APPROVE),
    (fresh_definition, APPROVE),
    (halved, CHANGES),
    (doubled, CHANGES),
    (elsewhere, GPU),
    (wrong, CHANGES),
    (fresh_wrong, CHANGES),
)


def outcomes(folder: Path, device: str = "cuda") -> Iterator[tuple[str, int, int, str]]:
    """Yield name, exit status, the one wanted, and the verdict with its first reason."""
    for change, wanted in PULL_REQUESTS:
        root = folder / change.__name__ / "dataset"
        base(root)
        if change is not honest_solution and (found := folder / "measured").is_dir():
            shutil.copytree(found, root.parent / "measured")
        change(root)
        if change is honest_solution:
            shutil.copytree(root.parent / "measured", folder / "measured")
        commit(root)
        command = [*_CLI, "review", "--base", "HEAD~1", "--head", "HEAD", "--execute"]
        command += ["--device", device, "--format", "json", "--dataset", str(root)]
        begun = time.monotonic()
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=False
        )
        (folder / f"{change.__name__}.json").write_text(done.stdout, "utf-8")
        (folder / f"{change.__name__}.err").write_text(done.stderr, "utf-8")
        said = (
            json.loads(done.stdout)
            if done.stdout
            else {"verdict": "", "reasons": [done.stderr]}
        )
        reasons = " | ".join(said["reasons"][:3])
        took = f"{time.monotonic() - begun:.0f} s"
        yield (
            change.__name__,
            done.returncode,
            wanted,
            f"{said['verdict']} ({took}): {reasons}",
        )


def main(arguments: list[str]) -> int:
    """Print a line for each pull request; return 1 if a verdict was another."""
    folder = Path(arguments[0]).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    bad = 0
    for name, status, wanted, said in outcomes(folder):
        bad += status != wanted
        print(
            f"{'ok ' if status == wanted else 'BAD'} {name}: {status}, wanted {wanted}: {said}",
            flush=True,
        )
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
