"""Judge a production kernel by what the tests hold it to, and no more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from generator.evaluation.judge import Judge
from generator.evaluation.rounds import Round
from kernel_judge.checks.pairs import keep_rows


@dataclass(kw_only=True)
class KernelJudge(Judge):
    """A kernel's judge, on the rows that kernels define; `lacks` are outputs it doesn't give.

    A solution has to give all of them: it is held to the definition. `kernel` names it: a
    policy knows rows that this one leaves undefined.
    """

    lacks: tuple[str, ...] = ()
    kernel: str = ""

    def asked_by(self, one: Round) -> str:
        """Return the kernel, by which a policy leaves rows out."""
        return self.kernel or super().asked_by(one)

    def defined(
        self, one: Round, names: Sequence[str], actual: tuple[Any, ...]
    ) -> Iterator[tuple[str, Any, Any]]:
        """Yield name, actual and expected of each output that it gives."""
        specs, of_op = one.subject.specs, one.subject.op.defined_rows
        rows = None if of_op is None else of_op(one.trial.definition, one.trial.inputs)
        axis = specs[names[0]].leading_axis
        pairs = (
            super().defined(one, names, actual)
            if rows is None
            else zip(names, actual, one.expected, strict=True)
        )
        for name, a, e in pairs:
            if name in self.lacks:
                continue
            if rows is not None and specs[name].leading_axis == axis:
                a, e = keep_rows(a, rows), keep_rows(e, rows)
            yield name, a, e
