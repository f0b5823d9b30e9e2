"""Reference tests of op_type logits.

Rendered: don't edit. `gen-tests --op-type logits` renders this file anew.

Each class tests one definition: what its `run()` returns for the inputs of each case in
`cases`, and of the dataset's workloads, is compared with
- SGLang's layers, live, in a process of their own
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

import sys
from typing import Any

import torch

from generator.ops.far_factors import far_apart
from generator.ops.limit_cases import past_limits
from generator.ops.op_types.logits.relations import logits_relations
from generator.ops.op_types.logits.rows import logits_inputs
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.comparison.tolerance import EXACT, Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition, Interface
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# relations: generator.ops.op_types.logits.relations


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


# ---- the interfaces

INTERFACE_LOGIT_BIAS = Interface(
    inputs={
        "logits": "float32[batch_size, vocab_size]",
        "logit_bias": "float32[batch_size, vocab_size]",
    },
    outputs={"output": "float32[batch_size, vocab_size]"},
)
INTERFACE_PENALTIES_OF_COUNTS = Interface(
    inputs={
        "logits": "float32[batch_size, vocab_size]",
        "prompt_counts": "int32[batch_size, vocab_size]",
        "output_counts": "int32[batch_size, vocab_size]",
        "repetition_penalties": "float32[batch_size]",
        "frequency_penalties": "float32[batch_size]",
        "presence_penalties": "float32[batch_size]",
    },
    outputs={"output": "float32[batch_size, vocab_size]"},
)
INTERFACE_SCALING_PENALTIES = Interface(
    inputs={
        "logits": "float32[batch_size, vocab_size]",
        "scaling_penalties": "float32[batch_size, vocab_size]",
    },
    outputs={"output": "float32[batch_size, vocab_size]"},
)
INTERFACE_TOKEN_BITMASK = Interface(
    inputs={
        "logits": "float32[batch_size, vocab_size]",
        "bitmask": "int32[batch_size, num_words]",
    },
    outputs={"output": "float32[batch_size, vocab_size]"},
    constraints=("num_words == (vocab_size + 31) // 32",),
)
INTERFACE_TOP_LOGPROBS = Interface(
    inputs={"logits": "float32[batch_size, vocab_size]"},
    outputs={
        "logprobs": "float32[batch_size, num_logprobs]",
        "tokens": "int64[batch_size, num_logprobs]",
    },
)

# ---- the tests


class LogitsTests(
    GroundTruthsAgree, matches("sglang", "pytorch"), MatchesRecorded, Metamorphic
):
    """What the tests of logits share."""

    op_type = "logits"
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
# (1) one float32 operation, or four of penalties.
# (2) a logit less the largest, and the log-sum-exp less that.
# (3) no two logits of a row are equal.


# Logits plus a bias for each token of a row, as the logit_bias of requests.
# Tolerances:
#   output  source                   rtol     atol    NMSE   reason
#   output  oracle, sglang, pytorch  2.5e-07  4e-06*  1e-13  (1)
def reference_logit_bias():
    import torch


    @torch.no_grad()
    def run(logits: torch.Tensor, logit_bias: torch.Tensor) -> torch.Tensor:
        return logits + logit_bias

    return run


class LogitBiasBase(LogitsTests):
    reference = staticmethod(reference_logit_bias)
    interface = INTERFACE_LOGIT_BIAS

# model:llama-3.1-8b, model:llama-3.1-70b, model:llama-3.2-1b, model:llama-3.2-3b
class TestLogitBiasV128256(LogitBiasBase):
    name = "logit_bias_v128256"
    axes = {"vocab_size": 128256}
    sha256 = "2c0f962ae856cde2778ad40192a83fcaca083b5fde6ec084ca3f20dff788b2b1"

# model:deepseek-v3, model:deepseek-r1, model:deepseek-v3.2
class TestLogitBiasV129280(LogitBiasBase):
    name = "logit_bias_v129280"
    axes = {"vocab_size": 129280}
    sha256 = "ab12e4fe4fb3b4a6fbff47d9faf113007d412e62e8f4b264d57ac8331c55e025"

# model:qwen3-8b, model:qwen3-30b-a3b, model:qwen3-next-80b-a3b
class TestLogitBiasV151936(LogitBiasBase):
    name = "logit_bias_v151936"
    axes = {"vocab_size": 151936}
    sha256 = "9265588c7a1e780647bc79f959f109959509a2782e1a3dc811a9f1d262607b08"

class TestLogitBiasV201088(LogitBiasBase):
    name = "logit_bias_v201088"  # model:gpt-oss-120b, model:gpt-oss-20b
    axes = {"vocab_size": 201088}
    sha256 = "a59c1c599a5ba301fbe115f959c0918bd7ff0ab6d2661e352213314e22684af4"

class TestLogitBiasV262208(LogitBiasBase):
    name = "logit_bias_v262208"  # model:gemma-3-27b
    axes = {"vocab_size": 262208}
    sha256 = "306c329aa0d4de65e242b7dd64deadfea6313a78d82942b913407e6c69056074"


# Repetition, frequency and presence penalties from how often each token occurs. A token
# of the prompt or of the output has its logit multiplied by the row's repetition
# penalty where it is below 0, else divided by it. Then the count in the output times
# the frequency penalty is subtracted, and the presence penalty where that count is over
# 0.
# Tolerances: those of reference_logit_bias.
def reference_penalties_of_counts():
    import torch


    @torch.no_grad()
    def run(
        logits: torch.Tensor,
        prompt_counts: torch.Tensor,
        output_counts: torch.Tensor,
        repetition_penalties: torch.Tensor,
        frequency_penalties: torch.Tensor,
        presence_penalties: torch.Tensor,
    ) -> torch.Tensor:
        in_output = output_counts > 0
        occurred = (prompt_counts > 0) | in_output
        factors = torch.where(occurred, repetition_penalties.unsqueeze(1), 1.0)
        scaled = torch.where(logits < 0, logits * factors, logits / factors)

        repeated = output_counts.float() * frequency_penalties.unsqueeze(1)
        present = torch.where(in_output, presence_penalties.unsqueeze(1), 0.0)
        return scaled - repeated - present

    return run


class PenaltiesOfCountsBase(LogitsTests):
    reference = staticmethod(reference_penalties_of_counts)
    interface = INTERFACE_PENALTIES_OF_COUNTS

# model:llama-3.1-8b, model:llama-3.1-70b, model:llama-3.2-1b, model:llama-3.2-3b
class TestPenaltiesOfCountsV128256(PenaltiesOfCountsBase):
    name = "penalties_of_counts_v128256"
    axes = {"vocab_size": 128256}
    sha256 = "a7cc9937d9897a9e6a947e97f520e452b49a65d833a0d9c9af872f1c7561a0a3"

# model:deepseek-v3, model:deepseek-r1, model:deepseek-v3.2
class TestPenaltiesOfCountsV129280(PenaltiesOfCountsBase):
    name = "penalties_of_counts_v129280"
    axes = {"vocab_size": 129280}
    sha256 = "fae1d07250f34841835456b420ab03f8d4d674f1f313582999f9af6159c18b62"

# model:qwen3-8b, model:qwen3-30b-a3b, model:qwen3-next-80b-a3b
class TestPenaltiesOfCountsV151936(PenaltiesOfCountsBase):
    name = "penalties_of_counts_v151936"
    axes = {"vocab_size": 151936}
    sha256 = "a9670f12cbe325c8e1f05623b63cd51d1c7ece8f4e34f022094ded61b3b424d2"

class TestPenaltiesOfCountsV201088(PenaltiesOfCountsBase):
    name = "penalties_of_counts_v201088"  # model:gpt-oss-120b, model:gpt-oss-20b
    axes = {"vocab_size": 201088}
    sha256 = "9290708855bd3731b72ea51ba350026e48719013353d4fc3a1ca70200f840e04"

class TestPenaltiesOfCountsV262208(PenaltiesOfCountsBase):
    name = "penalties_of_counts_v262208"  # model:gemma-3-27b
    axes = {"vocab_size": 262208}
    sha256 = "1e43215a8a35e825703744f5179381e857303936c718132738f312b3a1414128"


# Repetition penalty, as SGLang keeps it: a factor for each token of a row, 1 for tokens
# that did not occur. Logits below 0 are multiplied by it, others divided.
# Tolerances: those of reference_logit_bias.
def reference_scaling_penalties():
    import torch


    @torch.no_grad()
    def run(logits: torch.Tensor, scaling_penalties: torch.Tensor) -> torch.Tensor:
        smaller, larger = logits * scaling_penalties, logits / scaling_penalties
        return torch.where(logits < 0, smaller, larger)

    return run


class ScalingPenaltiesBase(LogitsTests):
    reference = staticmethod(reference_scaling_penalties)
    interface = INTERFACE_SCALING_PENALTIES

# model:llama-3.1-8b, model:llama-3.1-70b, model:llama-3.2-1b, model:llama-3.2-3b
class TestScalingPenaltiesV128256(ScalingPenaltiesBase):
    name = "scaling_penalties_v128256"
    axes = {"vocab_size": 128256}
    sha256 = "c4c5ac921504a49653bc775f62bd35f759801dc6f8499b3c85d8331983725ced"

# model:deepseek-v3, model:deepseek-r1, model:deepseek-v3.2
class TestScalingPenaltiesV129280(ScalingPenaltiesBase):
    name = "scaling_penalties_v129280"
    axes = {"vocab_size": 129280}
    sha256 = "34175c7f3fc1f5a5e7d30db42ddb5578d692ffe76dcf6b00b500fdb039e9bb4a"

# model:qwen3-8b, model:qwen3-30b-a3b, model:qwen3-next-80b-a3b
class TestScalingPenaltiesV151936(ScalingPenaltiesBase):
    name = "scaling_penalties_v151936"
    axes = {"vocab_size": 151936}
    sha256 = "d87d17f60f18cc6e07f2a9448f6643431e9d6a40c35453679dc47d783329e6b2"

class TestScalingPenaltiesV201088(ScalingPenaltiesBase):
    name = "scaling_penalties_v201088"  # model:gpt-oss-120b, model:gpt-oss-20b
    axes = {"vocab_size": 201088}
    sha256 = "e2559aaa56e03cfb16be24de94311f26c3924d6ea06625f955b713fff61eecb0"

class TestScalingPenaltiesV262208(ScalingPenaltiesBase):
    name = "scaling_penalties_v262208"  # model:gemma-3-27b
    axes = {"vocab_size": 262208}
    sha256 = "59d56d926fdf062e96de2bc8cb9947c992b0aaa3b902badb32e999d231f7df1f"


# Minus infinity for each token whose bit is 0: bit b of word w is of token 32 w + b, as
# grammar engines pack what may come next. Other logits stay.
# Tolerances: those of reference_logit_bias.
def reference_token_bitmask():
    import torch


    @torch.no_grad()
    def run(logits: torch.Tensor, bitmask: torch.Tensor) -> torch.Tensor:
        places = torch.arange(32, device=logits.device)
        bits = (bitmask.unsqueeze(-1) >> places) & 1
        may_come = bits.flatten(1)[:, : logits.shape[1]] == 1
        return torch.where(may_come, logits, -torch.inf)

    return run


class TokenBitmaskBase(LogitsTests):
    reference = staticmethod(reference_token_bitmask)
    interface = INTERFACE_TOKEN_BITMASK

# model:llama-3.1-8b, model:llama-3.1-70b, model:llama-3.2-1b, model:llama-3.2-3b
class TestTokenBitmaskV128256(TokenBitmaskBase):
    name = "token_bitmask_v128256"
    axes = {"vocab_size": 128256, "num_words": 4008}
    sha256 = "291766b4ce95e0e4e1a52fa3ea372a415a384d8628eb06a05de5808cb2d017f1"

# model:deepseek-v3, model:deepseek-r1, model:deepseek-v3.2
class TestTokenBitmaskV129280(TokenBitmaskBase):
    name = "token_bitmask_v129280"
    axes = {"vocab_size": 129280, "num_words": 4040}
    sha256 = "bfeba2a411f29f725962be927b06c806240bd30edac63e7c7e5983411bd889da"

# model:qwen3-8b, model:qwen3-30b-a3b, model:qwen3-next-80b-a3b
class TestTokenBitmaskV151936(TokenBitmaskBase):
    name = "token_bitmask_v151936"
    axes = {"vocab_size": 151936, "num_words": 4748}
    sha256 = "0a3c9742d8b3b73485ac16572b0b42f79379fca0b5e2919f5cde88aa325b31be"

class TestTokenBitmaskV201088(TokenBitmaskBase):
    name = "token_bitmask_v201088"  # model:gpt-oss-120b, model:gpt-oss-20b
    axes = {"vocab_size": 201088, "num_words": 6284}
    sha256 = "9eb933ea044c699840e2f3100229afd174bda3dcd4d87273b5f82108ff48206a"

class TestTokenBitmaskV262208(TokenBitmaskBase):
    name = "token_bitmask_v262208"  # model:gemma-3-27b
    axes = {"vocab_size": 262208, "num_words": 8194}
    sha256 = "f1df83b063bebe07ec09368aa1c23d41404f15e5c6e9743f79cc3734983d5c13"


# The 20 largest log-probabilities of each row in falling order, and their tokens.
# Log-probabilities are logits less the row's log-sum-exp. Of tokens that tie any may
# come first.
# Tolerances:
#   output    source                   rtol   atol    NMSE   reason
#   logprobs  oracle, sglang, pytorch  1e-06  1e-05*  1e-12  (2)
#   tokens    oracle, sglang, pytorch  exact                 (3)
def reference_top_logprobs_k20():
    import torch

    K = 20


    @torch.no_grad()
    def run(logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        largest = logits.amax(dim=-1, keepdim=True)
        total = (logits - largest).exp().sum(dim=-1, keepdim=True)
        values, tokens = logits.topk(K, dim=-1)
        return (values - largest) - total.log(), tokens

    return run


class TopLogprobsK20Base(LogitsTests):
    reference = staticmethod(reference_top_logprobs_k20)
    interface = INTERFACE_TOP_LOGPROBS
    axes = {"num_logprobs": 20}

# model:llama-3.1-8b, model:llama-3.1-70b, model:llama-3.2-1b, model:llama-3.2-3b
class TestTopLogprobsK20V128256(TopLogprobsK20Base):
    name = "top_logprobs_k20_v128256"
    axes = {"vocab_size": 128256}
    sha256 = "e8ea6c2205b02e91e7bd79503d7b397a4db0ef89944b5c83cd65c40827fb3e08"

# model:deepseek-v3, model:deepseek-r1, model:deepseek-v3.2
class TestTopLogprobsK20V129280(TopLogprobsK20Base):
    name = "top_logprobs_k20_v129280"
    axes = {"vocab_size": 129280}
    sha256 = "02884e579b881b3be2817fd868c24b1c30b4604a3858c50ef3738958ff0976c1"

# model:qwen3-8b, model:qwen3-30b-a3b, model:qwen3-next-80b-a3b
class TestTopLogprobsK20V151936(TopLogprobsK20Base):
    name = "top_logprobs_k20_v151936"
    axes = {"vocab_size": 151936}
    sha256 = "e9851d1f3aca94dff0cdfe872767dd9308db3b838c3424ce67e7061639e0880d"

class TestTopLogprobsK20V201088(TopLogprobsK20Base):
    name = "top_logprobs_k20_v201088"  # model:gpt-oss-120b, model:gpt-oss-20b
    axes = {"vocab_size": 201088}
    sha256 = "113ae4be883e42c99568189a67891fa3c695a2dee3e3fe10698b94f5271c53cd"

class TestTopLogprobsK20V262208(TopLogprobsK20Base):
    name = "top_logprobs_k20_v262208"  # model:gemma-3-27b
    axes = {"vocab_size": 262208}
    sha256 = "5ab2bcc81896b67c67040f7c411cd78b41a73a7e4fabc02069a460889805db08"


# The 5 largest log-probabilities of each row in falling order, and their tokens.
# Log-probabilities are logits less the row's log-sum-exp. Of tokens that tie any may
# come first.
# Tolerances: those of reference_top_logprobs_k20.
def reference_top_logprobs_k5():
    import torch

    K = 5


    @torch.no_grad()
    def run(logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        largest = logits.amax(dim=-1, keepdim=True)
        total = (logits - largest).exp().sum(dim=-1, keepdim=True)
        values, tokens = logits.topk(K, dim=-1)
        return (values - largest) - total.log(), tokens

    return run


class TopLogprobsK5Base(LogitsTests):
    reference = staticmethod(reference_top_logprobs_k5)
    interface = INTERFACE_TOP_LOGPROBS
    axes = {"num_logprobs": 5}

# model:llama-3.1-8b, model:llama-3.1-70b, model:llama-3.2-1b, model:llama-3.2-3b
class TestTopLogprobsK5V128256(TopLogprobsK5Base):
    name = "top_logprobs_k5_v128256"
    axes = {"vocab_size": 128256}
    sha256 = "e2c037f880beecba5d814f09a2b967020d60b1f65c6f62a378fb0631b2ec4e32"

# model:qwen3-8b, model:qwen3-30b-a3b, model:qwen3-next-80b-a3b
class TestTopLogprobsK5V151936(TopLogprobsK5Base):
    name = "top_logprobs_k5_v151936"
    axes = {"vocab_size": 151936}
    sha256 = "bdf5e3afe7e437bbfc6e454ac3ec785cdf971bb55691206fe1d2fe95bfa23f31"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
