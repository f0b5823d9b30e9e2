"""What `model --write` writes holds: it is strict, its tests render, and it runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from generator.dataset.paths import discover_definitions
from generator.models.config import Config, config_of, load
from generator.models.coverage import coverage, write_missing
from generator.models.parallel import Deployment
from generator.problems import Failure
from tests.functional.gen_tests_command import gen_tests
from tests.functional.test_validate import run
from tests.unit.models.foreign import FOREIGN
from tests.unit.models.mapped import mapped

ROOT = Path(__file__).parents[2]
TPS = (1, 8)
# of each kind of layer one: dense and tied, mxfp4 with sinks, states, latents in float8
SOME = ("llama-3.2-1b", "gpt-oss-20b", "nemotron-h-8b", "kimi-k2")


def write(models: Iterable[str | Config], root: Path) -> int:
    """Write what models lack at tp 1 and 8 into a dataset; return how many files."""
    paths: list[str] = []
    for model in models:
        config = load(model) if isinstance(model, str) else model
        for tp in TPS:
            try:
                found = discover_definitions(root)
                entries = coverage(config, Deployment(tp=tp), root, found, {})
            except Failure:
                # the heads of some can't be divided by 8
                if tp == 1:
                    raise
                continue
            paths += write_missing(root, entries)
    return len(paths)


def test_what_was_cut_off_is_written_again(tmp_path: Path) -> None:
    """A definition alone would count as there, and lack its workloads for ever."""
    covered = coverage(
        load("llama-3.1-8b"), Deployment(), tmp_path, discover_definitions(tmp_path), {}
    )
    written: set[str] = set()
    for path in write_missing(tmp_path, covered):
        written.add(path)
        kind, _, rest = path.partition("/")
        if kind == "definitions":
            assert f"workloads/{rest.removesuffix('.json')}.jsonl" in written
    assert any(path.startswith("definitions/") for path in written)


def check(root: Path, output: Path) -> None:
    """Validate a dataset strictly and render all of its tests."""
    checked = run("validate", "--strict", "--dataset", str(root))
    assert checked.returncode == 0, checked.stdout[-3000:]
    rendered = gen_tests("--all", "--dataset", str(root), "--output", str(output))
    assert rendered.returncode == 0, rendered.stderr[-3000:]
    assert (output / "test_gemm.py").is_file()


def executed(root: Path, *chosen: str) -> None:
    """Call the references of a dataset on small inputs, in the sandbox."""
    command = ["-m", "generator", "validate", "--strict", "--execute", *chosen]
    done = subprocess.run(
        [sys.executable, *command, "--dataset", str(root)],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=1800,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


def test_what_is_written_is_strict_and_renders(tmp_path: Path) -> None:
    (tmp_path / "written").mkdir()
    assert write(SOME, tmp_path / "written") > 0
    check(tmp_path / "written", tmp_path / "rendered")


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a dataset of what every model lacks at tp 1 and 8: some 1,000 definitions."""
    root = tmp_path_factory.mktemp("written")
    assert write(mapped(), root) > 0
    return root


@pytest.mark.slow
def test_what_every_model_lacks_is_strict_and_renders(
    everything: Path, tmp_path: Path
) -> None:
    check(everything, tmp_path / "rendered")


@pytest.mark.slow
def test_what_models_of_somebody_else_lack_is_strict_and_renders(
    tmp_path: Path,
) -> None:
    (tmp_path / "written").mkdir()
    configs = (config_of(name, whole) for name, whole in FOREIGN.items())
    assert write(configs, tmp_path / "written") > 0
    check(tmp_path / "written", tmp_path / "rendered")


@pytest.mark.slow
def test_what_every_model_lacks_runs(everything: Path) -> None:
    # not at workloads as well: these take an hour
    executed(everything, "--workloads", "none")


@pytest.mark.slow
def test_what_is_written_runs_at_its_workloads(tmp_path: Path) -> None:
    assert write(SOME[:1], tmp_path)
    executed(tmp_path)
