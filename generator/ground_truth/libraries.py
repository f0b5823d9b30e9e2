"""The providers of ground truth as libraries of a machine, in order of preference."""

from __future__ import annotations

from generator.ground_truth.interface import Library
from generator.ground_truth.machine import Machine
from generator.running.sglang_light import KERNELS, OPTIONAL
from kernel_judge.provider import providers


class SGLangLibrary(Library):
    """SGLang, which also serves with few of the packages that it asks for."""

    def note(self, machine: Machine) -> str:
        """Return whether stand-ins would take the place of missing packages."""
        wanted = OPTIONAL if machine.capability is None else (*OPTIONAL, KERNELS)
        return "light installation" if machine.missing(wanted) else ""


_OWN_WAYS = {"sglang": SGLangLibrary}


def libraries() -> tuple[Library, ...]:
    """Return a library for each provider."""
    return tuple(_OWN_WAYS.get(p.name, Library)(p) for p in providers().values())
