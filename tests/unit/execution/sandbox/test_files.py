"""What a reference can read and write, by whichever layer is there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from generator.execution.sandbox import Limits, read_result, run_confined, supervise

pytestmark = pytest.mark.usefixtures("_confines")


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("hf_secret")
    return path


def test_what_belongs_to_others_is_out_of_reach(hostile, secret) -> None:
    outcome = hostile(f"print(open({str(secret)!r}).read())")
    assert outcome.exit_status == 1
    assert "hf_secret" not in outcome.stdout
    assert "Error" in outcome.stderr


def test_the_secret_is_read_without_the_sandbox(free, secret) -> None:
    """The tests above can fail."""
    assert free(f"print(open({str(secret)!r}).read())").returncode == 0


@pytest.mark.parametrize("name", ["/etc/shadow", "/etc/hosts", "/etc/ssh", "/var/log"])
def test_the_machine_s_own_files_are_out_of_reach(hostile, name) -> None:
    script = (
        f"import os; os.listdir({name!r}) if {name!r}[1] == 'v' else open({name!r})"
    )
    assert hostile(script).exit_status == 1


def test_etc_passwd_knows_one_user_who_is_made_up(hostile) -> None:
    outcome = hostile("print(open('/etc/passwd').read())")
    assert outcome.stdout.startswith("review:x:")
    assert "root" not in outcome.stdout


def test_a_link_leads_nowhere(hostile, secret) -> None:
    script = f"""
    import os
    os.symlink({str(secret)!r}, "link")
    print(open("link").read())
    """
    outcome = hostile(script)
    assert outcome.exit_status == 1


def test_the_dataset_can_be_read_and_not_changed(hostile, dataset) -> None:
    path = dataset / "definition.json"
    assert hostile(f"print(open({str(path)!r}).read())").stdout == "{}\n"
    for change in (
        f"open({str(path)!r}, 'w')",
        f"open({str(dataset / 'new')!r}, 'w')",
        f"import os; os.unlink({str(path)!r})",
        f"import os; os.rename({str(path)!r}, 'stolen')",
        f"import os; os.truncate({str(path)!r}, 0)",
    ):
        assert hostile(change).exit_status == 1, change
    assert path.read_text() == "{}"
    assert os.listdir(dataset) == ["definition.json"]


def test_nothing_is_written_outside(hostile, tmp_path) -> None:
    script = f"open({str(tmp_path / 'planted')!r}, 'w').write('x')"
    hostile(script)
    assert not (tmp_path / "planted").exists()


def test_temporary_files_and_the_home_are_gone_afterwards(hostile) -> None:
    script = """
    import os, tempfile
    home = os.path.expanduser("~")
    open(home + "/here", "w").write("x")
    path = tempfile.mkstemp()[1]
    open("/tmp/known", "w").write("x")
    print(os.listdir(home), path)
    """
    outcome = hostile(script)
    assert outcome.stdout.startswith("['here']")
    assert not Path("/tmp/known").exists()
    assert not Path(outcome.stdout.split()[1]).exists()


def test_nothing_of_the_environment_is_passed(hostile, monkeypatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    script = (
        "import os; print(dict(os.environ)); print(open('/proc/self/environ').read())"
    )
    outcome = hostile(script, environment={"GIVEN": "1"})
    assert outcome.ok
    assert "hf_secret" not in outcome.stdout
    assert "'GIVEN': '1'" in outcome.stdout


def test_its_results_are_there_and_nothing_else(hostile, tmp_path) -> None:
    results = tmp_path / "junit.xml"
    script = "open('junit.xml', 'w').write('<x/>'); open('other', 'w').write('y')"
    assert hostile(script, results=results).ok
    assert read_result(results) == b"<x/>"
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    "change",
    [
        "os.unlink('results')",
        "os.rename('results', 'other')",
        "os.symlink({secret!r}, 'link'); os.rename('link', 'results')",
        "os.mkfifo('pipe'); os.rename('pipe', 'results')",
        "os.mkdir('folder'); os.rename('folder', 'results')",
    ],
)
def test_results_are_not_replaced(hostile, secret, tmp_path, change) -> None:
    results = tmp_path / "results"
    script = f"import os; {change.format(secret=str(secret))}"
    assert hostile(script, results=results).exit_status == 1
    assert read_result(results) is None
    assert results.is_file()
    assert not results.is_symlink()


def test_results_that_are_too_large_are_not_read(hostile, tmp_path) -> None:
    results = tmp_path / "results"
    assert hostile("open('results', 'wb').write(bytes(11))", results=results).ok
    assert read_result(results, limit=10) is None
    assert read_result(results, limit=11) == bytes(11)


def test_results_that_are_there_already_are_kept(hostile, tmp_path) -> None:
    results = tmp_path / "results"
    results.write_text("of another run")
    assert hostile("pass", results=results).status == "not started"
    assert results.read_text() == "of another run"


def test_thousands_of_folders_in_each_other_are_left_to_nobody(hostile) -> None:
    script = """
    import os
    for _ in range(3000):
        os.mkdir("folder")
        os.chdir("folder")
    """
    assert hostile(script).ok


@pytest.mark.parametrize("folder", [".", "/tmp", "/dev/shm"])
def test_all_files_together_are_bounded(hostile, folder) -> None:
    # without a name, and in folders that nobody may look into
    script = f"""
    import os
    os.chdir({folder!r})
    os.mkdir("closed")
    held = [os.open("here", os.O_CREAT | os.O_RDWR), os.open("closed/x", os.O_CREAT | 2)]
    os.unlink("here")
    os.chmod("closed", 0)
    for file in held:
        os.write(file, bytes(8 << 20))
    os.write(os.open("/tmp/more", os.O_CREAT | 2), bytes(8 << 20))
"""
    limits = Limits(wall_seconds=20, disk_bytes=20 << 20)
    outcome = hostile(script, limits=limits)
    assert outcome.ok  # the last write is a short one
    outcome = hostile(f"{script}    os.write(held[0], b'x')\n", limits=limits)
    assert "No space left" in outcome.stderr


def test_many_files_stop_it(hostile) -> None:
    script = """
    import time
    for number in range(200_000):
        open(f"file{number}", "w").close()
    time.sleep(2)
    """
    assert hostile(script).limit == "files"


def test_temporary_files_are_bounded_by_the_kernel(hostile) -> None:
    script = "open('/tmp/x', 'wb').write(b'x' * (64 << 20))"
    limits = Limits(wall_seconds=20, disk_bytes=20 << 20)
    outcome = hostile(script, limits=limits)
    assert "No space left" in outcome.stderr


def test_a_large_file_stops_it(hostile) -> None:
    script = """
    import signal
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    open("x", "wb").write(b"x" * (2 << 20))
    """
    outcome = hostile(script, limits=Limits(wall_seconds=20, file_bytes=1 << 20))
    assert outcome.limit == "file size"


def test_many_open_files_are_refused(hostile) -> None:
    script = "files = [open('/dev/null') for _ in range(500)]"
    outcome = hostile(script, limits=Limits(wall_seconds=20, open_files=64))
    assert "Too many open files" in outcome.stderr


@pytest.mark.usefixtures("_confines")
def test_a_folder_that_others_cannot_read_is_said(dataset) -> None:
    if os.geteuid() != 0:
        pytest.skip("the caller is not root: the command runs as the caller")
    dataset.chmod(0o700)
    outcome = run_confined(["/bin/true"], read_only=[dataset])
    assert outcome.status == "not started"
    assert str(dataset) in outcome.detail


@pytest.mark.usefixtures("_confines")
def test_a_folder_named_by_a_link_is_there_by_both_names(dataset) -> None:
    link = dataset.parent / "link"
    link.symlink_to(dataset)
    for name in (link, dataset):
        command = ["/bin/ls", str(name)]
        outcome = run_confined(command, read_only=[link])
        assert outcome.stdout == "definition.json\n", outcome


def test_devices_are_there_only_on_demand(hostile) -> None:
    script = """
    import os
    names = ("nvidiactl", "nvidia0", "null", "kmsg", "mem", "sda", "vda", "tty")
    print([name for name in names if os.path.exists(f"/dev/{name}")])
    """
    assert hostile(script).stdout == "['null']\n"
    there = [n for n in ("nvidiactl", "nvidia0") if os.path.exists(f"/dev/{n}")]
    assert hostile(script, devices=True).stdout == f"{[*there, 'null']}\n"


@pytest.mark.usefixtures("_confines")
def test_a_program_that_is_not_there_is_said() -> None:
    outcome = run_confined(["/bin/nothing-here"], read_only=[])
    assert outcome.status == "not started"
    assert "/bin/nothing-here" in outcome.detail


def test_a_link_in_a_folder_that_is_shown_leads_to_what_is_shown_too(tmp_path) -> None:
    """/usr/local/cuda is such a link, on which nothing can be mounted."""
    real, shown = (tmp_path / name for name in ("real", "shown"))
    for folder in (real, shown):
        folder.mkdir(mode=0o777)
    (real / "nvcc").write_text("a compiler")
    (shown / "link").symlink_to(real)

    outcome = run_confined(
        ["/bin/cat", str(shown / "link" / "nvcc")],
        read_only=[shown, shown / "link"],
    )

    assert (outcome.exit_status, outcome.stdout) == (0, "a compiler"), outcome


def test_files_of_the_machine_are_not_counted_as_the_sandbox_s(monkeypatch) -> None:
    """A process that has no files of its own yet sees the machine's."""
    monkeypatch.setattr(supervise, "_ENTRIES", -1)
    assert not supervise._has_many_files(os.getpid())
