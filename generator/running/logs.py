"""Log records are not captured where nobody asks for them.

pytest attaches two handlers to each logger that does not propagate, of which torch has
forty, before each phase of each test, and takes them off again: a fifth of what a run of
small cases takes. What is logged goes to stderr, which is captured.
"""

from __future__ import annotations

import pytest

_PLUGIN = "logging-plugin"
_OPTIONS = ("log_level", "log_cli_level", "log_file", "log_file_level")
_INI = ("log_cli", *_OPTIONS)


class UncapturedLogs:
    """A plug-in that takes pytest's capture of logs out of runs that do not ask for it."""

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Unregister it once the tests are known, which may ask for `caplog`."""
        manager = session.config.pluginmanager
        if not manager.has_plugin(_PLUGIN) or _is_asked_for(session.config):
            return
        if not any("caplog" in _fixtures(item) for item in session.items):
            manager.unregister(name=_PLUGIN)


def _is_asked_for(config: pytest.Config) -> bool:
    return any(
        value not in (None, False, "")
        for value in (
            *(config.getoption(name, default=None) for name in _OPTIONS),
            *(config.getini(name) for name in _INI),
        )
    )


def _fixtures(item: pytest.Item) -> list[str]:
    names: list[str] = getattr(item, "fixturenames", [])
    return names
