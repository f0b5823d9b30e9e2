"""moe_routing: which experts each token takes, and with what weights.

Four kinds choose the experts of the largest scores: a softmax whose largest are divided
by their sum, sigmoids, and sigmoids or sqrt(log(1 + exp(logit))) with a bias that
chooses but does not weigh. A fifth reads the experts from a table. The experts of a token
stand in falling order of what chose them, or as in the table.
"""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.far_factors import far_apart
from generator.ops.limit_cases import lengthened
from generator.ops.op_types.moe_routing.inputs import routing_inputs
from generator.ops.op_types.moe_routing.relations import routing_relations
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op


def _by_factor(definition: Definition, case: Case) -> float:
    """Return what a case multiplies the factor of all weights by."""
    return float(2.0 ** case.moved.get("routed_scaling_factor", 0.0))


TOLERANCES = (
    Override(
        "topk_weights",
        Tolerance(rtol=4e-6, atol=1e-20, nmse=1e-12),
        "float32: exp and log1p of 2 ulp each, the sum of a token's weights and two "
        "divisions are at most 30 roundings of 2^-24, which is 1.8e-6; the softmax's own "
        "sum is in all weights alike and cancels; below 2^-126 a sigmoid is 0",
        source="oracle",
    ),
    Override(
        "topk_weights",
        Tolerance(rtol=2e-5, atol=1e-5, nmse=1e-10),
        "the kernel makes a sigmoid of tanh.approx.f32, which PTX lets be off by 2^-11 "
        "and which an H200 has within 2^-17 of its value; half of that, times a factor "
        "of up to 2.5, is divided by a sum of at least 1",
        source="flashinfer",
        constant="n_group",
        growth=_by_factor,
    ),
    Override(
        "topk_weights",
        Tolerance(rtol=2e-5, atol=2e-7, nmse=1e-10),
        "exp by ex2.approx rounds the product logit times log2(e): at logits of 80 by "
        "2^-24 of 115, 7e-6 of a weight on either side; a sigmoid made of a hyperbolic "
        "tangent in full float32 is off by 2^-23 of 1, which a sum of the weights divides",
        growth=_by_factor,
    ),
)
_HIGH: dict[str, dict[str, Any]] = {
    "softmax": {"std": 16.0, "mean": 90.0},
    "sqrtsoftplus": {"std": 16.0, "mean": 90.0},
    "sigmoid": {"std": 2.0, "mean": 6.0},
}
_VOCABULARY = {"small": 1000, "medium": 5000, "large": 129_280}


def cases(definition: Definition) -> list[Case]:
    """Return batches of ordinary logits, and logits at both ends of the scores."""
    inputs, apart = definition.interface.inputs, {"std": 2.0}
    rows: list[tuple[str, str, int, dict[str, Any]]] = [
        ("one-token", "small", 1, apart),
        ("odd-tokens", "small", 7, apart),
        ("batch", "medium", 67, apart),
        ("long-batch", "large", 4096, apart),
    ]
    if "bias" in inputs:
        rows += [
            ("low-scores", "small", 5, {"std": 1.5, "mean": -3.0, "factor": 1.5}),
            ("bias-decides", "small", 9, {"std": 1.0, "bias_std": 1.0}),
            # a group that is left out must not win by a 0 in place of its scores
            ("sums-below-zero", "small", 9, {"std": 1.5, "bias_mean": -3.0}),
        ]
    else:
        rows += [
            ("low-logits", "small", 5, {"std": 2.0, "mean": -8.0}),
            # exp() of the largest overflows float32; of sigmoids all would be 1
            ("high-logits", "small", 5, _HIGH[definition.constants["scoring_func"]]),
        ]
    if "n_group" in definition.constants:
        unwanted = {"std": 2.0, "unwanted": True, "bias_std": 1.0}
        rows.append(("no-expert-wanted", "small", 4, unwanted))
    listed = [_case(definition, *one) for one in rows]
    if "routed_scaling_factor" in inputs:
        listed += far_apart(listed[1], "routed_scaling_factor", exponent=20.0)
    return [*listed, lengthened(listed[2], "num_tokens", 8_219)]


def _case(
    definition: Definition, name: str, size: str, tokens: int, params: dict[str, Any]
) -> Case:
    axes = {"num_tokens": tokens}
    if "tid2eid" in definition.interface.inputs:
        axes["vocab_size"] = _VOCABULARY[size]
    return Case(name, size, axes, params)


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the inputs; see `routing_inputs` for their shapes."""
    return routing_inputs(definition, case, stream)


def oracle(
    definition: Definition, inputs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return weights, float64, and experts by sorting all scores, groups by counting."""
    logits = inputs["router_logits"].double()
    scores, function = logits, definition.constants["scoring_func"]
    if function == "sigmoid":
        scores = torch.exp(-torch.logaddexp(torch.zeros_like(logits), -logits))
    if function == "sqrtsoftplus":
        scores = torch.logaddexp(torch.zeros_like(logits), logits) ** 0.5
    if "tid2eid" in inputs:
        experts = inputs["tid2eid"][inputs["input_ids"]].long()
    else:
        wanted = scores + inputs.get("bias", torch.zeros(())).double().to(scores.device)
        wanted = _within_groups(definition, wanted)
        experts = wanted.argsort(dim=1, descending=True)[:, : definition.axes["topk"]]
    weights = scores.gather(1, experts)
    if function == "softmax":
        weights = torch.exp(weights - weights.logsumexp(dim=1, keepdim=True))
    elif "bias" in inputs or "tid2eid" in inputs:
        # the sum of sigmoids that are all but 0 is small beside this
        least = 1e-20 if function == "sigmoid" else 0.0
        weights = weights / (weights.sum(dim=1, keepdim=True) + least)
    weights = weights * inputs.get("routed_scaling_factor", 1.0)
    return weights, experts.to(torch.int32)


def _within_groups(definition: Definition, scores: torch.Tensor) -> torch.Tensor:
    """Return scores of -inf in groups that as many as are kept are better than."""
    groups = definition.constants.get("n_group", 1)
    grouped = scores.view(len(scores), groups, -1)
    two_best = grouped.sort(dim=2).values[:, :, -2:].sum(dim=2)
    better = (two_best[:, None, :] > two_best[:, :, None]).sum(dim=2)
    left = better < definition.constants.get("topk_group", 1)
    return grouped.masked_fill(~left[:, :, None], -torch.inf).flatten(1)


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the CUDA kernels of two kinds; the others have none on Hopper.

    FlashInfer 0.6.18 refuses topk_group · n_group below topk, so all routing without
    groups, though its kernel has a branch for that.
    """
    name, constants = definition.name, definition.constants
    if name.startswith("fused_topk_deepseek"):
        kept = constants["topk_group"] * constants["n_group"]
        return (Backend("", min_sm=89),) if kept >= definition.axes["topk"] else ()
    return (Backend(""),) if name.startswith("hash_topk") else ()


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Call flashinfer.fused_moe's kernels; the order that one leaves open is made."""
    from flashinfer import fused_moe

    logits = inputs["router_logits"]
    if "tid2eid" in inputs:
        return fused_moe.hash_topk(logits, inputs["input_ids"], inputs["tid2eid"])
    shape = (len(logits), definition.axes["topk"])
    weights = torch.empty(shape, dtype=torch.float32, device=logits.device)
    experts = torch.empty(shape, dtype=torch.int32, device=logits.device)
    fused_moe.fused_topk_deepseek(
        logits,
        inputs["bias"],
        definition.constants["n_group"],
        definition.constants["topk_group"],
        definition.axes["topk"],
        inputs["routed_scaling_factor"],
        weights,
        experts,
    )
    return _falling(logits.sigmoid() + inputs["bias"], weights, experts)


def _falling(
    scores: torch.Tensor, weights: torch.Tensor, experts: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return weights and experts in falling order of the scores that chose them."""
    order = scores.gather(1, experts.long()).argsort(dim=1, descending=True)
    return weights.gather(1, order), experts.gather(1, order)


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the Triton router, where engines call it, and PyTorch code for any machine.

    Of groups they call FlashInfer's kernel, and Llama 4's sigmoids are PyTorch's. None
    of it reads a table.
    """
    name = definition.name
    if name.startswith("hash_topk"):
        return ()
    native = Backend("native", needs_cuda=False)
    if name.startswith("topk_sigmoid") or definition.constants.get("n_group", 1) > 1:
        return (native,)
    return (Backend("triton", min_sm=80, needs=("triton",)), native)


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what the router of a backend gives, in falling order of the scores."""
    run = {"triton": _triton_routing, "native": _native_routing}[backend]
    return run(definition, inputs)


def _triton_routing(
    definition: Definition, inputs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Call moe_fused_gate as SGLang's layers do; with a bias its order is left open."""
    from sglang.kernels.ops.moe.moe_fused_gate import moe_fused_gate

    logits, top_k = inputs["router_logits"], definition.axes["topk"]
    function = definition.constants["scoring_func"]
    if "bias" not in inputs:
        weights, experts = moe_fused_gate(
            logits, None, top_k, scoring_func=function, renormalize=True
        )
        return weights, experts
    weights, experts = moe_fused_gate(
        logits,
        inputs["bias"],
        top_k,
        scoring_func=function,
        renormalize=True,
        routed_scaling_factor=inputs["routed_scaling_factor"],
        apply_routed_scaling_factor_on_output=True,
    )
    return _falling(_scores(function, logits) + inputs["bias"], weights, experts)


def _scores(function: str, logits: torch.Tensor) -> torch.Tensor:
    """Return what the bias of a router is added to, by PyTorch."""
    if function == "sigmoid":
        return logits.sigmoid()
    return torch.nn.functional.softplus(logits).sqrt()


def _native_routing(
    definition: Definition, inputs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Call the native routing of the kind, in float32, and sort what it gave."""
    from sglang.srt.layers.moe import topk

    logits, bias = inputs["router_logits"].float(), inputs.get("bias")
    top_k, function = definition.axes["topk"], definition.constants["scoring_func"]
    if bias is None:
        weights, experts = topk.fused_topk_torch_native(
            logits, logits, top_k, function == "softmax", None, function
        )
        return weights, experts.to(torch.int32)
    scaling = {
        "routed_scaling_factor": inputs["routed_scaling_factor"],
        "apply_routed_scaling_factor_on_output": True,
    }
    if function == "sigmoid":
        weights, experts = topk.biased_grouped_topk_impl(
            logits,
            logits,
            bias,
            top_k,
            True,
            definition.constants["n_group"],
            definition.constants["topk_group"],
            **scaling,
        )
    else:
        weights, experts = topk.biased_topk_impl(
            logits, logits, bias, top_k, True, function, **scaling
        )
    scores = _scores(function, logits)
    return _falling(scores + bias, weights, experts.to(torch.int32))


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=routing_relations,
    tolerances=TOLERANCES,
    kernels={
        "flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth),
        "sglang": Kernel(sglang_backends, sglang_ground_truth),
    },
)
