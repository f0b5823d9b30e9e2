"""Reference tests of op_type mhc.

Rendered: don't edit. `gen-tests --op-type mhc` renders this file anew.

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
from itertools import pairwise
from typing import Any

import torch

from generator.ops.far_factors import far_apart
from generator.ops.limit_cases import past_limits
from generator.ops.op_types.mhc.relations import mhc_relations
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
# relations: generator.ops.op_types.mhc.relations

_RATIOS = (
    "sums of positive numbers and quotients lose nothing to cancellation: a logit of 40 "
    "is off by 3·2^-24 of itself, 7e-6 of its exponential, and 39 divisions by sums of "
    "four by 2^-23 each, which rounds of opposite sign take back"
)
# Whether eps stands beside the sums of rows as well would not show: that moves the power
# of all by 1e-15, and float32 by 4e-15.
_SUMS = (
    "float32 sums of five products of a few units, 2e-6 at most where they cancel, and "
    "one rounding to bfloat16"
)
_ROUNDED_ONCE = Tolerance(rtol=4e-3, atol=2e-6, nmse=1.6e-5)
_NEIGHBOURS = Tolerance(rtol=8e-3, atol=4e-6, nmse=1.6e-5)
TOLERANCES = (
    Override(
        "post_mix",
        Tolerance(rtol=1e-5, atol=1e-30, nmse=1e-11),
        _RATIOS,
        source="oracle",
    ),
    Override(
        "comb_mix",
        Tolerance(rtol=1e-5, atol=1e-30, nmse=2e-13),
        f"{_RATIOS}: those of the shares that matter are left with 2^-24 each, 4e-15 of "
        "the power",
        source="oracle",
    ),
    Override(
        "layer_input",
        _ROUNDED_ONCE,
        f"{_SUMS}: half an ulp is 2^-8 of a value at most",
        source="oracle",
    ),
    Override(
        "out",
        _ROUNDED_ONCE,
        f"{_SUMS}: half an ulp is 2^-8 of a value at most",
        source="oracle",
    ),
    Override(
        "post_mix",
        Tolerance(rtol=3e-5, atol=1e-30, nmse=1e-10),
        f"{_RATIOS}; kernels take exponentials in base 2, which doubles that",
    ),
    Override(
        "comb_mix",
        Tolerance(rtol=3e-5, atol=1e-30, nmse=1e-10),
        f"{_RATIOS}; kernels take exponentials in base 2, which doubles that",
    ),
    Override(
        "layer_input",
        _NEIGHBOURS,
        f"{_SUMS}, to neighbours at most: 2^-7 apart, and most to the same",
    ),
    Override(
        "out",
        _NEIGHBOURS,
        f"{_SUMS}, to neighbours at most: 2^-7 apart, and most to the same",
    ),
)


def cases(definition: Definition) -> list[Case]:
    """Return few tokens and many, and mixes that are far from even."""

    def case(name: str, size: str, tokens: int, **params: float) -> Case:
        return Case(name, size, {"num_tokens": tokens}, params)

    cases = [case("one-token", "small", 1), case("tokens", "small", 5)]
    if _is_pre(definition):
        cases += [
            # 20 rounds do not make such a matrix even: each counts
            case("uneven", "small", 9, std=6.0),
            case("very-uneven", "small", 9, std=12.0),
            # mean squares of about eps
            case("faint", "small", 4, mean_square=1e-6),
            # sigmoids of about 1e-6: what is added to them is most of what is read
            case("closed", "small", 4, read=-14.0),
        ]
        cases += far_apart(cases[1], "mhc_scale", against=("dot_mix",))
    return [
        *cases,
        case("batch", "medium", 67),
        past_limits("num_tokens", 8_219),
        case("long-batch", "large", 4096),
    ]


def _is_pre(definition: Definition) -> bool:
    return "dot_mix" in definition.interface.inputs


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the inputs, shaped as the interface declares them.

    bfloat16 rows, float32 mixes. sqrsum is not that of the residual: it is given.
    """
    axes, params = {**definition.axes, **case.axes}, case.params

    def drawn(name: str, std: float = 1.0) -> torch.Tensor:
        shape = definition.interface.input_specs[name].shape or ()
        return stream.child(name).values(tuple(axes[axis] for axis in shape), std)

    residual = (drawn("residual", 1.5)).to(torch.bfloat16)
    if not _is_pre(definition):
        return {
            "x": drawn("x").to(torch.bfloat16),
            "residual": residual,
            "post_layer_mix": drawn("post_layer_mix", 0.6).abs(),
            "comb_res_mix": drawn("comb_res_mix", 0.3).abs(),
        }
    mean_square = params.get("mean_square", 1.0)
    # between a half and twice as large, from token to token
    factor = 1.25 + 0.75 * drawn("sqrsum", 0.4).clamp(-1.0, 1.0)
    root = mean_square**0.5
    base = drawn("mhc_base", 0.7)
    base[: axes["hc"]] += params.get("read", 0.0)
    return {
        "dot_mix": drawn("dot_mix", params.get("std", 1.0)) * root,
        "sqrsum": factor * (mean_square * axes["hc"] * axes["hidden_size"]),
        "residual": residual,
        "mhc_scale": 1.0 + drawn("mhc_scale", 0.3),
        "mhc_base": base,
    }


def oracle(definition: Definition, inputs: dict[str, Any]) -> Any:
    """Return the outputs in float64: mixes as factors of rows and columns."""
    wide = {name: tensor.double() for name, tensor in inputs.items()}
    streams = definition.axes["hc"]
    if not _is_pre(definition):
        out = wide["post_layer_mix"][:, :, None] * wide["x"][:, None]
        for i in range(streams):
            share = wide["comb_res_mix"][:, i, :, None]
            out = out + share * wide["residual"][:, i : i + 1]
        return out
    eps = definition.constants["eps"]
    mean = wide["sqrsum"] / (streams * definition.axes["hidden_size"])
    normed = wide["dot_mix"] / torch.sqrt(mean + eps)[:, None]
    ends = (0, streams, 2 * streams, definition.axes["mhc_mix"])
    read, written, mixed = (
        normed[:, start:end] * wide["mhc_scale"][i] + wide["mhc_base"][start:end]
        for i, (start, end) in enumerate(pairwise(ends))
    )
    pre = _sigmoid(read) + eps
    post = definition.constants["post_factor"] * _sigmoid(written)
    comb = _alternating(definition, mixed.reshape(-1, streams, streams))
    layer_input = torch.einsum("ts,tsh->th", pre, wide["residual"])
    return post, comb, layer_input


def _sigmoid(x: torch.Tensor) -> torch.Tensor:
    return torch.exp(-torch.logaddexp(torch.zeros_like(x), -x))


def _alternating(definition: Definition, logits: torch.Tensor) -> torch.Tensor:
    """Return matrices [T, hc, hc] whose rows and columns are divided by their sums.

    The matrix stays; what each row and each column is multiplied by is kept instead.
    """
    eps = definition.constants["eps"]
    total = torch.logsumexp(logits, dim=2, keepdim=True)
    matrix = torch.exp(logits - total) + eps
    rows = torch.ones_like(matrix[:, :, :1])
    columns = torch.ones_like(matrix[:, :1])
    for turn in range(definition.constants["rounds"]):
        if turn:
            rows = rows / (rows * (matrix @ columns.mT) + eps)
        columns = columns / (columns * (rows.mT @ matrix) + eps)
    balanced: torch.Tensor = matrix * rows * columns
    return balanced


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the only CUDA kernel; it takes four streams."""
    return (Backend("", min_sm=80),) if definition.axes["hc"] == 4 else ()


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return the outputs of FlashInfer's kernel; its own post_factor would be 1."""
    from flashinfer import mhc

    if not _is_pre(definition):
        return mhc.mhc_post(*inputs.values())
    eps = definition.constants["eps"]
    post, comb, layer_input = mhc.mhc_pre_big_fuse(
        *inputs.values(),
        definition.axes["hc"] * definition.axes["hidden_size"],
        rms_eps=eps,
        mhc_pre_eps=eps,
        mhc_sinkhorn_eps=eps,
        mhc_post_mult_value=definition.constants["post_factor"],
        sinkhorn_repeat=definition.constants["rounds"],
    )
    return post[..., 0], comb, layer_input


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return SGLang's PyTorch code behind a layer, and its Triton kernels before it.

    Its PyTorch code before a layer begins with the product that gives dot_mix.
    """
    if _is_pre(definition):
        return (Backend("triton", min_sm=80, needs=("triton",)),)
    return (Backend("native", needs_cuda=False),)


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return the outputs of SGLang's code; PyTorch's is given float32 rows."""
    from sglang.kernels.ops.layernorm import mhc

    residual = inputs["residual"]
    if backend == "native":
        out: torch.Tensor = mhc._mhc_post_torch(
            inputs["x"].float(),
            residual.float(),
            inputs["post_layer_mix"][..., None],
            inputs["comb_res_mix"],
        )
        return out.to(residual.dtype)
    tokens, streams, hidden_size = residual.shape
    options = {"dtype": torch.float32, "device": residual.device}
    pre, post = (torch.empty(tokens, streams, **options) for _ in range(2))
    comb = torch.empty(tokens, streams, streams, **options)
    eps = definition.constants["eps"]
    mhc._hc_mix_reduce_sinkhorn_kernel[(tokens,)](
        inputs["dot_mix"],
        inputs["sqrsum"],
        inputs["mhc_scale"],
        inputs["mhc_base"],
        pre,
        post,
        comb,
        tokens,
        1.0 / (streams * hidden_size),
        eps,
        MIX=definition.axes["mhc_mix"],
        HC=streams,
        NUM_SLICES=1,
        ITERS=definition.constants["rounds"],
        EPS=eps,
        num_warps=1,
    )
    rows = residual.flatten(1)
    return post, comb, mhc.mhc_combine(rows, pre, streams, residual.dtype)


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=mhc_relations,
    tolerances=TOLERANCES,
    kernels={
        "flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth),
        "sglang": Kernel(sglang_backends, sglang_ground_truth),
    },
)


# ---- the interfaces

INTERFACE_MHC_POST = Interface(
    inputs={
        "x": "bfloat16[num_tokens, hidden_size]",
        "residual": "bfloat16[num_tokens, hc, hidden_size]",
        "post_layer_mix": "float32[num_tokens, hc]",
        "comb_res_mix": "float32[num_tokens, hc, hc]",
    },
    outputs={"out": "bfloat16[num_tokens, hc, hidden_size]"},
)
INTERFACE_MHC_PRE_BIG_FUSE = Interface(
    inputs={
        "dot_mix": "float32[num_tokens, mhc_mix]",
        "sqrsum": "float32[num_tokens]",
        "residual": "bfloat16[num_tokens, hc, hidden_size]",
        "mhc_scale": "float32[scale_size]",
        "mhc_base": "float32[mhc_mix]",
    },
    outputs={
        "post_mix": "float32[num_tokens, hc]",
        "comb_mix": "float32[num_tokens, hc, hc]",
        "layer_input": "bfloat16[num_tokens, hidden_size]",
    },
    constraints=("mhc_mix == hc * (2 + hc)", "scale_size == 3"),
)

# ---- the tests


class MhcTests(
    GroundTruthsAgree, matches("flashinfer", "sglang"), MatchesRecorded, Metamorphic
):
    """What the tests of mhc share."""

    op_type = "mhc"
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
# (1) float32 sums of five products of a few units, 2e-6 at most where they cancel, and
# one rounding to bfloat16.
# (2) float32 sums of five products of a few units, 2e-6 at most where they cancel, and
# one rounding to bfloat16, to neighbours at most.
# (3) sums of positive numbers and quotients lose nothing to cancellation.


# Hyper-connections behind a layer: stream j becomes x * post_layer_mix[j] plus the sum
# over i of residual[i] * comb_res_mix[i, j], in float32, rounded to bfloat16 at the
# end.
# fused, fi_api:flashinfer.mhc.mhc_post
# Tolerances:
#   output  source              rtol   atol   NMSE     reason
#   out     oracle              0.004  2e-06  1.6e-05  (1)
#   out     flashinfer, sglang  0.008  4e-06  1.6e-05  (2)
def reference_mhc_post():
    import torch


    @torch.no_grad()
    def run(
        x: torch.Tensor,
        residual: torch.Tensor,
        post_layer_mix: torch.Tensor,
        comb_res_mix: torch.Tensor,
    ) -> torch.Tensor:
        written = post_layer_mix.unsqueeze(2) * x.float().unsqueeze(1)
        # Row i, column j of a mix is the share of stream i in the new stream j.
        mixed = torch.einsum("tij,tih->tjh", comb_res_mix, residual.float())
        return (written + mixed).to(residual.dtype)

    return run


class MhcPostBase(MhcTests):
    reference = staticmethod(reference_mhc_post)
    interface = INTERFACE_MHC_POST
    axes = {"hc": 4}
    constants = ("eps", "post_factor", "rounds")
    EPS = 1e-06  # the convention of mhc
    POST_FACTOR = 2.0  # the convention of mhc
    ROUNDS = 20  # the convention of mhc

class TestMhcPostHc4H4096(MhcPostBase):
    name = "mhc_post_hc4_h4096"  # model:deepseek-v4-flash
    axes = {"hidden_size": 4096}
    sha256 = "f47637b36f6dd4ef6752a6e258faf14e1b57e01f7ecf5a2aa3c20fb5c37b4002"

class TestMhcPostHc4H7168(MhcPostBase):
    name = "mhc_post_hc4_h7168"  # model:deepseek-v4-pro
    axes = {"hidden_size": 7168}
    sha256 = "468ea5e4c9e6478a7bec3dfa3e36820ead29572319f56f6efdcaca4b77b95873"


# Hyper-connections before a layer. With m = dot_mix / sqrt(sqrsum / (4 * hidden_size) +
# 1e-6), whose first 4 numbers are for what is read, 4 for what is written, and 16 for
# the streams: pre = sigmoid(m * mhc_scale[0] + mhc_base) + 1e-6, post_mix = 2 *
# sigmoid(m * mhc_scale[1] + mhc_base), and comb_mix is softmax(m * mhc_scale[2] +
# mhc_base) + 1e-6 along rows, whose columns and rows are divided by their sum + 1e-6 in
# turns, 20 times columns and 19 times rows. layer_input is the sum of pre * residual
# over the streams.
# fused, fi_api:flashinfer.mhc.mhc_pre_big_fuse
# Tolerances:
#   output       source              rtol   atol   NMSE     reason
#   post_mix     oracle              1e-05  1e-30  1e-11    (3)
#   post_mix     flashinfer, sglang  3e-05  1e-30  1e-10    (3)
#   comb_mix     oracle              1e-05  1e-30  2e-13    (3)
#   comb_mix     flashinfer, sglang  3e-05  1e-30  1e-10    (3)
#   layer_input  oracle              0.004  2e-06  1.6e-05  (1)
#   layer_input  flashinfer, sglang  0.008  4e-06  1.6e-05  (2)
def reference_mhc_pre_big_fuse():
    import torch

    EPS = 1e-06
    POST_FACTOR = 2.0
    ROUNDS = 20


    def divided(x: torch.Tensor, dim: int) -> torch.Tensor:
        return x / (x.sum(dim=dim, keepdim=True) + EPS)


    @torch.no_grad()
    def run(
        dot_mix: torch.Tensor,
        sqrsum: torch.Tensor,
        residual: torch.Tensor,
        mhc_scale: torch.Tensor,
        mhc_base: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        num_tokens, hc, hidden_size = residual.shape
        inverse_rms = torch.rsqrt(sqrsum / (hc * hidden_size) + EPS)
        mixes = dot_mix * inverse_rms.unsqueeze(1)
        # The first hc mixes are for what is read, the next for what is written.
        read = mixes[:, :hc] * mhc_scale[0] + mhc_base[:hc]
        written = mixes[:, hc : 2 * hc] * mhc_scale[1] + mhc_base[hc : 2 * hc]
        mixed = mixes[:, 2 * hc :] * mhc_scale[2] + mhc_base[2 * hc :]

        pre = torch.sigmoid(read) + EPS
        post_mix = POST_FACTOR * torch.sigmoid(written)
        # Rows and columns are divided by their sums in turns, columns last.
        comb = torch.softmax(mixed.view(num_tokens, hc, hc), dim=2) + EPS
        comb = divided(comb, dim=1)
        for _ in range(ROUNDS - 1):
            comb = divided(divided(comb, dim=2), dim=1)
        layer_input = (pre.unsqueeze(2) * residual.float()).sum(dim=1)
        return post_mix, comb, layer_input.to(residual.dtype)

    return run


class MhcPreBigFuseBase(MhcTests):
    reference = staticmethod(reference_mhc_pre_big_fuse)
    interface = INTERFACE_MHC_PRE_BIG_FUSE
    axes = {"hc": 4, "mhc_mix": 24, "scale_size": 3}
    constants = ("eps", "post_factor", "rounds")
    EPS = 1e-06  # the convention of mhc
    POST_FACTOR = 2.0  # the convention of mhc
    ROUNDS = 20  # the convention of mhc

class TestMhcPreBigFuseHc4H4096Mix24(MhcPreBigFuseBase):
    name = "mhc_pre_big_fuse_hc4_h4096_mix24"  # model:deepseek-v4-flash
    axes = {"hidden_size": 4096}
    sha256 = "d8fb2b9b9be0480a2cdce07e2adc242864d5d46c5be1d08318014f5b1ecbedb0"

class TestMhcPreBigFuseHc4H7168Mix24(MhcPreBigFuseBase):
    name = "mhc_pre_big_fuse_hc4_h7168_mix24"  # model:deepseek-v4-pro
    axes = {"hidden_size": 7168}
    sha256 = "516d633711693e678f039f5d653154a760869f82dbdcfc6bca70ef6db96265d2"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
