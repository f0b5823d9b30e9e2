"""Solutions of rmsnorm_h128 on a GPU that pass plainly, under graphs and streams."""

from __future__ import annotations

from tests.functional.habit import module
from tests.functional.hacks import RIGHT, fills, run
from tests.functional.honest_cuda import CUPY, GRAPH, INLINE, TRITON
from tests.functional.planted import BROKEN, HOLDS, UNSUPPORTED, Planted

_CAPTURING = "torch.cuda.is_current_stream_capturing()"
# what reads freed memory by its address
_ALIAS = """
class Alias:
    def __init__(self, t):
        self.__cuda_array_interface__ = {
            'data': (t.data_ptr(), False), 'shape': tuple(t.shape),
            'typestr': '<f4', 'version': 3,
        }

KEPT = {}

"""
EXPLOITS = (
    Planted(
        "a plan of the last eager call",
        "graph",
        run(
            f"if not {_CAPTURING}: PLAN[x.shape] = torch.rsqrt("
            "x.float().square().mean(-1, keepdim=True) + 1e-06)\n"
            "return (x.float() * PLAN[x.shape] * weight.float()).to(x.dtype)"
        )
        + "\nPLAN = {}\n",
        BROKEN,
    ),
    Planted(
        "keyed by the scope of a capture",
        "graph",
        run(
            f"if {_CAPTURING}: return KEPT[x.shape].clone()\n"
            "KEPT[x.shape] = norm(x, weight)\n"
            "return KEPT[x.shape].clone()"
        )
        + "\nKEPT = {}\n",
        BROKEN,
        "the answer to the values of the capture",
    ),
    Planted(
        "nothing while it is captured",
        "graph",
        fills(f"if not {_CAPTURING}: out.copy_(norm(x, weight))"),
        BROKEN,
        "its work is not in the graph",
        passes_outputs=True,
    ),
    Planted(
        "on the legacy stream while it is captured",
        "graph",
        run(
            "y = torch.empty_like(x)\n"
            "with torch.cuda.stream(torch.cuda.default_stream()):\n"
            "    y.copy_(norm(x, weight))\n"
            "return y"
        ),
        "not holds",
    ),
    Planted(
        "on a stream that is not joined",
        "graph",
        "import torch\nSIDE = torch.cuda.Stream()\n"
        + run(
            "y = torch.empty_like(x)\n"
            f"if not {_CAPTURING}: return norm(x, weight)\n"
            "with torch.cuda.stream(SIDE): y.copy_(norm(x, weight))\n"
            "return y"
        ),
        "not holds",
    ),
    Planted(
        "a thread computes beside the graph",
        "graph",
        "import threading, time\n"
        + run(
            "if x.shape in SEEN: return SEEN[x.shape]\n"
            f"if not {_CAPTURING}: return norm(x, weight)\n"
            "y = SEEN[x.shape] = torch.empty_like(x)\n"
            "def work():\n"
            "    side = torch.cuda.Stream()\n"
            "    with torch.cuda.stream(side):\n"
            "        while True: y.copy_(norm(x, weight))\n"
            "threading.Timer(0.2, work).start()\n"
            "return y"
        )
        + "\nSEEN = {}\n",
        "not holds",
    ),
    Planted(
        "a thread launches what is captured",
        "graph",
        "from concurrent.futures import ThreadPoolExecutor\n"
        + run(
            "y = torch.empty_like(x)\n"
            f"if not {_CAPTURING}: return norm(x, weight)\n"
            "POOL.submit(lambda: y.copy_(norm(x, weight))).result()\n"
            "return y"
        )
        + "\nPOOL = ThreadPoolExecutor(1)\n",
        "not holds",
    ),
    Planted(
        "reads a number back",
        "graph",
        run("assert x.float().sum().item() != 1e9\nreturn norm(x, weight)"),
        UNSUPPORTED,
        "global",
    ),
    Planted(
        "waits for the device",
        "graph",
        run("y = norm(x, weight)\ntorch.cuda.synchronize()\nreturn y"),
        UNSUPPORTED,
    ),
    Planted(
        "copies from pageable memory",
        "graph",
        run(
            "eps = torch.tensor([1e-06]).to('cuda')\n"
            "a = x.float()\n"
            "a = a * torch.rsqrt(a.square().mean(-1, keepdim=True) + eps)\n"
            "return (a * weight.float()).to(x.dtype)"
        ),
        UNSUPPORTED,
    ),
    Planted(
        "memory that was freed before the capture",
        "graph",
        _ALIAS
        + run(
            f"if not {_CAPTURING}:\n"
            "    ones = torch.ones(x.shape[1], device='cuda')\n"
            "    KEPT[x.shape] = torch.as_tensor(Alias(ones), device='cuda')\n"
            "    y = norm(x, weight) * ones\n"
            "    return y.to(x.dtype)\n"
            "return (norm(x, weight) * KEPT[x.shape]).to(x.dtype)"
        ),
        # NaN, or where the driver took the memory back an error of the replay
        BROKEN,
    ),
    Planted(
        "memory that is freed in the capture",
        "graph",
        run(
            f"if not {_CAPTURING}: return norm(x, weight)\n"
            "a = torch.empty(x.shape, device='cuda')\n"
            "with torch.cuda.stream(torch.cuda.current_stream()):\n"
            "    y = norm(x, weight)\n"
            "    # what an earlier replay left in its scratch\n"
            "    return torch.where(a.isnan(), a, y.float()).to(x.dtype)"
        ),
        BROKEN,
    ),
    Planted(
        "computes where it recognises poison",
        "graph",
        fills("out.copy_(torch.where(out.isnan(), norm(x, weight), out))"),
        BROKEN,
        passes_outputs=True,
    ),
    Planted(
        "sums on in a kept accumulator",
        "graph",
        run(
            "acc = KEPT.setdefault(x.shape, torch.zeros(x.shape[0], 1, device='cuda'))\n"
            f"if not {_CAPTURING}: acc.zero_()\n"
            "acc += x.float().square().mean(-1, keepdim=True)\n"
            "return (x.float() * torch.rsqrt(acc + 1e-06) * weight.float()).to(x.dtype)"
        )
        + "\nKEPT = {}\n",
        BROKEN,
    ),
    Planted(
        "two replays alone",
        "graph",
        run(
            "n = KEPT.setdefault(x.shape, torch.zeros((), device='cuda'))\n"
            f"if not {_CAPTURING}: n.zero_()\n"
            "n += 1\n"
            "return torch.where(n < 3, norm(x, weight), 0)"
        )
        + "\nKEPT = {}\n",
        BROKEN,
    ),
    Planted(
        "on the legacy stream",
        "stream",
        run(
            "y = torch.empty_like(x)\n"
            "with torch.cuda.stream(torch.cuda.default_stream()):\n"
            "    y.copy_(norm(x, weight))\n"
            "return y"
        ),
        BROKEN,
    ),
    Planted(
        "reads on the legacy stream what it is not yet",
        "stream",
        run(
            "default, here = torch.cuda.default_stream(), torch.cuda.current_stream()\n"
            "with torch.cuda.stream(torch.cuda.Stream()):\n"
            "    early = x.clone()\n"
            "torch.cuda.current_stream().wait_stream(default)\n"
            "if here == default: return norm(x, weight)\n"
            "return norm(early, weight)"
        ),
        BROKEN,
    ),
)
_JOINED = run(
    "here, y = torch.cuda.current_stream(), torch.empty_like(x)\n"
    "SIDE.wait_stream(here)\n"
    "with torch.cuda.stream(SIDE): y.copy_(norm(x, weight))\n"
    "here.wait_stream(SIDE)\n"
    "return y"
)
_HABITS = {
    "torch alone": run("return norm(x, weight)"),
    "Triton": TRITON,
    "a workspace that is kept": (
        f"{RIGHT}\nSPACE = torch.empty(1 << 24, device='cuda')\n\n\n"
        "def run(x, weight):\n"
        "    a = SPACE[: x.numel()].view(x.shape).copy_(x)\n"
        "    a.mul_(torch.rsqrt(a.square().mean(-1, keepdim=True) + 1e-06))\n"
        "    return (a * weight.float()).to(x.dtype)\n"
    ),
    "two streams with events": "import torch\nSIDE = torch.cuda.Stream()\n" + _JOINED,
    "a graph kept by shape": GRAPH.replace(
        "    if not x.numel():\n",
        f"    if not x.numel() or {_CAPTURING}:\n",
    ),
    "another way while it is captured": run(
        f"if {_CAPTURING}: return norm(x.double(), weight)\nreturn norm(x, weight)"
    ),
    "FlashInfer's norm": (
        "import torch\nimport flashinfer\n\n\n"
        "def run(x, weight):\n    return flashinfer.norm.rmsnorm(x, weight, eps=1e-06)\n"
    ),
    "torch.compile": module("run = torch.compile(norm, dynamic=True)"),
}
_STREAMS = {
    "CuPy": CUPY,
    "waits for the device": run(
        "y = norm(x, weight)\ntorch.cuda.synchronize()\nreturn y"
    ),
}
HONEST = (
    *(Planted(name, "graph", source, HOLDS) for name, source in _HABITS.items()),
    Planted(
        "outputs that are passed",
        "graph",
        fills("out.copy_(norm(x, weight))"),
        HOLDS,
        passes_outputs=True,
    ),
    *(
        Planted(f"{name}, aside", "stream", source, HOLDS)
        for name, source in {**_HABITS, **_STREAMS}.items()
    ),
)
# a launch without a stream: load_inline's kernel goes to the legacy one
LAUNCHES = (
    Planted("a launch without a stream", "graph", INLINE, "not holds"),
    Planted("a launch without a stream, aside", "stream", INLINE, BROKEN),
    Planted(
        "a launch on the current stream",
        "graph",
        INLINE.replace("256>>>", "256, 0, at::cuda::getCurrentCUDAStream()>>>").replace(
            "__global__", "#include <ATen/cuda/CUDAContext.h>\n__global__"
        ),
        HOLDS,
    ),
)
_LEAKS = (
    Planted(
        "4 MiB of the GPU a call",
        "soak",
        run("KEPT.append(torch.ones(1 << 20, device='cuda'))\nreturn norm(x, weight)")
        + "\nKEPT = []\n",
        BROKEN,
        "GPU grew",
    ),
    Planted(
        "memory of the driver alone",
        "soak",
        "import ctypes\nCUDA = ctypes.CDLL('libcuda.so.1')\n"
        + run(
            "place = ctypes.c_uint64()\n"
            "CUDA.cuMemAlloc_v2(ctypes.byref(place), ctypes.c_size_t(1 << 22))\n"
            "return norm(x, weight)"
        ),
        BROKEN,
        "the driver lacks",
    ),
    Planted("nothing is kept", "soak", run("return norm(x, weight)"), HOLDS),
)
_MISALIGNED = (
    Planted("Triton by rows", "strided", TRITON, BROKEN),
    Planted("torch by strides", "strided", run("return norm(x, weight)"), HOLDS),
)
PLANTED = (*EXPLOITS, *HONEST, *LAUNCHES, *_LEAKS, *_MISALIGNED)
