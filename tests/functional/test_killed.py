"""Commands that write, killed at random moments: a file is the old one or the new one.

A command is run once undisturbed, then killed at moments that are drawn from all its events
(each file that it opens, makes, moves or removes). After each kill every file of the dataset is as it was or as it is
to become, and the command run again ends as if nothing had been.
"""

from __future__ import annotations

import random
import re
import shutil
import signal
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from generator.dataset.atomic_write import write_below
from tests.forking import run_module
from tests.functional.hostile import make, write
from tests.functional.reviewed import axes
from tests.functional.test_validate import DEFINITION, FILE
from tests.results import H200, comparison, result, write_results

KILLED = Path(__file__).with_name("killed.py")
TEMPORARY = re.compile(r"\.[^/]*[0-9a-f]{16}\.tmp")
Files = Mapping[str, bytes]


def files_of(root: Path) -> dict[str, bytes]:
    """Return path → content of what lies in a folder, temporary files left out."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
        and not TEMPORARY.fullmatch(path.name)
        and path.parent.name != "__pycache__"
    }


def run(at: int, count: Path, module: str, *arguments: str) -> int:
    """Run a command that is killed at an event; return its exit status."""
    given = (str(at), f"generator.cli.{module}", *arguments)
    done = run_module(
        str(KILLED),
        *given,
        env={"KILLED_COUNT": str(count), "XDG_CACHE_HOME": str(count.parent / "cache")},
        timeout=300,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode


def same(text: bytes) -> bytes:
    """Return a file without what differs from run to run: times."""
    times = (
        rb'"(seconds|timestamp|date|[a-z_]*_ms|speedup_factor)": ("[^"]*"|[0-9.e-]+)'
    )
    return re.sub(times, rb"", text)


class Command:
    """Hold a command, and how the dataset is before it."""

    def __init__(
        self, module: str, *arguments: str, prepare: Callable[[Path], object]
    ) -> None:
        self.module, self.arguments, self.prepare = module, arguments, prepare

    def words(self, root: Path) -> list[str]:
        """Return its arguments for a dataset."""
        beside = str(root.parent)
        words = [word.replace("BESIDE", beside) for word in self.arguments]
        where = "--output" if words[0] == "import" else "--dataset"
        return [*words, where, str(root)]


def _dataset(root: Path) -> None:
    make(root)
    for n in range(9, 13):
        other = {**DEFINITION, "name": f"gemm_n{n}_k4", "axes": axes(n)}
        write(root, FILE.replace("n8", f"n{n}"), other)


def _rendered(root: Path) -> None:
    """Write tests that are to be rendered anew, and one that is to be removed."""
    _dataset(root)
    gone = {**DEFINITION, "name": "rmsnorm_h8", "op_type": "rmsnorm"}
    write(root, "definitions/rmsnorm/rmsnorm_h8.json", gone)
    done = run_module("generator.cli.gen_tests", "--all", "--dataset", str(root))
    assert done.returncode in (0, 1), done.stderr
    shutil.rmtree(root / "definitions/rmsnorm")
    write(root, FILE, {**DEFINITION, "description": "In other words."})


def _results(root: Path) -> None:
    _dataset(root)
    names = [f"gemm_n{n}_k4" for n in range(8, 12)]
    made = [result("oracle", comparison(definition=n), definition=n) for n in names]
    write_results(root.parent / "results.jsonl", *made[:2], machine=H200)
    done = run_module(
        "generator.cli.trace_dataset",
        *("verify", "--record", str(root.parent / "results.jsonl")),
        *("--dataset", str(root)),
    )
    assert "Traceback" not in done.stderr
    write_results(root.parent / "results.jsonl", *made, machine=H200)


def _recordable(root: Path) -> None:
    from tests.harness.test_recordings import with_dataset

    shutil.rmtree(root)
    assert with_dataset(root.parent) == root


def _importable(root: Path) -> None:
    """Write a dataset to be imported beside one that has a definition of it."""
    make(root)
    for n in range(9, 13):
        other = {**DEFINITION, "name": f"gemm_n{n}_k4", "axes": axes(n)}
        write(root, FILE.replace("n8", f"n{n}"), other)
    shutil.copytree(root, root.parent / "foreign")
    shutil.rmtree(root / "definitions")
    write(root, FILE, DEFINITION)


COMMANDS = {
    "gen-tests": Command("gen_tests", "--all", prepare=_rendered),
    "gen-tests --standalone": Command(
        "gen_tests", "--all", "--standalone", prepare=_rendered
    ),
    "verify --record": Command(
        "trace_dataset", "verify", "--record", "BESIDE/results.jsonl", prepare=_results
    ),
    "card": Command("trace_dataset", "card", prepare=_dataset),
    "export": Command(
        *("trace_dataset", "export", "--dialect", "sol-execbench", "--all"),
        *("--output", "BESIDE/dataset/exported"),
        prepare=_dataset,
    ),
    "import": Command(
        *("trace_dataset", "import", "BESIDE/foreign"),
        *("--dialect", "flashinfer-bench"),
        prepare=_importable,
    ),
    "record": Command(
        *("trace_dataset", "record", "--device", "cpu", "--jobs", "1", "--all"),
        prepare=_recordable,
    ),
    "audit --record": Command(
        *("trace_dataset", "audit", "--definition-name", "gemm_n8_k4", "--record"),
        prepare=_dataset,
    ),
    "evaluate --output": Command(
        *("trace_dataset", "evaluate", "--all", "--output", "BESIDE/dataset/found"),
        prepare=_dataset,
    ),
}
QUICK = ("gen-tests", "verify --record", "card")
MOMENTS = [
    pytest.param(
        name,
        count,
        marks=[] if count < 50 else pytest.mark.slow,
        id=f"{name}-{count}",
    )
    for name in COMMANDS
    for count in ((5, 50) if name in QUICK else (50,))
]


@pytest.mark.parametrize(("name", "moments"), MOMENTS)
def test_a_kill_leaves_the_old_or_the_new(
    name: str, moments: int, tmp_path: Path
) -> None:
    command = COMMANDS[name]
    first, count = tmp_path / "first/dataset", tmp_path / "count"
    first.mkdir(parents=True)
    command.prepare(first)
    old = files_of(first)
    status = run(0, count, command.module, *command.words(first))
    new = files_of(first)
    assert old != new, "the command writes nothing"
    events = int(count.read_text())
    assert events > 50
    chance = random.Random(20_000 + moments)
    killed = 0
    for at in chance.sample(range(1, events + 1), min(moments, events)):
        root = tmp_path / f"{at}/dataset"
        shutil.copytree(tmp_path / "first", root.parent)
        shutil.rmtree(root)
        for path, data in old.items():
            write_below(root, path, data)
        ended = run(at, count, command.module, *command.words(root))
        killed += ended == -signal.SIGKILL
        between = files_of(root)
        for path in {*between, *old, *new}:
            data = between.get(path)
            was, becomes = old.get(path), new.get(path)
            is_whole = data == was or _is_new(data, becomes)
            if path.endswith("SHA256SUMS"):
                # it may list files of both until all are written
                is_whole = {*_lines(data)} <= {*_lines(was), *_lines(becomes)}
            assert is_whole, (at, path)
        again = run(0, count, command.module, *command.words(root))
        assert again == status, (at, again)
        after = files_of(root)
        assert after.keys() == new.keys(), at
        for path in new:
            assert _is_new(after[path], new[path]), (at, path)
        shutil.rmtree(root.parent)
    # processes of a command may be at work at the end, and no event is the last
    assert killed >= min(moments, events) * 4 // 5


def _lines(data: bytes | None) -> list[bytes]:
    return (data or b"").splitlines(keepends=True)


def _is_new(data: bytes | None, new: bytes | None) -> bool:
    """Return whether a file is the one that a command writes, its times aside."""
    if data is None or new is None:
        return data is new
    return same(data) == same(new)
