"""A command that runs a dataset's code unconfined says so in its first sentence."""

from __future__ import annotations

import click
import pytest

from generator.cli.trace_dataset import cli


def first_sentence(name: str) -> str:
    assert isinstance(cli, click.Group)
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return (command.help or "").partition("\n\n")[0]


@pytest.mark.parametrize("name", ["audit", "certify", "parity"])
def test_what_runs_unconfined_is_said_first(name: str) -> None:
    assert "unconfined" in first_sentence(name)


@pytest.mark.parametrize("name", ["evaluate", "review", "validate"])
def test_what_is_confined_does_not_say_so(name: str) -> None:
    assert "unconfined" not in first_sentence(name)
