"""What this machine can do with a dataset, and what to install for the rest."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from generator import __version__
from generator.ground_truth.interface import Library
from generator.ground_truth.machine import Machine
from generator.ground_truth.resolver import PROVIDERS


class State(str, Enum):
    """How one thing is: it works, is not there, or is there and does not work."""

    FINE = "fine"
    ABSENT = "absent"
    BROKEN = "broken"


@dataclass(frozen=True)
class Check:
    """Hold one finding: what was looked at, how it is, what to do where it lacks.

    `needed` says that without it no reference test runs.
    """

    name: str
    state: State
    detail: str
    advice: str = ""
    needed: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON values."""
        return {**asdict(self), "state": self.state.value}


# module, distribution, whether the tests need it, what brings it
_PACKAGES = (
    ("pytest", "pytest", True, "pip install 'gen-tests[test]'"),
    ("numpy", "numpy", True, "pip install 'gen-tests[torch]'"),
    ("safetensors", "safetensors", False, "pip install 'gen-tests[torch]'"),
    ("torch", "torch", True, "pip install 'gen-tests[torch]'"),
    ("huggingface_hub", "huggingface_hub", False, "pip install 'gen-tests[hub]'"),
)


def diagnose(machine: Machine) -> list[Check]:
    """Return what is fine, absent or broken here; imports are tried, so it takes time."""
    checks = [
        Check(
            "python",
            State.FINE,
            f"{platform.python_version()} ({platform.python_implementation()})",
        ),
        Check("gen-tests", State.FINE, __version__),
    ]
    checks += [_package(machine, *package) for package in _PACKAGES]
    checks.append(_cuda(machine))
    checks += [_provider(machine, provider) for provider in PROVIDERS]
    return checks


def _package(
    machine: Machine, module: str, distribution: str, needed: bool, advice: str
) -> Check:
    version = machine.version(distribution)
    if version is None:
        return Check(module, State.ABSENT, "not installed", advice, needed)
    failure = machine.import_failure(module)
    if failure:
        detail = f"{version}: {failure}"
        return Check(module, State.BROKEN, detail, f"Reinstall: {advice}", needed)
    return Check(module, State.FINE, version, needed=needed)


def _cuda(machine: Machine) -> Check:
    if machine.capability is None:
        advice = "Without one, references are compared with the float64 oracle alone."
        return Check("cuda", State.ABSENT, "no CUDA device", advice)
    return Check("cuda", State.FINE, f"a device of SM{machine.capability}")


def _provider(machine: Machine, provider: Library) -> Check:
    name = f"ground truth: {provider.name}"
    obstacle = provider.obstacle(machine)
    if not obstacle:
        return Check(name, State.FINE, machine.version(provider.distribution) or "")
    broken = "failed" in obstacle or "ended" in obstacle
    advice = f"pip install 'gen-tests[{provider.name}]' on a machine with a CUDA device"
    if provider.name == "pytorch":
        advice = "pip install 'gen-tests[torch]' on a machine with a CUDA device"
    return Check(name, State.BROKEN if broken else State.ABSENT, obstacle, advice)


def can_test(checks: Sequence[Check]) -> bool:
    """Return whether the reference tests can run at all."""
    return all(check.state is State.FINE for check in checks if check.needed)
