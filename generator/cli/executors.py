"""The executor that --executor names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from generator.cli import options
from generator.problems.failure import Failure
from generator.problems.messages import one_line, quote

if TYPE_CHECKING:
    from generator.execution.cluster import RayExecutor
    from generator.execution.local import LocalExecutor


def make_executor(
    name: str, jobs: int, *, imports: str = "", gpus: float = 0.0
) -> LocalExecutor | RayExecutor:
    """Return an executor that runs up to `jobs` tasks at a time.

    `imports` names the folder of tasks that import modules from it; on a cluster each
    task has `gpus` GPUs. Raises Failure where a cluster can't be used.
    """
    if name == "local":
        from generator.execution.local import LocalExecutor

        return LocalExecutor(jobs, imports=imports)
    if name != "ray" and not name.startswith("ray://"):
        raise click.UsageError(
            f"--executor {quote(name)}: choose local, ray or ray://HOST:PORT."
        )
    from generator.execution.cluster import NoCluster, RayExecutor

    # A cluster runs as many tasks as it has room for, unless --jobs limits them; with
    # `gpus`, the share of a GPU that each task reserves is the limit.
    is_limited = options.given("--jobs") and not gpus
    most = jobs if is_limited else None
    try:
        return RayExecutor(name, most, imports=imports, gpus=gpus)
    except NoCluster as error:
        raise Failure(f"--executor {name}: {one_line(str(error))}") from error
