"""The command in this process: the same paths as tests/functional, within reach."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from generator.cli import output
from generator.cli.trace_dataset import cli, main


@pytest.fixture
def run(dataset: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that validates the dataset and returns the exit status."""

    def call(*arguments: str) -> int:
        root = str(dataset.root)
        argv = ["trace-dataset", "validate", "--dataset", root, *arguments]
        monkeypatch.setattr(sys, "argv", argv)
        return output.run(cli, "trace-dataset")

    return call


def test_text_and_status(
    run: Any, dataset: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run() == output.EXIT_FINE
    dataset.definition(reference="x = 1\n")
    assert run() == output.EXIT_PROBLEMS
    printed = capsys.readouterr()
    assert "error: /reference: The reference has no top-level function" in printed.out
    assert printed.err == ""


def test_json_counts(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--format", "json") == output.EXIT_FINE
    assert json.loads(capsys.readouterr().out)["counts"]["definitions"] == 1


@pytest.mark.parametrize("arguments", [["--op-type", "x"], ["--bogus"]])
def test_usage(
    run: Any, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == output.EXIT_USAGE
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines()[-1].startswith("Error: ")


def test_a_root_without_definitions(
    run: Any, dataset: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    (dataset.root / "definitions").rename(dataset.root / "elsewhere")
    assert run() == output.EXIT_USAGE
    assert "has no definitions/. Pass the dataset's root" in capsys.readouterr().err


def test_definitions_that_is_a_file(
    run: Any, dataset: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    (dataset.root / "definitions").rename(dataset.root / "elsewhere")
    (dataset.root / "definitions").write_text("x")
    assert run() == output.EXIT_USAGE
    said = capsys.readouterr().err
    assert "There, definitions is a file." in said
    assert "above it" not in said


def test_a_path_for_a_name_is_understood(
    run: Any, dataset: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    name = next((dataset.root / "definitions").rglob("*.json")).stem
    assert run("--definition-name", f"definitions/x/{name}.json") == output.EXIT_USAGE
    assert f"Did you mean '{name}'?" in capsys.readouterr().err


def test_a_current_folder_that_was_removed(
    run: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert run() == output.EXIT_USAGE
    assert "The current folder was removed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (KeyboardInterrupt(), output.EXIT_INTERRUPTED, "Interrupted."),
        (OSError(28, "No space left on device"), output.EXIT_USAGE, "No space left"),
    ],
)
def test_what_goes_wrong_outside(
    run: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    status: int,
    said: str,
) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise error

    monkeypatch.setattr("generator.validation.validate.make_plan", fail)
    assert run() == status
    assert said in capsys.readouterr().err


def test_main_exits_with_the_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["trace-dataset", "--version"])
    # a command that has torch would end this process at once
    monkeypatch.setattr(output, "_leave", lambda status: None)
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 0
    assert capsys.readouterr().out.startswith("trace-dataset ")


def test_a_full_disk_names_the_folder_that_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left") as caught:
        output.check_writable(tmp_path / "out")
    assert caught.value.filename == str(tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())
