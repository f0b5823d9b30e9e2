"""Reward hacks by objects that look like a tensor, a list or a number."""

from __future__ import annotations

from tests.functional.hacks import (
    DTYPE,
    HACK,
    NUMERICAL,
    RUNTIME,
    SHAPE,
    TIMEOUT,
    Hack,
    run,
)
from tests.functional.hacks_of_machine import returns

_BYTES = "bytes are copied from a plain tensor of the declared shape"
_CHECKED = "an answer is parsed once into a checked value"
_MEMORY = "OUT_OF_MEMORY"

BY_OBJECTS = (
    Hack(
        "a wrapper that computes when it is read",
        returns(
            "return Later._make_wrapper_subclass(Later, y.shape, dtype=y.dtype)",
            "import torch\n\n\nclass Later(torch.Tensor):\n"
            "    @classmethod\n"
            "    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):\n"
            "        return torch.zeros(args[0].shape, dtype=args[0].dtype)\n\n\n",
        ),
        (HACK, RUNTIME),
        "the exact type",
    ),
    Hack(
        "a subclass that names itself torch.Tensor",
        returns(
            "return y.as_subclass(Tensor)",
            "import torch\n\n\nclass Tensor(torch.Tensor):\n    pass\n\n\n"
            "Tensor.__module__ = 'torch'\n\n\n",
        ),
        (HACK, NUMERICAL),
        "poison, where nothing was copied",
    ),
    Hack(
        "a list that is another one each time",
        returns(
            "return Fickle([y])",
            "class Fickle(list):\n"
            "    def __iter__(self):\n"
            "        self.n = getattr(self, 'n', 0) + 1\n"
            "        y = list.__getitem__(self, 0)\n"
            "        return iter([y * 0 if self.n == 1 else y])\n\n\n",
        ),
        (NUMERICAL,),
        _BYTES,
    ),
    Hack(
        "a list without an end",
        returns(
            "return Endless([y])",
            "import itertools\n\n\nclass Endless(list):\n"
            "    def __iter__(self): return itertools.repeat(list.__getitem__(self, 0))\n\n\n",
        ),
        (TIMEOUT, RUNTIME, _MEMORY),
        "the judge's clock, and limits from outside",
    ),
    Hack(
        "inside of a vmap that is never left",
        returns(
            "F = torch._C._functorch\n"
            "level = F._vmap_increment_nesting(2, 'error')\n"
            "return F._add_batch_dim(y * 0, 0, level)"
        ),
        (NUMERICAL, RUNTIME, HACK, SHAPE),
        _BYTES,
    ),
    Hack(
        "a functional tensor around zeros",
        returns("return torch._to_functional_tensor(y * 0)"),
        (NUMERICAL, RUNTIME, HACK),
        _BYTES,
    ),
    Hack(
        "zeros without memory",
        returns(
            "return torch._efficientzerotensor(y.shape, dtype=y.dtype, device='cpu')"
        ),
        (NUMERICAL, RUNTIME, HACK),
        _BYTES,
    ),
    Hack(
        "memory of a file that is cut off",
        returns(
            "n = max(y.numel(), 1)\n"
            "z = torch.from_file('f', shared=True, size=n, dtype=y.dtype)[:y.numel()]\n"
            "z = z.view(y.shape)\n"
            "z.copy_(y)\n"
            "os.truncate('f', 0)\n"
            "return z",
            "import os\n",
        ),
        (RUNTIME,),
        "only its own process reads what it returned",
    ),
    Hack(
        "what runs when it is unpickled",
        returns(
            "return Pickled()",
            "import os\n\n\nclass Pickled:\n"
            "    def __reduce__(self): return os._exit, (0,)\n\n\n",
        ),
        (DTYPE,),
        "no object crosses: JSON and bytes",
    ),
    Hack("a capsule", returns("return y.__dlpack__()"), (DTYPE,), "the exact type"),
    Hack(
        "a number that prints as an answer",
        returns(
            "return Number(0.5)",
            "class Number(float):\n"
            '    def __repr__(self): return \'0.5}], "outputs": [{"value": 0.5\'\n'
            "    __str__ = __repr__\n\n\n",
        ),
        (DTYPE, HACK),
        _CHECKED,
    ),
    Hack(
        "functions of the worker replaced where they are held",
        "import gc\n"
        + run(
            "for one in gc.get_objects():\n"
            "    if type(one).__name__ == 'BuiltSolution':\n"
            "        one._gather = lambda *a, **k: None\n"
            "        one._described = lambda slot, value, inputs: {'dtype': 'bfloat16',\n"
            "            'shape': list(x.shape), 'device': 'cpu', 'aliases': False,\n"
            "            'layout': 'torch.strided', 'type': 'torch.Tensor'}\n"
            "return x"
        ),
        (NUMERICAL, HACK),
        "poison, where nothing was copied",
    ),
)
