"""Reference tests of op_type activation.

Rendered: don't edit. `gen-tests --op-type activation` renders this file anew.

Each class tests one definition. It compares what the definition's `run()` returns with
- FlashInfer's kernels, live, on a CUDA device
- SGLang's layers, live, in a process of their own
- what these kernels returned when they were recorded, anywhere
- an independent float64 implementation in PyTorch, `oracle`, anywhere
- what it returns for related inputs, `relations`, anywhere
Tolerances: TOLERANCES below, else generator/testing/tolerance.py by dtype.

SHA-256 of the definitions:
a6fbb71776ef163f5ff5be45e2ff37aeb220f9995174e8c279ade3f268904671  silu_and_mul_i12288
1bbcc1e3c48c6e5f21af91d5fc94ef1c2cf932afb4396201df292e5a9bc5a214  silu_and_mul_i14336
37800b101a17c014e7809497b62a6a9a438fd00d5d31042fbbe5b2d21ff5460a  silu_and_mul_i1536
0617e8bdb7291005e4c607ef2c5e14593461e22a70c636aa2abe509e566a855a  silu_and_mul_i16384
7b7fa633c6dcbe86200f348af50f1d3abd78537af2e308449259bab325da5e0d  silu_and_mul_i17408
344b09abc1805b6f641a9ddaa0fe01e3a2b2c92dfdd534b7692ee33906a040ea  silu_and_mul_i17920
2e2a6e89e54609466e9f882f69e1806a749df93454226a4f5c6a94db239a4b94  silu_and_mul_i18432
66125829b5db11c59d72c2d9157d1fc3a5feb838b2b3922509f93acc91574cab  silu_and_mul_i18944
845e75e669abc36b2c6fbb0ac83b0c9661618c45ea8a14d0b0d0ae5c2ff20da7  silu_and_mul_i2048
24b08e771f8fc9e4c1f79f6a0d796b49e9e527c2e88b8dda8b35107f6897e22e  silu_and_mul_i25600
c5c0daf1e3c097bbf8985d27ecf0fe4538e332ebe2f5135667c5c9a29332cf9c  silu_and_mul_i28672
0f6f09791e2776882b4bcd87162cade881356353ffaeb45e22524352345a807c  silu_and_mul_i29568
c42c29c3a130ac5fbe1667a1b5c69d96b3e4b2e8ec1aece33d209e7d36a87c1d  silu_and_mul_i512
ee3cf9591042bc2b178b64bbd2064770e03ed0b627b2fe40462ac69b756eadc1  silu_and_mul_i53248
fc57ef7b57078b4ff26c8d09c64dcb507ada7a84a5f7d14d10a05e6863080b4c  silu_and_mul_i768
75a5fcb530f9bfd8168e820e5d726ab7d752c72e71df3e30977024fea9352dc1  silu_and_mul_i8192
"""

from __future__ import annotations

import sys
from typing import Any

import torch

from generator.ops.op_types.activation.relations import activation_relations
from generator.testing.definition import Backend, Case, Definition, Interface
from generator.testing.harness import (
    GroundTruthsAgree,
    MatchesFlashInfer,
    MatchesSGLang,
    main,
)
from generator.testing.metamorphic import Metamorphic
from generator.testing.relation import Relation
from generator.testing.replay import MatchesRecorded
from generator.testing.seeded_inputs import Stream
from generator.testing.tolerance import Override, Tolerance

# ---- the op: cases, inputs, float64 oracle, production kernels

TOLERANCES = (
    Override(
        "output",
        Tolerance(rtol=4e-3, atol=1e-30, nmse=1.6e-5),
        "float32 arithmetic and one rounding to bfloat16: half an ulp is 2^-8 of a "
        "value at most, and 2^-16 = 1.53e-5 its square; where exp(-gate) overflows "
        "float32, at gates below -88, silu is -0 instead of -1e-36",
        source="oracle",
    ),
    Override(
        "output",
        Tolerance(rtol=8e-3, atol=1e-30, nmse=1.6e-5),
        "both sides round nearly the same float32 value once: to neighbours at most, "
        "2^-7 apart, and most to the same; exp(-gate) overflows float32 at gates below "
        "-88, where silu is -0 or -1e-36",
    ),
)


def cases(definition: Definition) -> list[Case]:
    """Return batches of ordinary rows, and gates at either end of the sigmoid."""
    return [
        Case("one-row", "small", {"num_tokens": 1}, {"std": 1.0}),
        Case("odd-rows", "small", {"num_tokens": 7}, {"std": 3.0}),
        Case("negative-gates", "small", {"num_tokens": 3}, {"std": 9.0, "mean": -30.0}),
        Case("large-values", "small", {"num_tokens": 3}, {"std": 1e3}),
        Case("zero-rows", "small", {"num_tokens": 4}, {"std": 1.0, "zero_rows": 1}),
        Case("batch", "medium", {"num_tokens": 67}, {"std": 2.0}),
        Case("long-batch", "large", {"num_tokens": 4096}, {"std": 2.0}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return bfloat16 rows [num_tokens, 2·intermediate_size] of the case's deviation.

    Of as many rows as the case says the gate is zero, of as many others `up`.
    """
    shape = (case.axes["num_tokens"], definition.axes["intermediate_size"])
    std, zero_rows = case.params["std"], case.params.get("zero_rows", 0)
    gate = stream.child("gate").values(shape, std) + case.params.get("mean", 0.0)
    up = stream.child("up").values(shape, std)
    gate[:zero_rows] = 0.0
    up[zero_rows : 2 * zero_rows] = 0.0
    return {"input": torch.cat((gate, up), dim=1).to(torch.bfloat16)}


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the product in float64; the sigmoid is exp(-log(1 + exp(-gate)))."""
    x: torch.Tensor = inputs["input"].double()
    size = definition.axes["intermediate_size"]
    gate, up = x[:, :size], x[:, size:]
    log_sigmoid = -torch.logaddexp(torch.zeros_like(gate), -gate)
    return up * gate * torch.exp(log_sigmoid)


def relations(definition: Definition) -> list[Relation]:
    """Return what holds between calls on related rows."""
    return activation_relations(definition)


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the one CUDA kernel there is."""
    return (Backend(""),)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Call flashinfer.activation's kernel, which wants rows of a multiple of 16 bytes."""
    from flashinfer import activation

    return activation.silu_and_mul(inputs["input"])


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return SGLang's PyTorch code, which runs anywhere."""
    return (Backend("native", needs_cuda=False),)


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Call the layer's native code in float32, and round once as its kernels do.

    Given bfloat16, it would round silu(gate) before the product.
    """
    from sglang.srt.layers.activation import SiluAndMul

    x = inputs["input"]
    out: torch.Tensor = SiluAndMul().forward_native(x.float())
    return out.to(x.dtype)


# ---- the interfaces

INTERFACE_SILU_AND_MUL = Interface(
    inputs={
        "input": "bfloat16[num_tokens, gate_up_size]",
    },
    outputs={
        "output": "bfloat16[num_tokens, intermediate_size]",
    },
    constraints=("gate_up_size == 2 * intermediate_size",),
)

# ---- the references, as the definitions have them


# fmt: off
# of silu_and_mul_i12288 and 15 more definitions
def reference_silu_and_mul():
    import torch


    @torch.no_grad()
    def run(input: torch.Tensor) -> torch.Tensor:
        gate, up = input.float().chunk(2, dim=-1)
        # The product stays in float32: it is rounded once.
        return (torch.nn.functional.silu(gate) * up).to(input.dtype)

    return run


# fmt: on
# ---- the tests


class ActivationTests(
    GroundTruthsAgree, MatchesFlashInfer, MatchesSGLang, MatchesRecorded, Metamorphic
):
    """What the tests of activation share."""

    op_type = "activation"
    sizes = ("small", "medium")
    interface = INTERFACE_SILU_AND_MUL
    reference = staticmethod(reference_silu_and_mul)
    tolerances = TOLERANCES
    cases = staticmethod(cases)
    make_inputs = staticmethod(make_inputs)
    oracle = staticmethod(oracle)
    relations = staticmethod(relations)
    flashinfer_backends = staticmethod(flashinfer_backends)
    flashinfer_ground_truth = staticmethod(flashinfer_ground_truth)
    sglang_backends = staticmethod(sglang_backends)
    sglang_ground_truth = staticmethod(sglang_ground_truth)


# Gated activation of dense layers: silu(gate) * up with silu(x) = x * sigmoid(x). The
# first 12288 columns of a row are the gate, the other 12288 the up projection. In
# float32, rounded to bfloat16 at the end.
# model:qwen3-8b, fi_api:flashinfer.activation.silu_and_mul
class TestSiluAndMulI12288(ActivationTests):
    name = "silu_and_mul_i12288"
    INTERMEDIATE_SIZE = 12288
    GATE_UP_SIZE = 24576


# Gated activation of dense layers: silu(gate) * up with silu(x) = x * sigmoid(x). The
# first 14336 columns of a row are the gate, the other 14336 the up projection. In
# float32, rounded to bfloat16 at the end.
# model:llama-3.1-8b, fi_api:flashinfer.activation.silu_and_mul
class TestSiluAndMulI14336(ActivationTests):
    name = "silu_and_mul_i14336"
    INTERMEDIATE_SIZE = 14336
    GATE_UP_SIZE = 28672


# Gated activation of an expert: silu(gate) * up with silu(x) = x * sigmoid(x). The
# first 1536 columns of a row are the gate, the other 1536 the up projection. In
# float32, rounded to bfloat16 at the end.
# model:minimax-m2, model:qwen3-235b-a22b, fi_api:flashinfer.activation.silu_and_mul
class TestSiluAndMulI1536(ActivationTests):
    name = "silu_and_mul_i1536"
    INTERMEDIATE_SIZE = 1536
    GATE_UP_SIZE = 3072


# Gated activation of an expert: silu(gate) * up with silu(x) = x * sigmoid(x). The
# first 16384 columns of a row are the gate, the other 16384 the up projection. In
# float32, rounded to bfloat16 at the end.
# model:mixtral-8x22b, fi_api:flashinfer.activation.silu_and_mul
class TestSiluAndMulI16384(ActivationTests):
    name = "silu_and_mul_i16384"
    INTERMEDIATE_SIZE = 16384
    GATE_UP_SIZE = 32768


# Gated activation of dense layers: silu(gate) * up with silu(x) = x * sigmoid(x). The
# first 17408 columns of a row are the gate, the other 17408 the up projection. In
# float32, rounded to bfloat16 at the end.
# model:qwen3-14b, fi_api:flashinfer.activation.silu_and_mul
class TestSiluAndMulI17408(ActivationTests):
    name = "silu_and_mul_i17408"
    INTERMEDIATE_SIZE = 17408
    GATE_UP_SIZE = 34816


# Gated activation of dense layers: silu(gate) * up with silu(x) = x * sigmoid(x). The
# first 17920 columns of a row are the gate, the other 17920 the up projection. In
# float32, rounded to bfloat16 at the end.
# model:phi-4-14b, fi_api:flashinfer.activation.silu_and_mul
class TestSiluAndMulI17920(ActivationTests):
    name = "silu_and_mul_i17920"
    INTERMEDIATE_SIZE = 17920
    GATE_UP_SIZE = 35840


# Gated activation of dense layers: silu(gate) * up with silu(x) = x * sigmoid(x). The
# first 18432 columns of a row are the gate, the other 18432 the up projection. In
# float32, rounded to bfloat16 at the end.
# model:deepseek-v3, model:deepseek-r1, model:kimi-k2,
# fi_api:flashinfer.activation.silu_and_mul
class TestSiluAndMulI18432(ActivationTests):
    name = "silu_and_mul_i18432"
    INTERMEDIATE_SIZE = 18432
    GATE_UP_SIZE = 36864


# Gated activation of dense layers: silu(gate) * up with silu(x) = x * sigmoid(x). The
# first 18944 columns of a row are the gate, the other 18944 the up projection. In
# float32, rounded to bfloat16 at the end.
# model:qwen2.5-7b, fi_api:flashinfer.activation.silu_and_mul
class TestSiluAndMulI18944(ActivationTests):
    name = "silu_and_mul_i18944"
    INTERMEDIATE_SIZE = 18944
    GATE_UP_SIZE = 37888


# Gated activation of an expert: silu(gate) * up with silu(x) = x * sigmoid(x). The
# first 2048 columns of a row are the gate, the other 2048 the up projection. In
# float32, rounded to bfloat16 at the end.
# model:deepseek-v3, model:deepseek-r1, model:kimi-k2,
# fi_api:flashinfer.activation.silu_and_mul
class TestSiluAndMulI2048(ActivationTests):
    name = "silu_and_mul_i2048"
    INTERMEDIATE_SIZE = 2048
    GATE_UP_SIZE = 4096


# Gated activation of dense layers: silu(gate) * up with silu(x) = x * sigmoid(x). The
# first 25600 columns of a row are the gate, the other 25600 the up projection. In
# float32, rounded to bfloat16 at the end.
# model:qwen3-32b, fi_api:flashinfer.activation.silu_and_mul
class TestSiluAndMulI25600(ActivationTests):
    name = "silu_and_mul_i25600"
    INTERMEDIATE_SIZE = 25600
    GATE_UP_SIZE = 51200


# Gated activation of dense layers: silu(gate) * up with silu(x) = x * sigmoid(x). The
# first 28672 columns of a row are the gate, the other 28672 the up projection. In
# float32, rounded to bfloat16 at the end.
# model:llama-3.1-70b, model:llama-3.3-70b, fi_api:flashinfer.activation.silu_and_mul
class TestSiluAndMulI28672(ActivationTests):
    name = "silu_and_mul_i28672"
    INTERMEDIATE_SIZE = 28672
    GATE_UP_SIZE = 57344


# Gated activation of dense layers: silu(gate) * up with silu(x) = x * sigmoid(x). The
# first 29568 columns of a row are the gate, the other 29568 the up projection. In
# float32, rounded to bfloat16 at the end.
# model:qwen2.5-72b, fi_api:flashinfer.activation.silu_and_mul
class TestSiluAndMulI29568(ActivationTests):
    name = "silu_and_mul_i29568"
    INTERMEDIATE_SIZE = 29568
    GATE_UP_SIZE = 59136


# Gated activation of an expert: silu(gate) * up with silu(x) = x * sigmoid(x). The
# first 512 columns of a row are the gate, the other 512 the up projection. In float32,
# rounded to bfloat16 at the end.
# model:qwen3-next-80b-a3b, fi_api:flashinfer.activation.silu_and_mul
class TestSiluAndMulI512(ActivationTests):
    name = "silu_and_mul_i512"
    INTERMEDIATE_SIZE = 512
    GATE_UP_SIZE = 1024


# Gated activation of dense layers: silu(gate) * up with silu(x) = x * sigmoid(x). The
# first 53248 columns of a row are the gate, the other 53248 the up projection. In
# float32, rounded to bfloat16 at the end.
# model:llama-3.1-405b, fi_api:flashinfer.activation.silu_and_mul
class TestSiluAndMulI53248(ActivationTests):
    name = "silu_and_mul_i53248"
    INTERMEDIATE_SIZE = 53248
    GATE_UP_SIZE = 106496


# Gated activation of an expert: silu(gate) * up with silu(x) = x * sigmoid(x). The
# first 768 columns of a row are the gate, the other 768 the up projection. In float32,
# rounded to bfloat16 at the end.
# model:qwen3-30b-a3b, fi_api:flashinfer.activation.silu_and_mul
class TestSiluAndMulI768(ActivationTests):
    name = "silu_and_mul_i768"
    INTERMEDIATE_SIZE = 768
    GATE_UP_SIZE = 1536


# Gated activation of dense layers and of an expert: silu(gate) * up with silu(x) = x *
# sigmoid(x). The first 8192 columns of a row are the gate, the other 8192 the up
# projection. In float32, rounded to bfloat16 at the end.
# model:llama-3.2-3b, model:llama-4-scout, model:llama-4-maverick,
# fi_api:flashinfer.activation.silu_and_mul
class TestSiluAndMulI8192(ActivationTests):
    name = "silu_and_mul_i8192"
    INTERMEDIATE_SIZE = 8192
    GATE_UP_SIZE = 16384


if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
