"""Run tasks on a Ray cluster: batches, each by a local executor on its node.

Ray places the batches, and runs those again whose node is lost; what a task may do to
its process stays the business of the node's local executor. The folders that tasks read
are objects, which a node fetches and unpacks once.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import socket
import tarfile
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from generator.execution.cache_key import default_folder, sources
from generator.execution.local import LocalExecutor
from generator.execution.outcome import CRASHED, Folder, Outcome, Task
from generator.problems.messages import one_line

_CONNECT_SECONDS = 5.0
# a batch is short compared with the work of a job, and long compared with the
# time that Ray takes to place it
_BATCHES_A_JOB, _MOST_A_BATCH = 8, 32
# batches of a job on the cluster, so that no node waits for the command
_WAITING = 2
_RETRIES = 5


class NoCluster(Exception):
    """Raised where a Ray cluster can't be used."""


class RayExecutor:
    """The tasks on the Ray cluster at an address; `ray` is the one of this machine.

    `jobs` batches run at a time, None for as many as the cluster has room for. A task
    has a core and `gpus` GPUs; `imports` is as for LocalExecutor. Raises NoCluster.
    """

    def __init__(
        self, address: str, jobs: int | None, *, imports: str = "", gpus: float = 0.0
    ) -> None:
        self._ray = _connected(address)
        self._imports, self._gpus = imports, gpus
        resources = self._ray.cluster_resources()
        room = int(resources.get("GPU", 0) / gpus) if gpus else resources.get("CPU", 0)
        if not room:
            raise NoCluster(f"the cluster has no {'GPU' if gpus else 'CPU'}.")
        self._jobs = jobs or int(room)
        self._most = jobs or _WAITING * int(room)

    def run(
        self,
        tasks: Sequence[Task],
        folders: Mapping[str, Folder],
        *,
        timeout: float,
        per_worker: int = 1,
    ) -> Iterator[tuple[int, Outcome]]:
        """Do what LocalExecutor.run does.

        A batch whose node is lost runs again on another one; its tasks are reported as
        crashed where that happens too often.
        """
        ray = self._ray
        size = max(len(tasks) // (self._jobs * _BATCHES_A_JOB), per_worker)
        size = min(size, _MOST_A_BATCH)
        every = range(len(tasks))
        waiting = iter([every[at : at + size] for at in every[::size]])
        shipped = {name: _shipped(ray, folder) for name, folder in folders.items()}
        how = {"timeout": timeout, "per_worker": per_worker}
        remote = ray.remote(num_cpus=1, num_gpus=self._gpus, max_retries=_RETRIES)
        run_batch = remote(_run_batch)
        under_way: dict[Any, range] = {}
        try:
            while True:
                while len(under_way) < self._most and (batch := next(waiting, None)):
                    its = [tasks[place] for place in batch]
                    about = (its, shipped, self._imports, how, sources())
                    under_way[run_batch.remote(*about)] = batch
                if not under_way:
                    return
                for reference in ray.wait(list(under_way))[0]:
                    batch = under_way.pop(reference)
                    try:
                        outcomes = ray.get(reference)
                    except ray.exceptions.RayError as error:
                        why = f"Ray lost it: {type(error).__name__}: {_last(error)}"
                        outcomes = [Outcome(CRASHED, why=one_line(why))] * len(batch)
                    yield from zip(batch, outcomes, strict=True)
        finally:
            for reference in under_way:
                ray.cancel(reference, force=True)


def _connected(address: str) -> Any:
    """Return the module ray, connected. Raises NoCluster."""
    try:
        ray: Any = import_module("ray")
    except ImportError as error:
        why = "Ray is not installed: pip install 'gen-tests[ray]'."
        raise NoCluster(why) from error
    try:
        if address == "ray":
            address = os.environ.get("RAY_ADDRESS", "auto")
        else:
            host, _, port = address.removeprefix("ray://").rpartition(":")
            # Ray itself tries for half a minute
            socket.create_connection((host, int(port)), _CONNECT_SECONDS).close()
        if not ray.is_initialized():
            ray.init(address, log_to_driver=False, logging_level="ERROR")
            # else it prints to stdout, into the report, that a node was lost
            worker: Any = import_module("ray._private.worker")
            worker._worker_logs_enabled = False
    # the error depends on the version of Ray, and on what answers instead
    except Exception as error:
        raise NoCluster(f"no Ray cluster answers: {_last(error)}") from error
    return ray


def _last(error: Exception) -> str:
    """Return the last line of what an error says, behind any traceback."""
    return (str(error).strip().splitlines() or [type(error).__name__])[-1]


def _shipped(ray: Any, folder: Folder) -> tuple[str, Any]:
    """Return the digest of a folder's content, and the object that holds it, packed."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as files:
        for part in folder.parts or (".",):
            if (path := folder.path / part).exists():
                files.add(path, arcname=part)
    # not gzip: it notes the time, and the digest would be another one each time
    packed = zlib.compress(content.getvalue(), 1)
    return hashlib.sha256(packed).hexdigest()[:32], ray.put(packed)


def _run_batch(
    tasks: Sequence[Task],
    shipped: Mapping[str, tuple[str, Any]],
    imports: str,
    how: Mapping[str, Any],
    expected: str,
) -> list[Outcome]:
    """Return the outcomes of tasks; runs on a node of the cluster."""
    if sources() != expected:
        why = f"{socket.gethostname()} has another version of gen-tests or of torch"
        return [Outcome(CRASHED, why=why)] * len(tasks)
    folders = {name: Folder(_unpacked(*one)) for name, one in shipped.items()}
    outcomes = _local(imports).run(tasks, folders, **how)
    return [outcome for _, outcome in sorted(outcomes, key=lambda one: one[0])]


@cache
def _local(imports: str) -> LocalExecutor:
    """Return this process's executor: its server stays for the next batch."""
    sharing = os.cpu_count() or 1
    return LocalExecutor(1, imports=imports, stays=True, sharing=sharing)


def _unpacked(digest: str, packed: Any) -> Path:
    """Return the node's folder of shipped files; the first process unpacks it."""
    target = default_folder().parent / "shipped" / digest
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=target.parent))
    content = io.BytesIO(zlib.decompress(import_module("ray").get(packed)))
    with tarfile.open(fileobj=content) as files:
        files.extractall(folder, filter="data")
    try:
        folder.rename(target)
    except OSError:
        # another process of this node was faster
        shutil.rmtree(folder)
        if not target.is_dir():
            raise
    return target
