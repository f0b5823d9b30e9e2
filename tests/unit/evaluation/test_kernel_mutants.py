"""Mutants of kernels: every class comes, every one differs, and words stay words."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.builders import ROOT
from tools.kernel_mutants import kernel_mutants, mutated

EXAMPLES = sorted((ROOT / "solutions/examples").glob("*/*/*.json"))
CLASSES = {"index", "mask", "barrier", "accumulator", "tail", "grid", "stream"}

TRITON = '''"""A text with 7 + 7."""
import triton.language as tl


@triton.jit
def kernel(x, n, SIZE: tl.constexpr):
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)  # 9 + 9
    value = tl.load(x + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(x + at, value, mask=at < n)


def run(x):
    kernel[(x.numel() // 4,)](x, x.numel(), SIZE=4, num_warps=4)
'''
CUDA = """#include <a+b.h>
__global__ void f(const float* x, float* out, int n) {
  const int at = blockIdx.x * 64 + threadIdx.x;  // 3 + 3
  __syncthreads();
  if (at < n) out[at] = static_cast<float>(x[at] * 2.0f);
}
void run() {
  auto* stream = static_cast<cudaStream_t>(TVMFFIEnvGetStream(gpu.device_type, gpu.id));
  f<<<rows, 64, 0, stream>>>(x);
}
"""


def names(text: str, language: str) -> list[str]:
    return [mutant.name for mutant in kernel_mutants(text, language)]


def test_a_triton_kernel_is_changed_where_it_computes() -> None:
    found = names(TRITON, "triton")
    for part in (
        "index in line 7: '*' -> '+'",
        "grid in line 7: 'program_id(0)' -> 'program_id(1)'",
        "mask in line 8: 'other=0.0' -> 'other=1.0'",
        "comparison in line 8: '<' -> '<='",
        "accumulator in line 8: '.to(tl.float32)' -> ''",
        "stream in line 13: 'kernel['",
    ):
        assert any(name.startswith(part) for name in found), (part, found)
    assert any(name.startswith("mask in line 9: ', mask=at < n'") for name in found)
    # no text, comment, declaration or parameter of speed
    assert not any("line 1:" in n or "line 2:" in n or "line 6:" in n for n in found)
    assert not any("'7'" in n or "'9'" in n for n in found)


def test_a_cuda_kernel_is_changed_where_it_computes() -> None:
    found = names(CUDA, "cuda")
    for part in (
        "index in line 3: 'threadIdx.x' -> 'threadIdx.y'",
        "grid in line 3: 'blockIdx.x' -> 'blockIdx.y'",
        "barrier in line 4: '__syncthreads();' -> ''",
        "comparison in line 5: '<' -> '<='",
        "constant in line 5: '2.0f' -> '2.04f'",
        "stream in line 8: ",
        "grid in line 9: '<<<rows,' -> '<<<rows - 1,'",
    ):
        assert any(name.startswith(part) for name in found), (part, found)
    assert not any("line 1:" in name or "'3'" in name for name in found)
    # pointers and brackets of types are no operators
    assert not any("line 2:" in name and "'*'" in name for name in found)


def test_the_examples_have_enough_mutants_of_every_class() -> None:
    kinds, languages = Counter[str](), Counter[str]()
    for path in EXAMPLES:
        value = json.loads(path.read_text())
        for mutant, _ in mutated(value):
            languages[value["spec"]["language"]] += 1
            if value["spec"]["language"] in ("triton", "cuda"):
                kinds[mutant.kind] += 1
    assert kinds.keys() >= CLASSES
    assert languages["triton"] >= 300
    assert languages["cuda"] >= 400
    assert languages["cpp"] >= 60


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_mutants_differ_from_the_source_and_from_each_other(path) -> None:
    value = json.loads(path.read_text())
    original = [source["content"] for source in value["sources"]]
    made = [
        [s["content"] for s in solution["sources"]] for _, solution in mutated(value)
    ]
    assert original not in made
    assert len({str(sources) for sources in made}) == len(made)
    assert [source["content"] for source in value["sources"]] == original
