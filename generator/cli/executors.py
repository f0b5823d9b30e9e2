"""The executor that --executor names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from generator.problems.failure import Failure
from generator.problems.messages import one_line, quote

if TYPE_CHECKING:
    from generator.execution.cluster import RayExecutor
    from generator.execution.local import LocalExecutor


def make_executor(
    name: str, jobs: int, *, imports: str = "", gpus: float = 0.0
) -> LocalExecutor | RayExecutor:
    """Return an executor of so many jobs.

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

    # as many as the cluster has room for, but where the user says how many; tasks with a
    # GPU say by it how many share one
    source = click.get_current_context().get_parameter_source("jobs")
    is_said = source is ParameterSource.COMMANDLINE and not gpus
    try:
        return RayExecutor(name, jobs if is_said else None, imports=imports, gpus=gpus)
    except NoCluster as error:
        raise Failure(f"--executor {name}: {one_line(str(error))}") from error
