"""Habits of honest solutions on a GPU, each a solution of rmsnorm_h128 that is right."""

from __future__ import annotations

from tests.functional.habit import Habit
from tests.functional.hacks import RIGHT, run

TRITON = """
import torch
import triton
import triton.language as tl


@triton.autotune(
    [triton.Config({}, num_warps=n) for n in (1, 2, 4)], key=['width'],
)
@triton.jit
def kernel(x, weight, y, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    a = tl.load(x + row * width + at, mask=at < width, other=0).to(tl.float32)
    w = tl.load(weight + at, mask=at < width, other=0).to(tl.float32)
    a = a * tl.rsqrt(tl.sum(a * a) / width + 1e-6) * w
    tl.store(y + row * width + at, a.to(tl.bfloat16), mask=at < width)


def run(x, weight):
    y = torch.empty_like(x)
    if x.shape[0]:
        kernel[(x.shape[0],)](x, weight, y, x.shape[1], BLOCK=128)
    return y
"""
INLINE = (
    RIGHT
    + """
from torch.utils.cpp_extension import load_inline

MODULE = load_inline(
    name='mine', functions=['scaled'],
    cpp_sources='torch::Tensor scaled(torch::Tensor a, torch::Tensor w);',
    cuda_sources='''
__global__ void kernel(float *a, const float *w, long n, long h) {
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i < n) a[i] *= w[i % h];
}
torch::Tensor scaled(torch::Tensor a, torch::Tensor w) {
  long n = a.numel();
  if (n) kernel<<<(n + 255) / 256, 256>>>(
      a.data_ptr<float>(), w.data_ptr<float>(), n, a.size(-1));
  return a;
}
''')


def run(x, weight):
    a = x.float()
    a = a * torch.rsqrt(a.square().mean(-1, keepdim=True) + 1e-06)
    return MODULE.scaled(a.contiguous(), weight.float().contiguous()).to(x.dtype)
"""
)
CUPY = (
    RIGHT
    + """
import cupy


def run(x, weight):
    a = cupy.from_dlpack(x.float().contiguous())
    w = cupy.from_dlpack(weight.float().contiguous())
    a = a / cupy.sqrt((a * a).mean(-1, keepdims=True) + cupy.float32(1e-6)) * w
    y = torch.from_dlpack(a).to(x.dtype)
    cupy.cuda.get_current_stream().synchronize()
    return y
"""
)
GRAPH = (
    RIGHT
    + """
GRAPHS = {}


def run(x, weight):
    if not x.numel():
        return norm(x, weight)
    if x.shape not in GRAPHS:
        a, w = x.clone(), weight.clone()
        norm(a, w)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = norm(a, w)
        GRAPHS[x.shape] = graph, a, w, y
    graph, a, w, y = GRAPHS[x.shape]
    a.copy_(x)
    w.copy_(weight)
    graph.replay()
    return y.clone()
"""
)


HABITS = (
    Habit("Triton, autotuned", TRITON, needs="triton"),
    Habit("CUDA graphs kept by shape", GRAPH),
    Habit("CUDA compiled by load_inline", INLINE),
    Habit("CuPy", CUPY, needs="cupy"),
    Habit(
        "torch.compile",
        f"{RIGHT}\nrun = torch.compile(norm, dynamic=True)\n",
        needs="triton",
    ),
    Habit(
        "a stream that is waited for",
        run(
            "side, out = torch.cuda.Stream(), torch.empty_like(x)\n"
            "side.wait_stream(torch.cuda.current_stream())\n"
            "with torch.cuda.stream(side): out.copy_(norm(x, weight))\n"
            "torch.cuda.current_stream().wait_stream(side)\n"
            "return out"
        ),
    ),
    Habit(
        "events between streams",
        run(
            "side, done = torch.cuda.Stream(), torch.cuda.Event()\n"
            "y = norm(x, weight)\n"
            "done.record()\n"
            "with torch.cuda.stream(side):\n"
            "    done.wait()\n"
            "    y = y.clone()\n"
            "side.synchronize()\n"
            "return y"
        ),
    ),
    Habit(
        "staged in pinned memory",
        run(
            "pinned = torch.empty(x.shape, dtype=x.dtype, pin_memory=True)\n"
            "pinned.copy_(norm(x, weight), non_blocking=True)\n"
            "torch.cuda.synchronize()\n"
            "return pinned.to('cuda', non_blocking=True)"
        ),
    ),
    Habit(
        "a workspace that is kept",
        f"{RIGHT}\nSPACE = torch.empty(1 << 24, device='cuda')\n\n\n"
        "def run(x, weight):\n"
        "    a = SPACE[: x.numel()].view(x.shape).copy_(x)\n"
        "    a.mul_(torch.rsqrt(a.square().mean(-1, keepdim=True) + 1e-06))\n"
        "    return (a * weight.float()).to(x.dtype)\n",
    ),
    Habit(
        "atomic sums",
        run(
            "a = x.float()\n"
            "rows = torch.arange(x.shape[0], device='cuda')\n"
            "rows = rows.repeat_interleave(x.shape[1])\n"
            "total = torch.zeros(x.shape[0], device='cuda')\n"
            "total.index_add_(0, rows, a.square().flatten())\n"
            "a = a * torch.rsqrt(total[:, None] / x.shape[1] + 1e-06)\n"
            "return (a * weight.float()).to(x.dtype)"
        ),
    ),
    Habit(
        "a thread that launches",
        "from concurrent.futures import ThreadPoolExecutor\n"
        f"{RIGHT}\nPOOL = ThreadPoolExecutor(2)\n\n\n"
        "def run(x, weight):\n"
        "    return POOL.submit(norm, x, weight).result()\n",
    ),
    Habit(
        "a default device",
        f"{RIGHT}\ntorch.set_default_device('cuda')\n\n\n"
        "def run(x, weight):\n"
        "    one = torch.ones((), dtype=torch.float32)\n"
        "    return norm(x, weight) if one.is_cuda else None\n",
    ),
    Habit(
        "a stream of high priority",
        f"{RIGHT}\nSIDE = torch.cuda.Stream(priority=-1)\n\n\n"
        "def run(x, weight):\n"
        "    now = torch.cuda.current_stream()\n"
        "    SIDE.wait_stream(now)\n"
        "    with torch.cuda.stream(SIDE):\n"
        "        y = norm(x, weight)\n"
        "    y.record_stream(now)\n"
        "    now.wait_stream(SIDE)\n"
        "    return y\n",
    ),
    Habit(
        "memory that is given back in each call",
        run("y = norm(x, weight)\ntorch.cuda.empty_cache()\nreturn y"),
    ),
    Habit(
        "inference mode",
        run("with torch.inference_mode():\n    return norm(x, weight)"),
    ),
    Habit(
        "a custom operator",
        f"{RIGHT}\n"
        "@torch.library.custom_op('mine::norm', mutates_args=(), device_types='cuda')\n"
        "def op(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:\n"
        "    return norm(x, weight)\n\n\n"
        "def run(x, weight):\n    return torch.ops.mine.norm(x, weight)\n",
    ),
)
