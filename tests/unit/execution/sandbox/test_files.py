"""What a reference can read and write, by whichever layer is there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from generator.execution.sandbox import Limits, read_result, run_confined

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


def test_a_link_leads_nowhere(hostile, secret, work) -> None:
    script = f"""
    import os
    os.symlink({str(secret)!r}, "link")
    print(open("link").read())
    """
    outcome = hostile(script)
    assert outcome.exit_status == 1
    assert read_result(work, "link") is None


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


def test_temporary_files_and_the_home_are_gone_afterwards(hostile, work) -> None:
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


def test_what_it_writes_to_its_folder_is_there(hostile, work) -> None:
    assert hostile("open('junit.xml', 'w').write('<x/>')").ok
    assert read_result(work, "junit.xml") == b"<x/>"


def test_a_result_that_is_no_plain_small_file_is_not_read(work, secret) -> None:
    work.joinpath("big").write_bytes(b"x" * 11)
    os.mkfifo(work / "pipe")
    os.link(secret, work / "hard")
    work.joinpath("folder").symlink_to(secret.parent)
    work.joinpath("inner").mkdir()
    work.joinpath("inner", "file").write_bytes(b"y")
    assert read_result(work, "inner/file", limit=10) == b"y"
    for name in ("big", "pipe", "hard", "folder/token", "inner", "absent"):
        assert read_result(work, name, limit=10) is None, name


def test_a_full_disk_stops_it(hostile) -> None:
    script = """
    block = b"x" * (1 << 20)
    for number in range(10_000):
        with open(f"file{number}", "wb") as file:
            file.write(block)
    """
    outcome = hostile(script, limits=Limits(wall_seconds=20, disk_bytes=20 << 20))
    assert outcome.limit == "disk"


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


def test_a_folder_that_others_cannot_read_is_said(work, dataset) -> None:
    if os.geteuid() != 0:
        pytest.skip("the caller is not root: the command runs as the caller")
    dataset.chmod(0o700)
    outcome = run_confined(["/bin/true"], read_only=[dataset], work=work)
    assert outcome.status == "not started"
    assert str(dataset) in outcome.detail


def test_a_folder_named_by_a_link_is_there_by_both_names(work, dataset) -> None:
    link = dataset.parent / "link"
    link.symlink_to(dataset)
    for name in (link, dataset):
        command = ["/bin/ls", str(name)]
        outcome = run_confined(command, read_only=[link], work=work)
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


def test_a_program_that_is_not_there_is_said(work) -> None:
    outcome = run_confined(["/bin/nothing-here"], read_only=[], work=work)
    assert outcome.status == "not started"
    assert "/bin/nothing-here" in outcome.detail


def test_a_link_in_a_folder_that_is_shown_leads_to_what_is_shown_too(tmp_path) -> None:
    """/usr/local/cuda is such a link, on which nothing can be mounted."""
    real, shown, work = (tmp_path / name for name in ("real", "shown", "work"))
    for folder in (real, shown, work):
        folder.mkdir(mode=0o777)
    (real / "nvcc").write_text("a compiler")
    (shown / "link").symlink_to(real)

    outcome = run_confined(
        ["/bin/cat", str(shown / "link" / "nvcc")],
        read_only=[shown, shown / "link"],
        work=work,
    )

    assert (outcome.exit_status, outcome.stdout) == (0, "a compiler"), outcome
