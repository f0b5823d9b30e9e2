"""What this machine can do with a dataset, and what to install for the rest."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from generator import __version__
from generator.ground_truth.interface import Library
from generator.ground_truth.machine import Machine
from generator.ground_truth.resolver import PROVIDERS
from generator.ops import OPS
from generator.sources import op_source


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


@dataclass(frozen=True)
class Served:
    """Say which provider would serve an op_type here, and why the others would not.

    `provider` is empty where none would; the float64 oracle is left then.
    """

    op_type: str
    provider: str
    version: str
    note: str
    reasons: Mapping[str, str]

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON values."""
        return asdict(self)

    @property
    def summary(self) -> str:
        """Return one line: the provider, or each one's reason."""
        if not self.provider:
            return "; ".join(f"{name}: {why}" for name, why in self.reasons.items())
        note = f" ({self.note})" if self.note else ""
        return f"{self.provider} {self.version}{note}"


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
    parts = [machine.device or "a device", f"SM{machine.capability}"]
    parts += [f"{machine.memory / 2**30:.1f} GiB"] if machine.memory else []
    parts += [f"driver for CUDA {machine.cuda}"] if machine.cuda else []
    return Check("cuda", State.FINE, ", ".join(parts))


def _provider(machine: Machine, provider: Library) -> Check:
    name = f"ground truth: {provider.name}"
    on_cpu = any(provider.name in op_source(op_type).on_cpu for op_type in OPS)
    obstacle = provider.obstacle(machine, needs_cuda=not on_cpu)
    version = machine.version(provider.distribution) or ""
    if not obstacle:
        note = provider.note(machine)
        usable = f"usable ({note})" if note else "usable"
        return Check(name, State.FINE, f"{version}, {usable}")
    broken = "failed" in obstacle or "ended" in obstacle
    advice = f"pip install 'gen-tests[{provider.name}]'"
    advice += "" if on_cpu else " on a machine with a CUDA device"
    if provider.name == "pytorch":
        advice = "pip install 'gen-tests[torch]' on a machine with a CUDA device"
    return Check(name, State.BROKEN if broken else State.ABSENT, obstacle, advice)


def served(machine: Machine) -> list[Served]:
    """Return for each op_type who would be its ground truth on a machine."""
    rows = []
    for op_type, spec in OPS.items():
        source, reasons, chosen = op_source(op_type), {}, None
        for provider in PROVIDERS:
            reason = provider.refusal(spec, source, machine)
            if reason:
                reasons[provider.name] = reason
            elif chosen is None:
                chosen = provider
        version = machine.version(chosen.distribution) if chosen else None
        note = chosen.note(machine) if chosen else ""
        name = chosen.name if chosen else ""
        rows.append(Served(op_type, name, version or "", note, reasons))
    return rows


def can_test(checks: Sequence[Check]) -> bool:
    """Return whether the reference tests can run at all."""
    return all(check.state is State.FINE for check in checks if check.needed)
