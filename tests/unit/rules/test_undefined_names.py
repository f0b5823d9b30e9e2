"""Names that nothing binds are found, and no other."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import generator
from generator.rules.static import undefined_names

ROOT = Path(generator.__file__).parent.parent

FINE = [
    "def run(x):\n    return x + len(__name__)\n",
    "import torch.nn.functional as F\ndef run(x):\n    return F.relu(x)\n",
    "import torch.nn\ndef run(x):\n    return torch.nn\n",
    "def run(x):\n    return helper(x)\ndef helper(x):\n    return x\n",
    "def run(x):\n    return [y for y in x if (z := y)] + [z]\n",
    "def run(x):\n    del x\n    x = 1\n    return x\n",
    "def set_it():\n    global late\n    late = 1\ndef run(x):\n    return late\n",
    "def run(x):\n    try:\n        pass\n    except ValueError as e:\n        print(e)\n",
    (
        "def run(x):\n    match x:\n        case {'a': b, **c}: return b, c\n"
        "        case [d, *e]: return d, e\n        case str() as f: return f\n"
    ),
    "class A:\n    k = 1\n    j = k\n    def f(self):\n        return __class__\n",
    "class A:\n    n = __qualname__, __module__\n",
    "from math import *\ndef run(x):\n    return sqrt(x)\n",
    "exec('a = 1')\ndef run(x):\n    return a\n",
    "try:\n    gone\nexcept NameError:\n    gone = 1\n",
    "def run(x):\n    y: Missing[\n        1\n    ] = 1\n    return y\n",
    "from __future__ import annotations\ndef run(x: Gone) -> Gone:\n    return x\n",
    "from __future__ import annotations\nx: Gone = 1\nclass A:\n    y: G\n",
    "def run(x):\n    def inner():\n        nonlocal y\n        y = 2\n    y = 1\n    return y\n",
    "def run(*a, **k):\n    with open('x') as f, a as (b, c):\n        return f, b, c, k\n",
    "lam = lambda q, *r: (q, r)\n",
    "for i in range(3):\n    pass\ndef run(x):\n    return i\n",
    "x = 'ä'; y: int = 1\ndef run(z):\n    ü: Ü = 1\n    return z\n",
]
FOUND = [
    ("def run(x):\n    return _helper(x)\n", {"_helper": 2}),
    ("def run(x):\n    return [k for _ in x]\n", {"k": 2}),
    ("class A:\n    k = 1\n    j = [k for _ in range(3)]\n", {"k": 3}),
    ("def run(x, d=default):\n    return x\n", {"default": 1}),
    ("@deco\ndef run(x):\n    return x\n", {"deco": 1}),
    ("def run(x: Gone):\n    return x\n", {"Gone": 1}),
    ("class A(Base):\n    y: Gone = 1\n", {"Base": 1, "Gone": 2}),
    ("import torch as t\ndef run(x):\n    return torch.relu(x)\n", {"torch": 3}),
    ("def run(x):\n    def f():\n        y = 1\n    return y\n", {"y": 4}),
    ("def run(x):\n    if x:\n        return a\n    return b\n", {"a": 3, "b": 4}),
]


@pytest.mark.parametrize("source", FINE)
def test_no_false_alarm(source: str) -> None:
    assert undefined_names(source) == {}


@pytest.mark.parametrize(("source", "names"), FOUND)
def test_undefined_names_are_found(source: str, names: dict[str, int]) -> None:
    assert undefined_names(source) == names


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters are of 3.12")
def test_type_parameters_are_bound() -> None:
    assert undefined_names("def run[T](x: T) -> T:\n    return x\n") == {}
    assert undefined_names("type L[T] = list[T]\n") == {}


def test_no_reference_of_the_dataset_has_one() -> None:
    paths = sorted((ROOT / "definitions").glob("*/*.json"))
    assert len(paths) > 100
    found = {
        p.name: undefined_names(json.loads(p.read_text())["reference"]) for p in paths
    }
    assert not {name: names for name, names in found.items() if names}
