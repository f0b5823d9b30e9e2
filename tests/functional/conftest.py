"""Commands that are run as black boxes leave no cache; pages are seen by a browser."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(autouse=True, scope="session")
def cache_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Point the commands to a cache of the test run's own."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a repository with a good dataset of two definitions."""
    from tests.functional.reviewed import make

    folder = tmp_path / "data"
    folder.mkdir()
    make(folder)
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Start one browser for all tests, or skip them with the reason."""
    api = pytest.importorskip(
        "playwright.sync_api",
        reason="playwright is not installed: pip install -e .[test]",
    )
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"there is no {', '.join(BROWSERS)} on PATH")
    # Chromium's own sandbox refuses to work for root
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=arguments)
        yield started
        started.close()
