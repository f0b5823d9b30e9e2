"""logits: penalties, biases and grammars before sampling, and the top log-probabilities.

Each is one float32 operation or two a token. SGLang multiplies by kept penalties in
PyTorch, which it compiles where it serves, and masks in Triton; biases and the top
log-probabilities are PyTorch's kernels.
"""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.far_factors import far_apart
from generator.ops.limit_cases import past_limits
from generator.ops.op_types.logits.relations import logits_relations
from generator.ops.op_types.logits.rows import logits_inputs
from kernel_judge.comparison.tolerance import EXACT, Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op


def _height(definition: Definition, case: Case) -> float:
    """Return how large a case's logits are, or what is subtracted, in units of 30."""
    params = case.params
    # counts are 4 times that at most, penalties 1
    counted = 4.0 * float(params.get("times", 0)) / 30.0
    moved: float = 2.0 ** max(case.moved.get("frequency_penalties", 0.0), 0.0)
    return max(1.0, abs(float(params.get("mean", 0.0))) / 30.0, counted, moved)


TOLERANCES = (
    Override(
        "output",
        Tolerance(rtol=2.5e-7, atol=4e-6, nmse=1e-13),
        "one float32 operation, or four of penalties: each rounds by 2^-24 of numbers of "
        "30 at most, 1.8e-6",
        growth=_height,
    ),
    Override(
        "logprobs",
        Tolerance(rtol=1e-6, atol=1e-5, nmse=1e-12),
        "a logit less the largest, and the log-sum-exp less that: numbers of 30, rounded "
        "by 2^-24 of themselves, and 2e-6 by the float32 sum of the exponentials: 1e-7 of 20, "
        "and 1e-14 the square",
        growth=_height,
    ),
    Override("tokens", EXACT, "no two logits of a row are equal"),
)


def cases(definition: Definition) -> list[Case]:
    """Return ordinary rows, high and low ones, and rows that a grammar masked.

    Penalties are far from 1 as well, and tokens occur more often than a byte can count.
    """
    odd = Case("odd-rows", "small", {"batch_size": 5})
    inputs = definition.interface.inputs
    penalties = [name for name in inputs if name.endswith("_penalties")]
    often = Case("often", "small", {"batch_size": 3}, {"times": 128})
    return [
        Case("one-row", "small", {"batch_size": 1}),
        odd,
        *(far_apart(odd, *penalties) if penalties else ()),
        *([often] if "output_counts" in inputs else ()),
        Case("high-logits", "small", {"batch_size": 3}, {"mean": 200.0}),
        Case("low-logits", "small", {"batch_size": 3}, {"mean": -200.0}),
        Case("masked-tokens", "small", {"batch_size": 3}, {"masked": True}),
        Case("batch", "medium", {"batch_size": 9}),
        past_limits("batch_size", 139),
        Case("long-batch", "large", {"batch_size": 256}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the inputs; see `logits_inputs` for their shapes."""
    return logits_inputs(definition, case, stream)


def oracle(definition: Definition, inputs: dict[str, Any]) -> Any:
    """Return what is sampled from, float64, or log-probabilities and tokens by sorting."""
    x = inputs["logits"].double()
    if "tokens" in definition.interface.outputs:
        order = x.sort(dim=1, descending=True, stable=True)
        count = definition.axes["num_logprobs"]
        levels = order.values - torch.logsumexp(x, dim=1, keepdim=True)
        return levels[:, :count], order.indices[:, :count]
    if "logit_bias" in inputs:
        return torch.stack([x, inputs["logit_bias"].double()]).sum(dim=0)
    if "bitmask" in inputs:
        return _masked(x, inputs["bitmask"])
    if "scaling_penalties" in inputs:
        return _scaled(x, inputs["scaling_penalties"].double())
    prompt, counts = inputs["prompt_counts"], inputs["output_counts"]
    factors = torch.ones_like(x)
    for row, factor in enumerate(inputs["repetition_penalties"].tolist()):
        factors[row][prompt[row].clamp_min(0) + counts[row].clamp_min(0) > 0] = factor
    result = _scaled(x, factors)
    for row, (often, once) in enumerate(
        zip(
            inputs["frequency_penalties"].tolist(),
            inputs["presence_penalties"].tolist(),
            strict=True,
        )
    ):
        # an integer times a Python number would be float32
        times = counts[row].double()
        result[row] -= often * times + once * (times >= 1.0).double()
    return result


def _scaled(x: torch.Tensor, factors: torch.Tensor) -> torch.Tensor:
    """Return logits moved down by factors: x · f below 0, x / f from there on."""
    return x * factors ** torch.where(x < 0, 1.0, -1.0)


def _masked(x: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
    """Return logits of which those are left whose bit is set, read byte by byte."""
    octets = words.contiguous().view(torch.uint8).unsqueeze(2)
    places = torch.arange(8, dtype=torch.uint8, device=words.device)
    bits = octets.bitwise_right_shift(places).bitwise_and(1).flatten(1)
    return x.masked_fill(bits[:, : x.shape[1]] == 0, -torch.inf)


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return SGLang's PyTorch code for penalties and its Triton kernel for masks."""
    names = definition.interface.inputs
    if "scaling_penalties" in names:
        return (Backend("native", needs_cuda=False),)
    return (Backend("triton", needs=("triton",)),) if "bitmask" in names else ()


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return the logits that were given, which SGLang's functions write to."""
    logits: torch.Tensor = inputs["logits"]
    if backend == "triton":
        from sglang.kernels.ops.grammar.bitmask_ops import (
            apply_token_bitmask_inplace_triton,
        )

        apply_token_bitmask_inplace_triton(logits, inputs["bitmask"])
        return logits
    from sglang.srt.sampling.penaltylib.repetition_penalty import (
        apply_scaling_penalties,
    )

    apply_scaling_penalties(logits, inputs["scaling_penalties"])
    return logits


def pytorch_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return PyTorch's sum and its top-k; penalties and masks are several kernels."""
    if "tokens" in definition.interface.outputs:
        rewrites = "inputs rewritten: top-k is of log_softmax, as SGLang's"
        return (Backend("topk", rewrites=rewrites),)
    return (Backend("add"),) if "logit_bias" in definition.interface.inputs else ()


def pytorch_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return logits plus their bias, or the top-k of log_softmax."""
    if backend == "add":
        return torch.add(inputs["logits"], inputs["logit_bias"])
    logprobs = torch.log_softmax(inputs["logits"], dim=-1)
    values, tokens = torch.topk(logprobs, definition.axes["num_logprobs"], dim=-1)
    return values, tokens


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=logits_relations,
    tolerances=TOLERANCES,
    kernels={
        "sglang": Kernel(sglang_backends, sglang_ground_truth),
        "pytorch": Kernel(pytorch_backends, pytorch_ground_truth),
    },
)
