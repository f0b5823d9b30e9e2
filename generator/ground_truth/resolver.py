"""Which provider is a definition's ground truth here, and why the others are not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from generator.constants import resolve_constants
from generator.definition import Definition
from generator.ground_truth.flashinfer import FLASHINFER
from generator.ground_truth.interface import Library, Verdict
from generator.ground_truth.machine import Machine
from generator.ground_truth.pytorch import PYTORCH
from generator.ground_truth.sglang import SGLANG
from generator.ops import OPS, OpSpec
from generator.sources import op_source

# in order of preference
PROVIDERS: Sequence[Library] = (FLASHINFER, SGLANG, PYTORCH)


@dataclass(frozen=True)
class Resolution:
    """Hold every provider's verdict on one definition, in order of preference.

    `unresolved` says why there is none to ask at all, as for an op_type without a
    module; it is empty otherwise.
    """

    definition: Definition
    verdicts: tuple[Verdict, ...]
    unresolved: str = ""

    @property
    def chosen(self) -> Verdict | None:
        """Return the first usable provider, None where there is none."""
        return next((v for v in self.verdicts if v.usable), None)

    @property
    def rejected(self) -> tuple[Verdict, ...]:
        """Return the providers that can't be used, with their reasons."""
        return tuple(v for v in self.verdicts if not v.usable)

    def as_dict(self) -> dict[str, Any]:
        """Return the resolution as plain JSON values."""
        chosen = self.chosen
        return {
            "definition": self.definition.name,
            "op_type": self.definition.op_type,
            "provider": chosen.provider if chosen else None,
            "symbol": chosen.symbol if chosen else None,
            "version": chosen.version if chosen else None,
            "note": chosen.note if chosen else "",
            "status": "UNRESOLVED" if self.unresolved else "RESOLVED",
            "reason": self.unresolved,
            "rejected": {v.provider: v.reason for v in self.rejected},
        }


def resolve(
    definition: Definition, machine: Machine, ops: Mapping[str, OpSpec] = OPS
) -> Resolution:
    """Return every provider's verdict on a definition for a machine."""
    spec = ops.get(definition.op_type)
    if spec is None:
        reason = f"no op module for {definition.op_type}"
        if definition.tag_values("fi_api"):
            reason += "; its tests match its fi_api by name"
        return Resolution(definition, (), reason)
    constants, _ = resolve_constants(definition, spec)
    unknown = [constant.name for constant in constants if constant.value is None]
    if unknown:
        return Resolution(definition, (), f"no source knows {', '.join(unknown)}")
    source = op_source(definition.op_type)
    verdicts = tuple(p.judge(definition, spec, source, machine) for p in PROVIDERS)
    return Resolution(definition, verdicts)
