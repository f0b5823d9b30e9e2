"""What this machine can confine with, found out by trying."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from generator.execution.sandbox.plan import (
    FILES,
    NAMES,
    NETWORK,
    PROTECTS,
    SECCOMP,
    USER,
)
from generator.problems.messages import one_line

_PROJECT = Path(__file__).resolve().parents[3]
_SECONDS = 30


@dataclass(frozen=True)
class Layer:
    """One means of confining: whether it works here, and what is missing if not."""

    name: str
    active: bool
    detail: str


def layers(without: Collection[str] = ()) -> tuple[Layer, ...]:
    """Return every layer; those named in `without` are left out on purpose."""
    missing = _missing()
    found: list[Layer] = []

    def there(name: str) -> bool:
        return name not in without and missing[name] is None

    for name in NAMES:
        reason = "left out" if name in without else missing[name]
        if name == USER and reason is None and os.geteuid() == 0 and not there(FILES):
            reason = f"root may not become another without the {FILES}"
        active = reason is None
        found.append(Layer(name, active, reason or PROTECTS[name]))
    return tuple(found)


def warnings(without: Collection[str] = ()) -> tuple[str, ...]:
    """Return a line for each layer that is missing, and what that takes away."""
    return tuple(
        f"sandbox: no {layer.name}: {layer.detail} (it gives: {PROTECTS[layer.name]})"
        for layer in layers(without)
        if not layer.active
    )


def refusal(trust: bool = False, without: Collection[str] = ()) -> str | None:
    """Return why nothing may be executed here; None if it may.

    A namespace without interfaces isolates from the network, and so does a filter that
    refuses every socket. Landlock alone does not: it knows of TCP only.
    """
    named = {layer.name: layer for layer in layers(without)}
    if trust or named[NETWORK].active or named[SECCOMP].active:
        return None
    return (
        "references are not executed: this machine cannot cut them off from the network"
        f" ({NETWORK}: {named[NETWORK].detail}; {SECCOMP}: {named[SECCOMP].detail});"
        " --trust executes them all the same"
    )


def own_command(module: str) -> list[str]:
    """Return the command that runs a module of this package and nothing of the user."""
    code = (
        f"import sys; sys.path.insert(0, {str(_PROJECT)!r});"
        f" from generator.execution.sandbox.{module} import main; main()"
    )
    # no site: its .pth files and the user's folder would run before the sandbox
    return [sys.executable, "-I", "-S", "-B", "-c", code]


@lru_cache(maxsize=1)
def _missing() -> dict[str, str | None]:
    if not sys.platform.startswith("linux"):
        return dict.fromkeys(NAMES, f"not on {sys.platform}")
    try:
        done = subprocess.run(
            own_command("probe"),
            capture_output=True,
            stdin=subprocess.DEVNULL,
            env={},
            timeout=_SECONDS,
            check=False,
        )
        answers = json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        return dict.fromkeys(NAMES, one_line(f"the trial failed: {error}"))
    return {
        name: None if answers[name] is None else one_line(answers[name])
        for name in NAMES
    }
