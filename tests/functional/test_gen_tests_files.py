"""How `gen-tests` writes: only what changed, whole, and never over a person's work."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.functional.gen_tests_command import (
    NOTHING,
    RMSNORM,
    Dataset,
    statuses,
    wrong_sums,
)

MINE = "def test_mine():\n    assert True\n"


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    """Return a rendered dataset of two op_types."""
    made = Dataset(tmp_path)
    made.add()
    made.add(RMSNORM)
    made.render()
    return made


def test_nothing_changed_writes_nothing(dataset: Dataset) -> None:
    before = dataset.state()
    done = dataset.render()
    assert dataset.state() == before
    assert done.stdout == ""
    files = len(before) - 1
    assert done.stderr.splitlines() == [
        NOTHING,
        f"2 definitions in 2 test files; files: {files} unchanged",
    ]


def test_only_what_changed_is_written(dataset: Dataset) -> None:
    before = dataset.state()
    dataset.add(description="New.")
    assert statuses(dataset.render()) == {"test_twice.py": "written"}
    after = dataset.state()
    changed = {path for path in after if after[path] != before[path]}
    assert changed == {"test_twice.py", "SHA256SUMS"}


def test_sums_are_right_and_name_every_file(dataset: Dataset) -> None:
    assert wrong_sums(dataset.output) == []
    lines = (dataset.output / "SHA256SUMS").read_text().splitlines()
    assert {line[66:] for line in lines} == set(dataset.state()) - {"SHA256SUMS"}


def test_check_of_an_up_to_date_folder(dataset: Dataset) -> None:
    before = dataset.state()
    done = dataset.run("--all", "--check")
    assert (done.returncode, done.stdout) == (0, "")
    assert dataset.state() == before


def _change_definition(dataset: Dataset) -> str:
    dataset.add(description="New.")
    return "test_twice.py"


def _remove_file(dataset: Dataset) -> str:
    dataset.file().unlink()
    return "test_twice.py"


def _remove_definitions(dataset: Dataset) -> str:
    (dataset.root / "definitions/twice/twice_n4.json").unlink()
    return "test_twice.py"


def _new_op_type(dataset: Dataset) -> str:
    dataset.add(op_type="thrice")
    (dataset.root / "definitions/twice/twice_n4.json").unlink()
    return "test_thrice.py"


@pytest.mark.parametrize(
    "drift", [_change_definition, _remove_file, _remove_definitions, _new_op_type]
)
def test_check_finds_drift_and_writes_nothing(
    dataset: Dataset, drift: Callable[[Dataset], str]
) -> None:
    path = drift(dataset)
    before = dataset.state()
    done = dataset.run("--all", "--check")
    assert done.returncode == 1
    assert statuses(done)[path] == "drifted"
    assert "drifted" in done.stderr.splitlines()[-1]
    assert dataset.state() == before
    dataset.render()
    assert dataset.run("--all", "--check").returncode == 0


def test_check_into_a_folder_that_is_not_there(dataset: Dataset) -> None:
    other = dataset.root / "other"
    done = dataset.run("--all", "--check", "--output", other)
    assert done.returncode == 1
    assert set(statuses(done).values()) == {"drifted"}
    assert not other.exists()


@pytest.mark.parametrize(
    "path",
    [
        "test_twice.py",
        "conftest.py",
        "reference_support/kernel_judge/comparison/compare.py",
    ],
)
def test_an_edited_file_is_left_alone(dataset: Dataset, path: str) -> None:
    dataset.render("--standalone")
    file = dataset.output / path
    edited = file.read_text() + "# my change\n"
    rendered = file.read_text()
    file.write_text(edited)
    before = dataset.state()
    for arguments in (("--all",), ("--all", "--check"), ("--all", "--json")):
        done = dataset.run(*arguments)
        assert done.returncode == 1
        assert statuses(done)[path] == "edited"
        said = done.stdout if "--json" in arguments else done.stderr
        assert "rendered-file-edited" in said
        assert "somebody edited it" in said
        assert dataset.state() == before
    assert wrong_sums(dataset.output) == [path]
    assert statuses(dataset.render("--force")) == {path: "written"}
    assert file.read_text() == rendered


def test_an_edit_stops_that_file_alone(dataset: Dataset) -> None:
    dataset.file("rmsnorm").write_text(MINE)
    dataset.add(description="New.")
    done = dataset.run("--all")
    assert done.returncode == 1
    assert statuses(done) == {"test_rmsnorm.py": "edited", "test_twice.py": "written"}
    assert dataset.file("rmsnorm").read_text() == MINE
    assert "# New." in dataset.text()


def test_a_hand_written_file_without_record(tmp_path: Path) -> None:
    dataset = Dataset(tmp_path)
    dataset.add()
    dataset.output.mkdir(parents=True)
    dataset.file().write_text(MINE)
    done = dataset.run("--all")
    assert done.returncode == 1
    assert statuses(done)["test_twice.py"] == "edited"
    assert dataset.file().read_text() == MINE
    assert "test_twice.py" not in (dataset.output / "SHA256SUMS").read_text()
    assert statuses(dataset.render("--force")) == {"test_twice.py": "written"}
    assert "class TestTwiceN4(" in dataset.text()


def test_other_files_in_the_folder_are_not_touched(dataset: Dataset) -> None:
    (dataset.output / "test_mine.py").write_text(MINE)
    (dataset.output / "notes.txt").write_text("mine")
    dataset.render("--force")
    assert (dataset.output / "test_mine.py").read_text() == MINE
    assert (dataset.output / "notes.txt").read_text() == "mine"


def test_a_dataset_with_tests_of_its_own_hears_of_another_folder(
    dataset: Dataset,
) -> None:
    assert "--output" not in dataset.render().stderr
    (dataset.output / "test_mine.py").write_text(MINE)
    (dataset.output / "helper.py").write_text(MINE)
    said = dataset.render().stderr.splitlines()[-1]
    assert "1 test file that gen-tests did not render: 'test_mine.py'" in said
    assert "pytest tests/rendered" in said


def test_a_lost_record_is_made_again(dataset: Dataset) -> None:
    before = (dataset.output / "SHA256SUMS").read_bytes()
    (dataset.output / "SHA256SUMS").unlink()
    assert statuses(dataset.render()) == {}
    assert (dataset.output / "SHA256SUMS").read_bytes() == before


def test_the_file_of_an_op_type_that_is_gone(dataset: Dataset) -> None:
    (dataset.root / "definitions/twice/twice_n4.json").unlink()
    assert dataset.run("--op-type", "rmsnorm").returncode == 0
    assert dataset.file().exists(), "only --all knows that nothing needs it"
    assert statuses(dataset.render()) == {"test_twice.py": "removed"}
    assert not dataset.file().exists()
    assert "test_twice.py" not in (dataset.output / "SHA256SUMS").read_text()


def test_the_edited_file_of_an_op_type_that_is_gone(dataset: Dataset) -> None:
    (dataset.root / "definitions/twice/twice_n4.json").unlink()
    dataset.file().write_text(MINE)
    for _ in range(2):
        done = dataset.run("--all")
        assert done.returncode == 1
        assert statuses(done) == {"test_twice.py": "edited"}
        assert dataset.file().read_text() == MINE
    assert statuses(dataset.render("--force")) == {"test_twice.py": "removed"}
    assert not dataset.file().exists()


def test_a_broken_definition_does_not_remove_its_file(dataset: Dataset) -> None:
    (dataset.root / "definitions/twice/twice_n4.json").write_text("{")
    done = dataset.run("--all")
    assert (done.returncode, done.stdout) == (1, "")
    assert "class TestTwiceN4(" in dataset.text()


def test_a_record_cannot_name_other_files(dataset: Dataset) -> None:
    dataset.render("--standalone")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    victim = dataset.output.parent / "victim.py"
    victim.write_text("")
    lines = ("../victim.py", "a/../../victim.py", str(victim), "", ".", "x\0.py", "é")
    with (dataset.output / "SHA256SUMS").open("a") as sums:
        sums.writelines(f"{empty}  {line}\n" for line in (*lines, "reference_support"))
        sums.write("no record at all\n")
    dataset.render("--force")
    assert victim.exists()
    assert (dataset.output / "reference_support").is_dir()


# ---- what can go wrong while writing


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("a_file", "it is a file, not a folder"),
        ("a_file/inside", "Not a directory"),
        ("in_the_way", "it is a folder, not a file"),
    ],
)
def test_an_output_that_cannot_be_written(
    dataset: Dataset, output: str, reason: str
) -> None:
    (dataset.root / "a_file").write_text("mine")
    (dataset.root / "in_the_way" / "test_twice.py").mkdir(parents=True)
    for check in ((), ("--check",)):
        done = dataset.run("--all", "--output", dataset.root / output, *check)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("Error: Can't write ")
        assert done.stderr.endswith(f": {reason}.\n")
        assert len(done.stderr.splitlines()) == 1
    assert (dataset.root / "a_file").read_text() == "mine"
    assert os.listdir(dataset.root / "in_the_way") == ["test_twice.py"]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no /proc here")
def test_an_output_that_even_the_superuser_cannot_write(dataset: Dataset) -> None:
    done = dataset.run("--all", "--output", "/proc/gen-tests")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: Can't write /proc/gen-tests/")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_an_output_without_write_permission(dataset: Dataset) -> None:
    dataset.output.chmod(0o555)
    try:
        done = dataset.run("--all", "--tolerance", "1")
    finally:
        dataset.output.chmod(0o755)
    assert done.returncode == 2
    assert done.stderr.endswith(": Permission denied.\n")


FULL_DISK = """
import errno, os
whole = os.write
def write_half(descriptor, content):
    if "twice" in os.readlink(f"/proc/self/fd/{descriptor}"):
        whole(descriptor, content[: len(content) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")
    return whole(descriptor, content)
os.write = write_half
"""
# a limit that the kernel keeps: the write itself fails, half done
SMALL_DISK = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
"""
NO_RENAME = """
import errno, os
def refuse(source, target, **folders):
    raise PermissionError(errno.EACCES, "Permission denied", source)
os.replace = refuse
"""


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (FULL_DISK, "No space left on device"),
        (SMALL_DISK, "File too large"),
        (NO_RENAME, "Permission denied"),
    ],
)
def test_a_write_that_fails_leaves_the_old_file(
    dataset: Dataset, fault: str, reason: str
) -> None:
    old = dataset.state()
    dataset.add(description="New. " * 1000)
    done = dataset.run("--all", before=fault)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"Error: Can't write {dataset.file()}: {reason}.\n"
    assert dataset.state() == old
    assert statuses(dataset.render()) == {"test_twice.py": "written"}


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
@pytest.mark.parametrize("renames", [0, 1, 2, 5])
def test_killed_while_writing(dataset: Dataset, renames: int) -> None:
    """After any kill each file is the old one or the new one, and none is `edited`."""
    old = dataset.state()
    dataset.add(description="New.")
    dataset.add(RMSNORM, description="New.")
    kill = f"""
import itertools, os, signal
count, rename = itertools.count(), os.replace
def replace(source, target, **folders):
    if next(count) == {renames}:
        os.kill(os.getpid(), signal.SIGKILL)
    rename(source, target, **folders)
os.replace = replace
"""
    done = dataset.run("--all", before=kill)
    # four renames in all: two test files, each with the record after it
    assert done.returncode == (-9 if renames < 4 else 0)
    killed = dataset.state()
    visible = {path for path in killed if not Path(path).name.startswith(".")}
    assert visible == set(old)
    dataset.run("--all", "--output", dataset.root / "new")
    for path in visible - {"SHA256SUMS"}:
        new = (dataset.root / "new" / path).read_bytes()
        assert killed[path][1] in (old[path][1], new)
    dataset.render()
    dataset.add(description="Newer.")
    assert dataset.run("--all").returncode == 0
    assert "# Newer." in dataset.text()


def test_an_interrupt_is_no_traceback(dataset: Dataset) -> None:
    old = dataset.state()
    dataset.add(description="New.")
    interrupt = """
import os, signal
os.replace = lambda *paths, **folders: os.kill(os.getpid(), signal.SIGINT)
"""
    done = dataset.run("--all", before=interrupt)
    assert done.returncode == 130
    assert done.stderr.split() == ["Interrupted."]
    assert dataset.state() == old
