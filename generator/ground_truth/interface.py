"""A provider of ground truth, and whether it can serve on a machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from generator.dataset.definition import LoadedDefinition
from generator.ground_truth.machine import Machine
from generator.ops.op_source import OpSource
from generator.ops.spec import OpSpec
from kernel_judge.obstacle import Kind, Obstacle
from kernel_judge.provider import Provider


@dataclass(frozen=True)
class Availability:
    """Whether a provider can give a definition's ground truth on a machine.

    `obstacle` is what stands in the way, None where nothing does. `symbol` is what would
    be called; `note` says in what way it is installed, where that matters.
    """

    provider: str
    obstacle: Obstacle | None = None
    symbol: str = ""
    version: str = ""
    note: str = ""

    @property
    def usable(self) -> bool:
        """Return whether nothing stands in the way."""
        return self.obstacle is None

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON values."""
        return {
            "usable": self.usable,
            "version": self.version,
            "note": self.note,
            "kind": self.obstacle.kind.value if self.obstacle else None,
            "reason": self.obstacle.reason if self.obstacle else "",
        }


def version_numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version: (0, 6, 18) of `0.6.18.post1`."""
    numbers = []
    for part in version.split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)


@dataclass(frozen=True)
class Library:
    """A provider's library as this machine has it: installed, and mostly given a GPU."""

    provider: Provider

    @property
    def name(self) -> str:
        """Return the provider's name."""
        return self.provider.name

    def judge(
        self, definition: LoadedDefinition, spec: OpSpec, op: OpSource, machine: Machine
    ) -> Availability:
        """Return whether it can serve a definition, and by which symbol."""
        obstacle = self.serves(spec, op, machine)
        if self.name not in op.providers:
            return obstacle
        return replace(obstacle, symbol=", ".join(self.symbols(definition)))

    def serves(self, spec: OpSpec, op: OpSource, machine: Machine) -> Availability:
        """Return whether it can serve an op_type; the import is tried in a process."""
        if self.name not in op.providers:
            if self.name in spec.absent:
                obstacle = Obstacle(Kind.NO_KERNEL, spec.absent[self.name])
            else:
                reason = f"no {self.provider.title} adapter for {spec.op_type}"
                obstacle = Obstacle(Kind.NO_ADAPTER, reason)
            return Availability(self.name, obstacle)
        version = machine.version(self.provider.distribution) or ""
        missing = self.obstacle(machine, needs_cuda=self.name not in op.on_cpu)
        note = self.note(machine) if missing is None else ""
        return Availability(self.name, missing, version=version, note=note)

    def note(self, machine: Machine) -> str:
        """Return in what way the library is installed, nothing for the usual one."""
        return ""

    def symbols(self, definition: LoadedDefinition) -> Sequence[str]:
        """Return what the definition's tags say is called."""
        symbols = definition.tag_values("fi_api")
        module = self.provider.module
        return [symbol for symbol in symbols if symbol.split(".")[0] == module]

    def obstacle(self, machine: Machine, *, needs_cuda: bool = True) -> Obstacle | None:
        """Return what keeps the library from being used on a machine, None if nothing."""
        if self.provider.broken:
            return Obstacle(Kind.BROKEN, self.provider.broken)
        version = machine.version(self.provider.distribution)
        if version is None:
            return Obstacle(Kind.NOT_INSTALLED, "not installed")
        if version_numbers(version) < self.provider.oldest:
            oldest = ".".join(str(n) for n in self.provider.oldest)
            reason = f"version {version} is older than {oldest}"
            return Obstacle(Kind.TOO_OLD, reason)
        if needs_cuda and machine.capability is None:
            return Obstacle(Kind.NEEDS_CUDA, f"needs CUDA, {machine.no_device}")
        failure = machine.import_failure(self.provider.module)
        return Obstacle(Kind.BROKEN, failure) if failure else None
