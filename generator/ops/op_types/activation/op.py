"""activation: silu(gate) · up, where a row holds the gate first, then the up projection.

silu(x) = x / (1 + exp(-x)). Kernels compute in float32 and round the product once.
"""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.op_types.activation.relations import activation_relations
from generator.testing.definition import Backend, Case, Definition
from generator.testing.relation import Relation
from generator.testing.seeded_inputs import Stream
from generator.testing.tolerance import Override, Tolerance

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
