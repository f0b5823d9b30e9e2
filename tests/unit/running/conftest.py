"""A package of SGLang's name on the path, and workers that answer for it."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import pytest

from generator.running import sglang
from tests.unit.running.sglang_fake import ADAPTERS, MODULES, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Put the fake package first on the path, for all tests of this module."""
    path = write(tmp_path_factory.mktemp("fake"), MODULES)
    (path / "the_adapters.py").write_text(ADAPTERS)
    sys.path.insert(0, str(path))
    importlib.invalidate_caches()
    yield path
    sys.path.remove(str(path))


@pytest.fixture(scope="module")
def adapters(folder) -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "the_adapters", folder / "the_adapters.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def shared_provider(folder):
    provider = sglang.SGLangWorker()
    yield provider
    provider.stop()


@pytest.fixture
def provider(shared_provider, monkeypatch):
    """Let `ask` use one worker for the whole module, with its losses forgiven."""
    shared_provider.losses, shared_provider.refusal = 0, None
    monkeypatch.setattr(sglang, "_provider", shared_provider)
    return shared_provider


@pytest.fixture
def fresh(folder, monkeypatch):
    """Let `ask` use a worker of this test's own."""
    provider = sglang.SGLangWorker()
    monkeypatch.setattr(sglang, "_provider", provider)
    yield provider
    provider.stop()
