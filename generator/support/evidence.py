"""What a run leaves in its JUnit file: the machine, and whom each test is about."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from .providers import DISTRIBUTIONS

_DRIVER = Path("/proc/driver/nvidia/version")
_MATCHES = "test_matches_"


def machine_facts(device: torch.device) -> dict[str, str]:
    """Return what a verdict may depend on: device, driver and versions, as text.

    No host name: a record that is kept says what the machine is, not which.
    """
    facts = {"device": device.type, "cpu": platform.machine()}
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        facts |= {
            "gpu": properties.name,
            "sm": f"{properties.major}{properties.minor}",
            "memory_gib": f"{properties.total_memory / 2**30:.0f}",
            "driver": _driver(),
        }
    facts |= {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "cuda": str(torch.version.cuda or ""),
    }
    for provider, distribution in DISTRIBUTIONS.items():
        try:
            facts[provider] = importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            facts[provider] = ""
    return facts


def _driver() -> str:
    """Return the version of NVIDIA's driver, empty where the system does not say."""
    try:
        found = re.search(r"\b\d{3,}\.\d+(\.\d+)?\b", _DRIVER.read_text())
    except (OSError, UnicodeDecodeError):
        return ""
    return found.group() if found else ""


def subject(item: Any) -> list[tuple[str, str]]:
    """Return a test's definition, the hash of its file, and what it compares with.

    Empty for what is no reference test. `source` is there for a comparison alone; a
    test that was skipped or failed before it compared is so still about somebody.
    """
    name = getattr(getattr(item, "cls", None), "name", None)
    if not isinstance(name, str):
        return []
    found = [("definition", name), ("sha256", _hash_of(item.cls, name))]
    function = getattr(item, "originalname", "") or ""
    if function.startswith(_MATCHES):
        provider = function.removeprefix(_MATCHES)
        found.append(("source", "/".join(filter(None, (provider, _backend(item))))))
    return found


def _hash_of(cls: type, name: str) -> str:
    """Return the hash of a definition's file that the rendered file's header has."""
    text = sys.modules[cls.__module__].__doc__ or ""
    found = re.search(rf"^([0-9a-f]{{64}})  {re.escape(name)}$", text, re.MULTILINE)
    return found.group(1) if found else ""


def _backend(item: Any) -> str:
    """Return the name of a test's backend, also of one that is not usable here."""
    callspec = getattr(item, "callspec", None)
    if callspec is None or "backend" not in callspec.params:
        return ""
    backend = callspec.params["backend"]
    if backend is not None:
        return str(backend.name)
    return str(callspec.id).removeprefix("unavailable").removeprefix("-")


class Evidence:
    """Write into the JUnit file, if there is one; under xdist, the parent's."""

    def __init__(self, config: pytest.Config, device: torch.device) -> None:
        self._config = config
        self._device = device

    def pytest_sessionstart(self) -> None:
        """Record the machine as properties of the whole suite.

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
