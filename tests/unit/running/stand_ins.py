"""Stand-ins for what pytest hands to the plugin's hooks."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from generator.running import plugin
from kernel_judge.obstacle import Obstacle


class Config:
    """Stand in for pytest's config: options, and what was registered."""

    def __init__(self, strict=False, **options):
        self.options = {"--device": "cpu", "--sizes": None, "--definition": []}
        self.options |= {f"--{name}": value for name, value in options.items()}
        self.strict = strict
        self.lines, self.registered, self.deselected = [], [], []
        self.stash = pytest.Stash()
        self.pluginmanager = SimpleNamespace(
            register=lambda value, name: self.registered.append((name, value))
        )
        self.hook = SimpleNamespace(
            pytest_deselected=lambda items: self.deselected.extend(items)
        )

    def getoption(self, name, default=None):
        return self.options.get(name, default)

    def getini(self, name):
        assert name == "strict"
        return self.strict

    def addinivalue_line(self, name, line):
        self.lines.append((name, line))


class Metafunc:
    """Stand in for pytest's metafunc: remember how a test was spread."""

    def __init__(self, cls, function, config=None, fixtures=("trial",)):
        self.cls, self.config = cls, config or Config()
        self.function = SimpleNamespace(__name__=function)
        self.fixturenames = [*fixtures, "record_property"]
        self.params = None

    def parametrize(self, names, params, **options):
        assert options["scope"] == "class"
        self.names, self.params = names, params

    def spread(self):
        plugin.pytest_generate_tests(self)
        return [param.id for param in self.params]

    def reasons(self):
        """Return the names of marks, and why what can't run can't."""
        found = []
        for param in self.params:
            found += [mark.name for mark in param.marks]
            if isinstance(param.values[0], Obstacle):
                found.append(str(param.values[0]))
        return found
