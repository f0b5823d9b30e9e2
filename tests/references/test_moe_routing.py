"""Reference tests of op_type moe_routing.

Rendered: don't edit. `gen-tests --op-type moe_routing` renders this file anew.

Each class tests one definition: what its `run()` returns for the inputs of each case in
`cases`, and of the dataset's workloads, is compared with
- FlashInfer's kernels, live, on a CUDA device
- SGLang's layers, live, in a process of their own
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

import sys
from typing import Any

import torch

from generator.ops.far_factors import far_apart
from generator.ops.limit_cases import lengthened
from generator.ops.op_types.moe_routing.inputs import routing_inputs
from generator.ops.op_types.moe_routing.relations import routing_relations
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition, Interface
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# relations: generator.ops.op_types.moe_routing.relations


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


# ---- the interfaces

INTERFACE_TOPK = Interface(
    inputs={
        "router_logits": "float32[num_tokens, num_experts]",
        "bias": "float32[num_experts]",
        "routed_scaling_factor": "float32",
    },
    outputs={
        "topk_weights": "float32[num_tokens, topk]",
        "topk_ids": "int32[num_tokens, topk]",
    },
)
INTERFACE_HASH_TOPK = Interface(
    inputs={
        "router_logits": "float32[num_tokens, num_experts]",
        "input_ids": "int64[num_tokens]",
        "tid2eid": "int32[vocab_size, topk]",
    },
    outputs={
        "topk_weights": "float32[num_tokens, topk]",
        "topk_ids": "int32[num_tokens, topk]",
    },
)
INTERFACE_TOPK_2 = Interface(
    inputs={"router_logits": "bfloat16[num_tokens, num_experts]"},
    outputs={
        "topk_weights": "float32[num_tokens, topk]",
        "topk_ids": "int32[num_tokens, topk]",
    },
)

# ---- the tests


class MoeRoutingTests(
    GroundTruthsAgree, matches("flashinfer", "sglang"), MatchesRecorded, Metamorphic
):
    """What the tests of moe_routing share."""

    op_type = "moe_routing"
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
# (1) float32.
# (2) the kernel makes a sigmoid of tanh.approx.f32, which PTX lets be off by 2^-11 and
# which an H200 has within 2^-17 of its value.
# (3) exp by ex2.approx rounds the product logit times log2(e).


# Routing of tokens to experts. Of 1 groups of experts, each as good as the sum of its
# two best, the 1 best are left. In these sigmoid scores plus a bias choose the 8
# experts; the scores without the bias, divided by their sum and multiplied by
# routed_scaling_factor, weigh them. Experts stand in falling order of the score that
# chooses them. All in float32.
# fi_api:flashinfer.fused_moe.fused_topk_deepseek
# Tolerances:
#   output        source                      rtol   atol    NMSE   reason
#   topk_weights  oracle                      4e-06  1e-20   1e-12  (1)
#   topk_weights  flashinfer                  2e-05  1e-05*  1e-10  (2)
#   topk_weights  sglang                      2e-05  2e-07*  1e-10  (3)
#   topk_ids      oracle, flashinfer, sglang  exact
def reference_fused_topk_deepseek_ng1_kg1():
    import torch

    TOP_K = 8
    N_GROUP = 1
    TOPK_GROUP = 1


    @torch.no_grad()
    def run(
        router_logits: torch.Tensor, bias: torch.Tensor, routed_scaling_factor: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        num_tokens, num_experts = router_logits.shape
        scores = torch.sigmoid(router_logits)

        # A group is as good as its two best experts together.
        grouped = (scores + bias).view(num_tokens, N_GROUP, num_experts // N_GROUP)
        group_scores = grouped.topk(2, dim=2).values.sum(dim=2)
        groups = group_scores.topk(TOPK_GROUP, dim=1).indices
        allowed = torch.zeros_like(group_scores).scatter(1, groups, 1.0).bool()
        candidates = grouped.masked_fill(~allowed.unsqueeze(2), float("-inf"))
        experts = candidates.flatten(1).topk(TOP_K, dim=1).indices

        weights = scores.gather(1, experts)
        # Where no expert is wanted the weights are 0, and not 0 / 0.
        total = weights.sum(dim=1, keepdim=True) + 1e-20
        return weights / total * routed_scaling_factor, experts.to(torch.int32)

    return run


class FusedTopkDeepseekNg1Kg1Base(MoeRoutingTests):
    reference = staticmethod(reference_fused_topk_deepseek_ng1_kg1)
    interface = INTERFACE_TOPK
    axes = {"topk": 8}
    constants = ("n_group", "topk_group", "scoring_func")
    N_GROUP = 1  # "ng1" in the name
    TOPK_GROUP = 1  # "kg1" in the name
    SCORING_FUNC = "sigmoid"  # "deepseek" in the name

class TestFusedTopkDeepseekE160K8Ng1Kg1(FusedTopkDeepseekNg1Kg1Base):
    name = "fused_topk_deepseek_e160_k8_ng1_kg1"  # model:glm-4.6
    axes = {"num_experts": 160}
    sha256 = "259d4f65709539a149d2e3bffa2a5dfdad5f1a3926a9cd72868b0799c36349a7"

class TestFusedTopkDeepseekE256K8Ng1Kg1(FusedTopkDeepseekNg1Kg1Base):
    name = "fused_topk_deepseek_e256_k8_ng1_kg1"  # model:minimax-m2
    axes = {"num_experts": 256}
    sha256 = "07a540da8e20b7dfd098c2d349d5a963b210609f4bbd02a24ec54365a473ecde"

class TestFusedTopkDeepseekE384K8Ng1Kg1(FusedTopkDeepseekNg1Kg1Base):
    name = "fused_topk_deepseek_e384_k8_ng1_kg1"  # model:kimi-k2
    axes = {"num_experts": 384}
    sha256 = "13cb0f92edf4e15337c4395dedaba6ae4677278e3f0bd86c3fa53c85f413e587"


# Routing of tokens to experts. Of 8 groups of experts, each as good as the sum of its
# two best, the 4 best are left. In these sigmoid scores plus a bias choose the 8
# experts; the scores without the bias, divided by their sum and multiplied by
# routed_scaling_factor, weigh them. Experts stand in falling order of the score that
# chooses them. All in float32.
# model:deepseek-v3, model:deepseek-r1, fi_api:flashinfer.fused_moe.fused_topk_deepseek
# Tolerances: those of reference_fused_topk_deepseek_ng1_kg1.
def reference_fused_topk_deepseek_ng8_kg4():
    import torch

    TOP_K = 8
    N_GROUP = 8
    TOPK_GROUP = 4


    @torch.no_grad()
    def run(
        router_logits: torch.Tensor, bias: torch.Tensor, routed_scaling_factor: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        num_tokens, num_experts = router_logits.shape
        scores = torch.sigmoid(router_logits)

        # A group is as good as its two best experts together.
        grouped = (scores + bias).view(num_tokens, N_GROUP, num_experts // N_GROUP)
        group_scores = grouped.topk(2, dim=2).values.sum(dim=2)
        groups = group_scores.topk(TOPK_GROUP, dim=1).indices
        allowed = torch.zeros_like(group_scores).scatter(1, groups, 1.0).bool()
        candidates = grouped.masked_fill(~allowed.unsqueeze(2), float("-inf"))
        experts = candidates.flatten(1).topk(TOP_K, dim=1).indices

        weights = scores.gather(1, experts)
        # Where no expert is wanted the weights are 0, and not 0 / 0.
        total = weights.sum(dim=1, keepdim=True) + 1e-20
        return weights / total * routed_scaling_factor, experts.to(torch.int32)

    return run


class TestFusedTopkDeepseekE256K8Ng8Kg4(MoeRoutingTests):
    name = "fused_topk_deepseek_e256_k8_ng8_kg4"
    reference = staticmethod(reference_fused_topk_deepseek_ng8_kg4)
    interface = INTERFACE_TOPK
    axes = {"num_experts": 256, "topk": 8}
    constants = ("n_group", "topk_group", "scoring_func")
    N_GROUP = 8  # "ng8" in the name
    TOPK_GROUP = 4  # "kg4" in the name
    SCORING_FUNC = "sigmoid"  # "deepseek" in the name
    sha256 = "e8b2bc562be96f7591a97f3f8e08ca7ad6d2656eaa0125b1f75e11140974e0d9"


# Routing of tokens to experts. A table has the 6 experts of each token of the
# vocabulary. Scores sqrt(log(1 + exp(logit))), divided by their sum, weigh them. No
# routed_scaling_factor: the model multiplies the experts' sum by it (1.5 in DeepSeek
# V4). All in float32.
# model:deepseek-v4-flash, fi_api:flashinfer.fused_moe.hash_topk
# Tolerances:
#   output        source                      rtol   atol    NMSE   reason
#   topk_weights  oracle                      4e-06  1e-20   1e-12  (1)
#   topk_weights  flashinfer, sglang          2e-05  2e-07*  1e-10  (3)
#   topk_ids      oracle, flashinfer, sglang  exact
def reference_hash_topk():
    import torch


    @torch.no_grad()
    def run(
        router_logits: torch.Tensor, input_ids: torch.Tensor, tid2eid: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        experts = tid2eid[input_ids]
        scores = torch.nn.functional.softplus(router_logits).sqrt()
        weights = scores.gather(1, experts.long())
        return weights / weights.sum(dim=1, keepdim=True), experts

    return run


class TestHashTopkE256K6(MoeRoutingTests):
    name = "hash_topk_e256_k6"
    reference = staticmethod(reference_hash_topk)
    interface = INTERFACE_HASH_TOPK
    axes = {"num_experts": 256, "topk": 6}
    constants = ("scoring_func",)
    SCORING_FUNC = "sqrtsoftplus"  # "hash" in the name
    sha256 = "30affff497083014874cfb8c859c38f7797c067d28635c4d9a73cd5d3869b287"


# Routing of tokens to experts. The 1 largest logits choose the experts; the sigmoid of
# its own logit weighs each. Experts stand in falling order of the score that chooses
# them. All in float32.
# Tolerances: those of reference_hash_topk.
def reference_topk_sigmoid():
    import torch

    TOP_K = 1


    @torch.no_grad()
    def run(router_logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        # topk() sorts: the largest comes first.
        logits, experts = router_logits.float().topk(TOP_K, dim=1)
        return torch.sigmoid(logits), experts.to(torch.int32)

    return run


class TopkSigmoidBase(MoeRoutingTests):
    reference = staticmethod(reference_topk_sigmoid)
    interface = INTERFACE_TOPK_2
    axes = {"topk": 1}
    constants = ("scoring_func",)
    SCORING_FUNC = "sigmoid"  # "sigmoid" in the name

class TestTopkSigmoidE128K1(TopkSigmoidBase):
    name = "topk_sigmoid_e128_k1"  # model:llama-4-maverick
    axes = {"num_experts": 128}
    sha256 = "9781b0c1c335f646ecda714419fb1e661ab0a6b6ed10a53cfb523fc325cde3b6"

class TestTopkSigmoidE16K1(TopkSigmoidBase):
    name = "topk_sigmoid_e16_k1"  # model:llama-4-scout
    axes = {"num_experts": 16}
    sha256 = "9fd384c48a43d16b3467b9237c639b6a16656165e67550f6309634d32b178348"


# Routing of tokens to experts. The softmax over all experts chooses the 4 largest, and
# is divided by the sum of these. Experts stand in falling order of the score that
# chooses them. All in float32.
# Tolerances: those of reference_hash_topk.
def reference_topk_softmax_k4():
    import torch

    TOP_K = 4


    @torch.no_grad()
    def run(router_logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scores = torch.softmax(router_logits.float(), dim=1)
        # topk() sorts: the largest comes first.
        weights, experts = scores.topk(TOP_K, dim=1)
        weights = weights / weights.sum(dim=1, keepdim=True)
        return weights, experts.to(torch.int32)

    return run


class TopkSoftmaxK4Base(MoeRoutingTests):
    reference = staticmethod(reference_topk_softmax_k4)
    interface = INTERFACE_TOPK_2
    axes = {"topk": 4}
    constants = ("scoring_func",)
    SCORING_FUNC = "softmax"  # "softmax" in the name

class TestTopkSoftmaxE128K4Renorm(TopkSoftmaxK4Base):
    name = "topk_softmax_e128_k4_renorm"  # model:gpt-oss-120b
    axes = {"num_experts": 128}
    sha256 = "9aadbbccb1ed48d25a7e678c0efadd3aa443d73a2e78e1e30c41d09d12b88343"

class TestTopkSoftmaxE32K4Renorm(TopkSoftmaxK4Base):
    name = "topk_softmax_e32_k4_renorm"  # model:gpt-oss-20b
    axes = {"num_experts": 32}
    sha256 = "bb986eb9b839975fa0a89ce696663f584f975eb4258d6832347bdbad2150cfc9"


# Routing of tokens to experts. The softmax over all experts chooses the 8 largest, and
# is divided by the sum of these. Experts stand in falling order of the score that
# chooses them. All in float32.
# model:qwen3-30b-a3b, model:qwen3-235b-a22b
# Tolerances: those of reference_hash_topk.
def reference_topk_softmax_e128_k8():
    import torch

    TOP_K = 8


    @torch.no_grad()
    def run(router_logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scores = torch.softmax(router_logits.float(), dim=1)
        # topk() sorts: the largest comes first.
        weights, experts = scores.topk(TOP_K, dim=1)
        weights = weights / weights.sum(dim=1, keepdim=True)
        return weights, experts.to(torch.int32)

    return run


class TestTopkSoftmaxE128K8Renorm(MoeRoutingTests):
    name = "topk_softmax_e128_k8_renorm"
    reference = staticmethod(reference_topk_softmax_e128_k8)
    interface = INTERFACE_TOPK_2
    axes = {"num_experts": 128, "topk": 8}
    constants = ("scoring_func",)
    SCORING_FUNC = "softmax"  # "softmax" in the name
    sha256 = "cfc7fd255287edbf1cc061fe1da5535519a46057cfd49cfdc343f1685dcfd541"


# Routing of tokens to experts. The softmax over all experts chooses the 10 largest, and
# is divided by the sum of these. Experts stand in falling order of the score that
# chooses them. All in float32.
# model:qwen3-next-80b-a3b
# Tolerances: those of reference_hash_topk.
def reference_topk_softmax_e512_k10():
    import torch

    TOP_K = 10


    @torch.no_grad()
    def run(router_logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scores = torch.softmax(router_logits.float(), dim=1)
        # topk() sorts: the largest comes first.
        weights, experts = scores.topk(TOP_K, dim=1)
        weights = weights / weights.sum(dim=1, keepdim=True)
        return weights, experts.to(torch.int32)

    return run


class TestTopkSoftmaxE512K10Renorm(MoeRoutingTests):
    name = "topk_softmax_e512_k10_renorm"
    reference = staticmethod(reference_topk_softmax_e512_k10)
    interface = INTERFACE_TOPK_2
    axes = {"num_experts": 512, "topk": 10}
    constants = ("scoring_func",)
    SCORING_FUNC = "softmax"  # "softmax" in the name
    sha256 = "693cbe8821a5dd7cccdc17495b1c92780e7a07a4ff06961dfebc3fe5ebe81264"


# Routing of tokens to experts. The softmax over all experts chooses the 2 largest, and
# is divided by the sum of these. Experts stand in falling order of the score that
# chooses them. All in float32.
# model:mixtral-8x22b
# Tolerances: those of reference_hash_topk.
def reference_topk_softmax_e8_k2():
    import torch

    TOP_K = 2


    @torch.no_grad()
    def run(router_logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scores = torch.softmax(router_logits.float(), dim=1)
        # topk() sorts: the largest comes first.
        weights, experts = scores.topk(TOP_K, dim=1)
        weights = weights / weights.sum(dim=1, keepdim=True)
        return weights, experts.to(torch.int32)

    return run


class TestTopkSoftmaxE8K2Renorm(MoeRoutingTests):
    name = "topk_softmax_e8_k2_renorm"
    reference = staticmethod(reference_topk_softmax_e8_k2)
    interface = INTERFACE_TOPK_2
    axes = {"num_experts": 8, "topk": 2}
    constants = ("scoring_func",)
    SCORING_FUNC = "softmax"  # "softmax" in the name
    sha256 = "cb3fff4339c6b68ed751452225f7d99f834dcf1c06b9a0c6a8cafddf6c3cece9"


# Routing of tokens to experts. Scores sqrt(log(1 + exp(logit))) plus a bias choose the
# 6 experts; the scores without the bias, divided by their sum and multiplied by
# routed_scaling_factor, weigh them. Experts stand in falling order of the score that
# chooses them. All in float32.
# model:deepseek-v4-flash
# Tolerances: those of reference_hash_topk.
def reference_topk_sqrtsoftplus():
    import torch

    TOP_K = 6


    @torch.no_grad()
    def run(
        router_logits: torch.Tensor, bias: torch.Tensor, routed_scaling_factor: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        scores = torch.nn.functional.softplus(router_logits).sqrt()
        experts = (scores + bias).topk(TOP_K, dim=1).indices
        weights = scores.gather(1, experts)
        weights = weights / weights.sum(dim=1, keepdim=True) * routed_scaling_factor
        return weights, experts.to(torch.int32)

    return run


class TestTopkSqrtsoftplusE256K6(MoeRoutingTests):
    name = "topk_sqrtsoftplus_e256_k6"
    reference = staticmethod(reference_topk_sqrtsoftplus)
    interface = INTERFACE_TOPK
    axes = {"num_experts": 256, "topk": 6}
    constants = ("scoring_func",)
    SCORING_FUNC = "sqrtsoftplus"  # "sqrtsoftplus" in the name
    sha256 = "556dcd557462fe66c453726029607c1a68da8fd92bf1dc00a74fb235428b1ece"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
