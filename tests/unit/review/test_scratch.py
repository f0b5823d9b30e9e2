"""A run's folder is removed, however deep it is and whatever its modes are."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from generator.review.scratch import scratch


def test_three_thousand_levels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    outside = tmp_path / "precious"
    outside.mkdir()
    (outside / "file").write_text("x")
    with scratch("deep-") as folder:
        where = os.open(folder, os.O_RDONLY)
        for _ in range(3000):
            os.mkdir("folder", dir_fd=where)
            inner = os.open("folder", os.O_RDONLY, dir_fd=where)
            os.close(where)
            where = inner
        os.close(where)
        (folder / "link").symlink_to(outside)
        (folder / "shut").mkdir()
        (folder / "shut/file").write_text("x")
        (folder / "shut").chmod(0o000)
    assert not folder.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]
    assert (outside / "file").exists()


def test_it_is_gone_after_an_error() -> None:
    folder = Path()

    def failing() -> None:
        nonlocal folder
        with scratch("error-") as folder:
            (folder / "a/b").mkdir(parents=True)
            raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        failing()
    assert folder != Path()
    assert not folder.exists()


def test_it_is_gone_after_a_kill(tmp_path: Path) -> None:
    code = (
        "import os, signal\n"
        "from generator.review.scratch import scratch\n"
        "with scratch('killed-') as folder:\n"
        "    (folder / 'a/b').mkdir(parents=True)\n"
        "    (folder / 'a').chmod(0)\n"
        "    print(folder, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert Path(done.stdout.strip()).parent == tmp_path
    end = time.monotonic() + 20
    while any(tmp_path.iterdir()) and time.monotonic() < end:
        time.sleep(0.02)
    assert not any(tmp_path.iterdir())
