"""A run after a kernel has broken its process's CUDA context.

An illegal address or a device-side assert leaves every later CUDA call of the process
failing. What ran before is judged; nothing that comes after is, in this process.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

import pytest
import torch

# the property by which a report tells xdist's parent that its process goes now
LOST = "cuda_context_lost"
_REPLACED = "reference_worker_is_replaced"
_STATUS = 70  # EX_SOFTWARE of sysexits.h


def is_alive(device: torch.device) -> bool:
    """Return whether the process can still compute on a CUDA device."""
    try:
        two = torch.ones(1, device=device) + 1
        torch.cuda.synchronize(device)
        return two.item() == 2.0
    except Exception:  # noqa: BLE001 - whatever it is, nothing can be computed
        return False


class ContextGuard:
    """A watch over a process's CUDA context; after its loss no test uses it.

    Under xdist the process ends with the report of the test that broke it, and xdist
    puts a fresh one in its place, which goes on with the rest. Without xdist the tests
    that remain are errors: they were not run. So they are, in one worker, where xdist
    was told not to replace it or to keep classes together (--dist loadscope and its
    like run the test again that a worker died of, or wait for ever).
    """

    def __init__(self, config: pytest.Config, device: torch.device) -> None:
        self._config = config
        # None in a process that is not xdist's worker
        self._worker: dict[str, Any] | None = getattr(config, "workerinput", None)
        self._device = device
        self._lost_after: str | None = None
        # in xdist's parent: the report of each test that broke a worker's context
        self._broken: dict[str, pytest.TestReport] = {}
        self._replaced: set[str] = set()

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker of xdist whether another will take its place."""
        options = self._config.option
        node.workerinput[_REPLACED] = (
            options.dist in ("load", "worksteal") and options.maxworkerrestart != "0"
        )

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Refuse to start a test without a context."""
        if self._lost_after is not None:
            pytest.fail(f"CUDA context lost after {self._lost_after}", pytrace=False)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Probe the context after all that did not pass: any exception may hide a loss.

        A skip too, for a reference may reject guessed inputs by an assertion on the
        device. Not in teardown, which touches none: its report would come too late.
        """
        report = yield
        if (
            not report.passed
            and call.when != "teardown"
            and self._device.type == "cuda"
            and self._lost_after is None
            and not is_alive(self._device)
        ):
            self._lost_after = item.nodeid
            text = f"CUDA context lost after {item.nodeid}"
            report.sections.append(("CUDA context", text))
            for properties in (item.user_properties, report.user_properties):
                properties.append((LOST, item.nodeid))
        return report

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """End a worker whose context is lost, as soon as its report is on the way."""
        if LOST not in dict(report.user_properties) or report.when == "teardown":
            return
        if self._worker is not None and self._worker.get(_REPLACED):
            # the destructors that an orderly exit runs would use the lost context
            os._exit(_STATUS)
        self._broken[report.nodeid] = report

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(
        self, crashitem: str, report: pytest.TestReport, sched: Any
    ) -> None:
        """Take the end of such a worker for the teardown of the test that caused it.

        xdist would report that test, failed already, as a second failure.
        """
        broken = self._broken.get(crashitem)
        if broken is None:
            return
        self._replaced.add(crashitem)
        report.when, report.outcome, report.longrepr = "teardown", "passed", None
        report.user_properties = broken.user_properties
        report.location, report.keywords = broken.location, broken.keywords
        for name in ("item_index", "worker_id"):
            setattr(report, name, getattr(broken, name, None))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Name the tests that broke a context, and say what became of the others.

        xdist stops after a number of workers, and with -q it does not say so.
        """
        most = self._most_replacements()
        for number, nodeid in enumerate(self._broken):
            went_on = (
                "the tests after it were not run: -n 1 runs them in a fresh process"
            )
            if nodeid in self._replaced:
                went_on = "a fresh worker went on"
            if nodeid in self._replaced and number >= most:
                went_on = (
                    f"it was the last of {most + 1} workers, and the tests after it were "
                    f"not run: --max-worker-restart {max(100, 10 * most)} runs them"
                )
            terminalreporter.line(f"CUDA context lost after {nodeid}; {went_on}")

    def _most_replacements(self) -> int:
        """Return how often xdist puts a fresh worker in a lost one's place."""
        options = self._config.option
        most = getattr(options, "maxworkerrestart", None)
        # xdist's own default
        processes = getattr(options, "numprocesses", None) or 1
        return 4 * processes if most is None else int(most)
