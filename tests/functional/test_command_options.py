"""An option of one name has one meaning and one help text in all commands."""

from __future__ import annotations

from collections import defaultdict

import click

from generator.cli.gen_tests import cli as gen_tests
from generator.cli.trace_dataset import cli as trace_dataset

# what they write, run on, save, ask or are strict about differs by command; so does the text
DIFFERENT = {"--output", "--device", "--execute", "--record", "--strict", "--workloads"}


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
