"""Files of a dataset are read and written without a link, bounded, and never waited for."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from generator.dataset.atomic_write import remove_below, write_atomically, write_below
from generator.dataset.file_reading import (
    NotRead,
    entries,
    file_below,
    is_absent,
    is_file,
    is_folder,
    place_below,
    read_bytes,
    read_text,
    sha256_of,
    walk_files,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a folder with one file, beside one with what must not be reached."""
    (tmp_path / "root/a/b").mkdir(parents=True)
    (tmp_path / "root/a/b/file").write_text("content")
    (tmp_path / "outside/b").mkdir(parents=True)
    (tmp_path / "outside/b/file").write_text("secret")
    return tmp_path / "root"


READERS = [read_bytes, read_text, sha256_of]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("place", ["a", "a/b", "a/b/file"])
@pytest.mark.parametrize("target", ["absolute", "relative", "inside"])
def test_no_link_on_the_way_is_followed(root, read, place, target):
    below = place.removeprefix("a").strip("/")
    other = root / "kept" if target == "inside" else root.parent / "outside"
    (root / place).rename(root / "moved")
    if target == "inside":
        (root / "moved").rename(other)
        below = ""
    leads = other / below
    there = os.path.relpath(leads, (root / place).parent)
    (root / place).symlink_to(there if target == "relative" else leads)
    with pytest.raises(NotRead) as caught:
        read(root, "a/b/file")
    assert caught.value.errno == errno.ELOOP
    assert "symbolic link" in str(caught.value)
    assert not is_file(root, "a/b/file")
    assert not is_absent(root, "a/b/file")
    assert list(walk_files(root, "a")) == []


def test_the_root_is_the_user_s_word(root):
    (root.parent / "link").symlink_to(root)
    assert read_bytes(root.parent / "link", "a/b/file") == b"content"
    assert read_bytes(root.parent / "link", "./a//./b/file") == b"content"


@pytest.mark.parametrize("path", ["../outside/b/file", "a/../../outside/b/file"])
def test_no_path_leads_upwards(root, path):
    with pytest.raises(NotRead, match="upwards"):
        read_bytes(root, path)
    with pytest.raises(OSError, match="upwards"):
        write_below(root, path, b"x")
    with pytest.raises(NotRead, match="upwards"):
        remove_below(root, path)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_refused_at_once(root, make):
    make(root / "x")
    # to open a pipe would wait for one who writes
    for read in READERS:
        with pytest.raises(NotRead, match="not a file"):
            read(root, "x")


def test_an_endless_file_behind_a_link_is_not_read(root):
    (root / "x").symlink_to("/dev/zero")
    for read in READERS:
        with pytest.raises(NotRead, match="symbolic link"):
            read(root, "x")


def test_nothing_of_a_file_that_is_too_large_is_read(root):
    (root / "x").write_bytes(b"")
    os.truncate(root / "x", 1 << 40)
    with pytest.raises(NotRead, match="more than the 64 MiB"):
        read_bytes(root, "x")
    with pytest.raises(NotRead, match="more than the 1 MiB"):
        read_text(root, "x", 1 << 20)


def test_a_file_that_grows_while_it_is_read_is_bounded(root, monkeypatch):
    (root / "x").write_bytes(bytes(100))
    real = os.read

    def grow(descriptor, count):
        with open(root / "x", "ab") as stream:
            stream.write(bytes(4096))
        return real(descriptor, count)

    monkeypatch.setattr(os, "read", grow)
    with pytest.raises(NotRead, match="more than"):
        read_bytes(root, "x", 1000)


@pytest.mark.parametrize("path", ["", "a", "nowhere", "a/b/file/c", "x\0y", "x" * 300])
def test_what_can_not_be_there_is_an_error_of_one_kind(root, path):
    with pytest.raises((OSError, ValueError)):
        read_bytes(root, path)
    assert not is_file(root, path)


def test_a_descriptor_is_left_by_none_of_them(root):
    (root / "link").symlink_to("a")
    (root / "pipe").symlink_to("a")
    before = len(os.listdir("/proc/self/fd"))
    for path in ("a/b/file", "link/b/file", "../x", "nowhere/x", "a/b", "a/b/file/c"):
        for read in READERS:
            try:
                read(root, path)
            except OSError:
                continue
    write_below(root, "new/deep/x", b"")
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_folder_is_swapped_for_a_link_while_it_is_walked(root):
    """A check by path could be overtaken: what was opened stays what it was."""
    script = (
        "import os, sys\n"
        "os.chdir(sys.argv[1])\n"
        "while True:\n"
        "    os.rename('a', 'z'); os.symlink('../outside', 'a')\n"
        "    os.unlink('a'); os.rename('z', 'a')\n"
    )
    swapping = subprocess.Popen([sys.executable, "-c", script, str(root)])
    try:
        seen = set()
        until = time.monotonic() + 2
        while time.monotonic() < until:
            try:
                seen.add(read_bytes(root, "a/b/file"))
            except OSError:
                seen.add(None)
            try:
                write_below(root, "a/b/new", b"x")
            except OSError:
                continue
    finally:
        swapping.kill()
        swapping.wait()
    assert seen == {b"content", None}
    assert sorted(p.name for p in (root.parent / "outside/b").iterdir()) == ["file"]


@pytest.mark.parametrize("place", ["a", "a/b"])
def test_nothing_is_written_through_a_link(root, place):
    (root / place).rename(root / "moved")
    (root / place).symlink_to(root.parent / "outside")
    with pytest.raises(OSError, match="symbolic link"):
        write_below(root, "a/b/file", b"new")
    with pytest.raises(OSError, match="symbolic link"):
        write_below(root, "a/b/deeper/file", b"new")
    with pytest.raises(NotRead, match="symbolic link"):
        remove_below(root, "a/b/file")
    found = sorted(root.parent.glob("outside/**/*"))
    assert [str(p.relative_to(root.parent)) for p in found] == [
        "outside/b",
        "outside/b/file",
    ]
    assert (root.parent / "outside/b/file").read_text() == "secret"


def test_a_link_in_the_place_of_the_file_is_replaced(root):
    victim = root.parent / "outside/b/file"
    (root / "x").symlink_to(victim)
    write_below(root, "x", b"new")
    assert (root / "x").read_text() == "new"
    assert not (root / "x").is_symlink()
    assert victim.read_text() == "secret"


def test_a_planted_temporary_name_is_never_written_through(root, monkeypatch):
    victim = root.parent / "outside/b/file"
    for pid in range(os.getpid() - 5, os.getpid() + 5):
        (root / f".x.{pid}.tmp").symlink_to(victim)
    write_below(root, "x", b"new")
    # and were the name known, it would be refused
    monkeypatch.setattr("secrets.token_hex", lambda count: "known")
    (root / ".x.known.tmp").symlink_to(victim)
    with pytest.raises(OSError, match="in the place"):
        write_below(root, "x", b"newer")
    assert (root / "x").read_text() == "new"
    assert victim.read_text() == "secret"


def test_a_full_disk_leaves_the_old_file_and_no_other(root, monkeypatch):
    write_below(root, "x", b"old")

    def full(descriptor, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left") as caught:
        write_below(root, "x", b"new")
    assert caught.value.filename == str(root / "x")
    assert sorted(p.name for p in root.iterdir()) == ["a", "x"]
    assert (root / "x").read_bytes() == b"old"


def test_long_names_and_modes(root):
    name = "x" * 250 + ".json"
    write_below(root, name, b"1" * 3_000_000)
    assert (root / name).stat().st_size == 3_000_000
    assert (root / name).stat().st_mode & 0o111 == 0
    write_atomically(root / "new/folder/y", b"y")
    assert (root / "new/folder/y").read_bytes() == b"y"


def test_where_a_path_starts_to_be_trusted(root):
    assert place_below(root, root / "a/b") == (root, "a/b")
    assert place_below(root, root) == (root, "")
    assert place_below(root, root.parent) == (root.parent, "")
    assert place_below(root, root / "../outside") == (root / "../outside", "")
    assert file_below(root, root / "a/x") == (root, "a/x")
    assert file_below(root, root.parent / "x") == (root.parent, "x")
    assert is_folder(root, "a")
    assert not is_folder(root, "a/b/file")


def test_entries_say_what_lies_there_and_follow_nothing(root):
    (root / "l").symlink_to("a")
    os.mkfifo(root / "p")
    found = {e.name: (e.is_folder, e.is_file, e.is_link) for e in entries(root, "")}
    assert found == {
        "a": (True, False, False),
        "l": (False, False, True),
        "p": (False, False, False),
    }
