"""Values of calls to come, drawn while a solution computes and its answers are compared."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import torch

from generator.evaluation.rounds import Round
from generator.running.free_memory import available_bytes
from kernel_judge.inputs.memory import tensor_bytes

_MOST_BYTES = 2 << 30
"""Of values that nobody has asked for yet; of the machine's free memory a 16th."""
_SHARE = 16


class DrawingAhead:
    """A thread that draws inputs in the order of the calls, as far as there is memory.

    What is larger than that is left to who asks for it; so is what fails.
    """

    def __init__(self, rounds: Sequence[Round]) -> None:
        distinct = {id(one): one for one in rounds}
        self._waiting = deque(distinct.values())
        self._pool = ThreadPoolExecutor(1, "drawing")
        self._drawn: dict[int, tuple[int, Future[Any]]] = {}
        free = available_bytes(torch.device("cpu"))
        self._left = _MOST_BYTES if free is None else min(_MOST_BYTES, free // _SHARE)
        self._begin()

    def _begin(self) -> None:
        """Begin to draw what there is room for."""
        while self._waiting:
            one = self._waiting[0]
            size = tensor_bytes(one.subject.definition, one.case)
            if size > self._left and self._drawn:
                return
            self._waiting.popleft()
            if size <= self._left:
                self._left -= size
                self._drawn[id(one)] = size, self._pool.submit(lambda o: o.inputs, one)

    def wait_for(self, one: Round) -> None:
        """Wait until the inputs of a round are drawn, if they were begun."""
        size, drawn = self._drawn.pop(id(one), (0, None))
        self._left += size
        self._begin()
        if drawn is not None:
            wait([drawn])

    def close(self) -> None:
        """Draw nothing more."""
        self._pool.shutdown(cancel_futures=True)
