"""SGLang: where FlashInfer cannot serve, and a second opinion where it can."""

from __future__ import annotations

from generator.ground_truth.interface import Library
from generator.ground_truth.machine import Machine
from generator.running.sglang_light import KERNELS, OPTIONAL


class SGLangLibrary(Library):
    """Judge SGLang, which also serves with few of the packages that it asks for."""

    def note(self, machine: Machine) -> str:
        """Return whether stand-ins would take the place of missing packages."""
        wanted = OPTIONAL if machine.capability is None else (*OPTIONAL, KERNELS)
        return "light installation" if machine.missing(wanted) else ""


# the layers are where the adapters look for them from 0.5.23 on
SGLANG = SGLangLibrary("sglang", "SGLang", "sglang", "sglang", oldest=(0, 5, 23))
