"""`trace-dataset push` as users run it: a process, its environment, the README."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from tests.hub import pushable
from tests.hub.commands import COMMAND, ROOT, black_box
from tests.hub.faults import Fault
from tests.hub.fixtures import REPO
from tests.hub.pushable import NAME, ONE, files_of, put
from tests.hub.server import Hub

root = pushable.root


def test_the_command_as_users_run_it(hub: Hub, root: Path) -> None:
    repository = hub.repositories[REPO]
    arguments = ("push", "--repo", REPO, "--dataset", root, *ONE)
    done = black_box(hub, *arguments, "--yes")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert repository.contents("refs/pr/1") == files_of(root, NAME)


@pytest.mark.parametrize("arguments", [("push", "--repo", REPO, *ONE), ("card",)])
def test_without_the_library_it_says_what_to_install(
    root: Path, tmp_path: Path, hub: Hub, arguments: tuple[str, ...]
) -> None:
    put(tmp_path, "stub/huggingface_hub.py", "raise ImportError('not here')")
    path = os.pathsep.join([str(tmp_path / "stub"), str(ROOT)])
    done = subprocess.run(
        [*COMMAND, *arguments, "--dataset", str(root)],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, **hub.environment(), "PYTHONPATH": path},
    )
    assert done.returncode == 2
    assert done.stderr.endswith(
        "Error: huggingface_hub is not installed, which talks to the Hub: "
        "pip install 'gen-tests[hub]'.\n"
    )


def test_the_document_s_commands_word_for_word(hub: Hub) -> None:
    """The dataset is this repository's own; the Hub is one with an empty repository."""
    text = (ROOT / "docs/publish.md").read_text("utf-8")
    block = text.split("```sh\n")[2].split("```")[0]
    repository = hub.add_repository("OWNER/NAME")
    said = []
    for line in block.splitlines():
        program, *arguments = shlex.split(line)
        assert program == "trace-dataset"
        done = black_box(hub, *arguments)
        assert done.returncode == 0, done.stderr
        said.append(done)
    assert "Dry run: nothing was sent" in said[0].stderr
    assert "pushed: " in said[1].stdout
    assert [held["num"] for held in repository.discussions()] == [1, 2]
    assert "definitions/rmsnorm/rmsnorm_h4096.json" in repository.contents("refs/pr/1")
    there = {
        p for p in repository.contents("refs/pr/2") if p.startswith("definitions/")
    }
    ours = (ROOT / "definitions/layernorm").iterdir()
    assert there == {f"definitions/layernorm/{path.name}" for path in ours}
    assert repository.damage() == []


@pytest.mark.parametrize("route", ["preupload", "lfs-upload", "commit"])
def test_a_killed_push_is_gone_on_with(hub: Hub, root: Path, route: str) -> None:
    repository = hub.repositories[REPO]
    arguments = ("push", "--repo", REPO, "--dataset", str(root), *ONE, "--yes")
    started: list[subprocess.Popen[bytes]] = []
    waiting = threading.Event()

    def kill() -> None:
        waiting.wait(60)
        started[0].kill()

    hub.faults.use(Fault(route, None, meddle=kill))
    quiet = subprocess.DEVNULL
    started.append(
        subprocess.Popen(
            [*COMMAND, *arguments],
            cwd=ROOT,
            env={**os.environ, **hub.environment()},
            stdout=quiet,
            stderr=quiet,
        )
    )
    waiting.set()
    assert started[0].wait(60) == -signal.SIGKILL
    assert black_box(hub, *arguments).returncode == 0
    assert repository.damage() == []
    assert [held["num"] for held in repository.discussions()] == [1]
    assert len(repository.history("refs/pr/1")) == 2
    assert repository.contents("refs/pr/1") == files_of(root, NAME)


@pytest.mark.parametrize("endpoint", ["http://h:9x", "hub.example.org"])
def test_an_endpoint_that_is_none(hub: Hub, root: Path, endpoint: str) -> None:
    environment = {**os.environ, **hub.environment(), "HF_ENDPOINT": endpoint}
    done = subprocess.run(
        [*COMMAND, "push", "--repo", REPO, "--dataset", str(root), *ONE],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("Error: HF_ENDPOINT is not an address: ")
    assert len(done.stderr.splitlines()) == 1
