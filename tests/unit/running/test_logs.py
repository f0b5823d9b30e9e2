"""Log records are captured only where an option, an ini value or a fixture asks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = """\
from generator.running.logs import UncapturedLogs

def pytest_configure(config):
    config.pluginmanager.register(UncapturedLogs(), "reference-logs")
"""
TEST = """\
import logging

def test_one({fixture}):
    logging.getLogger("some").warning("said by a test")
    assert {fixture}
"""


def said(folder: Path, *options: str, fixture: str = "tmp_path", ini: str = "") -> str:
    """Return what pytest prints of one failing test."""
    (folder / "conftest.py").write_text(CONFTEST)
    text = TEST.format(fixture=fixture)
    (folder / "test_one.py").write_text(text.replace("assert", "assert not"))
    (folder / "pytest.ini").write_text(f"[pytest]\n{ini}\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    done = subprocess.run(
        command, check=False, cwd=folder, capture_output=True, text=True
    )
    assert "1 failed" in done.stdout
    return done.stdout


def test_records_go_to_stderr_which_is_captured(tmp_path: Path) -> None:
    text = said(tmp_path)
    assert "Captured log call" not in text
    assert "Captured stderr call" in text
    assert "said by a test" in text


@pytest.mark.parametrize(
    ("options", "fixture", "ini"),
    [
        (("--log-level=INFO",), "tmp_path", ""),
        ((), "caplog", ""),
        ((), "tmp_path", "log_level = INFO"),
    ],
)
def test_whoever_asks_gets_them(
    options: tuple[str, ...], fixture: str, ini: str, tmp_path: Path
) -> None:
    assert "Captured log call" in said(tmp_path, *options, fixture=fixture, ini=ini)


def test_without_the_plugin_there_is_nothing_to_take_out(tmp_path: Path) -> None:
    assert "said by a test" in said(tmp_path, "-p", "no:logging")
