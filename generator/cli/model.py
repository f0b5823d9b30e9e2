"""The command `trace-dataset model`: which definitions a model needs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from generator.cli import options
from generator.cli.output import say, show
from generator.models.parallel import KV_DTYPES

_COUNT = click.IntRange(min=1)
# of more tokens in a page nobody has a kernel, and workloads would outgrow any memory
_TOKENS = click.IntRange(1, 4096)


@options.command()
def model(
    config: str = options.argument(metavar="CONFIG.json|NAME"),
    dataset: Path = options.dataset,
    tp: int = options.value("GPUs that share a layer.", _COUNT, default=1),
    ep: int = options.value("GPUs that share the experts.", _COUNT, default=1),
    kv_dtype: str = options.value(
        "Data type of the KV cache.", KV_DTYPES, default=KV_DTYPES[0]
    ),
    page_size: int = options.value(
        "Tokens of a page of the cache.", _TOKENS, default=64
    ),
    write: bool = options.flag("Write the missing definitions that families make."),
    form: str = options.form(),
) -> int:
    """List the definitions that a model needs: there, proven by a kernel, or missing.

    CONFIG.json is a Hugging Face config; NAME is a model whose published figures come
    with this software. --write makes missing definitions with the tag
    status:unverified, for gen-tests to go on from. Exit status 0 where all are there,
    1 where some are missing, 2 for a config that can't be used.
    """
    from generator.dataset.paths import discover_definitions
    from generator.models.config import load
    from generator.models.coverage import coverage, coverage_report, write_missing
    from generator.models.modules import needs
    from generator.models.parallel import Deployment
    from generator.ops.registry import op_specs
    from generator.problems import Failure
    from generator.problems.messages import quote
    from generator.results.evidence import kept_runs
    from generator.results.verification import agreed, table_of

    deployment = Deployment(tp, ep, page_size, kv_dtype)
    loaded = load(config)
    if not dataset.is_dir():
        raise Failure(f"There is no folder {quote(str(dataset.resolve()), 200)}.")
    op_specs()
    # a dataset without definitions is one to write into
    discovered = discover_definitions(dataset)
    named = {name for need in needs(loaded, deployment) for name in need.names}
    files = tuple(file for file in discovered.files if file.name in named)
    table = table_of(dataset, replace(discovered, files=files), kept_runs(dataset))
    sources = agreed(table.lines)
    covered = coverage(loaded, deployment, dataset, discovered, sources)
    if write:
        for path in write_missing(dataset, covered):
            say(f"wrote {path}")
        discovered = discover_definitions(dataset)
        covered = coverage(loaded, deployment, dataset, discovered, sources)
    return show(coverage_report(loaded, deployment, covered), form)
