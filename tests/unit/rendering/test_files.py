"""Writing: whole or not at all, never over a person's work, never outside the folder."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys

import pytest

from generator.dataset.atomic_write import write_atomically
from generator.rendering.files import SUMS, FileStatus, write_files

FILES = {"test_a.py": "a = 1\n", "support/b.py": "b = 'größe'\n"}


def statuses(outcomes):
    return {outcome.path: outcome.status for outcome in outcomes}


def test_files_are_written_with_their_sums(tmp_path):
    found = statuses(write_files(tmp_path, FILES))
    assert found == dict.fromkeys(FILES, FileStatus.WRITTEN)
    for path, text in FILES.items():
        assert (tmp_path / path).read_bytes() == text.encode("utf-8")
    lines = (tmp_path / SUMS).read_text().splitlines()
    assert lines == sorted(lines, key=lambda line: line.split("  ")[1])
    assert f"{hashlib.sha256(b'a = 1' + bytes([10])).hexdigest()}  test_a.py" in lines


@pytest.mark.skipif(not shutil.which("sha256sum"), reason="sha256sum: not installed")
def test_the_sums_can_be_checked_by_sha256sum(tmp_path):
    write_files(tmp_path, FILES)
    command = ["sha256sum", "--strict", "-c", SUMS]
    assert (
        subprocess.run(
            command, check=False, cwd=tmp_path, capture_output=True
        ).returncode
        == 0
    )


def test_nothing_is_touched_where_nothing_changed(tmp_path):
    write_files(tmp_path, FILES)
    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*") if p.is_file()}
    found = statuses(write_files(tmp_path, FILES))
    assert set(found.values()) == {FileStatus.UNCHANGED}
    after = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*") if p.is_file()}
    assert after == before


def test_what_was_rendered_before_is_replaced(tmp_path):
    write_files(tmp_path, FILES)
    found = statuses(write_files(tmp_path, {**FILES, "test_a.py": "a = 2\n"}))
    assert found == {
        "test_a.py": FileStatus.WRITTEN,
        "support/b.py": FileStatus.UNCHANGED,
    }
    assert (tmp_path / "test_a.py").read_text() == "a = 2\n"


@pytest.mark.parametrize("check", [False, True])
def test_an_edited_file_is_left_alone(tmp_path, check):
    write_files(tmp_path, FILES)
    (tmp_path / "test_a.py").write_text("mine\n")
    changed = {**FILES, "test_a.py": "a = 2\n"}
    found = statuses(write_files(tmp_path, changed, check=check))
    assert found["test_a.py"] is FileStatus.EDITED
    assert (tmp_path / "test_a.py").read_text() == "mine\n"


def test_an_edited_file_stays_edited_on_the_next_run(tmp_path):
    write_files(tmp_path, FILES)
    (tmp_path / "test_a.py").write_text("mine\n")
    for _ in range(2):
        assert statuses(write_files(tmp_path, FILES))["test_a.py"] is FileStatus.EDITED


def test_a_file_nobody_rendered_is_not_overwritten(tmp_path):
    (tmp_path / "test_a.py").write_text("somebody's own\n")
    assert statuses(write_files(tmp_path, FILES))["test_a.py"] is FileStatus.EDITED
    assert (tmp_path / "test_a.py").read_text() == "somebody's own\n"


def test_force_overwrites_an_edited_file(tmp_path):
    write_files(tmp_path, FILES)
    (tmp_path / "test_a.py").write_text("mine\n")
    found = statuses(write_files(tmp_path, FILES, force=True))
    assert found["test_a.py"] is FileStatus.WRITTEN
    assert (tmp_path / "test_a.py").read_text() == FILES["test_a.py"]


def test_check_writes_nothing_and_names_the_drift(tmp_path):
    found = statuses(write_files(tmp_path / "new", FILES, check=True))
    assert set(found.values()) == {FileStatus.DRIFTED}
    assert not (tmp_path / "new").exists()
    write_files(tmp_path, FILES)
    changed = {**FILES, "test_a.py": "a = 2\n", "c.py": ""}
    found = statuses(write_files(tmp_path, changed, check=True, force=True))
    assert found == {
        "test_a.py": FileStatus.DRIFTED,
        "c.py": FileStatus.DRIFTED,
        "support/b.py": FileStatus.UNCHANGED,
    }
    assert (tmp_path / "test_a.py").read_text() == FILES["test_a.py"]
    assert not (tmp_path / "c.py").exists()


def test_files_rendered_once_are_removed_when_everything_is_rendered(tmp_path):
    write_files(tmp_path, FILES)
    (tmp_path / "mine.py").write_text("x\n")
    kept = {"test_a.py": FILES["test_a.py"]}
    assert statuses(write_files(tmp_path, kept)) == {"test_a.py": FileStatus.UNCHANGED}
    checked = statuses(write_files(tmp_path, kept, complete=True, check=True))
    assert checked["support/b.py"] is FileStatus.DRIFTED
    assert (tmp_path / "support/b.py").exists()
    found = statuses(write_files(tmp_path, kept, complete=True))
    assert found["support/b.py"] is FileStatus.REMOVED
    assert not (tmp_path / "support/b.py").exists()
    assert (tmp_path / "mine.py").exists()
    assert "support/b.py" not in (tmp_path / SUMS).read_text()


def test_a_stale_file_that_was_edited_is_reported_until_it_is_gone(tmp_path):
    write_files(tmp_path, FILES)
    (tmp_path / "support/b.py").write_text("mine\n")
    kept = {"test_a.py": FILES["test_a.py"]}
    for _ in range(2):
        found = statuses(write_files(tmp_path, kept, complete=True))
        assert found["support/b.py"] is FileStatus.EDITED
    (tmp_path / "support/b.py").unlink()
    found = statuses(write_files(tmp_path, kept, complete=True))
    assert "support/b.py" not in found


def test_sums_are_not_trusted_outside_the_folder(tmp_path):
    victim = tmp_path / "victim.py"
    victim.write_text("precious\n")
    digest = hashlib.sha256(b"precious\n").hexdigest()
    output = tmp_path / "out"
    write_files(output, FILES)
    names = (
        "../victim.py",
        str(victim),
        "a/../../victim.py",
        "support/../../victim.py",
    )
    with (output / SUMS).open("a") as sums:
        sums.writelines(f"{digest}  {name}\n" for name in names)
    found = statuses(write_files(output, FILES, complete=True, force=True))
    assert set(found) == set(FILES)
    assert victim.read_text() == "precious\n"


@pytest.mark.parametrize("content", [b"\xff\xfe", b"no sums\n", b"", b"  \n\n"])
def test_broken_sums_know_nothing(tmp_path, content):
    write_files(tmp_path, FILES)
    (tmp_path / SUMS).write_bytes(content)
    found = statuses(write_files(tmp_path, {**FILES, "test_a.py": "a = 2\n"}))
    assert found["test_a.py"] is FileStatus.EDITED


def test_a_failed_rename_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "a.py"
    path.write_bytes(b"old")

    def fail(*arguments, **places):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space left") as caught:
        write_atomically(path, b"new")
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.py"]


def test_a_kill_before_the_rename_leaves_the_old_file_whole(tmp_path):
    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    script = (
        "import os, pathlib, signal, sys\n"
        "os.replace = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)\n"
        "from generator.dataset.atomic_write import write_atomically\n"
        "write_atomically(pathlib.Path(sys.argv[1]), b'new' * 10**6)\n"
    )
    killed = subprocess.run([sys.executable, "-c", script, str(path)], check=False)
    assert killed.returncode == -9
    assert path.read_bytes() == b"old"
    write_atomically(path, b"next")
    assert path.read_bytes() == b"next"
