"""Reference tests of op_type gemm.

Rendered: don't edit. `gen-tests --op-type gemm` renders this file anew.

Each class tests one definition. It compares what the definition's `run()` returns with
- FlashInfer's kernels, live, on a CUDA device
- PyTorch's CUDA kernel, live, on a CUDA device
- what these kernels returned when they were recorded, anywhere
- an independent float64 implementation in PyTorch, `oracle`, anywhere
- what it returns for related inputs, `relations`, anywhere
Tolerances: TOLERANCES below, else kernel_judge/comparison/tolerance.py by dtype.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import torch

from generator.ops.op_types.gemm.relations import gemm_relations
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesFlashInfer,
    MatchesPyTorch,
    MatchesRecorded,
    Metamorphic,
    main,
)
from kernel_judge.comparison.tolerance import Override
from kernel_judge.definition import Backend, Case, Definition, Interface
from kernel_judge.inputs.memory import dtype_of
from kernel_judge.inputs.repeated import past_limits
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.relation import Relation

# ---- the op: cases, inputs, float64 oracle, production kernels

TOLERANCES: tuple[Override, ...] = ()
_WORKSPACE_BYTES = 32 * 2**20
# rows of B that the oracle converts to float64 at a time
_BLOCK = 4096


def cases(definition: Definition) -> list[Case]:
    """Return the cases: one row, an odd number, and more rows than a tile."""
    return [
        Case("one-row", "small", {"M": 1}),
        Case("odd-rows", "small", {"M": 7}),
        Case("rows", "medium", {"M": 65}),
        past_limits("M", 8_219),
        Case("many-rows", "large", {"M": 2048}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return A [M, K] and B [N, K] of C's dtype; elements of C are about 1."""
    n, k = definition.axes["N"], definition.axes["K"]
    dtype = dtype_of(definition.interface.output_specs["C"].dtype)
    return {
        "A": stream.child("A").values((case.axes["M"], k), 1.0, dtype),
        "B": stream.child("B").matrix(n, k, 1.0 / math.sqrt(k), dtype),
    }


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the product, float64 [M, N], a block of B's rows at a time."""
    a = inputs["A"].double()
    return torch.cat([a @ block.double().T for block in inputs["B"].split(_BLOCK)], 1)


def relations(definition: Definition) -> list[Relation]:
    """Return the relations between products of related matrices."""
    return gemm_relations(definition)


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the kernels of both generations, and for bfloat16 cuBLASLt."""
    grouped = (Backend("sm80", min_sm=80), Backend("sm90", min_sm=90, max_sm=90))
    if definition.interface.output_specs["C"].dtype == "float16":
        return grouped
    return (*grouped, Backend("cublaslt", min_sm=80))


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return the product [M, N], as mm_bf16 or as the one segment of a grouped GEMM."""
    from flashinfer.gemm import SegmentGEMMWrapper, mm_bf16

    if backend == "cublaslt":
        return mm_bf16(inputs["A"], inputs["B"].T, backend=backend)
    a, b = inputs["A"], inputs["B"]
    workspace = torch.empty(_WORKSPACE_BYTES, dtype=torch.int8, device=a.device)
    # lengths of segments would be rounded to float16: 2049 rows to 2048
    indptr = torch.tensor([0, len(a)], dtype=torch.int64, device=a.device)
    wrapper = SegmentGEMMWrapper(workspace, backend=backend)
    return wrapper.run(a, b[None], 1, True, seg_indptr=indptr)


def pytorch_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return cuBLAS, which PyTorch calls on CUDA."""
    return (Backend("cublas"),)


def pytorch_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return the product [M, N] by torch.nn.functional.linear as in serving."""
    return torch.nn.functional.linear(inputs["A"], inputs["B"])


# ---- the interfaces

INTERFACE_GEMM_BF16 = Interface(
    inputs={
        "A": "bfloat16[M, K]",
        "B": "bfloat16[N, K]",
    },
    outputs={
        "C": "bfloat16[M, N]",
    },
)
INTERFACE_GEMM = Interface(
    inputs={
        "A": "float16[M, K]",
        "B": "float16[N, K]",
    },
    outputs={
        "C": "float16[M, N]",
    },
)

# ---- the references, as the definitions have them


# fmt: off
# of gemm_bf16_n128256_k3072 and 23 more definitions
def reference_gemm_bf16():
    import torch


    @torch.no_grad()
    def run(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        a = A.float()
        # Rows of B a block at a time: a float32 copy of all of B may take gigabytes.
        columns = [(a @ rows.float().T).to(torch.bfloat16) for rows in torch.split(B, 4096)]
        return torch.cat(columns, dim=1)

    return run


# of gemm_n10240_k8192 and 31 more definitions
def reference_gemm():
    import torch


    @torch.no_grad()
    def run(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        a = A.float()
        # Rows of B a block at a time: a float32 copy of all of B may take gigabytes.
        columns = [(a @ rows.float().T).to(torch.float16) for rows in torch.split(B, 4096)]
        return torch.cat(columns, dim=1)

    return run


# fmt: on
# ---- the tests


class GemmTests(
    GroundTruthsAgree, MatchesFlashInfer, MatchesPyTorch, MatchesRecorded, Metamorphic
):
    """What the tests of gemm share."""

    op_type = "gemm"
    sizes = ("small", "medium")
    tolerances = TOLERANCES
    cases = staticmethod(cases)
    make_inputs = staticmethod(make_inputs)
    oracle = staticmethod(oracle)
    relations = staticmethod(relations)
    flashinfer_backends = staticmethod(flashinfer_backends)
    flashinfer_ground_truth = staticmethod(flashinfer_ground_truth)
    pytorch_backends = staticmethod(pytorch_backends)
    pytorch_ground_truth = staticmethod(pytorch_ground_truth)


# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: output head, one row
# a vocabulary entry, 3072 to 128256 features.
# model:llama-3.2-3b, fi_api:flashinfer.gemm.mm_bf16
class TestGemmBf16N128256K3072(GemmTests):
    name = "gemm_bf16_n128256_k3072"
    interface = INTERFACE_GEMM_BF16
    reference = staticmethod(reference_gemm_bf16)
    N = 128256
    K = 3072
    sha256 = "8ed67b4ae7ea888201cba2459f52aac42206480bb8c7363226b69bc82074f5c7"


# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: output head, one row
# a vocabulary entry, 4096 to 128256 features.
# model:llama-3.1-8b, fi_api:flashinfer.gemm.mm_bf16
class TestGemmBf16N128256K4096(GemmTests):
    name = "gemm_bf16_n128256_k4096"
    interface = INTERFACE_GEMM_BF16
    reference = staticmethod(reference_gemm_bf16)
    N = 128256
    K = 4096
    sha256 = "13d1350ecd0a4a64b2ae7c5390084d3e43473be3df82afa018e7e11f2f6444ae"


# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: output head, one row
# a vocabulary entry, 8192 to 128256 features.
# model:llama-3.1-70b, fi_api:flashinfer.gemm.mm_bf16
class TestGemmBf16N128256K8192(GemmTests):
    name = "gemm_bf16_n128256_k8192"
    interface = INTERFACE_GEMM_BF16
    reference = staticmethod(reference_gemm_bf16)
    N = 128256
    K = 8192
    sha256 = "2011764c9d027b15ae2262f9c1eee73d7d326aa51615b797d0cba08d57957499"


# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: expert router, 2880
# to 128 features.
# model:gpt-oss-120b, fi_api:flashinfer.gemm.mm_bf16
class TestGemmBf16N128K2880(GemmTests):
    name = "gemm_bf16_n128_k2880"
    interface = INTERFACE_GEMM_BF16
    reference = staticmethod(reference_gemm_bf16)
    N = 128
    K = 2880
    sha256 = "2bad6b9f3da19f20fcb96c0e52bb2470caa343124591c89529d0efe695afcbba"


# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: expert router, 4096
# to 128 features.
# model:qwen3-235b-a22b, fi_api:flashinfer.gemm.mm_bf16
class TestGemmBf16N128K4096(GemmTests):
    name = "gemm_bf16_n128_k4096"
    interface = INTERFACE_GEMM_BF16
    reference = staticmethod(reference_gemm_bf16)
    N = 128
    K = 4096
    sha256 = "57508c115b432246c6a0ba7e1fa87e19bdbc03efd05efc8bf71e92a894b63571"


# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: output head, one row
# a vocabulary entry, 7168 to 129280 features.
# model:deepseek-v3, model:deepseek-r1, model:deepseek-v3.2,
# fi_api:flashinfer.gemm.mm_bf16
class TestGemmBf16N129280K7168(GemmTests):
    name = "gemm_bf16_n129280_k7168"
    interface = INTERFACE_GEMM_BF16
    reference = staticmethod(reference_gemm_bf16)
    N = 129280
    K = 7168
    sha256 = "8ed0192ae33f8b6a7f046171276d2c87516b540d581f0e6c027f56514bdfb5b1"


# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: output head, one row
# a vocabulary entry, 2048 to 151936 features.
# model:qwen3-30b-a3b, model:qwen3-next-80b-a3b, fi_api:flashinfer.gemm.mm_bf16
class TestGemmBf16N151936K2048(GemmTests):
    name = "gemm_bf16_n151936_k2048"
    interface = INTERFACE_GEMM_BF16
    reference = staticmethod(reference_gemm_bf16)
    N = 151936
    K = 2048
    sha256 = "a7a863ace42a0ae2f0d9995887a9f65aea6d83820a0d4856adfd854acf6391d4"


# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: output head, one row
# a vocabulary entry, 4096 to 151936 features.
# model:qwen3-8b, model:qwen3-235b-a22b, fi_api:flashinfer.gemm.mm_bf16
class TestGemmBf16N151936K4096(GemmTests):
    name = "gemm_bf16_n151936_k4096"
    interface = INTERFACE_GEMM_BF16
    reference = staticmethod(reference_gemm_bf16)
    N = 151936
    K = 4096
    sha256 = "89608c2b72168fbbca5b8dc0a2508d816d673dccbeac544cefdd347b60f60c58"


# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: output head, one row
# a vocabulary entry, 5120 to 151936 features.
# model:qwen3-14b, model:qwen3-32b, fi_api:flashinfer.gemm.mm_bf16
class TestGemmBf16N151936K5120(GemmTests):
    name = "gemm_bf16_n151936_k5120"
    interface = INTERFACE_GEMM_BF16
    reference = staticmethod(reference_gemm_bf16)
    N = 151936
    K = 5120
    sha256 = "1737a03cd67e19f89795dcbb14ff3163d699bd230e00bc1e1dc3e79a3d23267e"


# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: output head, one row
# a vocabulary entry, 3584 to 152064 features.
# model:qwen2.5-7b, fi_api:flashinfer.gemm.mm_bf16
class TestGemmBf16N152064K3584(GemmTests):
    name = "gemm_bf16_n152064_k3584"
    interface = INTERFACE_GEMM_BF16
    reference = staticmethod(reference_gemm_bf16)
    N = 152064
    K = 3584
    sha256 = "3ee78bfda8c9f4872bb6c2a6c8b0cb2e0e8fed1d8ac34aa7bf774066537a8159"


# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: expert router, 5120
# to 160 features.
# model:glm-4.6, fi_api:flashinfer.gemm.mm_bf16
class TestGemmBf16N160K5120(GemmTests):
    name = "gemm_bf16_n160_k5120"
    interface = INTERFACE_GEMM_BF16
    reference = staticmethod(reference_gemm_bf16)
    N = 160
    K = 5120
    sha256 = "3dd813e8a277b51ac6e99495507fe1d8f4e67bcdc33b9fb5cde08ad7c918d6a9"


# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: output head, one row
# a vocabulary entry, 7168 to 163840 features.
# model:kimi-k2, fi_api:flashinfer.gemm.mm_bf16
class TestGemmBf16N163840K7168(GemmTests):
    name = "gemm_bf16_n163840_k7168"
    interface = INTERFACE_GEMM_BF16
    reference = staticmethod(reference_gemm_bf16)
    N = 163840
    K = 7168
    sha256 = "718a63b24744fa4dfae2ea52e537ae9a6da0d0cf5b82ec4a9086f84729d406bf"


# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: expert router, 5120
# to 16 features.
# model:llama-4-scout, fi_api:flashinfer.gemm.mm_bf16
class TestGemmBf16N16K5120(GemmTests):
    name = "gemm_bf16_n16_k5120"
    interface = INTERFACE_GEMM_BF16
    reference = staticmethod(reference_gemm_bf16)
    N = 16
    K = 5120
    sha256 = "3f2038de5466c0398a9f3d8d58a70fbd8e786e506693a58c3b3e8e44d4ad02e5"


# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: output head, one row
# a vocabulary entry, 3072 to 200064 features.
# model:minimax-m2, fi_api:flashinfer.gemm.mm_bf16
class TestGemmBf16N200064K3072(GemmTests):
    name = "gemm_bf16_n200064_k3072"
    interface = INTERFACE_GEMM_BF16
    reference = staticmethod(reference_gemm_bf16)
    N = 200064
    K = 3072
    sha256 = "3c587a76d9da984560ae1172b40349332f63e5494e269bc63fba8f57b5026761"


# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: output head, one row
# a vocabulary entry, 2880 to 201088 features.
# model:gpt-oss-20b, model:gpt-oss-120b, fi_api:flashinfer.gemm.mm_bf16
class TestGemmBf16N201088K2880(GemmTests):
    name = "gemm_bf16_n201088_k2880"
    interface = INTERFACE_GEMM_BF16
    reference = staticmethod(reference_gemm_bf16)
    N = 201088
    K = 2880
    sha256 = "9365768715f558f276f3e70772bf13aa51019240aefb4730348c1b102a85da83"


# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: output head, one row
# a vocabulary entry, 5376 to 262208 features.
# model:gemma-3-27b, fi_api:flashinfer.gemm.mm_bf16
class TestGemmBf16N262208K5376(GemmTests):
    name = "gemm_bf16_n262208_k5376"
    interface = INTERFACE_GEMM_BF16
    reference = staticmethod(reference_gemm_bf16)
    N = 262208
    K = 5376
    sha256 = "c631822af1a2f5ca63086c0d29933e8ebb41a68a93f74f1c3767a06c420eb49e"


# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: attention output
# projection, 4096 to 2880 features.
# model:gpt-oss-20b, model:gpt-oss-120b, fi_api:flashinfer.gemm.mm_bf16
class TestGemmBf16N2880K4096(GemmTests):
    name = "gemm_bf16_n2880_k4096"
    interface = INTERFACE_GEMM_BF16
    reference = staticmethod(reference_gemm_bf16)
    N = 2880
    K = 4096
    sha256 = "f3e1a31246d1b865553563e8a2b59abc1b17be2c42514c48cca451d944dcd919"


# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: expert router, 2880
# to 32 features.
# model:gpt-oss-20b, fi_api:flashinfer.gemm.mm_bf16
class TestGemmBf16N32K2880(GemmTests):
    name = "gemm_bf16_n32_k2880"
    interface = INTERFACE_GEMM_BF16
    reference = staticmethod(reference_gemm_bf16)
    N = 32
    K = 2880
    sha256 = "2df78cbf2c838fe9b73bcecb2c56e4f51e1e7dc623a49866ab378530f54c35cb"


# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: expert router, 7168
# to 384 features.
# model:kimi-k2, fi_api:flashinfer.gemm.mm_bf16
class TestGemmBf16N384K7168(GemmTests):
    name = "gemm_bf16_n384_k7168"
    interface = INTERFACE_GEMM_BF16
    reference = staticmethod(reference_gemm_bf16)
    N = 384
    K = 7168
    sha256 = "56d0ddb806de4a120e4eddb0d7f8bab8576848c7a16918dabac9a77bf68074bf"


# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: attention output
# projection, 8192 to 4096 features.
# model:qwen3-235b-a22b, model:nemotron-h-8b, fi_api:flashinfer.gemm.mm_bf16
class TestGemmBf16N4096K8192(GemmTests):
    name = "gemm_bf16_n4096_k8192"
    interface = INTERFACE_GEMM_BF16
    reference = staticmethod(reference_gemm_bf16)
    N = 4096
    K = 8192
    sha256 = "3b8a84a2c6efc32d08982d08c65c512fe408a8e30337b6cc975f8a0e4042ec48"


# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: attention output
# projection, 8192 to 5120 features.
# model:qwen3-32b, fi_api:flashinfer.gemm.mm_bf16
class TestGemmBf16N5120K8192(GemmTests):
    name = "gemm_bf16_n5120_k8192"
    interface = INTERFACE_GEMM_BF16
    reference = staticmethod(reference_gemm_bf16)
    N = 5120
    K = 8192
    sha256 = "b6edaca4759420bcaea6ea718ad38450556287e40c4da633b6629e6c230279f3"


# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: expert router, 2048
# to 512 features.
# model:qwen3-next-80b-a3b, fi_api:flashinfer.gemm.mm_bf16
class TestGemmBf16N512K2048(GemmTests):
    name = "gemm_bf16_n512_k2048"
    interface = INTERFACE_GEMM_BF16
    reference = staticmethod(reference_gemm_bf16)
    N = 512
    K = 2048
    sha256 = "795b7e869c400ea9139093bd068710a17cb4469fae9beb131bc48eedbeb90fd4"


# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: attention output
# projection, 6144 to 6144 features.
# model:mixtral-8x22b, fi_api:flashinfer.gemm.mm_bf16
class TestGemmBf16N6144K6144(GemmTests):
    name = "gemm_bf16_n6144_k6144"
    interface = INTERFACE_GEMM_BF16
    reference = staticmethod(reference_gemm_bf16)
    N = 6144
    K = 6144
    sha256 = "fa70977ea9403a35d256a41e996951075ccbfc55c2bccae20b4e1fa77a1fb8f7"


# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: expert router, 6144
# to 8 features.
# model:mixtral-8x22b, fi_api:flashinfer.gemm.mm_bf16
class TestGemmBf16N8K6144(GemmTests):
    name = "gemm_bf16_n8_k6144"
    interface = INTERFACE_GEMM_BF16
    reference = staticmethod(reference_gemm_bf16)
    N = 8
    K = 6144
    sha256 = "1b0d559bebe35575fbb52d05d210040ebf83bb7277b4774f0926ab94dfd99ca7"


# Matrix product C = A @ B.T in float16 with float32 accumulation: fused query, key and
# value projection, 8192 to 10240 features.
# model:llama-3.1-70b
class TestGemmN10240K8192(GemmTests):
    name = "gemm_n10240_k8192"
    interface = INTERFACE_GEMM
    reference = staticmethod(reference_gemm)
    N = 10240
    K = 8192
    sha256 = "133e0fc2ed467d4ca488372b5575767e02a7d4a80856b53eec36c6d3943c0144"


# Matrix product C = A @ B.T in float16 with float32 accumulation: expert router, 2048
# to 128 features.
# model:qwen3-30b-a3b
class TestGemmN128K2048(GemmTests):
    name = "gemm_n128_k2048"
    interface = INTERFACE_GEMM
    reference = staticmethod(reference_gemm)
    N = 128
    K = 2048
    sha256 = "73ddb8929901db04e2ddc79f28164ef3fd4c2d0ba160e58af6e15eec173d4bf7"


# Matrix product C = A @ B.T in float16 with float32 accumulation: fused gate and up
# projection, 3072 to 16384 features.
# model:llama-3.2-3b
class TestGemmN16384K3072(GemmTests):
    name = "gemm_n16384_k3072"
    interface = INTERFACE_GEMM
    reference = staticmethod(reference_gemm)
    N = 16384
    K = 3072
    sha256 = "3ba2c59583bbeec67dfb9e6122637b3e994558a67f881a88da1fac35825dfdee"


# Matrix product C = A @ B.T in float16 with float32 accumulation: attention output
# projection, 4096 to 2048 features.
# model:qwen3-30b-a3b
class TestGemmN2048K4096(GemmTests):
    name = "gemm_n2048_k4096"
    interface = INTERFACE_GEMM
    reference = staticmethod(reference_gemm)
    N = 2048
    K = 4096
    sha256 = "48bb8eec6f437367e9d9a0c2f89ecf7079684677cdb51dc14e5aa1ed0a3ed7f4"


# Matrix product C = A @ B.T in float16 with float32 accumulation: key or value
# projection, 5376 to 2048 features.
# model:gemma-3-27b
class TestGemmN2048K5376(GemmTests):
    name = "gemm_n2048_k5376"
    interface = INTERFACE_GEMM
    reference = staticmethod(reference_gemm)
    N = 2048
    K = 5376
    sha256 = "31f8bf53a90eddd8a86fe09dc95e8f58f3f77cb0eafdbcefac87c90e5f37659f"


# Matrix product C = A @ B.T in float16 with float32 accumulation: gate or up
# projection, 5376 to 21504 features.
# model:gemma-3-27b
class TestGemmN21504K5376(GemmTests):
    name = "gemm_n21504_k5376"
    interface = INTERFACE_GEMM
    reference = staticmethod(reference_gemm)
    N = 21504
    K = 5376
    sha256 = "a5badecea0c377951ff027c2e82165927daed94b6cc3e66e95f06d07de68e01d"


# Matrix product C = A @ B.T in float16 with float32 accumulation: expert router, 3072
# to 256 features.
# model:minimax-m2
class TestGemmN256K3072(GemmTests):
    name = "gemm_n256_k3072"
    interface = INTERFACE_GEMM
    reference = staticmethod(reference_gemm)
    N = 256
    K = 3072
    sha256 = "620bb0d98073c8ae59b8b0712c3689954651c41552d6ba02a4d75a42b2353170"


# Matrix product C = A @ B.T in float16 with float32 accumulation: expert router, 7168
# to 256 features.
# model:deepseek-v3, model:deepseek-r1
class TestGemmN256K7168(GemmTests):
    name = "gemm_n256_k7168"
    interface = INTERFACE_GEMM
    reference = staticmethod(reference_gemm)
    N = 256
    K = 7168
    sha256 = "ecaf9f73c4636be0c9115687bdee6c5735d03985f7c2d0f106de3ba02f836784"


# Matrix product C = A @ B.T in float16 with float32 accumulation: fused gate and up
# projection, 4096 to 28672 features.
# model:llama-3.1-8b
class TestGemmN28672K4096(GemmTests):
    name = "gemm_n28672_k4096"
    interface = INTERFACE_GEMM
    reference = staticmethod(reference_gemm)
    N = 28672
    K = 4096
    sha256 = "854741f2b85a125f1e665516b781463ba472a6d791c1f57cceb3827662ef9790"


# Matrix product C = A @ B.T in float16 with float32 accumulation: attention output
# projection, 3072 to 3072 features.
# model:llama-3.2-3b
class TestGemmN3072K3072(GemmTests):
    name = "gemm_n3072_k3072"
    interface = INTERFACE_GEMM
    reference = staticmethod(reference_gemm)
    N = 3072
    K = 3072
    sha256 = "ed3c1e03ece219c90c30100b8c70cafc391b086e8420566e81c5f44ab589a5b1"


# Matrix product C = A @ B.T in float16 with float32 accumulation: attention output
# projection, 6144 to 3072 features.
# model:minimax-m2
class TestGemmN3072K6144(GemmTests):
    name = "gemm_n3072_k6144"
    interface = INTERFACE_GEMM
    reference = staticmethod(reference_gemm)
    N = 3072
    K = 6144
    sha256 = "017800e141032929fbc813efc15a4b9ae96808c3af4a7dadf2d462cb1a6bb134"


# Matrix product C = A @ B.T in float16 with float32 accumulation: down projection, 8192
# to 3072 features.
# model:llama-3.2-3b
class TestGemmN3072K8192(GemmTests):
    name = "gemm_n3072_k8192"
    interface = INTERFACE_GEMM
    reference = staticmethod(reference_gemm)
    N = 3072
    K = 8192
    sha256 = "4daeaca8a0a5d32350fff483cdcb2865107f66139b71b4593762cd2f1f1b8fa9"


# Matrix product C = A @ B.T in float16 with float32 accumulation: fused gate and up
# projection, 5120 to 34816 features.
# model:qwen3-14b
class TestGemmN34816K5120(GemmTests):
    name = "gemm_n34816_k5120"
    interface = INTERFACE_GEMM
    reference = staticmethod(reference_gemm)
    N = 34816
    K = 5120
    sha256 = "e4b1989d81071c676ac259bcb5a1ed14e32dec68d62e49b21eb82754f69d9eae"


# Matrix product C = A @ B.T in float16 with float32 accumulation: down projection,
# 18944 to 3584 features.
# model:qwen2.5-7b
class TestGemmN3584K18944(GemmTests):
    name = "gemm_n3584_k18944"
    interface = INTERFACE_GEMM
    reference = staticmethod(reference_gemm)
    N = 3584
    K = 18944
    sha256 = "36ad1d79508a247c3544edbab74805c76a614f67ca12e5d4536b67da8a1ba533"


# Matrix product C = A @ B.T in float16 with float32 accumulation: attention output
# projection, 3584 to 3584 features.
# model:qwen2.5-7b
class TestGemmN3584K3584(GemmTests):
    name = "gemm_n3584_k3584"
    interface = INTERFACE_GEMM
    reference = staticmethod(reference_gemm)
    N = 3584
    K = 3584
    sha256 = "b58f2130ddb3905849e4419f43e67e037a5526909b03aa355a9e227f454492eb"


# Matrix product C = A @ B.T in float16 with float32 accumulation: fused gate and up
# projection, 3584 to 37888 features.
# model:qwen2.5-7b
class TestGemmN37888K3584(GemmTests):
    name = "gemm_n37888_k3584"
    interface = INTERFACE_GEMM
    reference = staticmethod(reference_gemm)
    N = 37888
    K = 3584
    sha256 = "8a82b49db26992d7e61eeba99ae5bdce59bce7b32aa3fc5e172df7313e280dae"


# Matrix product C = A @ B.T in float16 with float32 accumulation: down projection,
# 14336 to 4096 features.
# model:llama-3.1-8b
class TestGemmN4096K14336(GemmTests):
    name = "gemm_n4096_k14336"
    interface = INTERFACE_GEMM
    reference = staticmethod(reference_gemm)
    N = 4096
    K = 14336
    sha256 = "090fedda2645ec723aa7aff3a4ab9bccff3127e2359e19aec7c6918c29ee8672"


# Matrix product C = A @ B.T in float16 with float32 accumulation: attention output
# projection, 4096 to 4096 features.
# model:llama-3.1-8b
class TestGemmN4096K4096(GemmTests):
    name = "gemm_n4096_k4096"
    interface = INTERFACE_GEMM
    reference = staticmethod(reference_gemm)
    N = 4096
    K = 4096
    sha256 = "434e3ec4c902b78856499125cb000f55ec06c7bda2a0f62b4bc4265b81b209a2"


# Matrix product C = A @ B.T in float16 with float32 accumulation: query projection,
# 5376 to 4096 features.
# model:gemma-3-27b
class TestGemmN4096K5376(GemmTests):
    name = "gemm_n4096_k5376"
    interface = INTERFACE_GEMM
    reference = staticmethod(reference_gemm)
    N = 4096
    K = 5376
    sha256 = "433132389fbdcdb440fa80d359fac15e64368c29be5bc63a5a23c7cf160a0b17"


# Matrix product C = A @ B.T in float16 with float32 accumulation: fused query, key and
# value projection, 3584 to 4608 features.
# model:qwen2.5-7b
class TestGemmN4608K3584(GemmTests):
    name = "gemm_n4608_k3584"
    interface = INTERFACE_GEMM
    reference = staticmethod(reference_gemm)
    N = 4608
    K = 3584
    sha256 = "ce751b77023e4b48ff71ef9bb3477a6913fd27160f6f71e92ef9697f2526e6a7"


# Matrix product C = A @ B.T in float16 with float32 accumulation: down projection,
# 17408 to 5120 features.
# model:qwen3-14b
class TestGemmN5120K17408(GemmTests):
    name = "gemm_n5120_k17408"
    interface = INTERFACE_GEMM
    reference = staticmethod(reference_gemm)
    N = 5120
    K = 17408
    sha256 = "31305e7b93fa708225d15cee42202b11890fa6037d065841b06ec350ca424839"


# Matrix product C = A @ B.T in float16 with float32 accumulation: fused query, key and
# value projection, 2048 to 5120 features.
# model:qwen3-30b-a3b
class TestGemmN5120K2048(GemmTests):
    name = "gemm_n5120_k2048"
    interface = INTERFACE_GEMM
    reference = staticmethod(reference_gemm)
    N = 5120
    K = 2048
    sha256 = "3e9da2eaac1b91bae01e25d2c0310200612ef12b67334d89898f350e05fe49ff"


# Matrix product C = A @ B.T in float16 with float32 accumulation: fused query, key and
# value projection, 3072 to 5120 features.
# model:llama-3.2-3b
class TestGemmN5120K3072(GemmTests):
    name = "gemm_n5120_k3072"
    interface = INTERFACE_GEMM
    reference = staticmethod(reference_gemm)
    N = 5120
    K = 3072
    sha256 = "b946fca4c95f497a45c3b51e6a8dbba001a8daa2065c69c44f711d265df5ec9a"


# Matrix product C = A @ B.T in float16 with float32 accumulation: attention output
# projection, 5120 to 5120 features.
# model:qwen3-14b
class TestGemmN5120K5120(GemmTests):
    name = "gemm_n5120_k5120"
    interface = INTERFACE_GEMM
    reference = staticmethod(reference_gemm)
    N = 5120
    K = 5120
    sha256 = "7342deecc155834c000f80e1920cbc157be112a445ed4ce3f11b2c22432ea022"


# Matrix product C = A @ B.T in float16 with float32 accumulation: down projection,
# 21504 to 5376 features.
# model:gemma-3-27b
class TestGemmN5376K21504(GemmTests):
    name = "gemm_n5376_k21504"
    interface = INTERFACE_GEMM
    reference = staticmethod(reference_gemm)
    N = 5376
    K = 21504
    sha256 = "2109b477b411fc7e1f1ef6d6fa121ce142ab0ae689f8ec04620997e8cc46b90c"


# Matrix product C = A @ B.T in float16 with float32 accumulation: attention output
# projection, 4096 to 5376 features.
# model:gemma-3-27b
class TestGemmN5376K4096(GemmTests):
    name = "gemm_n5376_k4096"
    interface = INTERFACE_GEMM
    reference = staticmethod(reference_gemm)
    N = 5376
    K = 4096
    sha256 = "7310cccf36a6be83906d56ff2ccc26fb6e64aa28e11d30608d4ed59a8aaf9185"


# Matrix product C = A @ B.T in float16 with float32 accumulation: fused gate and up
# projection, 8192 to 57344 features.
# model:llama-3.1-70b
class TestGemmN57344K8192(GemmTests):
    name = "gemm_n57344_k8192"
    interface = INTERFACE_GEMM
    reference = staticmethod(reference_gemm)
    N = 57344
    K = 8192
    sha256 = "fbc9cd46e66cff1d25fe1b3f16e8b02c0458f6852b6d76b9825d86f009dd603a"


# Matrix product C = A @ B.T in float16 with float32 accumulation: fused query, key and
# value projection, 4096 to 6144 features.
# model:llama-3.1-8b
class TestGemmN6144K4096(GemmTests):
    name = "gemm_n6144_k4096"
    interface = INTERFACE_GEMM
    reference = staticmethod(reference_gemm)
    N = 6144
    K = 4096
    sha256 = "2d53ca74ab107dd7b2e90f2ac7dd8988e5967858512c0b781ad058b3a99edb7a"


# Matrix product C = A @ B.T in float16 with float32 accumulation: fused query, key and
# value projection, 5120 to 7168 features.
# model:qwen3-14b
class TestGemmN7168K5120(GemmTests):
    name = "gemm_n7168_k5120"
    interface = INTERFACE_GEMM
    reference = staticmethod(reference_gemm)
    N = 7168
    K = 5120
    sha256 = "9a0174d96c00bab21211754af45b1e9211ae5edc9de3b36c1144362ecfde2170"


# Matrix product C = A @ B.T in float16 with float32 accumulation: down projection,
# 28672 to 8192 features.
# model:llama-3.1-70b
class TestGemmN8192K28672(GemmTests):
    name = "gemm_n8192_k28672"
    interface = INTERFACE_GEMM
    reference = staticmethod(reference_gemm)
    N = 8192
    K = 28672
    sha256 = "20d475a376c79c02a4e494b62d4c29843a8763968f94fbd43ee3714821a79bfd"


# Matrix product C = A @ B.T in float16 with float32 accumulation: fused query, key and
# value projection, 3072 to 8192 features.
# model:minimax-m2
class TestGemmN8192K3072(GemmTests):
    name = "gemm_n8192_k3072"
    interface = INTERFACE_GEMM
    reference = staticmethod(reference_gemm)
    N = 8192
    K = 3072
    sha256 = "fbfd734e3e2ed63a2c4d14755fcf0602bbfe0aaa44d7ad1882d0238d467a1d0c"


# Matrix product C = A @ B.T in float16 with float32 accumulation: attention output
# projection, 8192 to 8192 features.
# model:llama-3.1-70b
class TestGemmN8192K8192(GemmTests):
    name = "gemm_n8192_k8192"
    interface = INTERFACE_GEMM
    reference = staticmethod(reference_gemm)
    N = 8192
    K = 8192
    sha256 = "c8d330309e66ef58aa0e5c3b21cffeef4bba7d2353e344d182cbb6befb54ce27"


if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
