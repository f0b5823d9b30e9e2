"""`trace-dataset evaluate` on bad files and bad machines: one line each, the others judged."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.functional.audit_command import NORM, audit, dataset, start
from tests.functional.hacks import PASSED, RIGHT, run
from tests.functional.test_evaluate_hacks import HONEST, solution


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return dataset(tmp_path / "dataset")


def written(folder: Path, *values: Any) -> list[str]:
    """Return the paths of files with these JSON values, or with these bytes."""
    paths = []
    for number, value in enumerate(values):
        path = folder / f"{number:03}.json"
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        path.write_bytes(data)
        paths.append(str(path))
    return paths


def with_sources(*sources: tuple[str, Any]) -> dict[str, Any]:
    value = solution("many", HONEST)
    value["sources"] += [{"path": path, "content": text} for path, text in sources]
    return value


BAD: dict[str, tuple[Any, str]] = {
    "a path for an author": ({**solution("a", HONEST), "author": "../../x"}, "author"),
    "a path for a name": (solution("../x", HONEST), "name"),
    "a hidden name": (solution(".git", HONEST), "name"),
    "a name of 10,000 characters": (solution("n" * 10_000, HONEST), "name"),
    "bidirectional text": (solution("a\u202egnp.exe", HONEST), "direction"),
    "a line end in a name": (solution("a\nPASSED", HONEST), "printed"),
    "no such definition": (
        {**solution("a", HONEST), "definition": "rmsnorm_h64"},
        "has no definition",
    ),
    "a definition that is a path": (
        {**solution("a", HONEST), "definition": "../x"},
        "/definition: The name",
    ),
    "a source that is no text": (with_sources(("b.py", 3)), "content"),
    "a source of surrogates": (with_sources(("b.py", "\ud800")), "surrogate"),
    "17 MiB of sources": (with_sources(("b.py", "#" * (17 << 20))), "MiB"),
    "9 MiB of sources": (with_sources(("b.py", "#" * (9 << 20))), "MiB"),
    "a thousand files": (
        with_sources(*((f"f{n}.py", "") for n in range(1000))),
        "1001 sources",
    ),
    "a source outside": (with_sources(("../b.py", "")), "leads upwards"),
    "a source twice": (with_sources(("main.py", "")), "another source"),
    "no JSON": (b"{", "JSON"),
    "a key twice": (
        json.dumps(solution("a", HONEST)).encode()[:-1] + b', "author": "other"}',
        "appears 2 times",
    ),
    "not UTF-8": (b'{"name": "\xff"}', "UTF-8"),
    "an array": ([], "object"),
}


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, dict[str, Any]]:
    """Return the exit status, and path → verdict of bad files and a good one."""
    folder = tmp_path_factory.mktemp("solutions")
    root = dataset(tmp_path_factory.mktemp("dataset"))
    values = [value for value, _ in BAD.values()]
    paths = written(folder, *values, solution("good", HONEST), solution("good", HONEST))
    status, out, err = audit(*paths, "--dataset", root, "--json", command="evaluate")
    assert len(err.splitlines()) == len(paths) + 1
    return status, {v["path"]: v for v in json.loads(out)["solutions"]}


@pytest.mark.parametrize(
    ("place", "said"), [*enumerate(said for _, said in BAD.values())]
)
def test_a_bad_file_is_invalid_in_a_line(judged, place: int, said: str) -> None:
    status, verdicts = judged
    (found,) = (v for path, v in verdicts.items() if path.endswith(f"{place:03}.json"))
    assert status == 2
    assert found["verdict"] == "INVALID"
    assert said.lower() in found["reason"].lower()
    assert found["reason"].isprintable()
    assert len(found["reason"]) < 500


def test_the_others_are_judged_and_a_name_is_taken_once(judged) -> None:
    _, verdicts = judged
    first, second = (v for path, v in verdicts.items() if v["solution"] == "good")
    assert first["verdict"] == PASSED
    assert second["verdict"] == "INVALID"
    assert "is also that of" in second["reason"]


def test_a_trace_of_somebody_else_stays(root: Path, tmp_path: Path) -> None:
    workloads = root / f"workloads/rmsnorm/{NORM}.jsonl"
    workloads.parent.mkdir(parents=True)
    inputs = {name: {"type": "random"} for name in ("hidden_states", "weight")}
    asked = {"uuid": "u", "axes": {"batch_size": 3}, "inputs": inputs}
    rest = {"solution": None, "evaluation": None}
    workloads.write_text(
        json.dumps({"definition": NORM, "workload": asked, **rest}) + "\n"
    )
    output = tmp_path / "out"
    before = output / f"traces/tester/rmsnorm/{NORM}.jsonl"
    before.parent.mkdir(parents=True)
    before.write_text('{"of": "somebody else"}')
    (wrong,) = written(tmp_path, solution("wrong", run("return torch.zeros_like(x)")))
    audit(wrong, "--dataset", root, "--output", output, command="evaluate")
    lines = before.read_text().splitlines()
    assert lines[0] == '{"of": "somebody else"}'
    assert [json.loads(line)["solution"] for line in lines[1:]] == ["wrong"]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")
@pytest.mark.parametrize("options", ["size=16k", "ro"])
def test_an_output_that_takes_nothing_is_said_before(
    root: Path, tmp_path: Path, options: str
) -> None:
    full = tmp_path / "full"
    full.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", options, "none", str(full)]
    if subprocess.run(mounted, check=False, capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        (good,) = written(tmp_path, solution("good", HONEST))
        status, out, err = audit(
            good, "--dataset", root, "--output", full, command="evaluate"
        )
    finally:
        subprocess.run(["umount", str(full)], check=True)
    assert (status, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert PASSED not in err


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")
def test_a_full_temporary_folder_is_no_verdict_on_a_solution(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = tmp_path / "full"
    full.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", "size=16k", "none", str(full)]
    if subprocess.run(mounted, check=False, capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        (full / "filled").write_bytes(bytes(16 << 10))
        monkeypatch.setenv("TMPDIR", str(full))
        (good,) = written(tmp_path, solution("good", HONEST))
        ended = start(good, "--dataset", root, "--json", command="evaluate")
        out, err = ended.communicate(timeout=300)
    finally:
        subprocess.run(["umount", str(full)], check=True)
    (found,) = json.loads(out)["solutions"]
    # nothing of an evaluation lies on a disk, or else the judge is at fault
    expected = (0, PASSED) if ended.returncode == 0 else (2, "JUDGE_ERROR")
    assert (ended.returncode, found["verdict"]) == expected, err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_end_leaves_nothing(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    mark = f"mark_{tmp_path.name}"
    source = f"import time\n{RIGHT}\ndef run(x, weight):\n    time.sleep(600)\n"
    (slow,) = written(tmp_path, solution(mark, source))
    begun = start(slow, "--dataset", root, "--timeout", "600", command="evaluate")
    assert _waits(
        lambda: any("/judge/worker.py" in text for text in _commands(begun.pid))
    )
    time.sleep(1)
    left = _below(begun.pid)
    begun.send_signal(number)
    begun.communicate(timeout=60)
    assert _waits(lambda: not any(map(_lives, left)))
    assert not [path for path in temporary.rglob("*") if path.is_file()]


def _waits(until: Callable[[], bool]) -> bool:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if until():
            return True
        time.sleep(0.05)
    return False


def _below(pid: int) -> list[int]:
    """Return the processes below one."""
    found = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, thread.read_text().split()):
            found += [child, *_below(child)]
    return found


def _commands(pid: int) -> list[str]:
    return [
        Path(f"/proc/{child}/cmdline").read_text().replace("\0", " ")
        for child in _below(pid)
        if Path(f"/proc/{child}/cmdline").exists()
    ]


def _lives(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in "ZX"


def test_a_name_that_is_no_utf_8_and_a_run_that_takes_something_else(
    root: Path,
) -> None:
    name = os.fsdecode(b"right\xff.json")
    (root / name).write_text(json.dumps(solution("right", HONEST)))
    other = "import torch\n\ndef run(x):\n    return x\n"
    paths = [str(root / name), *written(root, solution("other", other))]
    status, out, err = audit(*paths, "--dataset", root, "--json", command="evaluate")
    right, wrong = json.loads(out)["solutions"]
    assert (status, right["verdict"], wrong["verdict"]) == (1, PASSED, "COMPILE_ERROR")
    assert right["path"].endswith("right\\udcff.json")
    said = "run(x) can't take the 2 arguments that the definition passes"
    assert said in wrong["reason"]
    assert len(err.splitlines()) == 3


def test_a_definition_that_cannot_be_read_is_named(root: Path) -> None:
    right = solution("right", HONEST)
    (file,) = (root / "definitions").rglob(f"{right['definition']}.json")
    file.write_bytes(file.read_bytes()[:-3])
    (path,) = written(root, right)
    status, out, _ = audit(path, "--dataset", root, "--json", command="evaluate")
    (verdict,) = json.loads(out)["solutions"]
    assert (status, verdict["verdict"]) == (2, "JUDGE_ERROR")
    place = file.relative_to(root)
    assert verdict["reason"].startswith(f"not judged: {place} line")
