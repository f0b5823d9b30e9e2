"""Stand-ins can be used as code uses a package at import, and only where it lacks."""

from __future__ import annotations

import importlib
import subprocess
import sys
from textwrap import dedent

import pytest

from generator.running import sglang_light
from generator.running.sglang_light import KERNELS, OPTIONAL, StandInFinder
from tests.builders import ROOT
from tests.unit.running.sglang_fake import MODULES, write

NAME = "a_package_that_nobody_has"


@pytest.fixture
def stand_in(monkeypatch):
    """Import a stand-in for a package; nothing of it is left after the test."""
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, StandInFinder([NAME])])
    yield importlib.import_module(NAME)
    for module in [m for m in sys.modules if m.partition(".")[0] == NAME]:
        del sys.modules[module]


def test_a_stand_in_is_used_as_packages_are(stand_in):
    deep = importlib.import_module(f"{NAME}.one.two")

    class Derived(deep.Base, metaclass=type(deep.Base)):
        field: deep.Base[int] | None = None

    @deep.register
    def plain():
        return 1

    @deep.register("name", option=2)
    def registered():
        return 2

    assert registered() == 2
    assert isinstance(Derived(1, two=3), deep.Base)
    assert list(deep.names) == []
    assert None | deep.Base is deep.Base
    assert stand_in.__version__ > "9"
    deep.constant.of.depth("called").attribute()


def test_a_stand_in_has_no_special_names_and_no_driver(stand_in):
    for holder in (stand_in, stand_in.Any, stand_in.Any()):
        assert not hasattr(holder, "__array__")
    assert not hasattr(stand_in.runtime, "driver")


def test_the_finder_leaves_other_names_alone(stand_in):
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("another_package_that_nobody_has")


def test_what_is_missing(monkeypatch):
    here = {"triton", "zmq", KERNELS}
    monkeypatch.setattr(sglang_light, "is_installed", lambda name: name not in here)
    assert sglang_light.missing(cuda=True) == ("triton", "zmq", KERNELS)
    assert sglang_light.missing(cuda=False) == ("triton", "zmq")
    monkeypatch.setattr(sglang_light, "is_installed", lambda name: True)
    assert sglang_light.missing(cuda=True) == ()


def loaded(folder, before: str = "") -> list[str]:
    """Return what a process prints that loads the fake package in `folder`."""
    text = f"""
        import sys
        sys.path[:0] = [{str(folder)!r}, {str(ROOT)!r}]
        from types import SimpleNamespace
        import torch
        from generator.running import sglang_light as light
        {before}
        print(light.load())
        import sglang.srt.utils as utils
        import sglang.srt.layers.rotary_embedding.base as rotary
        print(utils.is_cuda.cache_info().currsize, utils.is_cuda(), rotary._is_cpu)
        print(torch.version.cuda)
        print(any(isinstance(f, light.StandInFinder) for f in sys.meta_path))
    """
    done = subprocess.run(
        [sys.executable, "-c", dedent(text)], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_cuda_is_hidden_while_kernels_are_chosen(tmp_path):
    pretend = "torch.version.cuda = '13.0'; torch.cuda.is_available = lambda: True"
    found = loaded(write(tmp_path, MODULES), pretend)
    assert found == ["light", "1 False True", "13.0", "True"]


def test_the_kernels_get_no_stand_in(tmp_path):
    pretend = "torch.cuda.is_available = lambda: True"
    probe = """
        try:
            import sgl_kernel
        except ImportError:
            print("none")
    """
    modules = {**MODULES, "sglang/srt/layers/sampler.py": probe}
    assert loaded(write(tmp_path, modules), pretend)[0] == "none"


@pytest.mark.parametrize("cuda", [False, True])
def test_a_complete_installation_gets_no_stand_ins(tmp_path, cuda):
    packages = {f"{name}/__init__.py": "" for name in (*OPTIONAL, KERNELS)}
    packages["zmq/asyncio.py"] = ""
    packages["zmq/deep.py"] = "class Base: pass\ndef register(name): return lambda f: f"
    folder = write(tmp_path, {**MODULES, **packages, "gguf.py": ""})
    pretend = "torch.version.cuda = '13.0'; torch.cuda.is_available = lambda: True"
    complete, decided, version, stands_in = loaded(folder, pretend if cuda else "")
    assert (complete, stands_in) == ("complete", "False")
    # with a GPU it chooses its own kernels; without one nothing is decided otherwise
    assert decided == ("0 True False" if cuda else "1 False True")
    assert version == ("13.0" if cuda else "None")


def test_cuda_is_shown_again_after_a_failure(tmp_path):
    folder = write(tmp_path, {**MODULES, "sglang/srt/layers/sampler.py": "1 / 0"})
    pretend = "torch.version.cuda = '13.0'"
    text = pretend + "\n        try: light.load()\n        except ZeroDivisionError: "
    with pytest.raises(subprocess.CalledProcessError) as caught:
        loaded(folder, text + "print(torch.version.cuda)")
    assert caught.value.stdout.splitlines() == ["13.0"]
