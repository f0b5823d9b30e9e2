"""Diagnosis of this machine: usable features of a dataset, and packages for the rest."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from generator import __version__
from generator.dataset.paths import RECORDINGS, discover_definitions
from generator.execution import sandbox
from generator.ground_truth.interface import Availability, Library
from generator.ground_truth.libraries import libraries
from generator.ground_truth.machine import Machine
from generator.ground_truth.recordings import replay_of
from generator.ops.op_source import op_source
from generator.ops.registry import op_specs
from kernel_judge.obstacle import Kind
from kernel_judge.provider import providers


class ToolState(str, Enum):
    """The state of one tool: working, missing, or broken."""

    FINE = "fine"
    ABSENT = "absent"
    BROKEN = "broken"


@dataclass(frozen=True)
class Check:
    """One finding: what was looked at, how it is, what to do where it lacks.

    `needed` says that without it no reference test runs.
    """

    name: str
    state: ToolState
    detail: str
    advice: str = ""
    needed: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON values."""
        return {**asdict(self), "state": self.state.value}


@dataclass(frozen=True)
class OpTypeProviders:
    """The providers that can be an op_type's ground truth on a machine.

    `providers` are in order of preference, the oracle last. `definitions` counts those
    of a dataset, `recorded` those of them that have a recording.
    """

    op_type: str
    providers: tuple[Availability, ...]
    definitions: int
    recorded: int

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON values."""
        return {
            "op_type": self.op_type,
            "providers": {p.provider: p.as_dict() for p in self.providers},
            "definitions": self.definitions,
            "recorded": self.recorded,
        }


_ORACLE = "oracle"
_CELLS = {
    Kind.NOT_INSTALLED: "not installed",
    Kind.TOO_OLD: "too old",
    Kind.BROKEN: "broken",
    Kind.NO_ADAPTER: "no adapter",
    Kind.NO_KERNEL: "no kernel",
    Kind.NEEDS_CUDA: "no CUDA",
}
# module, distribution, whether the tests need it, what brings it
_PACKAGES = (
    ("pytest", "pytest", True, "pip install 'gen-tests[execute]'"),
    ("numpy", "numpy", True, "pip install 'gen-tests[torch]'"),
    ("safetensors", "safetensors", False, "pip install 'gen-tests[torch]'"),
    ("torch", "torch", True, "pip install 'gen-tests[torch]'"),
    ("huggingface_hub", "huggingface_hub", False, "pip install 'gen-tests[hub]'"),
    ("pygit2", "pygit2", False, "pip install 'gen-tests[review]'"),
)


def diagnose(machine: Machine) -> list[Check]:
    """Return what is fine, absent or broken here; imports are tried, so it takes time."""
    checks = [
        Check(
            "python",
            ToolState.FINE,
            f"{platform.python_version()} ({platform.python_implementation()})",
        ),
        Check("gen-tests", ToolState.FINE, __version__),
    ]
    checks += [_package(machine, *package) for package in _PACKAGES]
    checks.append(_cuda(machine))
    checks += [_provider(machine, provider) for provider in libraries()]
    if machine.version("flashinfer-python") and machine.capability is not None:
        checks.append(_compiled_kernels(machine))
    return [*checks, _sandbox()]


def _sandbox() -> Check:
    name = "sandbox of --execute"
    refusal = sandbox.refusal()
    if refusal is not None:
        return Check(name, ToolState.ABSENT, refusal)
    return Check(name, ToolState.FINE, "; ".join(["usable", *sandbox.warnings()]))


def _package(
    machine: Machine, module: str, distribution: str, needed: bool, advice: str
) -> Check:
    version = machine.version(distribution)
    if version is None:
        return Check(module, ToolState.ABSENT, "not installed", advice, needed)
    failure = machine.import_failure(module)
    if failure:
        detail = f"{version}: {failure}"
        return Check(module, ToolState.BROKEN, detail, f"Reinstall: {advice}", needed)
    return Check(module, ToolState.FINE, version, needed=needed)


def _cuda(machine: Machine) -> Check:
    if machine.capability is None:
        advice = "Without one, references are compared with recordings and the oracle."
        if not machine.is_known:
            advice = "pip install 'gen-tests[gpu]' to know whether there is one."
        return Check("cuda", ToolState.ABSENT, machine.no_device, advice)
    parts = [machine.device or "a device", f"SM{machine.capability}"]
    parts += [f"{machine.memory / 2**30:.1f} GiB"] if machine.memory else []
    parts += [f"driver for CUDA {machine.cuda}"] if machine.cuda else []
    return Check("cuda", ToolState.FINE, ", ".join(parts))


def _provider(machine: Machine, library: Library) -> Check:
    name = f"ground truth: {library.name}"
    on_cpu = any(library.name in op_source(op_type).on_cpu for op_type in op_specs())
    obstacle = library.obstacle(machine, needs_cuda=not on_cpu)
    provider = library.provider
    version = machine.version(provider.distribution) or ""
    if obstacle is None:
        note = library.note(machine)
        usable = f"usable ({note})" if note else "usable"
        return Check(name, ToolState.FINE, f"{version}, {usable}")
    advice = f"pip install '{provider.install or provider.distribution}'"
    advice += "" if on_cpu else " on a machine with a CUDA device"
    state = ToolState.BROKEN if obstacle.kind is Kind.BROKEN else ToolState.ABSENT
    return Check(name, state, obstacle.reason, advice)


def _compiled_kernels(machine: Machine) -> Check:
    """Return whether FlashInfer's wheel of compiled modules is there."""
    name, wheel = "compiled kernels", "flashinfer-jit-cache"
    version = machine.version(wheel)
    if version is not None:
        return Check(name, ToolState.FINE, f"{wheel} {version}")
    detail = f"{wheel} not installed: the first run on a GPU compiles for minutes"
    return Check(name, ToolState.ABSENT, detail, "flashinfer install-jit-cache-wheel")


def served(machine: Machine, dataset: Path) -> list[OpTypeProviders]:
    """Return for each op_type who can be its ground truth on a machine."""
    files = discover_definitions(dataset).files
    torch = Library(providers()["pytorch"]).obstacle(machine, needs_cuda=False)
    oracle = Availability(_ORACLE, torch)
    rows = []
    for op_type, spec in op_specs().items():
        source = op_source(op_type)
        names = [file.name for file in files if file.op_type == op_type]
        replays = [replay_of(dataset / RECORDINGS, op_type, name) for name in names]
        recorded = sum(bool(replay.recordings) for replay in replays)
        obstacles = (provider.serves(spec, source, machine) for provider in libraries())
        rows.append(
            OpTypeProviders(op_type, (*obstacles, oracle), len(names), recorded)
        )
    return rows


def table_lines(rows: Sequence[OpTypeProviders]) -> Iterator[str]:
    """Yield what serves each op_type, then each reason once."""
    heads = [p.provider for p in rows[0].providers]
    table = [["op_type", *heads[:-1], "recorded", heads[-1]]]
    for row in rows:
        cells = [_cell(provider) for provider in row.providers]
        counted = f"{row.recorded}/{row.definitions}" if row.definitions else "-"
        table.append([row.op_type, *cells[:-1], counted, cells[-1]])
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for line in table:
        padded = (f"{c:<{w}}" for c, w in zip(line, widths, strict=True))
        yield "  ".join(padded).rstrip()
    yield from dict.fromkeys(
        reason
        for row in rows
        for provider in row.providers
        for reason in _reasons(row.op_type, provider)
    )


def _cell(provider: Availability) -> str:
    if provider.obstacle is not None:
        return _CELLS[provider.obstacle.kind]
    return "light" if provider.note else "usable"


def _reasons(op_type: str, provider: Availability) -> Iterator[str]:
    """Yield what a cell does not say in full."""
    name, obstacle = provider.provider, provider.obstacle
    if provider.note:
        yield f"{name} {provider.version}: {provider.note}"
    if obstacle is None or obstacle.kind is Kind.NO_ADAPTER:
        return
    # all other kinds are of the machine
    whom = f"{name}, {op_type}" if obstacle.kind is Kind.NO_KERNEL else name
    yield f"{whom}: {obstacle}"


def can_test(checks: Sequence[Check]) -> bool:
    """Return whether the reference tests can run at all."""
    return all(check.state is ToolState.FINE for check in checks if check.needed)
