"""Choice of a definition's ground truth here, with the reason against each other one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from generator.dataset.definition import LoadedDefinition
from generator.ground_truth.interface import Availability
from generator.ground_truth.libraries import libraries
from generator.ground_truth.machine import Machine
from generator.ground_truth.recordings import Replay, replay_of
from generator.ops.op_source import op_source
from generator.ops.registry import op_specs
from generator.ops.serving import why_not_served
from generator.ops.spec import OpSpec
from generator.rules.constants import resolve_constants

# definitions whose provider can't be used for one reason: it is said once
_MANY = 10


@dataclass(frozen=True)
class Resolution:
    """The availability of each provider for one definition, in order of preference.

    `replay` is what is recorded of it, which serves on any machine. `unresolved` says
    why there is none to ask at all, as for an op_type without a module; it is empty
    otherwise.
    """

    definition: LoadedDefinition
    providers: tuple[Availability, ...]
    unresolved: str = ""
    replay: Replay = field(default_factory=lambda: Replay(()))

    @property
    def chosen(self) -> Availability | None:
        """Return the first usable provider, None where there is none."""
        return next((p for p in self.providers if p.usable), None)

    @property
    def rejected(self) -> tuple[Availability, ...]:
        """Return the providers that can't be used, with their reasons."""
        return tuple(p for p in self.providers if not p.usable)

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
            "rejected": {
                p.provider: {"kind": p.obstacle.kind.value, "reason": p.obstacle.reason}
                for p in self.rejected
                if p.obstacle is not None
            },
            "replay": self.replay.as_dict(),
        }

    def lines(self, shared: Collection[tuple[str, str]] = ()) -> Iterator[str]:
        """Yield the definition's ground truth, and why others are not used.

        A kernel that can be called comes before a recording, which is replayed beside it.
        `shared` are providers with the reasons that are said of many at once.
        """
        chosen, replays = self.chosen, self.replay.summary
        if self.unresolved:
            provider = f"UNRESOLVED: {self.unresolved}"
        elif chosen is None:
            provider = replays or "none usable here, float64 oracle only"
        else:
            symbol = f" ({chosen.symbol})" if chosen.symbol else ""
            note = f" ({chosen.note})" if chosen.note else ""
            provider = f"{chosen.provider} {chosen.version}{symbol}{note}"
        yield f"{self.definition.name}  {self.definition.op_type}  {provider}"
        if chosen is not None and replays:
            yield f"    {replays}"
        for key in self.reasons:
            if key not in shared:
                yield f"    not {key[0]}: {key[1]}"

    @property
    def reasons(self) -> list[tuple[str, str]]:
        """Return each provider that can't be used, with the reason."""
        return [(one.provider, str(one.obstacle)) for one in self.rejected]


def listed(resolutions: Sequence[Resolution]) -> Iterator[str]:
    """Yield the lines of many; a reason that most of them share is said once, at the end."""
    counts = Counter(key for one in resolutions for key in one.reasons)
    shared = {key: count for key, count in counts.items() if count >= _MANY}
    for resolution in resolutions:
        yield from resolution.lines(shared)
    for (provider, reason), count in shared.items():
        yield f"not {provider}, of {count} definitions: {reason}"


def resolve(
    definition: LoadedDefinition,
    machine: Machine,
    ops: Mapping[str, OpSpec] | None = None,
    recordings: Path | None = None,
) -> Resolution:
    """Return whether each provider can serve a definition on a machine.

    `recordings` is the folder of recordings, if there is one to look at.
    """
    spec = (op_specs() if ops is None else ops).get(definition.op_type)
    if spec is None:
        reason = f"no op module for {definition.op_type}"
        if definition.tag_values("fi_api"):
            reason += "; its tests match its fi_api by name"
        return Resolution(definition, (), reason)
    other = why_not_served(definition)
    if other is not None:
        return Resolution(definition, (), other)
    constants, _ = resolve_constants(definition, spec)
    unknown = [constant.name for constant in constants if constant.value is None]
    if unknown:
        return Resolution(definition, (), f"no source knows {', '.join(unknown)}")
    source = op_source(definition.op_type)
    providers = tuple(
        library.judge(definition, spec, source, machine) for library in libraries()
    )
    if recordings is None:
        return Resolution(definition, providers)
    replay = replay_of(recordings, definition.op_type, definition.name)
    return Resolution(definition, providers, replay=replay)
