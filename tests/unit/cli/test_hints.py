"""What a person who begins types, and the line that says what to type instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator.cli.gen_tests import cli as gen_tests
from generator.cli.output import run
from generator.cli.trace_dataset import cli as trace_dataset
from tests.builders import ROOT


def told(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: object,
    *words: str,
) -> tuple[int, str]:
    """Return a command's exit status, and what it says on stderr."""
    monkeypatch.setattr("sys.argv", ["program", *words])
    status = run(command, "program")  # type: ignore[arg-type]
    return status, capsys.readouterr().err


def test_the_name_alone_shows_the_help(monkeypatch, capsys) -> None:
    status, err = told(monkeypatch, capsys, trace_dataset)

    assert status == 2
    assert "Commands:\n" in err
    assert "Error" not in err


@pytest.mark.parametrize(
    ("command", "words", "said"),
    [
        (trace_dataset, ("validate", str(ROOT)), "chosen by --dataset, --op-type"),
        (gen_tests, ("rmsnorm",), "--definition-name, --all."),
        (
            trace_dataset,
            ("validate", "--dataset", str(ROOT / "definitions")),
            f"'{ROOT}', above it, has.",
        ),
        (trace_dataset, ("evaluate", str(ROOT / "action.yml")), "is no solution"),
        (trace_dataset, ("evaluate", "tests"), "a folder: name the files"),
        (
            trace_dataset,
            ("evaluate", "rmsnorm_h4096_torch", "--output", "action.yml"),
            "action.yml: a file, where a folder is wanted",
        ),
        (trace_dataset, ("review", "main"), "chosen by --dataset, --base."),
        (
            gen_tests,
            ("--op-type", "rmsnorm", "--output", "definitions/rmsnorm"),
            "lies in the dataset's definitions/: tests go elsewhere",
        ),
        (trace_dataset, ("valdate",), "'validate'"),
    ],
)
def test_a_beginner_s_mistake_is_one_line_that_says_more(
    monkeypatch, capsys, command, words, said: str
) -> None:
    monkeypatch.chdir(ROOT)
    status, err = told(monkeypatch, capsys, command, *words)

    assert status == 2
    assert said in err
    assert err.count("Error: ") == 1
    assert len(err.splitlines()) <= 2


def test_a_folder_that_is_no_dataset_names_none_above(
    monkeypatch, capsys, tmp_path: Path
) -> None:
    words = ("validate", "--dataset", str(tmp_path))
    _, err = told(monkeypatch, capsys, trace_dataset, *words)

    assert "above it" not in err
