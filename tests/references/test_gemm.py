"""Reference tests of op_type gemm.

Rendered: don't edit. `gen-tests --op-type gemm` renders this file anew.

Each class tests one definition: what its `run()` returns for the inputs of each case in
`cases`, and of the dataset's workloads, is compared with
- FlashInfer's kernels, live, on a CUDA device
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

from generator.ops.limit_cases import past_limits
from generator.ops.op_types.gemm.relations import gemm_relations
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition, Interface
from kernel_judge.inputs.memory import dtype_of
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# relations: generator.ops.op_types.gemm.relations

_SUMS = (
    "float32 sums of 7168 products at most, each rounded by 2^-24 of a sum of about 1: "
    "5e-6 for the root of 7168 of them"
)
# Fasi, Higham, Mikaitis and Pranesh 2021, doi 10.7717/peerj-cs.330: sums are truncated
_TENSOR_CORES = (
    "tensor cores cut off what lies below float32 instead of rounding, 16 products at a "
    "time: 448 times 2^-23 for a K of 7168. What is cut off has the sum's own sign: of "
    "n partial sums, the j-th of which has j/n of the whole in the mean, each loses half "
    "a last place, 2^-24 of itself, so that the whole shrinks by n/2 times 2^-24, 1.34e-5 "
    "for 448"
)
_ADDED = "the bias is added in float32, and the sum rounded once: half an ulp is 2^-8 at most"
TOLERANCES = (
    Override("out", Tolerance(4e-3, 4e-5, 5e-6), _ADDED, source="oracle"),
    Override("logits", Tolerance(1e-6, 1e-5, 1e-11), _SUMS, source="oracle"),
    Override(
        "logits",
        Tolerance(1e-6, 6e-5, 1e-9, bias=224 * 2.0**-24),
        _TENSOR_CORES,
        source="pytorch",
    ),
)
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
    """Return A [M, K] and B [N, K] of one dtype, or batches; elements of C are about 1.

    A bias, of N, has elements of about 1 as well.
    """
    n, k = definition.axes["N"], definition.axes["K"]
    m, batch = case.axes["M"], definition.axes.get("batch_size", 1)
    dtype = dtype_of(definition.interface.input_specs["A"].dtype)
    a = stream.child("A").values((batch * m, k), 1.0, dtype)
    b = stream.child("B").matrix(batch * n, k, 1.0 / math.sqrt(k), dtype)
    if "batch_size" in definition.axes:
        return {"A": a.view(batch, m, k), "B": b.view(batch, n, k)}
    if "bias" not in definition.interface.inputs:
        return {"A": a, "B": b}
    return {"A": a, "B": b, "bias": stream.child("bias").values((n,), 1.0, dtype)}


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the product, float64, a block of B's rows at a time, and the bias added."""
    a, b = inputs["A"].double(), inputs["B"]
    if a.dim() == 3:
        return torch.bmm(a, b.double().mT)
    product = torch.cat([a @ rows.double().T for rows in torch.split(b, _BLOCK)], 1)
    return product + inputs["bias"].double() if "bias" in inputs else product


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the kernels of both generations, and for bfloat16 cuBLASLt.

    None of them has a batch, a bias, or sums in float32.
    """
    interface = definition.interface
    if list(interface.inputs) != ["A", "B"] or "batch_size" in definition.axes:
        return ()
    if "logits" in interface.outputs:
        return ()
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
    """Return the product as in serving: by linear, bmm, or mm with another dtype."""
    a, b = inputs["A"], inputs["B"]
    if a.dim() == 3:
        return torch.bmm(a, b.mT)
    if "logits" in definition.interface.outputs:
        return torch.mm(a, b.T, out_dtype=torch.float32)
    return torch.nn.functional.linear(a, b, inputs.get("bias"))


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=gemm_relations,
    tolerances=TOLERANCES,
    kernels={
        "flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth),
        "pytorch": Kernel(pytorch_backends, pytorch_ground_truth),
    },
)


# ---- the interfaces

INTERFACE_BMM_BF16 = Interface(
    inputs={"A": "bfloat16[batch_size, M, K]", "B": "bfloat16[batch_size, N, K]"},
    outputs={"C": "bfloat16[batch_size, M, N]"},
)
INTERFACE_GEMM_BF16_BIAS = Interface(
    inputs={"A": "bfloat16[M, K]", "B": "bfloat16[N, K]", "bias": "bfloat16[N]"},
    outputs={"out": "bfloat16[M, N]"},
)
INTERFACE_GEMM_BF16_F32 = Interface(
    inputs={"A": "bfloat16[M, K]", "B": "bfloat16[N, K]"},
    outputs={"logits": "float32[M, N]"},
)
INTERFACE_GEMM_BF16 = Interface(
    inputs={"A": "bfloat16[M, K]", "B": "bfloat16[N, K]"},
    outputs={"C": "bfloat16[M, N]"},
)
INTERFACE_GEMM = Interface(
    inputs={"A": "float16[M, K]", "B": "float16[N, K]"},
    outputs={"C": "float16[M, N]"},
)

# ---- the tests


class GemmTests(
    GroundTruthsAgree, matches("flashinfer", "pytorch"), MatchesRecorded, Metamorphic
):
    """What the tests of gemm share."""

    op_type = "gemm"
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
# (1) the bias is added in float32, and the sum rounded once.
# (2) float32 sums of 7168 products at most, each rounded by 2^-24 of a sum of about 1.
# (3) tensor cores cut off what lies below float32 instead of rounding, 16 products at a
# time.
# (4) a factor or an offset of 1.3e-05 is allowed.


# Tolerances:
#   output  source                       rtol  atol   NMSE   reason
#   C       oracle, flashinfer, pytorch  0.01  0.008  2e-05  default
def reference_bmm_bf16():
    import torch


    @torch.no_grad()
    def run(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.bmm(A.float(), B.float().mT).to(torch.bfloat16)

    return run


class BmmBf16Base(GemmTests):
    reference = staticmethod(reference_bmm_bf16)
    interface = INTERFACE_BMM_BF16

# The next 3: Matrix products C = A @ B.T of each batch in bfloat16, summed in float32:
# outputs of batch_size heads from the latent space, 512 to 128 features.
class TestBmmBf16B128N128K512(BmmBf16Base):
    name = "bmm_bf16_b128_n128_k512"  # model:deepseek-v3, tp:1
    axes = {"batch_size": 128, "N": 128, "K": 512}
    sha256 = "3c125589f427a58cf25b3778aa83bda7476ba74c59286084d440a9bb963a112f"

class TestBmmBf16B16N128K512(BmmBf16Base):
    name = "bmm_bf16_b16_n128_k512"  # model:deepseek-v3, tp:8
    axes = {"batch_size": 16, "N": 128, "K": 512}
    sha256 = "b64b9ab7899cafb64bf361b6763d590881465b028a91e7a0b0cf6e28061f3d6d"

class TestBmmBf16B64N128K512(BmmBf16Base):
    name = "bmm_bf16_b64_n128_k512"  # model:kimi-k2, tp:1
    axes = {"batch_size": 64, "N": 128, "K": 512}
    sha256 = "39f93a02543072325cde51186239081246fbed59463d397e9b20a729686363fb"

# The next 3: Matrix products C = A @ B.T of each batch in bfloat16, summed in float32:
# queries of batch_size heads into it, 128 to 512 features.
class TestBmmBf16B128N512K128(BmmBf16Base):
    name = "bmm_bf16_b128_n512_k128"  # model:deepseek-v3, tp:1
    axes = {"batch_size": 128, "N": 512, "K": 128}
    sha256 = "006b14fb4889c636e01dc7f53dcc65f0c2a8d4ebccda2ebe1dc9fa77f20f99fa"

class TestBmmBf16B16N512K128(BmmBf16Base):
    name = "bmm_bf16_b16_n512_k128"  # model:deepseek-v3, tp:8
    axes = {"batch_size": 16, "N": 512, "K": 128}
    sha256 = "69b439a20fbb9e4818b9438095afb004d10a4ce6ca3767dd4ccad1c1559ab4db"

class TestBmmBf16B64N512K128(BmmBf16Base):
    name = "bmm_bf16_b64_n512_k128"  # model:kimi-k2, tp:1
    axes = {"batch_size": 64, "N": 512, "K": 128}
    sha256 = "78888b2dddc45479dda48308d4fe92657a4e75724c0fa24bb19baf38e07c5df5"


# Tolerances:
#   output  source               rtol   atol   NMSE   reason
#   out     oracle               0.004  4e-05  5e-06  (1)
#   out     flashinfer, pytorch  0.01   0.008  2e-05  default
def reference_gemm_bf16_bias():
    import torch


    @torch.no_grad()
    def run(A: torch.Tensor, B: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        a = A.float()
        # Rows of B a block at a time: a float32 copy of all of B may take gigabytes.
        columns = [a @ rows.float().T for rows in torch.split(B, 4096)]
        return (torch.cat(columns, dim=1) + bias.float()).to(torch.bfloat16)

    return run


class GemmBf16BiasBase(GemmTests):
    reference = staticmethod(reference_gemm_bf16_bias)
    interface = INTERFACE_GEMM_BF16_BIAS

# The next 2: Matrix product and bias C = A @ B.T + bias in bfloat16, added in float32:
# expert router, 2880 to N features.
class TestGemmBf16BiasN128K2880(GemmBf16BiasBase):
    name = "gemm_bf16_bias_n128_k2880"  # model:gpt-oss-120b, tp:1
    axes = {"N": 128, "K": 2880}
    sha256 = "f3b4dffad900b1399b3cc24d939679512c25dd4fd5106fe1a0c96c78c2d2da75"

class TestGemmBf16BiasN32K2880(GemmBf16BiasBase):
    name = "gemm_bf16_bias_n32_k2880"  # model:gpt-oss-20b, tp:1
    axes = {"N": 32, "K": 2880}
    sha256 = "2a0f6e7aa56d767ac1acbe1b0293b486b2ffc508c56149e024d3fac8b310759d"

# The next 4: Matrix product and bias C = A @ B.T + bias in bfloat16, added in float32:
# fused query, key and value projection, K to N features.
class TestGemmBf16BiasN14336K5120(GemmBf16BiasBase):
    name = "gemm_bf16_bias_n14336_k5120"  # model:glm-4.6, tp:1
    axes = {"N": 14336, "K": 5120}
    sha256 = "9683a3c0441c9fdfaafe8eb01164b4704cd0627011a87890db1b5cda53131ea2"

class TestGemmBf16BiasN1792K5120(GemmBf16BiasBase):
    name = "gemm_bf16_bias_n1792_k5120"  # model:glm-4.6, tp:8
    axes = {"N": 1792, "K": 5120}
    sha256 = "50e8ba83088ced038c8b29076b504ae0268d5e1d57dc57788aaacf5352d4502d"

class TestGemmBf16BiasN4608K3584(GemmBf16BiasBase):
    name = "gemm_bf16_bias_n4608_k3584"  # model:qwen2.5-7b, tp:1
    axes = {"N": 4608, "K": 3584}
    sha256 = "e7f3790e56c4b9679c7ad797eae204edad9fc44f9abb962c9df7e7f26bad24e9"

class TestGemmBf16BiasN5120K2880(GemmBf16BiasBase):
    name = "gemm_bf16_bias_n5120_k2880"  # model:gpt-oss-20b, model:gpt-oss-120b, tp:1
    axes = {"N": 5120, "K": 2880}
    sha256 = "d45e30207540622e4f9693f37159fb689d4dec705657f1e7e7084fe40c74f6ef"

# Matrix product and bias C = A @ B.T + bias in bfloat16, added in float32: attention
# output projection, 4096 to 2880 features.
class TestGemmBf16BiasN2880K4096(GemmBf16BiasBase):
    name = "gemm_bf16_bias_n2880_k4096"  # model:gpt-oss-20b, model:gpt-oss-120b, tp:1
    axes = {"N": 2880, "K": 4096}
    sha256 = "139264749aeb77f84b7c2c92fedfc4d62043bdea5eb5590018a646bbe7a6c44d"


# Matrix product logits = A @ B.T of bfloat16, left in float32: expert router, K to N
# features.
# tp:1
# Tolerances:
#   output  source      rtol   atol   NMSE   reason
#   logits  oracle      1e-06  1e-05  1e-11  (2)
#   logits  pytorch     1e-06  6e-05  1e-09  (3) (4)
#   logits  flashinfer  1e-05  1e-05  1e-07  default
def reference_gemm_bf16_f32():
    import torch


    @torch.no_grad()
    def run(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return A.float() @ B.float().T

    return run


class GemmBf16F32Base(GemmTests):
    reference = staticmethod(reference_gemm_bf16_f32)
    interface = INTERFACE_GEMM_BF16_F32

class TestGemmBf16F32N160K5120(GemmBf16F32Base):
    name = "gemm_bf16_f32_n160_k5120"  # model:glm-4.6
    axes = {"N": 160, "K": 5120}
    sha256 = "48cd256ff5d77771304af2bb4eeb7c6a09de49ede97b6a768903378f88c4a405"

class TestGemmBf16F32N256K3072(GemmBf16F32Base):
    name = "gemm_bf16_f32_n256_k3072"  # model:minimax-m2
    axes = {"N": 256, "K": 3072}
    sha256 = "104494ad56dc0141f54f56eb6b8efd926c6f1a21341abd2594a0a5b4d3398b3f"

# model:deepseek-v3, model:deepseek-r1, model:deepseek-v3.2
class TestGemmBf16F32N256K7168(GemmBf16F32Base):
    name = "gemm_bf16_f32_n256_k7168"
    axes = {"N": 256, "K": 7168}
    sha256 = "8ea7c84ffd3419b11c13d9b88f342a3f6c190398c45dd4eb24808a1681a7f84b"

class TestGemmBf16F32N384K7168(GemmBf16F32Base):
    name = "gemm_bf16_f32_n384_k7168"  # model:kimi-k2
    axes = {"N": 384, "K": 7168}
    sha256 = "dce128e405baa3a2bf0706db6ad904e59f891906764f79cc5faa06a230f58f20"


# fi_api:flashinfer.gemm.mm_bf16
# Tolerances: those of reference_bmm_bf16.
def reference_gemm_bf16():
    import torch


    @torch.no_grad()
    def run(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        a = A.float()
        # Rows of B a block at a time: a float32 copy of all of B may take gigabytes.
        columns = [(a @ rows.float().T).to(torch.bfloat16) for rows in torch.split(B, 4096)]
        return torch.cat(columns, dim=1)

    return run


class GemmBf16Base(GemmTests):
    reference = staticmethod(reference_gemm_bf16)
    interface = INTERFACE_GEMM_BF16

# The next 15: Matrix product C = A @ B.T in bfloat16 with float32 accumulation: output
# head, one row a vocabulary entry, K to N features.
class TestGemmBf16N100352K4096(GemmBf16Base):
    name = "gemm_bf16_n100352_k4096"  # model:granite-4.1-8b
    axes = {"N": 100352, "K": 4096}
    sha256 = "0415eaecfbd8eeb9b87f297ec01bf6b7aedad72b36da190c8f8dccbab7249717"

class TestGemmBf16N128256K2048(GemmBf16Base):
    name = "gemm_bf16_n128256_k2048"  # model:llama-3.2-1b, model:smollm3-3b
    axes = {"N": 128256, "K": 2048}
    sha256 = "42bd20435846330e8af969671fd39b9de7dd5721a244b4ccfb7a7e7a7f00dff3"

class TestGemmBf16N128256K3072(GemmBf16Base):
    name = "gemm_bf16_n128256_k3072"  # model:llama-3.2-3b
    axes = {"N": 128256, "K": 3072}
    sha256 = "18e7683b670bd11bf815d35e534821387b01570e8a6e77c9d860c1b51ea8199f"

class TestGemmBf16N128256K4096(GemmBf16Base):
    name = "gemm_bf16_n128256_k4096"  # model:llama-3.1-8b
    axes = {"N": 128256, "K": 4096}
    sha256 = "3e2f79b0a91f0089941ab6f4c53541f1d05733fd0cb36f113d203bea9d8ea94f"

class TestGemmBf16N128256K8192(GemmBf16Base):
    name = "gemm_bf16_n128256_k8192"  # model:llama-3.1-70b
    axes = {"N": 128256, "K": 8192}
    sha256 = "165b09fa2a6ecf2f6e7e8253fc5e849f6b16323457d45592dde86fd64d783cd7"

# model:deepseek-v3, model:deepseek-r1, model:deepseek-v3.2
class TestGemmBf16N129280K7168(GemmBf16Base):
    name = "gemm_bf16_n129280_k7168"
    axes = {"N": 129280, "K": 7168}
    sha256 = "7ae19404d0cb86d34d4af81971e838ba58c41ee523e43bd7f06bc03eac1bd7b8"

class TestGemmBf16N151936K2048(GemmBf16Base):
    name = "gemm_bf16_n151936_k2048"  # model:qwen3-30b-a3b, model:qwen3-next-80b-a3b
    axes = {"N": 151936, "K": 2048}
    sha256 = "cb82a59c747e758c083c89a790aab71e5dc64e30984bde9e8b47bb991b61b009"

class TestGemmBf16N151936K4096(GemmBf16Base):
    name = "gemm_bf16_n151936_k4096"  # model:qwen3-8b, model:qwen3-235b-a22b
    axes = {"N": 151936, "K": 4096}
    sha256 = "59d1b1dbed112d521629e8a1c22bc986d1153b0ef831fd8a249d60bafeff05a2"

class TestGemmBf16N151936K5120(GemmBf16Base):
    name = "gemm_bf16_n151936_k5120"  # model:qwen3-14b, model:qwen3-32b
    axes = {"N": 151936, "K": 5120}
    sha256 = "2dd34f83c940e5c792e61c22aecfcab1bcb5a41521247823ba9061677261ec62"

class TestGemmBf16N152064K3584(GemmBf16Base):
    name = "gemm_bf16_n152064_k3584"  # model:qwen2.5-7b
    axes = {"N": 152064, "K": 3584}
    sha256 = "96f7a9a697263c98896cd981a43957ee9a8ae103c1af84465f957ccb3fbe8acf"

class TestGemmBf16N163840K7168(GemmBf16Base):
    name = "gemm_bf16_n163840_k7168"  # model:kimi-k2
    axes = {"N": 163840, "K": 7168}
    sha256 = "059e15918e81eb13d0ae360a2d2786b24ec946169c6b21e24ed5c18b856fd803"

class TestGemmBf16N200064K3072(GemmBf16Base):
    name = "gemm_bf16_n200064_k3072"  # model:minimax-m2
    axes = {"N": 200064, "K": 3072}
    sha256 = "ea01d06bfeb113fc23db3a1a4fe2999209008bc2d7e2ebd6dd184d6f4dab1775"

class TestGemmBf16N201088K2880(GemmBf16Base):
    name = "gemm_bf16_n201088_k2880"  # model:gpt-oss-20b, model:gpt-oss-120b
    axes = {"N": 201088, "K": 2880}
    sha256 = "9e92a293e8230b1dedde390d3f1084f1fb0a24b4b88e7dd4bc5644155f0d8ec1"

class TestGemmBf16N262208K5376(GemmBf16Base):
    name = "gemm_bf16_n262208_k5376"  # model:gemma-3-27b
    axes = {"N": 262208, "K": 5376}
    sha256 = "6315bdd4aa1f6fdd196dfd90aa721e54b8571eae502dd4542c8e01dad0b29d3f"

class TestGemmBf16N32000K4096(GemmBf16Base):
    name = "gemm_bf16_n32000_k4096"  # model:mistral-7b-v0.1, model:mixtral-8x7b
    axes = {"N": 32000, "K": 4096}
    sha256 = "382940cb411b47a01cf84b2463a522bcadb1abafc36ea84dd3766a8a783b5179"

# The next 7: Matrix product C = A @ B.T in bfloat16 with float32 accumulation: fused
# query, key and value projection, K to N features.
class TestGemmBf16N10240K5120(GemmBf16Base):
    name = "gemm_bf16_n10240_k5120"  # model:qwen3-32b
    axes = {"N": 10240, "K": 5120}
    sha256 = "3d74192d45e42c8298d0912ad0b035499839e4aef4086e025ba40f16cd475df4"

class TestGemmBf16N3072K2048(GemmBf16Base):
    name = "gemm_bf16_n3072_k2048"  # model:llama-3.2-1b, model:smollm3-3b
    axes = {"N": 3072, "K": 2048}
    sha256 = "e758c4a399a2f92480f65b4ef6c2242f13829ab8dd0afd71968be6a7b3cb47b9"

class TestGemmBf16N5120K2048(GemmBf16Base):
    name = "gemm_bf16_n5120_k2048"  # model:qwen3-30b-a3b
    axes = {"N": 5120, "K": 2048}
    sha256 = "40ab5290c7018a7697d73fef2a8bdcf56dabfaf4b6b7db7ea79318e407aed0a9"

class TestGemmBf16N5120K3072(GemmBf16Base):
    name = "gemm_bf16_n5120_k3072"  # model:llama-3.2-3b
    axes = {"N": 5120, "K": 3072}
    sha256 = "9b168660313f000de05a5fcc7b2e3c7264c9af72f0c7bfa19731cde19cf676c0"

# model:llama-3.1-8b, model:qwen3-8b, model:mistral-7b-v0.1
class TestGemmBf16N6144K4096(GemmBf16Base):
    name = "gemm_bf16_n6144_k4096"
    axes = {"N": 6144, "K": 4096}
    sha256 = "7dfbe8b72b62a9205a96b0a8cf82de514cc88f16dba576d18bfa40f25ce0fcac"

# model:qwen3-14b, model:exaone-4.0-32b, model:llama-4-scout
class TestGemmBf16N7168K5120(GemmBf16Base):
    name = "gemm_bf16_n7168_k5120"
    axes = {"N": 7168, "K": 5120}
    sha256 = "71218e182b94001f026129d73da95af490df2cad379e156fc0418708a252d8fd"

class TestGemmBf16N8192K5376(GemmBf16Base):
    name = "gemm_bf16_n8192_k5376"  # model:gemma-3-27b
    axes = {"N": 8192, "K": 5376}
    sha256 = "e90afe565c111603958c6e5428cac68b0fba36a8412f43cbd8d9b11757961ff8"

# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: fused query, key and
# value projection on one of 8 devices, 4096 to 1280 features.
class TestGemmBf16N1280K4096(GemmBf16Base):
    name = "gemm_bf16_n1280_k4096"  # model:qwen3-235b-a22b, model:qwen3-vl-235b-a22b
    axes = {"N": 1280, "K": 4096}
    sha256 = "7badb562fa0827dc2dc300b2ec1d686c15eabc532f8f87adc820ae43bc3a269a"

# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: fused query, key and
# value projection on one of 8 devices, 8192 to 1280 features.
class TestGemmBf16N1280K8192(GemmBf16Base):
    name = "gemm_bf16_n1280_k8192"  # model:llama-3.3-70b
    axes = {"N": 1280, "K": 8192}
    sha256 = "dd236a62b7905063f13b6c1a4d6549746c6908d61798133c284b848f383f6521"

# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: fused query, key and
# value projection on one of 4 devices, 4096 to 2304 features.
class TestGemmBf16N2304K4096(GemmBf16Base):
    name = "gemm_bf16_n2304_k4096"  # model:qwen3-235b-a22b, model:qwen3-vl-235b-a22b
    axes = {"N": 2304, "K": 4096}
    sha256 = "ba895a9875e9ded9b9813698b6af5973738e8a73e37d299a15a128f7e41ba576"

# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: fused query, key and
# value projection on one of 4 devices, 8192 to 2560 features.
class TestGemmBf16N2560K8192(GemmBf16Base):
    name = "gemm_bf16_n2560_k8192"  # model:llama-3.1-70b, model:llama-3.3-70b
    axes = {"N": 2560, "K": 8192}
    sha256 = "558a546c72a76e72f0f5aebe7add545e3512c637c0320c8d6ac848e692c6c8cb"

# The next 10: Matrix product C = A @ B.T in bfloat16 with float32 accumulation: expert
# router, K to N features.
class TestGemmBf16N128K2048(GemmBf16Base):
    name = "gemm_bf16_n128_k2048"  # model:qwen3-30b-a3b
    axes = {"N": 128, "K": 2048}
    sha256 = "3891bbd66bdbd7c1a2e84f87b649c896202e95a6f8124adfb7cff74b8cbeba18"

class TestGemmBf16N128K2880(GemmBf16Base):
    name = "gemm_bf16_n128_k2880"  # model:gpt-oss-120b
    axes = {"N": 128, "K": 2880}
    sha256 = "b804cbdea5df4ee9cc4d4530823f74a0d6200bb6cc28700491a4324cd78833aa"

class TestGemmBf16N128K4096(GemmBf16Base):
    name = "gemm_bf16_n128_k4096"  # model:qwen3-235b-a22b
    axes = {"N": 128, "K": 4096}
    sha256 = "96d5f5f45be00d2bb7ddc26344d19752feab770c24688d89f4e927448fbcf274"

class TestGemmBf16N160K5120(GemmBf16Base):
    name = "gemm_bf16_n160_k5120"  # model:glm-4.6
    axes = {"N": 160, "K": 5120}
    sha256 = "a3ed77b56068ac4c87b18368e84d4d408b384dd1daf13c65b03a6496d6038ae3"

class TestGemmBf16N16K5120(GemmBf16Base):
    name = "gemm_bf16_n16_k5120"  # model:llama-4-scout
    axes = {"N": 16, "K": 5120}
    sha256 = "4a9516ec8f7c9c4cee803f69a9152f835635e60cbb709bc3f5863d7ce04a4adc"

class TestGemmBf16N32K2880(GemmBf16Base):
    name = "gemm_bf16_n32_k2880"  # model:gpt-oss-20b
    axes = {"N": 32, "K": 2880}
    sha256 = "49ba7d8691573307a219e8d1b9ca50e9407dde1230bd02273ee2fba819103932"

class TestGemmBf16N384K7168(GemmBf16Base):
    name = "gemm_bf16_n384_k7168"  # model:kimi-k2
    axes = {"N": 384, "K": 7168}
    sha256 = "fe75f74f2de69eb7d64611325d2ac0f710c4075a0eae3b0408f46137bd96faef"

class TestGemmBf16N512K2048(GemmBf16Base):
    name = "gemm_bf16_n512_k2048"  # model:qwen3-next-80b-a3b
    axes = {"N": 512, "K": 2048}
    sha256 = "74c6d11751643553d341264a496767063291bcd746877fb9ecf91e97dd8422b3"

class TestGemmBf16N8K4096(GemmBf16Base):
    name = "gemm_bf16_n8_k4096"  # model:mixtral-8x7b
    axes = {"N": 8, "K": 4096}
    sha256 = "24cea0a9f8c5b150aaaa09ab11619968f9b70c05f1ea830097fdc9a341b47fef"

class TestGemmBf16N8K6144(GemmBf16Base):
    name = "gemm_bf16_n8_k6144"  # model:mixtral-8x22b
    axes = {"N": 8, "K": 6144}
    sha256 = "56d2ab43ead1efad7adf9e27c14e9105d45ab34134acc97ffbaadd67c313b33d"

# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: fused gate and up
# projection on one of 4 devices, 8192 to 14336 features.
class TestGemmBf16N14336K8192(GemmBf16Base):
    name = "gemm_bf16_n14336_k8192"  # model:llama-3.1-70b, model:llama-3.3-70b
    axes = {"N": 14336, "K": 8192}
    sha256 = "9c97a1392bd95c84766d2cf7793bf005d7940a2d07ac152d8213e56abd2edcc5"

# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: fused gate and up
# projection on one of 8 devices, 8192 to 7168 features.
class TestGemmBf16N7168K8192(GemmBf16Base):
    name = "gemm_bf16_n7168_k8192"  # model:llama-3.3-70b
    axes = {"N": 7168, "K": 8192}
    sha256 = "8c395b5038d774e0e23c9ec5d48bfc204410a7d0335b5463392e7c0cf81532b6"

# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: output head, one row
# a vocabulary entry, on one of 8 devices, 8192 to 16032 features.
class TestGemmBf16N16032K8192(GemmBf16Base):
    name = "gemm_bf16_n16032_k8192"  # model:llama-3.1-70b, model:llama-3.3-70b
    axes = {"N": 16032, "K": 8192}
    sha256 = "4ea675808abda30ecd7dbe7b62cfb166d7e1f27d19fc14da6bb902af08b6f450"

# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: output head, one row
# a vocabulary entry, on one of 8 devices, 4096 to 18992 features.
class TestGemmBf16N18992K4096(GemmBf16Base):
    name = "gemm_bf16_n18992_k4096"  # model:qwen3-235b-a22b, model:qwen3-vl-235b-a22b
    axes = {"N": 18992, "K": 4096}
    sha256 = "9c2ad7df1cf434ef421153c6b0fc2e4b606011235ef2afc474a3f705b4bbdfd6"

# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: output head, one row
# a vocabulary entry, on one of 4 devices, 8192 to 32064 features.
class TestGemmBf16N32064K8192(GemmBf16Base):
    name = "gemm_bf16_n32064_k8192"  # model:llama-3.1-70b, model:llama-3.3-70b
    axes = {"N": 32064, "K": 8192}
    sha256 = "13b920c9278980034ff47f1c762cd536e142b45222a099fb033ade7c376e629c"

# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: output head, one row
# a vocabulary entry, on one of 4 devices, 4096 to 37984 features.
class TestGemmBf16N37984K4096(GemmBf16Base):
    name = "gemm_bf16_n37984_k4096"  # model:qwen3-235b-a22b, model:qwen3-vl-235b-a22b
    axes = {"N": 37984, "K": 4096}
    sha256 = "7c5cb6014bc757676859c373b7085c6e9ed9d94dcfa0a91cd2a21dac621eaba0"

# The next 10: Matrix product C = A @ B.T in bfloat16 with float32 accumulation: fused
# gate and up projection, K to N features.
class TestGemmBf16N16384K2048(GemmBf16Base):
    name = "gemm_bf16_n16384_k2048"  # model:llama-3.2-1b
    axes = {"N": 16384, "K": 2048}
    sha256 = "30f31af8664105a4bb0b50c04f2506768743e79020e7af72f8c09066c554e5ee"

class TestGemmBf16N16384K3072(GemmBf16Base):
    name = "gemm_bf16_n16384_k3072"  # model:llama-3.2-3b
    axes = {"N": 16384, "K": 3072}
    sha256 = "c575b0fd063c581cf1cd8e2348bfa4be56aed1706a7cb3370972f38068547118"

class TestGemmBf16N22016K2048(GemmBf16Base):
    name = "gemm_bf16_n22016_k2048"  # model:smollm3-3b
    axes = {"N": 22016, "K": 2048}
    sha256 = "b0eebf03ca23d8277daf420497629f0c75a63e526ea19328e8d20c6c1f3c6b85"

class TestGemmBf16N24576K4096(GemmBf16Base):
    name = "gemm_bf16_n24576_k4096"  # model:qwen3-8b, model:qwen3-vl-8b
    axes = {"N": 24576, "K": 4096}
    sha256 = "0ffe79230e1ad26381b210d8037b25e5f1bf01cd69b215de3c7c5912f32779c5"

class TestGemmBf16N25600K4096(GemmBf16Base):
    name = "gemm_bf16_n25600_k4096"  # model:granite-4.1-8b
    axes = {"N": 25600, "K": 4096}
    sha256 = "fe77ec189e78c64395371502694a4f83cd142ca537882a028cc7edcee3cc591b"

class TestGemmBf16N28672K4096(GemmBf16Base):
    name = "gemm_bf16_n28672_k4096"  # model:llama-3.1-8b, model:mistral-7b-v0.1
    axes = {"N": 28672, "K": 4096}
    sha256 = "2ee763154f8feb77eba14b3f80a1b8f39f22e4a288737250f28c3f3e0a972469"

class TestGemmBf16N34816K5120(GemmBf16Base):
    name = "gemm_bf16_n34816_k5120"  # model:qwen3-14b
    axes = {"N": 34816, "K": 5120}
    sha256 = "f2256c616d9cf99a3ef9f2e0dfb3aafde826ccbbc6c96de8b281c32fdd903560"

class TestGemmBf16N37888K3584(GemmBf16Base):
    name = "gemm_bf16_n37888_k3584"  # model:qwen2.5-7b
    axes = {"N": 37888, "K": 3584}
    sha256 = "d4e7f5d83252360787c3fe2d6d3440a84f6a2e1d4a117c6c240b4e8176666455"

class TestGemmBf16N43008K5376(GemmBf16Base):
    name = "gemm_bf16_n43008_k5376"  # model:gemma-3-27b
    axes = {"N": 43008, "K": 5376}
    sha256 = "374ab01215e09705396d5b35f587cfa1917f4e307d0e268abd66995d269cea79"

class TestGemmBf16N51200K5120(GemmBf16Base):
    name = "gemm_bf16_n51200_k5120"  # model:qwen3-32b
    axes = {"N": 51200, "K": 5120}
    sha256 = "ac2d12ad1b47da3f74e366f55e1da9dfcd985ee10f14fcd0aee1a5eba57b8254"

# The next 10: Matrix product C = A @ B.T in bfloat16 with float32 accumulation: down
# projection, K to N features.
class TestGemmBf16N2048K11008(GemmBf16Base):
    name = "gemm_bf16_n2048_k11008"  # model:smollm3-3b
    axes = {"N": 2048, "K": 11008}
    sha256 = "60a9e580938fdc69bfecf161858e2e6ef71ca74c63ff5aaaeae174efbdfb2ab2"

class TestGemmBf16N2048K8192(GemmBf16Base):
    name = "gemm_bf16_n2048_k8192"  # model:llama-3.2-1b
    axes = {"N": 2048, "K": 8192}
    sha256 = "d999c4e3e5e63292cb9660adef0a97b0bdc6c101a211aaf316e9ef8ed36e1576"

class TestGemmBf16N3072K8192(GemmBf16Base):
    name = "gemm_bf16_n3072_k8192"  # model:llama-3.2-3b
    axes = {"N": 3072, "K": 8192}
    sha256 = "b0a7441e018315d6beee14c35c0595036aea6b12b89dd2f09467f711a76e89fa"

class TestGemmBf16N3584K18944(GemmBf16Base):
    name = "gemm_bf16_n3584_k18944"  # model:qwen2.5-7b
    axes = {"N": 3584, "K": 18944}
    sha256 = "60bcc216894e080d0107c8ea7c2bf5b1f8d6bf149b8f6dfef99dd72f797e2680"

class TestGemmBf16N4096K12288(GemmBf16Base):
    name = "gemm_bf16_n4096_k12288"  # model:qwen3-8b, model:qwen3-vl-8b
    axes = {"N": 4096, "K": 12288}
    sha256 = "68297ea3d78fd5f0e514e3a7fd0c84d7f18d7b2ecd3e0c5ffdbf54ed670298ef"

class TestGemmBf16N4096K12800(GemmBf16Base):
    name = "gemm_bf16_n4096_k12800"  # model:granite-4.1-8b
    axes = {"N": 4096, "K": 12800}
    sha256 = "98ed746194372d2a6e63a2f17afa055d622d613ff0df03646a11df8a9d46ba4b"

class TestGemmBf16N4096K14336(GemmBf16Base):
    name = "gemm_bf16_n4096_k14336"  # model:llama-3.1-8b, model:mistral-7b-v0.1
    axes = {"N": 4096, "K": 14336}
    sha256 = "afdf04bd4a8e17b41d281bd7f0a540c747668d086f38c1b3085a350ed169c0b7"

class TestGemmBf16N5120K17408(GemmBf16Base):
    name = "gemm_bf16_n5120_k17408"  # model:qwen3-14b
    axes = {"N": 5120, "K": 17408}
    sha256 = "8b3b634acffc9af84a021f84b3e034f4e9f49d75dd7179ca12991f9ff043e6ff"

class TestGemmBf16N5120K25600(GemmBf16Base):
    name = "gemm_bf16_n5120_k25600"  # model:qwen3-32b
    axes = {"N": 5120, "K": 25600}
    sha256 = "39ae76d1daa457e29e6ea7df868839e7ce4df7a44e7bb1b3dddf7535f4ad289e"

class TestGemmBf16N5376K21504(GemmBf16Base):
    name = "gemm_bf16_n5376_k21504"  # model:gemma-3-27b
    axes = {"N": 5376, "K": 21504}
    sha256 = "25f07a904f1e653560a1255796c897345f5534ce09ff21a1fb455410909d6455"

# The next 11: Matrix product C = A @ B.T in bfloat16 with float32 accumulation:
# attention output projection, K to N features.
# model:llama-3.2-1b, model:smollm3-3b, model:qwen1.5-moe-a2.7b
class TestGemmBf16N2048K2048(GemmBf16Base):
    name = "gemm_bf16_n2048_k2048"
    axes = {"N": 2048, "K": 2048}
    sha256 = "a0676a7a69f94a493b8e4e4a58add0381305412215886e8f84c6df1385890880"

class TestGemmBf16N2048K4096(GemmBf16Base):
    name = "gemm_bf16_n2048_k4096"  # model:qwen3-30b-a3b, model:qwen3-next-80b-a3b
    axes = {"N": 2048, "K": 4096}
    sha256 = "64d02f0b0f7a35796f8bf735428f0423080396ed96521feb03ea8717e31cf170"

class TestGemmBf16N2880K4096(GemmBf16Base):
    name = "gemm_bf16_n2880_k4096"  # model:gpt-oss-20b, model:gpt-oss-120b
    axes = {"N": 2880, "K": 4096}
    sha256 = "ba6fd126617c728ba6d7205b1d96231753a647390caaa04efec5ce9207f765a6"

class TestGemmBf16N3072K3072(GemmBf16Base):
    name = "gemm_bf16_n3072_k3072"  # model:llama-3.2-3b
    axes = {"N": 3072, "K": 3072}
    sha256 = "37f6a43b949e281872a06a165755088ae123a5269d9a73cb70a9e1f77807ca7c"

class TestGemmBf16N3584K3584(GemmBf16Base):
    name = "gemm_bf16_n3584_k3584"  # model:qwen2.5-7b
    axes = {"N": 3584, "K": 3584}
    sha256 = "715a9a50f1e40ee1ff82415bde8dccab05693bd5bad762d8453be32cc2cc7d2e"

# model:llama-3.1-8b, model:qwen3-8b, model:mistral-7b-v0.1
class TestGemmBf16N4096K4096(GemmBf16Base):
    name = "gemm_bf16_n4096_k4096"
    axes = {"N": 4096, "K": 4096}
    sha256 = "b318f3d8bca189df6ca82fdb9669d6bb817f87e20db022393ebe180cfa787ffc"

class TestGemmBf16N4096K8192(GemmBf16Base):
    name = "gemm_bf16_n4096_k8192"  # model:qwen3-235b-a22b, model:nemotron-h-8b
    axes = {"N": 4096, "K": 8192}
    sha256 = "547ea40b8d60ec542f1601fec6621eaec988a210dc650a94c827b64bf3a99126"

# model:qwen3-14b, model:phi-4-14b, model:llama-4-scout
class TestGemmBf16N5120K5120(GemmBf16Base):
    name = "gemm_bf16_n5120_k5120"
    axes = {"N": 5120, "K": 5120}
    sha256 = "4d990463102358cd43b4e52a25c40a4c818e2484789f70a57a4aa7cfbad8e45e"

class TestGemmBf16N5120K8192(GemmBf16Base):
    name = "gemm_bf16_n5120_k8192"  # model:qwen3-32b
    axes = {"N": 5120, "K": 8192}
    sha256 = "cd34bffdd581a7c805123f3f92b9d71f9c180a203c7df74938d464c5fb912eb4"

class TestGemmBf16N5376K4096(GemmBf16Base):
    name = "gemm_bf16_n5376_k4096"  # model:gemma-3-27b
    axes = {"N": 5376, "K": 4096}
    sha256 = "88c78463aa9e1cd792d2dfdc4fed56f8ee24b540bcff9b502824799c1f0ad761"

class TestGemmBf16N6144K6144(GemmBf16Base):
    name = "gemm_bf16_n6144_k6144"  # model:mixtral-8x22b
    axes = {"N": 6144, "K": 6144}
    sha256 = "f347323a0a7199fff801f207a75824adfe34a3c41461f2827483287036f78f4d"

# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: compression of query
# and of key and value at once, 7168 to 2112 features.
# model:deepseek-v3, model:deepseek-r1, model:deepseek-v3.2, model:kimi-k2
class TestGemmBf16N2112K7168(GemmBf16Base):
    name = "gemm_bf16_n2112_k7168"
    axes = {"N": 2112, "K": 7168}
    sha256 = "85a24469ac769a64d391d34d7703a22fb18939053bb40ba04c9479ec25b4214e"

# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: attention output
# projection on one of 8 devices, 1024 to 4096 features.
class TestGemmBf16N4096K1024(GemmBf16Base):
    name = "gemm_bf16_n4096_k1024"  # model:qwen3-235b-a22b, model:qwen3-vl-235b-a22b
    axes = {"N": 4096, "K": 1024}
    sha256 = "0aa0633dbb5b16eda8f6e4f142c97e6362dea8331263b3793b85230d7b96052c"

# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: attention output
# projection on one of 4 devices, 2048 to 4096 features.
class TestGemmBf16N4096K2048(GemmBf16Base):
    name = "gemm_bf16_n4096_k2048"  # model:qwen3-235b-a22b, model:qwen3-vl-235b-a22b
    axes = {"N": 4096, "K": 2048}
    sha256 = "7ce3356a957bddf2ec8997474bcf84fd988d07625b838b3485d84e483d794c06"

# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: attention output
# projection on one of 8 devices, 1024 to 8192 features.
class TestGemmBf16N8192K1024(GemmBf16Base):
    name = "gemm_bf16_n8192_k1024"  # model:llama-3.3-70b
    axes = {"N": 8192, "K": 1024}
    sha256 = "4e23d895100fe573e67a1a6f74f0b2e9ae5fe7ece08dd8aaced7fc0eecb974b3"

# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: attention output
# projection on one of 4 devices, 2048 to 8192 features.
class TestGemmBf16N8192K2048(GemmBf16Base):
    name = "gemm_bf16_n8192_k2048"  # model:llama-3.1-70b, model:llama-3.3-70b
    axes = {"N": 8192, "K": 2048}
    sha256 = "68795b0dbc78b2d1608f3bd4c3404ba9b66c5ff59708c55db6c0a9727c060385"

# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: down projection on
# one of 8 devices, 3584 to 8192 features.
class TestGemmBf16N8192K3584(GemmBf16Base):
    name = "gemm_bf16_n8192_k3584"  # model:llama-3.3-70b
    axes = {"N": 8192, "K": 3584}
    sha256 = "a5a91b2f6509d391f7aa881e67e5100347c9dae048046ef23e8b122c87c3dc86"

# Matrix product C = A @ B.T in bfloat16 with float32 accumulation: down projection on
# one of 4 devices, 7168 to 8192 features.
class TestGemmBf16N8192K7168(GemmBf16Base):
    name = "gemm_bf16_n8192_k7168"  # model:llama-3.1-70b, model:llama-3.3-70b
    axes = {"N": 8192, "K": 7168}
    sha256 = "8c1810fa481cc606acd639cf7cbc0106e51456267e35eeccf95f82f735f32d9b"


# Tolerances:
#   output  source                       rtol   atol   NMSE   reason
#   C       oracle, flashinfer, pytorch  0.001  0.001  1e-06  default
def reference_gemm():
    import torch


    @torch.no_grad()
    def run(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        a = A.float()
        # Rows of B a block at a time: a float32 copy of all of B may take gigabytes.
        columns = [(a @ rows.float().T).to(torch.float16) for rows in torch.split(B, 4096)]
        return torch.cat(columns, dim=1)

    return run


class GemmBase(GemmTests):
    reference = staticmethod(reference_gemm)
    interface = INTERFACE_GEMM

# The next 7: Matrix product C = A @ B.T in float16 with float32 accumulation: fused
# query, key and value projection, K to N features.
class TestGemmN10240K8192(GemmBase):
    name = "gemm_n10240_k8192"  # model:llama-3.1-70b
    axes = {"N": 10240, "K": 8192}
    sha256 = "4e5ed5d99086b595b7973355fea9c7e505c9cd36759a2a3d2a90f4cd6d3c0b2f"

class TestGemmN4608K3584(GemmBase):
    name = "gemm_n4608_k3584"  # model:qwen2.5-7b
    axes = {"N": 4608, "K": 3584}
    sha256 = "e5760335a0fa7b8e04ce4e88faf0e52f792bdd15590dffd4b8a2d7540177ecf1"

class TestGemmN5120K2048(GemmBase):
    name = "gemm_n5120_k2048"  # model:qwen3-30b-a3b
    axes = {"N": 5120, "K": 2048}
    sha256 = "79ce26543b8ed3123e7e340f808cc84c5a464fee28e4c5a07d6440d8ca2f5324"

class TestGemmN5120K3072(GemmBase):
    name = "gemm_n5120_k3072"  # model:llama-3.2-3b
    axes = {"N": 5120, "K": 3072}
    sha256 = "605c61715563f7c17bb6f1d2c8886dfe68da0fc598749d2fc681c207bd376355"

class TestGemmN6144K4096(GemmBase):
    name = "gemm_n6144_k4096"  # model:llama-3.1-8b
    axes = {"N": 6144, "K": 4096}
    sha256 = "791b1201b48e25daa2813014357ba143c19863294ef30958b749a520960ab4ab"

class TestGemmN7168K5120(GemmBase):
    name = "gemm_n7168_k5120"  # model:qwen3-14b
    axes = {"N": 7168, "K": 5120}
    sha256 = "b0899e3e1c9e8a78157aed15afc3132facc8918ae06c1c462e734a3f4aff084e"

class TestGemmN8192K3072(GemmBase):
    name = "gemm_n8192_k3072"  # model:minimax-m2
    axes = {"N": 8192, "K": 3072}
    sha256 = "16e6f710a5debe06621e706005f2ac78d50057dcbb50216bbd1fe4d424622939"

# The next 3: Matrix product C = A @ B.T in float16 with float32 accumulation: expert
# router, K to N features.
class TestGemmN128K2048(GemmBase):
    name = "gemm_n128_k2048"  # model:qwen3-30b-a3b
    axes = {"N": 128, "K": 2048}
    sha256 = "e90c014152653ca6fd1a67d67796ff54694509c462f238317e756a3bc3dcb03a"

class TestGemmN256K3072(GemmBase):
    name = "gemm_n256_k3072"  # model:minimax-m2
    axes = {"N": 256, "K": 3072}
    sha256 = "28f9b6b5377cd9a4c413dab1a810d44f129e5914c13af60a1516f0fc3d532c34"

class TestGemmN256K7168(GemmBase):
    name = "gemm_n256_k7168"  # model:deepseek-v3, model:deepseek-r1
    axes = {"N": 256, "K": 7168}
    sha256 = "1f4a51f2fb4e88060390b78a00d3f78e533eb359da8f444ad819693c99e5125b"

# The next 5: Matrix product C = A @ B.T in float16 with float32 accumulation: fused
# gate and up projection, K to N features.
class TestGemmN16384K3072(GemmBase):
    name = "gemm_n16384_k3072"  # model:llama-3.2-3b
    axes = {"N": 16384, "K": 3072}
    sha256 = "9f9a9720a54b4660b9932c462f02a0bdf67a33b23764483aa26ff6314626f1aa"

class TestGemmN28672K4096(GemmBase):
    name = "gemm_n28672_k4096"  # model:llama-3.1-8b
    axes = {"N": 28672, "K": 4096}
    sha256 = "d85979e2038825be69b346fd2c04b22a3da0964106e5a936e608a5e36c632916"

class TestGemmN34816K5120(GemmBase):
    name = "gemm_n34816_k5120"  # model:qwen3-14b
    axes = {"N": 34816, "K": 5120}
    sha256 = "b4e9429272894cc6a786e8dceff7ad6f8b93906f7c2fffd0862eea5f7195cf93"

class TestGemmN37888K3584(GemmBase):
    name = "gemm_n37888_k3584"  # model:qwen2.5-7b
    axes = {"N": 37888, "K": 3584}
    sha256 = "f2325396eb2e6a162670420e8b85eb47bad7e7e52bc56735dd3c45c8f6fe056a"

class TestGemmN57344K8192(GemmBase):
    name = "gemm_n57344_k8192"  # model:llama-3.1-70b
    axes = {"N": 57344, "K": 8192}
    sha256 = "fcb42e7b81727de548dfd6edd0d0473e8b700fad3542956b8b89a4649edbec06"

# The next 8: Matrix product C = A @ B.T in float16 with float32 accumulation: attention
# output projection, K to N features.
class TestGemmN2048K4096(GemmBase):
    name = "gemm_n2048_k4096"  # model:qwen3-30b-a3b
    axes = {"N": 2048, "K": 4096}
    sha256 = "24b6539db8f72e91f797f045c93568639044f1746ac4c5d994834e921442f344"

class TestGemmN3072K3072(GemmBase):
    name = "gemm_n3072_k3072"  # model:llama-3.2-3b
    axes = {"N": 3072, "K": 3072}
    sha256 = "1f89a741b48880a668009b427cb1982025fd70d26aa256a3a96e41553a93fc1d"

class TestGemmN3072K6144(GemmBase):
    name = "gemm_n3072_k6144"  # model:minimax-m2
    axes = {"N": 3072, "K": 6144}
    sha256 = "70a1446ff1361c31a5eb8fe4996ada7b8b8181bcc5260263a232710a09f3ded5"

class TestGemmN3584K3584(GemmBase):
    name = "gemm_n3584_k3584"  # model:qwen2.5-7b
    axes = {"N": 3584, "K": 3584}
    sha256 = "22dfde6c7d08bd85fb66b6f722e3af646440ba3db812dd2872cca95273e9e70b"

class TestGemmN4096K4096(GemmBase):
    name = "gemm_n4096_k4096"  # model:llama-3.1-8b
    axes = {"N": 4096, "K": 4096}
    sha256 = "1f0d2f87600f256ac1d5c8a95ccfdc470c4cb7056bc9ef701c0d9b6f240dd195"

class TestGemmN5120K5120(GemmBase):
    name = "gemm_n5120_k5120"  # model:qwen3-14b
    axes = {"N": 5120, "K": 5120}
    sha256 = "7b74e246b04e12b583b59b7ca9db14c391c0b1692f0adb43451ffd3a7dd2508b"

class TestGemmN5376K4096(GemmBase):
    name = "gemm_n5376_k4096"  # model:gemma-3-27b
    axes = {"N": 5376, "K": 4096}
    sha256 = "f900554dd9a7e72962face2ec4ae4c1335c2c1281860a26a6c131685c355fbb4"

class TestGemmN8192K8192(GemmBase):
    name = "gemm_n8192_k8192"  # model:llama-3.1-70b
    axes = {"N": 8192, "K": 8192}
    sha256 = "aee6ce84b383660ef51b0df6579ec89174c88e210f96545cdcce0321a45a9c5a"

# Matrix product C = A @ B.T in float16 with float32 accumulation: key or value
# projection, 5376 to 2048 features.
class TestGemmN2048K5376(GemmBase):
    name = "gemm_n2048_k5376"  # model:gemma-3-27b
    axes = {"N": 2048, "K": 5376}
    sha256 = "e57023467742824ad713bf9db94df65923780c305fa1dc4907e35fcda60b1305"

# Matrix product C = A @ B.T in float16 with float32 accumulation: gate or up
# projection, 5376 to 21504 features.
class TestGemmN21504K5376(GemmBase):
    name = "gemm_n21504_k5376"  # model:gemma-3-27b
    axes = {"N": 21504, "K": 5376}
    sha256 = "ac2911fcae8d103068fcf1b2b2d2fe2cd896a905401d5ee860dc2fe9b6cbe258"

# The next 6: Matrix product C = A @ B.T in float16 with float32 accumulation: down
# projection, K to N features.
class TestGemmN3072K8192(GemmBase):
    name = "gemm_n3072_k8192"  # model:llama-3.2-3b
    axes = {"N": 3072, "K": 8192}
    sha256 = "4352e920bd0aebcee48a4a4d3e569b6e13a3c3c1f9c252d47874fb6026f36c10"

class TestGemmN3584K18944(GemmBase):
    name = "gemm_n3584_k18944"  # model:qwen2.5-7b
    axes = {"N": 3584, "K": 18944}
    sha256 = "23ad8fe4a10b452ccce0e631eb9b34e64b2dcae03c3c553bdbbfbc762f881faa"

class TestGemmN4096K14336(GemmBase):
    name = "gemm_n4096_k14336"  # model:llama-3.1-8b
    axes = {"N": 4096, "K": 14336}
    sha256 = "a91053306667eb7a96b9c54d111f8615c5773a39c3c0314cb67224feecb4371a"

class TestGemmN5120K17408(GemmBase):
    name = "gemm_n5120_k17408"  # model:qwen3-14b
    axes = {"N": 5120, "K": 17408}
    sha256 = "7b548308923962bbcc6b01a53e277dfc8b85adddabd4c8373baacd6df9852efc"

class TestGemmN5376K21504(GemmBase):
    name = "gemm_n5376_k21504"  # model:gemma-3-27b
    axes = {"N": 5376, "K": 21504}
    sha256 = "f80e65259de32995cc8696a943901d5f4dd6e7c14401db54bf3c1e7a2e815a01"

class TestGemmN8192K28672(GemmBase):
    name = "gemm_n8192_k28672"  # model:llama-3.1-70b
    axes = {"N": 8192, "K": 28672}
    sha256 = "309214d2209d261c430c600275a49e2b5da6f11b8a45f4b7c1b3aadde2bf570e"

# Matrix product C = A @ B.T in float16 with float32 accumulation: query projection,
# 5376 to 4096 features.
class TestGemmN4096K5376(GemmBase):
    name = "gemm_n4096_k5376"  # model:gemma-3-27b
    axes = {"N": 4096, "K": 5376}
    sha256 = "b40e8fec759f320e32467e18f3ff3208844b59da940efac64ec455ef793f1a27"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
