"""Hand out a run's tests to xdist's workers, case by case, where memory has room.

Cases of which kernels are being compiled are passed over meanwhile.

xdist's own ways: `load` deals tests out in slices and tears cases apart, so that their
inputs are made several times; `loadscope` keeps a whole class together, whose longest
outlasts all others, and runs a test again that a worker died of; `worksteal` deals the
same number to all at first, and the long ones, which come first, to one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import pytest
from xdist.scheduler import LoadScheduling
from xdist.workermanage import WorkerController

from generator.running.run_plan import Plan
from generator.running.warming import Compilation

# a worker starts a test when it knows the next one
_AHEAD = 2


class Spread(Protocol):
    """The cases of a run, and the GPU of each worker."""

    def plan(self) -> Plan:
        """Return what the workers know of the tests."""

    def room(self, node: Any) -> tuple[int, float]:
        """Return the place of a worker's GPU, and the bytes that cases may take there."""

    def warm(self, live: Mapping[str, list[str]]) -> Compilation | None:
        """Begin to compile the kernels of these definitions; None: all are compiled."""


class CaseScheduling(LoadScheduling):  # type: ignore[misc]
    """A scheduler that gives an idle worker the first case that fits its GPU.

    The tests come in the order in which cases are to be started. What a worker holds is
    the largest of the cases that it has tests of: it runs one after the other.
    """

    collection: list[str] | None
    pending: list[int]

    def __init__(self, config: pytest.Config, log: Any, spread: Spread) -> None:
        super().__init__(config, log)
        self._spread = spread
        # of each test the number of its case, the bytes and the definition
        self._tests: list[tuple[int, int, str]] = []
        # by definition the bytes of the smallest case, which is called to compile kernels
        self._smallest: dict[str, int] = {}
        self._compilation: Compilation | None = None

    def schedule(self) -> None:
        """Start once all workers have collected the same tests; go on where one is new."""
        if self.collection is None:
            if not self._check_nodes_have_same_collection():
                self.log("**Different tests collected, aborting run**")
                return
            self.collection = list(next(iter(self.node2collection.values())))
            self.pending[:] = range(len(self.collection))
            plan = self._spread.plan()
            self._tests = plan.of_each_test()
            self._smallest = plan.smallest_cases()
            self._compilation = self._spread.warm(plan.live)
            if len(self._tests) != len(self.pending):
                # another plug-in left tests out after the plan was made
                self._tests = [(number, 0, "") for number in self.pending]
                if self._compilation is not None:
                    self._compilation.finish()
        if self.collection:
            self._hand_out()

    def check_schedule(self, node: WorkerController, duration: float = 0) -> None:
        """Hand out tests: one that has ended may have made room for any worker."""
        self._hand_out()

    def _hand_out(self) -> None:
        if self._compilation is not None:
            self._compilation.take(wait=False)
        while True:
            up = self._up()
            for node in up:
                while len(self.node2pending[node]) < _AHEAD and (
                    tests := self._next(node)
                ):
                    self.node2pending[node].extend(tests)
                    node.send_runtest_some(tests)
            if not self.pending:
                for node in up:
                    node.shutdown()
                return
            if any(len(self.node2pending[node]) >= _AHEAD for node in up):
                return
            if self._compilation is not None and self._compilation.cold:
                # no test is running of which the end would be told
                self._compilation.take(wait=True)
                continue
            # each waits for room that the last test of another holds
            last = {self._spread.room(node)[0]: node for node in up}
            idle = [node for node in up if node not in last.values()]
            for node in idle:
                node.shutdown()
            if not idle:
                return

    def _up(self) -> list[WorkerController]:
        """Return the workers that have collected and may be given tests."""
        up = [node for node in self.nodes if not node.shutting_down]
        return [node for node in up if node in self.node2collection]

    def _next(self, node: WorkerController) -> list[int]:
        """Take the tests of the first case that fits from those to be run; none fits: []."""
        up = self._up()
        place, capacity = self._spread.room(node)
        largest = max(self._spread.room(other)[1] for other in up)
        others = sum(
            self._held(other, largest)
            for other in up
            if other is not node and self._spread.room(other)[0] == place
        )
        held = self._held(node, largest)
        cold = self._compilation.cold if self._compilation is not None else ()
        if place == 0:
            # compiling calls kernels on the first GPU; of what is large, one at a time
            called = (self._smallest.get(name, 0) for name in cold)
            others += max((size for size in called if size <= largest), default=0)
        start = 0
        while start < len(self.pending):
            case, _, definition = self._tests[self.pending[start]]
            end = start
            while end < len(self.pending) and self._tests[self.pending[end]][0] == case:
                end += 1
            needed = max(held, self._needed(self.pending[start], largest))
            if definition not in cold and others + needed <= capacity:
                tests = self.pending[start:end]
                del self.pending[start:end]
                return tests
            start = end
        return []

    def _held(self, node: WorkerController, largest: float) -> int:
        tests = self.node2pending[node]
        return max((self._needed(index, largest) for index in tests), default=0)

    def _needed(self, index: int, largest: float) -> int:
        """Return the bytes of a test's case; none of one that fits nowhere: it skips."""
        needed = self._tests[index][1]
        return 0 if needed > largest else needed
