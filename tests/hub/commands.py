"""Run commands against the loopback Hub, in this process and as a black box."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from generator.cli.output import run
from generator.cli.trace_dataset import cli
from tests.forking import run_module
from tests.hub.server import Hub

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "generator.cli.trace_dataset"]


def point_to(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process's client talk to the hub, and wait for nothing."""
    for name, value in hub.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", hub.url)
    template = hub.url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(
        "huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template
    )
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)


def call(
    capsys: pytest.CaptureFixture[str], *arguments: str | Path
) -> tuple[int, str, str]:
    """Run a command as `main` does; return status, stdout and stderr."""
    capsys.readouterr()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["trace-dataset", *map(str, arguments)])
        status = run(cli, "trace-dataset")
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return status, out, err


def black_box(
    hub: Hub, *arguments: str | Path, token: str | None = "hf_maintainer"
) -> subprocess.CompletedProcess[str]:
    """Run a command as a process of its own."""
    done = run_module(
        "generator.cli.trace_dataset", *arguments, env=hub.environment(token)
    )
    assert "Traceback" not in done.stderr
    return done
