"""What a provider of ground truth is, and what the resolver says of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from generator.definition import Definition
from generator.ground_truth.machine import Machine
from generator.ops import OpSpec
from generator.sources import OpSource


@dataclass(frozen=True)
class Verdict:
    """Say whether a provider can give a definition's ground truth on a machine.

    `symbol` is what would be called. `reason` is empty where `usable`, else exactly
    what stands in the way. `note` says in what way it is installed, where that matters.
    """

    provider: str
    usable: bool
    symbol: str = ""
    version: str = ""
    reason: str = ""
    note: str = ""


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
    """Judge a library that has to be installed, imported, and mostly given a GPU.

    `oldest` is the first version that the adapters are written for.
    """

    name: str
    title: str
    distribution: str
    module: str
    oldest: tuple[int, ...]

    def judge(
        self, definition: Definition, spec: OpSpec, op: OpSource, machine: Machine
    ) -> Verdict:
        """Return the verdict; the import is tried in a process of its own."""
        if self.name not in op.providers:
            return Verdict(self.name, False, reason=self.refusal(spec, op, machine))
        symbol = ", ".join(self.symbols(definition))
        version = machine.version(self.distribution)
        reason = self.refusal(spec, op, machine)
        note = "" if reason else self.note(machine)
        return Verdict(self.name, not reason, symbol, version or "", reason, note)

    def refusal(self, spec: OpSpec, op: OpSource, machine: Machine) -> str:
        """Return why the library can't serve an op_type on a machine, or nothing."""
        if self.name not in op.providers:
            reason = f"no {self.title} adapter for {spec.op_type}"
            return spec.absent.get(self.name, reason)
        return self.obstacle(machine, needs_cuda=self.name not in op.on_cpu)

    def note(self, machine: Machine) -> str:
        """Return in what way the library is installed, nothing for the usual one."""
        return ""

    def symbols(self, definition: Definition) -> Sequence[str]:
        """Return what the definition's tags say is called."""
        found = definition.tag_values("fi_api") if self.name == "flashinfer" else ()
        return [symbol for symbol in found if symbol.split(".")[0] == self.module]

    def obstacle(self, machine: Machine, *, needs_cuda: bool = True) -> str:
        """Return what keeps the library from being used on a machine, or nothing."""
        version = machine.version(self.distribution)
        if version is None:
            return "not installed"
        if version_numbers(version) < self.oldest:
            oldest = ".".join(str(n) for n in self.oldest)
            return f"version {version} is older than {oldest}"
        if needs_cuda and machine.capability is None:
            return "needs CUDA, no CUDA device here"
        return machine.import_failure(self.module)
