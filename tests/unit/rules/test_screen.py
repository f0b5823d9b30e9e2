"""The static screen: hostile snippets are found, the dataset's references pass."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.rules.screen import screen

DEFINITIONS = sorted(
    Path(__file__).parents[3].joinpath("definitions").glob("**/*.json")
)

HOSTILE = {
    "import-os": "import os",
    "import-subprocess": "import subprocess as torch",
    "import-socket": "from socket import socket",
    "import-ctypes": "import torch, ctypes",
    "import-pickle": "import pickle",
    "import-inside": "def run(x):\n    import sys\n    return x",
    "import-inspect": "import inspect",
    "import-pytest": "import pytest",
    "import-importlib": "import importlib",
    "import-relative": "from . import secrets",
    "import-star": "from torch import *",
    "import-dotted": "import torch.utils.cpp_extension",
    "import-from-dotted": "from torch.utils import cpp_extension as c",
    "import-hub": "from torch import hub",
    "import-load": "from torch import load as tensor",
    "import-numpy-ctypes": "import numpy.ctypeslib",
    "import-private": "from torch import _C",
    "eval": "eval('1')",
    "eval-wide-letters": "\U0001d556val('1')",
    "exec": "exec('import os')",
    "compile": "compile('1', '', 'eval')",
    "dunder-import": "__import__('os')",
    "open": "open('/etc/passwd')",
    "open-renamed": "f = open\nf('/etc/passwd')",
    "open-default": "def run(open=open):\n    return open('x')",
    "open-annotated": "def run(open: open('x')):\n    return open",
    "open-of-another": "def run(x):\n    return open('x')\n\ndef f(open):\n    pass",
    "open-of-a-default": "def run(x=lambda open: 0):\n    return open('x')",
    "open-global": "def run(open):\n    def f():\n        global open\n        return open",
    "builtins": "__builtins__['eval']('1')",
    "globals": "globals()['run'] = None",
    "locals": "locals()",
    "vars": "vars(torch)",
    "setattr": "import torch\nsetattr(torch, 'allclose', None)",
    "getattr-built": "import torch\ngetattr(torch, 'lo' + 'ad')('x')",
    "getattr-literal": "import torch\ngetattr(torch, '_C')",
    "getattr-renamed-argument": "import torch\ngetattr(*[torch, 'load'])",
    "subclasses": "().__class__.__base__.__subclasses__()",
    "dunder-globals": "def run():\n    return run.__globals__",
    "dunder-dict": "import torch\ntorch.__dict__['load']",
    "traceback-frame": "try:\n    1/0\nexcept Exception as e:\n    e.__traceback__",
    "generator-frame": "(x for x in ()).gi_frame.f_back.f_globals",
    "format-path": "'{0.__class__.__init__}'.format(1)",
    "match-pattern": "match 1:\n    case object(__class__=c):\n        c",
    "torch-load": "import torch\ntorch.load('x')",
    "torch-save": "import torch\ntorch.save(1, 'x')",
    "torch-load-renamed": "import torch\nt = torch\nt.load('x')",
    "torch-library": "import torch\ntorch.ops.load_library('x.so')",
    "torch-classes": "import torch\ntorch.classes.load_library('x.so')",
    "torch-hub": "import torch\ntorch.hub.load('a/b', 'c')",
    "torch-cpp": "import torch\ntorch.utils.cpp_extension.load_inline('x', '')",
    "torch-jit-load": "import torch\ntorch.jit.load('x')",
    "torch-c": "import torch\ntorch._C._jit_clear_class_registry()",
    "torch-compile": "import torch\n@torch.compile\ndef run(x):\n    return x",
    "torch-os": "import torch\ntorch.os.system('id')",
    "torch-sys": "import torch\ntorch.sys.modules['pytest']",
    "torch-from-file": "import torch\ntorch.from_file('/etc/passwd', size=9)",
    "torch-distributed": "import torch\ntorch.distributed.init_process_group()",
    "numpy-load": "import numpy as np\nnp.load('x', allow_pickle=True)",
    "numpy-tofile": "import numpy as np\nnp.ones(1).tofile('x')",
    "numpy-memmap": "import numpy as np\nnp.memmap('x')",
    "enum-sys": "import enum\nenum.sys",
    "collections-sys": "import collections\ncollections._sys.exit(0)",
    "functools-attrgetter": "from operator import attrgetter",
    "patch-torch": "import torch\ntorch.allclose = lambda *a, **k: True",
    "patch-part": "import torch.nn as nn\nnn.functional.relu = None",
    "patch-for": "import torch\nfor torch.equal in (1,):\n    pass",
    "patch-with-del": "import torch\ndel torch.equal",
    "patch-testing": "import torch\ntorch.testing.assert_close = print",
    "default-dtype": "import torch\ntorch.set_default_dtype(torch.float16)",
    "print": "print('tests/x.py::test_a PASSED')",
    "exit": "exit()",
    "system-exit": "raise SystemExit(0)",
    "catch-all": "try:\n    pass\nexcept BaseException:\n    pass",
    "torch-function": "class T:\n    def __torch_function__(self, *a):\n        return True",
    "always-equal": "class T:\n    def __eq__(self, other):\n        return True",
    "tensor-subclass": "import torch\nclass T(torch.Tensor):\n    pass",
    "metaclass": "class T(metaclass=int):\n    pass",
    "type-call": "type('T', (), {})",
    "dunder-del": "class T:\n    def __del__(self):\n        pass",
    "syntax": "def run(:",
    "null": "x = 1\0",
    "deep": "(" * 5000 + ")" * 5000,
    "huge": "#" * 1_000_001,
    "type-hints": "import typing\nclass A:\n    x: 'print(1)'\ntyping.get_type_hints(A)",
    "type-hints-imported": "from typing import get_type_hints as g\ng(1)",
    "type-hints-renamed": "import typing as t\nt.get_type_hints(1)",
    "type-hints-of-a-value": "import typing\nm = typing\nm.get_args",
    "type-hints-by-getattr": "import typing\ngetattr(typing, 'get_type_hints')",
    "forward-reference": "from typing import ForwardRef",
    "dispatch-by-annotation": "import functools\n@functools.singledispatch\ndef f(x): 0",
    "made-dataclass": "import dataclasses\ndataclasses.make_dataclass('A', ['x'])",
    "module-in-a-list": "import dataclasses\nx = [dataclasses]",
    "compilation-unit": "import torch\ntorch.jit.CompilationUnit('def f(): pass')",
    "script": "import torch\n@torch.jit.script\ndef f(x):\n    return x",
    "unchecked-strides": "import numpy as np\nnp.lib.stride_tricks.as_strided(x, (9,))",
    "unchecked-strides-imported": "from numpy.lib.stride_tricks import as_strided",
    "format-joined": "('{0._' + '_class__}').format(1)",
    "format-named": "f = '{0.gi_frame}'\nf.format(1)",
    "format-path-without-dunders": "'{0.gi_frame.f_back}'.format(1)",
    "format-path-in-a-spec": "'{0:{1.a}}'.format(1, 2)",
    "format-map": "f.format_map({})",
    "format-of-str": "str.format(f, 1)",
    "data-pointer": "import torch\ntorch.ones(1).data_ptr()",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_source_is_found(name: str) -> None:
    found = screen(HOSTILE[name])
    assert found
    assert all(f.line >= 1 and f.what and f.why for f in found)


@pytest.mark.parametrize("path", DEFINITIONS, ids=lambda path: path.stem)
def test_references_of_the_dataset_pass(path: Path) -> None:
    assert screen(json.loads(path.read_text())["reference"]) == ()


@pytest.mark.parametrize(
    "source",
    [
        "'{:.3f} {0} {x!r:>{width}}'.format(1)",
        "import typing as t\ndef f(x: t.Optional[int]) -> t.Any: ...",
        "from dataclasses import dataclass, field\n@dataclass\nclass A:\n    x: int = 0",
        "from functools import partial\nimport collections\ncollections.deque()",
        "from collections.abc import Sequence\nimport collections.abc as c\nc.Mapping",
        "import enum\nclass E(enum.Enum):\n    A = 1",
    ],
)
def test_what_references_need_of_the_standard_library_passes(source: str) -> None:
    assert screen(source) == ()


def test_a_parameter_may_have_a_builtin_s_name() -> None:
    assert screen("def run(input):\n    return [input * 2 for _ in range(3)]\n") == ()


def test_there_are_references_to_pass() -> None:
    assert len(DEFINITIONS) >= 156


def test_the_line_is_shown() -> None:
    (found,) = screen("import torch\n\n\ndef run(x):\n    return open('x')\n")
    assert (found.line, found.text, found.what) == (5, "return open('x')", "open")


def test_what_is_shown_cannot_drive_a_terminal() -> None:
    (found,) = screen("x = eval('\x1b[2J\u202e')")
    assert found.text == "x = eval('\\x1b[2J\\u202e')"


def test_a_long_line_is_clipped_and_many_findings_too() -> None:
    found = screen("eval('" + "x" * 10_000 + "')\n" + "eval(1)\n" * 1000)
    assert len(found[0].text) == 160
    assert len(found) == 100


@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
def test_any_text_is_judged_without_an_error(text: str) -> None:
    screen(text)


@given(st.sampled_from(sorted(HOSTILE.values())[1:]), st.integers(0, 80), st.text())
def test_mutated_source_is_judged_without_an_error(source, place, text) -> None:
    screen(source[:place] + text + source[place:])


@pytest.mark.parametrize("depth", [100, 900, 3000, 50_000])
@pytest.mark.parametrize("part", [".a", "[0]", "()", "+1"])
def test_deep_source_is_judged_without_an_error(part: str, depth: int) -> None:
    screen("import torch\ntorch" + part * depth)
    screen("import torch\ntorch" + part * depth + " = 1")


def test_a_helper_class_and_a_plain_getattr_pass() -> None:
    source = """
import torch
import torch.nn.functional as F
from dataclasses import dataclass

@dataclass
class State:
    scale: float

    def __call__(self, x):
        self.scale = 1.0
        x[0] = getattr(x, "dtype").itemsize
        return F.silu(x) * self.scale
"""
    assert screen(source) == ()
