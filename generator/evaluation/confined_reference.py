"""A definition's reference, called in a sandbox of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from generator.evaluation.confined import Confinement
from generator.evaluation.lengths import sizes_of
from generator.evaluation.session import Session
from generator.evaluation.solution import Solution
from generator.evaluation.verdict import Refused
from kernel_judge.definition import Interface

_SEEDS = 2**31


class ReferenceFailed(Exception):
    """Raised with one line where a reference gave no answer."""


class ConfinedReference:
    """The `run()` of a reference, which a sandbox executes; started when first called.

    The seed of torch's generator goes along, and inputs that it writes to are written
    to here. Calls raise ReferenceFailed, and CannotRun without a sandbox.
    """

    def __init__(
        self, text: str, interface: Interface, axes: Mapping[str, int], at: Confinement
    ) -> None:
        spec = {
            "language": "python",
            "entry_point": "reference.py::run",
            "destination_passing_style": False,
        }
        source = {"path": "reference.py", "content": text}
        self._solution = Solution({"spec": spec, "sources": [source]}, "reference")
        self._interface, self._axes, self._at = interface, axes, at
        self._session: Session | None = None

    def __call__(self, *arguments: Any) -> Any:
        """Return what the reference returns, tensors on the CPU."""
        try:
            return self._called(
                dict(zip(self._interface.input_specs, arguments, strict=True))
            )
        except Refused as refused:
            self.close()
            raise ReferenceFailed(f"the reference: {refused.reason}") from refused

    def close(self) -> None:
        """End its processes."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def prepare(self) -> None:
        """Begin what the first call waits for. Raises CannotRun without a sandbox."""
        if self._session is None:
            self._at.prepare()

    def session(self) -> Session:
        """Return the session in which the reference is built. Raises Refused."""
        if self._session is None:
            self._session = self._at.open()
            self._session.build(self._solution, len(self._interface.input_specs))
        return self._session

    def _called(self, inputs: dict[str, Any]) -> Any:
        session, interface = self.session(), self._interface
        sizes = sizes_of(interface, self._axes, inputs)
        layout = session.write(0, inputs, interface.output_specs, sizes)
        seed = torch.initial_seed() % _SEEDS
        session.call(0, layout, seed=seed, passes_outputs=False)
        answer = session.fetch(0, layout)
        for number in answer.changed:
            list(inputs.values())[number].copy_(session.input(0, layout, number))
        return answer.outputs
