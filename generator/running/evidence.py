"""Records of a run: the machine, and each test's subject and outcome.

`--results FILE` is JSON Lines: a line for the machine, then one for each test.
"""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch

from generator.running.machine import machine_facts
from generator.running.skipped_test import kind_of
from kernel_judge.obstacle import SKIP_KIND

FORMAT = 1
"""Of a results file; the first line has it."""

_MATCHES = "test_matches_"


def subject(item: Any) -> list[tuple[str, str]]:
    """Return a test's definition and op_type, its file's hash, and the source.

    Empty for what is no reference test. `source` is there for a comparison alone; a
    test that was skipped or failed before it compared is so still about somebody.
    """
    name = getattr(getattr(item, "cls", None), "name", None)
    if not isinstance(name, str):
        return []
    properties = [
        ("definition", name),
        ("op_type", item.cls.op_type),
        ("sha256", item.cls.sha256),
    ]
    function = getattr(item, "originalname", "") or ""
    if function.startswith(_MATCHES) and function != "test_matches_cpu":
        provider = function.removeprefix(_MATCHES)
        properties.append(
            ("source", "/".join(filter(None, (provider, _backend(item)))))
        )
    return properties


def _backend(item: Any) -> str:
    """Return the name of a test's backend, also of one that is not usable here."""
    callspec = getattr(item, "callspec", None)
    if callspec is None or "backend" not in callspec.params:
        return ""
    backend = callspec.params["backend"]
    return "" if backend is None else str(backend.name)


class FinishedTests:
    """The reports of each test's setup, call and teardown, put together."""

    def __init__(self) -> None:
        self._running: dict[str, dict[str, Any]] = {}

    def add(self, report: Any) -> dict[str, Any] | None:
        """Return the test that a report ends; None before, and of no reference test."""
        nodeid = str(report.nodeid)
        start = {"status": "passed", "message": "", "seconds": 0.0, "properties": []}
        test = self._running.setdefault(nodeid, start)
        test["seconds"] += report.duration
        # of a worker of xdist that crashed the last report has none
        test["properties"] = report.user_properties or test["properties"]
        if report.failed and test["status"] in ("passed", "skipped"):
            status = "failed" if report.when == "call" else "error"
            test |= {"status": status, "message": _message(report)}
        elif report.skipped and test["status"] == "passed":
            test |= {"status": "skipped", "message": _message(report)}
        if report.when in ("setup", "call"):
            return None
        del self._running[nodeid]
        properties = test.pop("properties")
        known = dict(properties)
        if "definition" not in known:
            return None
        about = {name: known.get(name) for name in ("definition", "op_type", "sha256")}
        compared = [json.loads(v) for name, v in properties if name == "comparison"]
        return {
            "test": nodeid.partition("::")[2],
            **about,
            "source": known.get("source"),
            **test,
            "skip_kind": known.get(SKIP_KIND, ""),
            "comparisons": compared,
        }


def _message(report: Any) -> str:
    """Return the first line that says something of a failure, or why it was skipped."""
    message = report.longrepr
    if isinstance(message, tuple):
        # a skip's: file, line and reason
        message = str(message[2]).removeprefix("Skipped: ")
    crash = getattr(message, "reprcrash", None)
    lines = str(message if crash is None else crash.message).splitlines()
    return next(filter(None, map(str.strip, lines)), "")


class ResultsFile:
    """A run's results as a file, written as they arrive: a killed run keeps what it had."""

    def __init__(self, path: Path, device: torch.device) -> None:
        # a test may change the working directory
        self._path = path.resolve()
        date = time.strftime("%Y-%m-%d", time.gmtime())
        machine = machine_facts(device)
        try:
            with suppress(OSError):
                # a sandbox mounts the file: there it is emptied alone
                self._path.unlink(missing_ok=True)
            self._path.write_bytes(b"")
            self.write({"format": FORMAT, "date": date, "machine": machine})
        except OSError as error:
            raise pytest.UsageError(f"--results {path}: {error.strerror}") from error

    def write(self, line: Mapping[str, Any]) -> None:
        """Add a line."""
        with self._path.open("a", encoding="ascii") as stream:
            stream.write(f"{json.dumps(line)}\n")


class EvidencePlugin:
    """Note of each test whom it is about, for its reports and for a JUnit file."""

    def __init__(self, config: pytest.Config, device: torch.device) -> None:
        self._config = config
        self._device = device

    def pytest_sessionstart(self) -> None:
        """Put the machine into the JUnit file, if there is one, as the suite's properties.

        pytest's own fixture for that does nothing under xdist.
        """
        for plugin in self._config.pluginmanager.get_plugins():
            add = getattr(plugin, "add_global_property", None)
            if add is not None:
                for name, value in machine_facts(self._device).items():
                    add(name, value)

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Record whom a test is about."""
        item.user_properties += subject(item)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Record of which kind a skip is."""
        report = yield
        kind = kind_of(call.excinfo.value) if call.excinfo is not None else None
        if kind is not None:
            for properties in (item.user_properties, report.user_properties):
                properties.append((SKIP_KIND, kind.value))
        return report
