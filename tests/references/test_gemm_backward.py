"""Reference tests of op_type gemm_backward.

Rendered: don't edit. `gen-tests --op-type gemm_backward` renders this file anew.

Each class tests one definition: what its `run()` returns for the inputs of each case in
`cases`, and of the dataset's workloads, is compared with
- PyTorch's CUDA kernel, live, on a CUDA device
- what these kernels returned when they were recorded, anywhere
- an independent float64 implementation in PyTorch, `oracle`, anywhere
- what it returns for related inputs, `relations`, anywhere
A recorded output has the tolerance of its kernel.

Begin at `# ---- the tests`: there stands each reference, with its tolerances above it and
the definitions that have it below. Before that stand the op (cases, inputs, oracle, how
kernels are called) and the interfaces. docs/tests.md of gen-tests lists the tests of a
class; kernel_judge/comparison/tolerance.py has the default tolerance of each dtype.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import torch

from generator.ops.op_types.gemm_backward.relations import gradient_relations
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition, Interface
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# relations: generator.ops.op_types.gemm_backward.relations

_ONCE = (
    "one rounding to bfloat16: half an ulp is 2^-8 of a value at most, its square 2^-16"
)
_SUMS = (
    "float32 sums of at most 28672 products, of about 1 in all: off by 2^-24 of a partial "
    "sum in each step, of which the root of 28672 is left, 1e-5, four deviations 4e-5"
)
# Fasi, Higham, Mikaitis and Pranesh 2021, doi 10.7717/peerj-cs.330: sums are truncated
_TENSOR_CORES = (
    "tensor cores cut off what lies below float32 instead of rounding, 16 products at a "
    "time: 512 times 2^-23 for 8192 tokens; n partial sums shrink by n/2 times 2^-24"
)


def _size(definition: Definition, case: Case) -> float:
    """Return how large a case's outputs are."""
    return float(case.params.get("std", 1.0))


TOLERANCES = (
    *(
        Override(
            output,
            Tolerance(rtol=rtol, atol=atol, nmse=1.6e-5),
            f"{_ONCE}{more}; {_SUMS}",
            source=source,
            growth=_size,
        )
        for output in ("grad_A", "grad_B")
        for source, rtol, atol, more in (
            ("oracle", 4e-3, 4e-5, ""),
            (None, 8e-3, 1.2e-4, f", or neighbours of two such; {_TENSOR_CORES}"),
        )
    ),
    Override(
        "main_grad", Tolerance(1e-6, 1e-5, 1e-11), _SUMS, source="oracle", growth=_size
    ),
    Override(
        "main_grad",
        Tolerance(1e-6, 7e-5, 1e-9, bias=260 * 2.0**-24),
        _TENSOR_CORES,
        source="pytorch",
        growth=_size,
    ),
)


def cases(definition: Definition) -> list[Case]:
    """Return one token, an odd number, more than a tile, and more than 4,096."""
    return [
        Case("one-token", "small", {"M": 1}),
        Case("odd-tokens", "small", {"M": 7}),
        Case("small-gradients", "small", {"M": 5}, {"std": 2.0**-12}),
        Case("batch", "medium", {"M": 67}),
        Case("past-limits", LIMITS, {"M": 8_219}),
        Case("long-batch", "large", {"M": 4_096}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return grad_C bfloat16 [M, N] and the other factor; outputs are about 1."""
    m, n, k = case.axes["M"], definition.axes["N"], definition.axes["K"]
    is_wgrad = "A" in definition.interface.inputs
    deviation = case.params.get("std", 1.0) / math.sqrt(m if is_wgrad else n)
    grad = stream.child("grad_C").values((m, n), deviation).to(torch.bfloat16)
    if is_wgrad:
        x = stream.child("A").values((m, k)) + 0.1
        return {"grad_C": grad, "A": x.to(torch.bfloat16)}
    return {"grad_C": grad, "B": stream.child("B").matrix(n, k, 1.0, torch.bfloat16)}


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the gradient, float64, by autograd of a product."""
    grad = inputs["grad_C"].double()
    is_wgrad = "A" in inputs
    rows, size = grad.shape
    known = inputs["A" if is_wgrad else "B"].double()
    shape = (size if is_wgrad else rows, known.shape[1])
    leaf = torch.zeros(shape, dtype=known.dtype, device=known.device).requires_grad_()
    with torch.enable_grad():
        pair = (known, leaf) if is_wgrad else (leaf, known)
        product = torch.einsum("mk,nk->mn", *pair)
        return torch.autograd.grad(product, leaf, grad)[0]


def pytorch_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return cuBLAS, which PyTorch calls on CUDA."""
    return (Backend("cublas"),)


def pytorch_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return the product that autograd of a linear layer asks for."""
    grad = inputs["grad_C"]
    if "B" in inputs:
        return torch.mm(grad, inputs["B"])
    if "main_grad" in definition.interface.outputs:
        return torch.mm(grad.T, inputs["A"], out_dtype=torch.float32)
    return torch.mm(grad.T, inputs["A"])


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=gradient_relations,
    tolerances=TOLERANCES,
    kernels={"pytorch": Kernel(pytorch_backends, pytorch_ground_truth)},
)


# ---- the interfaces

INTERFACE_GEMM_DGRAD = Interface(
    inputs={"grad_C": "bfloat16[M, N]", "B": "bfloat16[N, K]"},
    outputs={"grad_A": "bfloat16[M, K]"},
)
INTERFACE_GEMM_WGRAD_F32 = Interface(
    inputs={"grad_C": "bfloat16[M, N]", "A": "bfloat16[M, K]"},
    outputs={"main_grad": "float32[N, K]"},
)
INTERFACE_GEMM_WGRAD = Interface(
    inputs={"grad_C": "bfloat16[M, N]", "A": "bfloat16[M, K]"},
    outputs={"grad_B": "bfloat16[N, K]"},
)

# ---- the tests


class GemmBackwardTests(
    GroundTruthsAgree, matches("pytorch"), MatchesRecorded, Metamorphic
):
    """What the tests of gemm_backward share."""

    op_type = "gemm_backward"
    sizes = ("small", "medium")
    op = OP


# fmt: off
# ruff: noqa: RUF012 - axes are read, never changed
# Each reference with its tags, then a class for each definition that has it.
# How to read its tolerances:
# - |actual - expected| <= atol + rtol * |expected| for each element, and the squared errors
#   are at most NMSE of the squared expected values. An atol* grows with the case's values.
# - The first row counts that fits the output, the source (the oracle, or a kernel as
#   provider/backend) and, after `in`, the case. Some definitions do not call all kernels.
# - Errors of one sign, a factor or an offset, are bounded beside that: "Errors with a sign"
#   in docs/evaluate.md of gen-tests.
# Reasons in short; `TOLERANCES`, or the module of bounds named above, derives them in full:
# (1) one rounding to bfloat16.
# (2) float32 sums of at most 28672 products, of about 1 in all.
# (3) tensor cores cut off what lies below float32 instead of rounding, 16 products at a
# time.
# (4) a factor or an offset of 1.5e-05 is allowed.


# Gradient of the activations of C = A @ B.T: grad_C @ B, rounded to bfloat16. Sums are
# float32.
# mode:training
# Tolerances:
#   output  source   rtol   atol      NMSE     reason
#   grad_A  oracle   0.004  4e-05*    1.6e-05  (1)
#   grad_A  pytorch  0.008  0.00012*  1.6e-05  (1)
def reference_gemm_dgrad():
    import torch


    @torch.no_grad()
    def run(grad_C: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return (grad_C.float() @ B.float()).to(B.dtype)

    return run


class GemmDgradBase(GemmBackwardTests):
    reference = staticmethod(reference_gemm_dgrad)
    interface = INTERFACE_GEMM_DGRAD

class TestGemmDgradN16384K2048(GemmDgradBase):
    name = "gemm_dgrad_n16384_k2048"  # model:llama-3.2-1b
    axes = {"N": 16384, "K": 2048}
    sha256 = "48d725122fd05c100adf86b238710bc3589b33d9452b6dde32a42598ddc0684d"

class TestGemmDgradN2048K2048(GemmDgradBase):
    name = "gemm_dgrad_n2048_k2048"  # model:llama-3.2-1b
    axes = {"N": 2048, "K": 2048}
    sha256 = "1f092f90a974f43621a09e45648f47796cc289416b16c245e5daa1809cf01058"

class TestGemmDgradN2048K8192(GemmDgradBase):
    name = "gemm_dgrad_n2048_k8192"  # model:llama-3.2-1b
    axes = {"N": 2048, "K": 8192}
    sha256 = "ffce1aa58ceb4839685ecef8d70f49ac1f63b8020e00e112f9f598a0da3df66d"

class TestGemmDgradN2304K768(GemmDgradBase):
    name = "gemm_dgrad_n2304_k768"  # model:gpt2
    axes = {"N": 2304, "K": 768}
    sha256 = "9c631bfae6be0ab84d240ca27dffd3f1adfc70f90c4b68faf5932a1ba90a5344"

class TestGemmDgradN28672K4096(GemmDgradBase):
    name = "gemm_dgrad_n28672_k4096"  # model:llama-3.1-8b
    axes = {"N": 28672, "K": 4096}
    sha256 = "c243fab1461cdc407b1ba0f2544c290886291ce1933d901eeebe1ff7116ca395"

class TestGemmDgradN3072K2048(GemmDgradBase):
    name = "gemm_dgrad_n3072_k2048"  # model:llama-3.2-1b
    axes = {"N": 3072, "K": 2048}
    sha256 = "59f76303a0e4838bb27790897785631debf3d9983b13e9aab9288792b6646a9e"

class TestGemmDgradN3072K768(GemmDgradBase):
    name = "gemm_dgrad_n3072_k768"  # model:gpt2
    axes = {"N": 3072, "K": 768}
    sha256 = "f9af4c609905af90699eb23a41ab05adb657c0b086d81bc51b07662b32277123"

class TestGemmDgradN4096K14336(GemmDgradBase):
    name = "gemm_dgrad_n4096_k14336"  # model:llama-3.1-8b
    axes = {"N": 4096, "K": 14336}
    sha256 = "a63442340e3ad1700d0a7de27c274d280e080008d562e5210c77c332a08c9ba9"

class TestGemmDgradN4096K4096(GemmDgradBase):
    name = "gemm_dgrad_n4096_k4096"  # model:llama-3.1-8b, model:qwen3-8b
    axes = {"N": 4096, "K": 4096}
    sha256 = "a5b3d67c3c688ee8528846d8d26216765ce53f5550eb3612311ec5defa3a7992"

class TestGemmDgradN6144K4096(GemmDgradBase):
    name = "gemm_dgrad_n6144_k4096"  # model:llama-3.1-8b, model:qwen3-8b
    axes = {"N": 6144, "K": 4096}
    sha256 = "1efb598798c8edcedb82cb2588c6479eb452c4437699df840a5c22d8c34a20aa"

class TestGemmDgradN768K3072(GemmDgradBase):
    name = "gemm_dgrad_n768_k3072"  # model:gpt2
    axes = {"N": 768, "K": 3072}
    sha256 = "8a3399ac43157416ff267e71589577928d0fe213b341d95ee91db16c50cd4c45"

class TestGemmDgradN768K768(GemmDgradBase):
    name = "gemm_dgrad_n768_k768"  # model:gpt2
    axes = {"N": 768, "K": 768}
    sha256 = "653007db5fb862c7829f622780552e709227d90f12061f0779a8a4be7b02d45d"


# Gradient of the weight of C = A @ B.T: grad_C.T @ A, summed over all tokens, in
# float32, as it is added up over micro-batches. Sums are float32.
# model:llama-3.1-8b, mode:training
# Tolerances:
#   output     source   rtol   atol    NMSE   reason
#   main_grad  oracle   1e-06  1e-05*  1e-11  (2)
#   main_grad  pytorch  1e-06  7e-05*  1e-09  (3) (4)
def reference_gemm_wgrad_f32():
    import torch


    @torch.no_grad()
    def run(grad_C: torch.Tensor, A: torch.Tensor) -> torch.Tensor:
        return grad_C.float().T @ A.float()

    return run


class GemmWgradF32Base(GemmBackwardTests):
    reference = staticmethod(reference_gemm_wgrad_f32)
    interface = INTERFACE_GEMM_WGRAD_F32

class TestGemmWgradF32N28672K4096(GemmWgradF32Base):
    name = "gemm_wgrad_f32_n28672_k4096"
    axes = {"N": 28672, "K": 4096}
    sha256 = "2da329cc2ad4c7b9eb70482567c6dd14c827e48d0217c0351273490298d794f9"

class TestGemmWgradF32N4096K14336(GemmWgradF32Base):
    name = "gemm_wgrad_f32_n4096_k14336"
    axes = {"N": 4096, "K": 14336}
    sha256 = "ef755b7c3a72d541514b8b22b246067dcd67c255dcb6a8f269fe1c5b135e58be"

class TestGemmWgradF32N4096K4096(GemmWgradF32Base):
    name = "gemm_wgrad_f32_n4096_k4096"  # model:qwen3-8b
    axes = {"N": 4096, "K": 4096}
    sha256 = "7bac23adf67107e63bcc82c09c0bc6774e7c45e41e5777f48eadd565245619c5"

class TestGemmWgradF32N6144K4096(GemmWgradF32Base):
    name = "gemm_wgrad_f32_n6144_k4096"  # model:qwen3-8b
    axes = {"N": 6144, "K": 4096}
    sha256 = "23c3dda52fde1b7cc04eea33a707b5a0602d34041a6d9839f54e6d4f7a2b1e69"


# Gradient of the weight of C = A @ B.T: grad_C.T @ A, summed over all tokens and
# rounded to bfloat16. Sums are float32.
# mode:training
# Tolerances:
#   output  source   rtol   atol      NMSE     reason
#   grad_B  oracle   0.004  4e-05*    1.6e-05  (1)
#   grad_B  pytorch  0.008  0.00012*  1.6e-05  (1)
def reference_gemm_wgrad():
    import torch


    @torch.no_grad()
    def run(grad_C: torch.Tensor, A: torch.Tensor) -> torch.Tensor:
        return (grad_C.float().T @ A.float()).to(A.dtype)

    return run


class GemmWgradBase(GemmBackwardTests):
    reference = staticmethod(reference_gemm_wgrad)
    interface = INTERFACE_GEMM_WGRAD

class TestGemmWgradN16384K2048(GemmWgradBase):
    name = "gemm_wgrad_n16384_k2048"  # model:llama-3.2-1b
    axes = {"N": 16384, "K": 2048}
    sha256 = "f7c08cb9ad3457628fe8d6e80a3bea887f09bad066797a2644d4a0f3288b1b1e"

class TestGemmWgradN2048K2048(GemmWgradBase):
    name = "gemm_wgrad_n2048_k2048"  # model:llama-3.2-1b
    axes = {"N": 2048, "K": 2048}
    sha256 = "db70f48edc887f7215553955c10020c44de50d9ebf2d7e6ab7fdb822c79b1960"

class TestGemmWgradN2048K8192(GemmWgradBase):
    name = "gemm_wgrad_n2048_k8192"  # model:llama-3.2-1b
    axes = {"N": 2048, "K": 8192}
    sha256 = "58e29e302bfbbe0966c9aa9bc6db417149fe8ccea37660d98a07622c627ac126"

class TestGemmWgradN2304K768(GemmWgradBase):
    name = "gemm_wgrad_n2304_k768"  # model:gpt2
    axes = {"N": 2304, "K": 768}
    sha256 = "dd85b817a80783e2c3eef4266ec16b6557b062599c41c05ea13482e41b2b246f"

class TestGemmWgradN28672K4096(GemmWgradBase):
    name = "gemm_wgrad_n28672_k4096"  # model:llama-3.1-8b
    axes = {"N": 28672, "K": 4096}
    sha256 = "704474f0bbfa0c754ccce68ec71b02716bc026e0c7ab3a95fec5f76c4ca74843"

class TestGemmWgradN3072K2048(GemmWgradBase):
    name = "gemm_wgrad_n3072_k2048"  # model:llama-3.2-1b
    axes = {"N": 3072, "K": 2048}
    sha256 = "ce7b7a41f160825c533ac814d9b638728ae7de6415d979f76af4eff6fdf375bc"

class TestGemmWgradN3072K768(GemmWgradBase):
    name = "gemm_wgrad_n3072_k768"  # model:gpt2
    axes = {"N": 3072, "K": 768}
    sha256 = "8988113cc7c58e6f2278e05fa14ced6d52a6d4a9e815aa4291fc32dec404a145"

class TestGemmWgradN4096K14336(GemmWgradBase):
    name = "gemm_wgrad_n4096_k14336"  # model:llama-3.1-8b
    axes = {"N": 4096, "K": 14336}
    sha256 = "a584301e490705b1edf5830213cb369c862ecbb564dd8bdf729e249285403259"

class TestGemmWgradN4096K4096(GemmWgradBase):
    name = "gemm_wgrad_n4096_k4096"  # model:llama-3.1-8b, model:qwen3-8b
    axes = {"N": 4096, "K": 4096}
    sha256 = "c3e2c4bf7df855da10bcd6a26d1b77e5a526e94fc0b85b3e64016e7e92b203ac"

class TestGemmWgradN6144K4096(GemmWgradBase):
    name = "gemm_wgrad_n6144_k4096"  # model:llama-3.1-8b, model:qwen3-8b
    axes = {"N": 6144, "K": 4096}
    sha256 = "0fe172777da66763e582c6eb52ee218e719cfd66bc4e51840f28352a79fdb8a4"

class TestGemmWgradN768K3072(GemmWgradBase):
    name = "gemm_wgrad_n768_k3072"  # model:gpt2
    axes = {"N": 768, "K": 3072}
    sha256 = "f450f18d2fb369ab1bdd13316fe31ffe108fbcb64b6e1207ce2020a59c750235"

class TestGemmWgradN768K768(GemmWgradBase):
    name = "gemm_wgrad_n768_k768"  # model:gpt2
    axes = {"N": 768, "K": 768}
    sha256 = "470a26074bbb6ad90905fab32b165d72ce6357821c34b7d19aec61d4e37cf1c2"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
