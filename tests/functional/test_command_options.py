"""An option of one name has one meaning and one help text in all commands."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import click
import pytest

from generator.cli.gen_tests import cli as gen_tests
from generator.cli.trace_dataset import cli as trace_dataset
from tests.functional.reviewed import make

# what they write, run on, save, ask or are strict about differs by command; so does the text
DIFFERENT = {
    "--output",
    "--device",
    "--execute",
    # certify takes several
    "--provider",
    "--record",
    "--strict",
    "--workloads",
}


def test_options_of_one_name_have_one_help_text() -> None:
    texts: dict[str, set[str | None]] = defaultdict(set)
    for command in (gen_tests, *trace_dataset.commands.values()):
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                # --jobs names its default where that is not the number of cores
                text = (parameter.help or "").split(";")[0].rstrip(".")
                texts[parameter.opts[0]].add(text)
    several = {name for name, found in texts.items() if len(found) > 1}
    assert several == DIFFERENT
    assert len(texts) > 40


@pytest.mark.parametrize(
    ("program", "line", "listed"),
    [
        ("trace-dataset", "audit --definition-name gemm_n8", ["gemm_n8_k4"]),
        ("trace-dataset", "evaluate --dataset {root} --op-type g", ["gemm"]),
        ("gen-tests", "--definition-name gemm", ["gemm_n8_k4", "gemm_n9_k4"]),
        ("gen-tests", "--dataset /nowhere --definition-name g", []),
        ("gen-tests", "--definition-name x", []),
    ],
)
def test_a_shell_completes_the_names_of_a_dataset(
    tmp_path: Path, program: str, line: str, listed: list[str]
) -> None:
    make(tmp_path)
    (tmp_path / "deep").mkdir()
    words = [program, *line.format(root=tmp_path).split()]
    variable = f"_{program.upper().replace('-', '_')}_COMPLETE"
    done = subprocess.run(
        [str(Path(sys.executable).parent / program)],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path / "deep",
        env={
            "PATH": "",
            variable: "bash_complete",
            "COMP_WORDS": " ".join(words),
            "COMP_CWORD": str(len(words) - 1),
        },
    )
    assert done.stdout.split() == [f"plain,{name}" for name in listed]
    assert done.stderr == ""
