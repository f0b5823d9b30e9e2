"""CUDA kernels of rmsnorm_h128 that are right in plain calls, each with a planted defect.

Each has the tool of compute-sanitizer, or the condition, that must name it. The kernels are
compiled by NVRTC when the module is imported, and a defect changes no value.
"""

from __future__ import annotations

from tests.functional.planted import BROKEN, HOLDS, Planted

_BARRIER = "__syncthreads();"
_NORM = (
    """
import torch

SOURCE = '''
extern "C" __global__ void rms_norm(
    const float *x, const float *w, float *y, const unsigned *before) {
  __shared__ volatile float squares[129];
  int i = threadIdx.x;
  float a = x[blockIdx.x * 128 + i], total = 0;
  squares[i] = a * a;
  if (i == 0) squares[128] = 0;
  """
    + _BARRIER
    + """
  for (int j = 0; j < 128; j++) total += squares[j];
  // DEFECT
  y[blockIdx.x * 128 + i] = a * rsqrtf(total / 128 + 1e-6f) * w[i];
}
'''
NORM = torch.cuda._compile_kernel(SOURCE, 'rms_norm', nvcc_options=['-lineinfo'])


def run(x, weight):
    a, w = x.float().contiguous(), weight.float().contiguous()
    y = torch.empty_like(a)
    before = torch.zeros(max(len(a), 1), dtype=torch.int32, device=a.device)
    if len(a):
        NORM((len(a), 1, 1), (128, 1, 1), [a, w, y, before])
    return y.to(x.dtype)
"""
)
# a number that no test has, so that what is read is used and changes nothing
_UNLIKELY = "if (read == 0x7f1234a6u) total += 1;"
# in place of the barrier a counter that all threads wait for: the values are right, and no
# barrier lies between a write and another thread's read
_ARRIVED = (
    "__threadfence_block(); atomicAdd(&arrived, 1u); "
    "while (*(volatile unsigned *)&arrived < 128) {}"
)
_COUNTER = f"__shared__ unsigned arrived; if (i == 0) arrived = 0; {_BARRIER} "
_SUMS = """
import torch

SOURCE = '''
extern "C" __global__ void sums(const float *x, float *total, int rows) {
  int row = blockIdx.x;
  float part = 0;
  for (int j = 0; j < 16; j++) {
    float a = x[row * 128 + blockIdx.y * 16 + j];
    part += a * a;
  }
  // blocks come in any order, and each rounds the sum so far to 13 bits
  long long until = clock64() % 8 * 500 + clock64();
  while (clock64() < until) {}
  float old = total[row], seen;
  do {
    seen = old;
    float sum = seen + part, wide = sum * 2049.0f;
    float rounded = __fsub_rn(wide, __fsub_rn(wide, sum));
    old = __int_as_float(atomicCAS(
        (int *)(total + row), __float_as_int(seen), __float_as_int(rounded)));
  } while (old != seen);
}
'''
SUMS = torch.cuda._compile_kernel(SOURCE, 'sums')


def run(x, weight):
    a = x.float().contiguous()
    total = torch.zeros(max(len(a), 1), device=a.device)
    if len(a):
        SUMS((len(a), 8, 1), (1, 1, 1), [a, total, len(a)])
    scale = torch.rsqrt(total[: len(a), None] / 128 + 1e-06)
    return (a * scale * weight.float()).to(x.dtype)
"""


def _with(name: str, tool: str, reason: str, *changes: tuple[str, str]) -> Planted:
    source = _NORM
    for old, new in changes:
        assert old in source
        source = source.replace(old, new)
    return Planted(name, tool, source, BROKEN, reason)


SANITIZED = (
    _with(
        "a barrier removed",
        "racecheck",
        "norm",
        (_BARRIER, _ARRIVED),
        ("squares[i] = a * a;", f"{_COUNTER}squares[i] = a * a;"),
    ),
    _with(
        "an index of shared memory off by one",
        "memcheck",
        "__shared__ read of size 4 bytes in rms_norm",
        (
            "// DEFECT",
            f"unsigned read = __float_as_uint(squares[i + 2]); {_UNLIKELY}",
        ),
    ),
    _with(
        "an accumulator that is not initialised",
        "initcheck",
        "ninitialized __global__ memory read of size 4 bytes in rms_norm",
        ("torch.zeros(", "torch.empty("),
        ("// DEFECT", f"unsigned read = before[blockIdx.x]; {_UNLIKELY}"),
    ),
    _with(
        "a read past the end",
        "memcheck",
        "__global__ read of size 4 bytes in rms_norm",
        (
            "// DEFECT",
            (
                "unsigned read = i ? 0 : __float_as_uint(x[blockIdx.x * 128 + 128]); "
                f"{_UNLIKELY}"
            ),
        ),
    ),
    _with(
        "a barrier that some threads don't reach",
        "synccheck",
        "norm",
        # within a warp: a whole warp that is missing has ended, which a barrier allows
        ("// DEFECT", "if (i % 2) __syncthreads();"),
    ),
)
RIGHT_KERNEL = Planted("a right kernel", "", _NORM, HOLDS)
RACE = Planted(
    "a race between blocks", "batch", _SUMS, BROKEN, "repeats: output 0 has other bits"
)
