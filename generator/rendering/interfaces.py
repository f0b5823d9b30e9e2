"""Interfaces of a rendered file: each whole, or as its difference from an earlier one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from generator.rendering.plan import SharedInterface
from generator.rendering.python_text import WIDTH
from kernel_judge.definition import Interface

_LINES = 4
"""Lines that a difference must save: to read one, a reader looks up another interface."""


@dataclass(frozen=True)
class PrintedInterface:
    """An interface as it is printed.

    `base` is the name of the earlier one that it differs from by the tensors printed and
    by those in `without`; None where all is printed. `constraints` None are the base's,
    behind which stand those of `also`.
    """

    name: str
    base: str | None
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    constraints: tuple[str, ...] | None
    also: tuple[str, ...] = field(default=())
    without: tuple[str, ...] = field(default=())

    @property
    def opening(self) -> str:
        """Return the first line of its source."""
        return f"{self.name} = {f'{self.base}.but' if self.base else 'Interface'}("

    @property
    def lines(self) -> int:
        """Return the number of items, of which each takes about a line."""
        constraints = self.constraints or ()
        items = (self.inputs, self.outputs, constraints, self.also, self.without)
        return sum(len(part) + 1 for part in items if part)


def printed(interfaces: Sequence[SharedInterface]) -> Iterator[PrintedInterface]:
    """Yield what is printed of each interface, in their order.

    A difference is printed where it is at most half as long as a whole that is long.
    """
    for place, interface in enumerate(interfaces):
        whole = PrintedInterface(
            interface.name,
            None,
            interface.inputs,
            interface.outputs,
            interface.constraints or None,
        )
        changes = [
            change
            for earlier in interfaces[:place]
            if (change := _change(earlier, interface)) is not None
            and len(change.opening) <= WIDTH
        ]
        least = min(changes, key=lambda change: change.lines, default=whole)
        is_short = (
            whole.lines - least.lines >= _LINES and 2 * least.lines <= whole.lines
        )
        yield least if is_short else whole


def _change(base: SharedInterface, to: SharedInterface) -> PrintedInterface | None:
    """Return what makes one interface of another, None where the order differs."""
    gone = [n for n in (*base.inputs, *base.outputs) if n not in _tensors(to)]
    count = len(base.constraints)
    goes_on = to.constraints[:count] == base.constraints
    change = PrintedInterface(
        to.name,
        base.name,
        _changed(base.inputs, to.inputs),
        _changed(base.outputs, to.outputs),
        None if goes_on else to.constraints,
        to.constraints[count:] if goes_on else (),
        tuple(gone),
    )
    before = Interface(base.inputs, base.outputs, base.constraints)
    after = before.but(
        inputs=change.inputs,
        outputs=change.outputs,
        constraints=change.constraints,
        also=change.also,
        without=change.without,
    )
    wanted = [*to.inputs.items()], [*to.outputs.items()]
    has = [*after.inputs.items()], [*after.outputs.items()]
    return change if has == wanted else None


def _tensors(interface: SharedInterface) -> set[str]:
    return {*interface.inputs, *interface.outputs}


def _changed(base: Mapping[str, str], to: Mapping[str, str]) -> dict[str, str]:
    """Return the tensors that differ; before a new one stands the one that it follows."""
    changed: dict[str, str] = {}
    before: str | None = None
    for name, text in to.items():
        if name not in base and before is not None:
            changed.setdefault(before, to[before])
        if base.get(name) != text:
            changed[name] = text
        before = name
    return changed
