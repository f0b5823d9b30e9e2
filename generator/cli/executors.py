"""The executor that --executor names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from generator.cli.output import Failure
from generator.problems.messages import one_line, quote

if TYPE_CHECKING:
    from generator.execution.cluster import RayExecutor
    from generator.execution.local import LocalExecutor


def make_executor(
    name: str, jobs: int | None, *, imports: str = "", gpus: float = 0.0
) -> LocalExecutor | RayExecutor:
    """Return an executor; without `jobs`, of as many tasks as there are cores.

    `imports` names the folder of tasks that import modules from it; on a cluster each
    task has `gpus` GPUs. Raises Failure where a cluster can't be used.
    """
    if name == "local":
        from generator.execution.local import LocalExecutor
        from generator.validation.parallel import default_jobs

        return LocalExecutor(jobs or default_jobs(), imports=imports)
    if name != "ray" and not name.startswith("ray://"):
        raise click.UsageError(
            f"--executor {quote(name)}: choose local, ray or ray://HOST:PORT."
        )
    from generator.execution.cluster import NoCluster, RayExecutor

    try:
        return RayExecutor(name, jobs, imports=imports, gpus=gpus)
    except NoCluster as error:
        raise Failure(f"--executor {name}: {one_line(str(error))}") from error
