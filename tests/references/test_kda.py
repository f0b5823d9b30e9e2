"""Reference tests of op_type kda.

Rendered: don't edit. `gen-tests --op-type kda` renders this file anew.

Each class tests one definition: what its `run()` returns for the inputs of each case in
`cases`, and of the dataset's workloads, is compared with
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
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import torch

from generator.ops.limit_cases import lengthened
from generator.ops.op_types.gdn.delta_rule import occupied
from generator.ops.op_types.kda.dual import solved, spans
from generator.ops.op_types.kda.relations import kda_relations
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
# oracle: generator.ops.op_types.kda.dual
# relations: generator.ops.op_types.kda.relations

_FLOAT32 = (
    "a token rounds a state of 3 four times, by 2^-24 each, 7e-7; keys of length 1 and "
    "gates below 1 never enlarge an error, so that 150 tokens' errors, which differ in "
    "sign, add up to sqrt(150)·7e-7, 9e-6"
)
_FAST_GATES = (
    "kernels take the gates from fast exponentials, off by 2^-22, whose errors add up "
    "where a state hardly fades: over 900 steps to 1e-4 of a state of 3"
)
# tokens that count: what the oracle's state is off by with every gate off by 2^-25
_GATES_HAVE_A_SIGN = (
    "; gates just below 1 are multiples of 2^-24, and an exponential that rounds most of "
    "them one way is off by up to 2^-25 a token, of which 77 count in long-memory and 119 "
    "in 900 tokens that fade alike, 3.6e-6: keys of length 1 replace what is older. An "
    "H100's, without fast exponentials, made a state 1.0e-6 too large"
)
_CHUNKED = (
    "tensor cores multiply bfloat16: normalised queries and keys, the state (rows up to "
    "8), the recalled values, the updates and the triangular inverse are rounded by 2^-9 "
    "each, once a chunk of 64; at worst that is 2^-9·8·4, 6e-2, in a state and "
    "1/sqrt(128) of it in an output; errors that differ in sign stay at half"
)
# b_k * b_gq in chunk_intra.py, of which tl.dot cuts off what TF32 lacks, and kg there
_CHUNKED_WITH_A_SIGN = (
    "; a key of 8 bits times gates just below 1 is rounded back to the key, which loses "
    "the last gates of a chunk, and TF32 cuts off bits of products of keys: by both a "
    "simulation of the kernel makes a state 4.4e-5 too large, in the mean of ten draws "
    "(7.4e-5 in one, of which an H100 made 7.2e-5); twice the mean is allowed"
)
# a case of prefill in which keys are zero
_FADES = "state-only-fades"


def _is_step(axes: Mapping[str, int]) -> bool:
    """Return whether each sequence has one token, whose gate is the only one."""
    return "total_tokens" not in axes


TOLERANCES = (
    Override(
        "output",
        Tolerance(rtol=4e-3, atol=2e-6, nmse=5e-6),
        "one rounding to bfloat16: half an ulp is 2^-8 at most; the state's float32 "
        "errors, 9e-6 at most, reach the output times 1/sqrt(128), and cancel in part",
        source="oracle",
    ),
    Override(
        "new_state",
        Tolerance(rtol=1e-6, atol=1e-5, nmse=1e-11),
        _FLOAT32,
        source="oracle",
        where=_is_step,
    ),
    Override(
        "new_state",
        Tolerance(rtol=1e-6, atol=1e-5, nmse=1e-11, bias=4e-6),
        _FLOAT32 + _GATES_HAVE_A_SIGN,
        source="oracle",
    ),
    Override(
        "new_state",
        Tolerance(rtol=2e-4, atol=1e-6, nmse=1e-8),
        "kernels multiply the state, in float32, by the exponential of a sum of 40 "
        "logarithms of gates, which a fast softplus makes 2^-22 off each, times a rate of "
        "12 by 1.1e-4 at most",
        case=_FADES,
    ),
    Override(
        "output",
        Tolerance(rtol=1e-2, atol=4e-3, nmse=5e-5),
        _CHUNKED,
        source="sglang/triton-chunked",
    ),
    Override(
        "new_state",
        Tolerance(rtol=1e-2, atol=3e-2, nmse=5e-5, bias=9e-5),
        _CHUNKED + _CHUNKED_WITH_A_SIGN,
        source="sglang/triton-chunked",
        case="long-memory",
    ),
    Override(
        "new_state",
        Tolerance(rtol=1e-2, atol=3e-2, nmse=5e-5),
        _CHUNKED,
        source="sglang/triton-chunked",
    ),
    Override(
        "output",
        Tolerance(rtol=8e-3, atol=5e-5, nmse=1e-5),
        f"both sides round once, to neighbours at most: 2^-7; {_FAST_GATES}",
    ),
    Override(
        "new_state",
        Tolerance(rtol=1e-5, atol=3e-4, nmse=5e-7),
        _FAST_GATES,
        where=_is_step,
    ),
    Override(
        "new_state",
        Tolerance(rtol=1e-5, atol=3e-4, nmse=5e-7, bias=8e-6),
        _FAST_GATES + _GATES_HAVE_A_SIGN + ", and the other side as much the other way",
    ),
)


def cases(definition: Definition) -> list[Case]:
    """Return short and long memory, short vectors, sequences around chunks of 64."""
    return _decode_cases() if _is_decode(definition) else _prefill_cases()


def _is_decode(definition: Definition) -> bool:
    return "cu_seqlens" not in definition.interface.inputs


def _decode_cases() -> list[Case]:
    def case(name: str, size: str, rows: int, **params: float) -> Case:
        return Case(name, size, {"batch_size": rows}, params)

    return [
        case("one-sequence", "small", 1),
        case("three-sequences", "small", 3),
        # squares of a head add up to about what the root adds
        case("short-vectors", "small", 2, length=1e-4),
        # g about exp(-2); softplus around 20, where kernels switch to the identity
        case("short-memory", "small", 2, dt_mean=2.0),
        case("linear-softplus", "small", 2, dt_mean=20.0, A_mean=-5.0),
        case("batch", "medium", 8),
        lengthened(case("batch", "medium", 8), "batch_size", 131),
        case("large-batch", "large", 96),
    ]


def _prefill_cases() -> list[Case]:
    """Return the cases of a prefill, with gates of models.

    The chunked kernel multiplies keys and values in bfloat16. Where keys are zero,
    nothing of that is left in the states: what is kept in float32 shows, gates and states.
    SGLang's chunked kernel cuts what 16 gates of a channel multiply to off at 2^-126,
    which those of models, down to e^-1.6 each, are far from: so are these.
    """

    def case(name: str, size: str, *lengths: int, **params: float) -> Case:
        axes = {
            "total_tokens": sum(lengths),
            "num_seqs": len(lengths),
            "len_cu_seqlens": len(lengths) + 1,
        }
        return Case(name, size, axes, {"lengths": lengths, "A_mean": -1.0, **params})

    return [
        case("one-token", "small", 1),
        case("an-empty-sequence", "small", 5, 0, 9),
        case("short-vectors", "small", 4, length=1e-4),
        case("short-memory", "small", 20, 7, dt_mean=1.0, A_mean=-2.5),
        case("linear-softplus", "small", 13, dt_mean=20.0, A_mean=-5.0),
        case(_FADES, "small", 40, 9, k_length=0.0),
        case("around-a-chunk", "medium", 63, 64, 65),
        case("long-memory", "medium", 150, dt_mean=-6.0),
        case("past-limits", LIMITS, 2_060, *[100] * 62, dt_mean=1.0, A_mean=-2.5),
        case("long-sequences", "large", 900, 64, 1, 333, dt_mean=-5.0),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the inputs, shaped as the interface declares them.

    q, k, v, a and b are bfloat16, A_log, dt_bias and states float32, cu_seqlens int32.
    """
    axes, params = {**definition.axes, **case.axes}, case.params
    specs = definition.interface.input_specs
    length = params.get("length", 1.0)
    # name → mean and deviation
    laws = {
        "q": (0.0, length),
        "k": (0.0, params.get("k_length", length)),
        "v": (0.0, 1.0),
        "a": (0.0, 1.0),
        "b": (0.0, 1.5),
        "A_log": (params.get("A_mean", 0.0), 1.0),
        "dt_bias": (params.get("dt_mean", -3.0), 1.0),
        "state": (0.0, 0.5),
    }
    inputs: dict[str, Any] = {}
    for name, (mean, deviation) in laws.items():
        shape = tuple(axes[axis] for axis in specs[name].shape or ())
        values = stream.child(name).values(shape, deviation) + mean
        is_short = specs[name].dtype == "bfloat16"
        inputs[name] = values.to(torch.bfloat16) if is_short else values
    if "lengths" in params:
        ends = torch.tensor([0, *params["lengths"]]).cumsum(0)
        inputs["cu_seqlens"] = ends.to(torch.int32)
    return inputs


def oracle(
    definition: Definition, inputs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the outputs, shaped as v, and the states, in float64."""
    wide = {n: t.double() for n, t in inputs.items() if n != "cu_seqlens"}
    raw = wide["a"] + wide["dt_bias"]
    # ln(1 + e^raw) without overflow, and accurate for small values
    steps = torch.logaddexp(raw, torch.zeros_like(raw))
    log_g = -wide["A_log"].exp()[:, None] * steps
    beta = 1.0 / (1.0 + torch.exp(-wide["b"]))
    q, k = (_of_length_one(wide[name]) for name in ("q", "k"))
    q = q / definition.axes["head_dim"] ** 0.5
    output, states = torch.zeros_like(wide["v"]), wide["state"].clone()
    for row, part in enumerate(spans(inputs)):
        output[part], states[row] = solved(
            q[part],
            k[part],
            wide["v"][part],
            log_g[part],
            beta[part],
            wide["state"][row],
        )
    return output, states


def _of_length_one(x: torch.Tensor) -> torch.Tensor:
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return x / torch.sqrt(length * length + 1e-6)


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return SGLang's PyTorch test code, and its Triton kernels of the stage."""
    backend = Backend("triton-packed", needs=("triton",))
    if not _is_decode(definition):
        backend = Backend("triton-chunked", min_sm=80, needs=("triton",))
    return (
        Backend("native", needs_cuda=False),
        Backend("triton", needs=("triton",)),
        backend,
    )


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return outputs and states of SGLang's kernels, which update states in place."""
    state = inputs["state"].clone()
    rows = torch.arange(len(state), dtype=torch.int32, device=state.device)
    ends = inputs.get("cu_seqlens")
    if ends is None:
        ends = torch.arange(len(state) + 1, dtype=torch.int32, device=state.device)
    if backend == "native":
        return _native(inputs, ends.diff().tolist())
    q, k, v, a, b = (inputs[name] for name in ("q", "k", "v", "a", "b"))
    rates = {"A_log": inputs["A_log"], "dt_bias": inputs["dt_bias"].flatten()}
    if backend == "triton-packed":
        from sglang.kernels.ops.attention.fla import fused_recurrent

        output = torch.empty_like(v[:, None])
        fused_recurrent.fused_recurrent_kda_packed_decode(
            torch.cat([tensor.flatten(1) for tensor in (q, k, v)], dim=1),
            a.flatten(1),
            b,
            **rates,
            scale=definition.axes["head_dim"] ** -0.5,
            initial_state=state,
            out=output,
            # int64: for int32 a kernel that is compiled on first use takes batches of 8
            ssm_state_indices=rows.long(),
            use_qk_l2norm_in_kernel=True,
        )
        return output[:, 0], state
    arguments = {"q": q[None], "k": k[None], "v": v[None], "cu_seqlens": ends}
    if backend == "triton":
        from sglang.kernels.ops.attention.linear import (
            fused_sigmoid_gating_recurrent as fused,
        )

        output = fused.fused_sigmoid_gating_delta_rule_update(
            **rates,
            **arguments,
            a=a.flatten(1)[None],
            b=b[None],
            softplus_beta=1.0,
            softplus_threshold=20.0,
            initial_state_source=state,
            initial_state_indices=rows,
            use_qk_l2norm_in_kernel=True,
            is_kda=True,
        )
        return output[0], state
    from sglang.kernels.ops.attention.fla.kda import chunk_kda

    arguments["cu_seqlens"], occupying = occupied(ends)
    # the kernel writes its output over v
    output = chunk_kda(
        **{**arguments, "v": v[None].clone()},
        **rates,
        g=a[None],
        beta=b[None],
        beta_is_raw=True,
        initial_state=state,
        initial_state_indices=rows[occupying],
        use_qk_l2norm_in_kernel=True,
    )
    return output[0], state


def _native(
    inputs: dict[str, Any], lengths: list[int]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the result of the loop over tokens and heads in SGLang's test suite."""
    from sglang.test.kits.attention_unittest.attention_methods import kda_attention

    q, k, v = (inputs[name][None] for name in ("q", "k", "v"))
    tokens, heads, size = v.shape[1:]
    slots = torch.arange(len(lengths), device=v.device)
    pool = SimpleNamespace(get_mamba_indices=lambda _: slots)
    fixture = SimpleNamespace(
        reference_module=SimpleNamespace(
            split_qkv=lambda _: (q, k, v),
            A_log=inputs["A_log"],
            dt_bias=inputs["dt_bias"],
            num_v_heads=heads,
            head_k_dim=size,
            head_v_dim=size,
        ),
        # of the convolution before, which is not asked; its dtype is the output's
        mixed_qkv=torch.zeros((), dtype=v.dtype, device=v.device),
        a_raw=inputs["a"],
        b_raw=inputs["b"],
        case=SimpleNamespace(
            num_input_tokens=tokens,
            num_v_heads=heads,
            num_k_heads=heads,
            input_lens=lengths,
        ),
        forward_batch=SimpleNamespace(req_pool_indices=slots),
        runner=SimpleNamespace(device=v.device, req_to_token_pool=pool),
    )
    answer = kda_attention._pure_torch_kda_reference(fixture, inputs["state"])
    return answer.output[0], answer.final_states


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=kda_relations,
    tolerances=TOLERANCES,
    kernels={"sglang": Kernel(sglang_backends, sglang_ground_truth)},
)


# ---- the interfaces

INTERFACE_KDA_DECODE = Interface(
    inputs={
        "q": "bfloat16[batch_size, num_heads, head_dim]",
        "k": "bfloat16[batch_size, num_heads, head_dim]",
        "v": "bfloat16[batch_size, num_heads, head_dim]",
        "a": "bfloat16[batch_size, num_heads, head_dim]",
        "b": "bfloat16[batch_size, num_heads]",
        "A_log": "float32[num_heads]",
        "dt_bias": "float32[num_heads, head_dim]",
        "state": "float32[batch_size, num_heads, head_dim, head_dim]",
    },
    outputs={
        "output": "bfloat16[batch_size, num_heads, head_dim]",
        "new_state": "float32[batch_size, num_heads, head_dim, head_dim]",
    },
)
INTERFACE_KDA_PREFILL = Interface(
    inputs={
        "q": "bfloat16[total_tokens, num_heads, head_dim]",
        "k": "bfloat16[total_tokens, num_heads, head_dim]",
        "v": "bfloat16[total_tokens, num_heads, head_dim]",
        "a": "bfloat16[total_tokens, num_heads, head_dim]",
        "b": "bfloat16[total_tokens, num_heads]",
        "A_log": "float32[num_heads]",
        "dt_bias": "float32[num_heads, head_dim]",
        "state": "float32[num_seqs, num_heads, head_dim, head_dim]",
        "cu_seqlens": "int32[len_cu_seqlens]",
    },
    outputs={
        "output": "bfloat16[total_tokens, num_heads, head_dim]",
        "new_state": "float32[num_seqs, num_heads, head_dim, head_dim]",
    },
    constraints=(
        "len_cu_seqlens == num_seqs + 1",
        "total_tokens == cu_seqlens[-1].item()",
    ),
)

# ---- the tests


class KdaTests(GroundTruthsAgree, matches("sglang"), MatchesRecorded, Metamorphic):
    """What the tests of kda share."""

    op_type = "kda"
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
# (2) tensor cores multiply bfloat16.
# (3) both sides round once, to neighbours at most.
# (4) a token rounds a state of 3 four times, by 2^-24 each, 7e-7.
# (5) a factor or an offset of 4e-06 is allowed.
# (6) kernels multiply the state, in float32, by the exponential of a sum of 40
# logarithms of gates, which a fast softplus makes 2^-22 off each, times a rate of 12 by
# 1.1e-4 at most.
# (7) a factor or an offset of 9e-05 is allowed.
# (8) kernels take the gates from fast exponentials, off by 2^-22, whose errors add up
# where a state hardly fades.
# (9) a factor or an offset of 8e-06 is allowed.


# Kimi delta attention, one token a sequence. q and k are divided by sqrt(sum(x^2) +
# 1e-6) of their head, and q by sqrt(head_dim). With g = exp(-exp(A_log) * softplus(a +
# dt_bias)), one gate for each channel of the key, and beta = sigmoid(b), each token
# makes column i of its head's state S g[i] S[:, i], then adds beta (v - S k) k^T, and
# the output is S q. States are [values, keys].
# stage:decode, model:kimi-linear-48b-a3b
# Tolerances:
#   output     source                                rtol    atol    NMSE   reason
#   output     oracle                                0.004   2e-06   5e-06  (1)
#   output     sglang/triton-chunked                 0.01    0.004   5e-05  (2)
#   output     sglang                                0.008   5e-05   1e-05  (3)
#   new_state  oracle of some sizes                  1e-06   1e-05   1e-11  (4)
#   new_state  oracle                                1e-06   1e-05   1e-11  (4) (5)
#   new_state  sglang in state-only-fades            0.0002  1e-06   1e-08  (6)
#   new_state  sglang/triton-chunked in long-memory  0.01    0.03    5e-05  (2) (7)
#   new_state  sglang/triton-chunked                 0.01    0.03    5e-05  (2)
#   new_state  sglang of some sizes                  1e-05   0.0003  5e-07  (8)
#   new_state  sglang                                1e-05   0.0003  5e-07  (8) (9)
def reference_kda_decode():
    import torch

    EPS = 1e-06


    def normalised(x: torch.Tensor) -> torch.Tensor:
        x = x.float()
        return x * torch.rsqrt(x.square().sum(dim=-1, keepdim=True) + EPS)


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        a: torch.Tensor,
        b: torch.Tensor,
        A_log: torch.Tensor,
        dt_bias: torch.Tensor,
        state: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        queries = normalised(q) * q.shape[-1] ** -0.5
        keys = normalised(k)
        steps = torch.nn.functional.softplus(a.float() + dt_bias)
        # One gate for each channel of the key: [batch_size, num_heads, head_dim].
        decay = torch.exp(-torch.exp(A_log).unsqueeze(-1) * steps)
        beta = torch.sigmoid(b.float())

        # States are [batch_size, num_heads, values, keys].
        decayed = state * decay.unsqueeze(-2)
        recalled = (decayed * keys.unsqueeze(-2)).sum(dim=-1)
        # A share beta of what the key recalls is replaced by the new value.
        added = beta.unsqueeze(-1) * (v.float() - recalled)
        new_state = decayed + added.unsqueeze(-1) * keys.unsqueeze(-2)
        read = (new_state * queries.unsqueeze(-2)).sum(dim=-1)
        return read.to(v.dtype), new_state

    return run


class KdaDecodeBase(KdaTests):
    reference = staticmethod(reference_kda_decode)
    interface = INTERFACE_KDA_DECODE
    axes = {"head_dim": 128}

class TestKdaDecodeH16D128(KdaDecodeBase):
    name = "kda_decode_h16_d128"  # tp:2
    axes = {"num_heads": 16}
    sha256 = "f6d2c435d0f610eee62391a496bb5d33fee981fa647908f2530c2422f3029848"

class TestKdaDecodeH32D128(KdaDecodeBase):
    name = "kda_decode_h32_d128"  # tp:1
    axes = {"num_heads": 32}
    sha256 = "74785497b75fac8e949c0e41f06b6dff1b1aabe70fece3f81be7f4c06754dd70"

class TestKdaDecodeH8D128(KdaDecodeBase):
    name = "kda_decode_h8_d128"  # tp:4
    axes = {"num_heads": 8}
    sha256 = "c09a25a33e08ebd578cc41d5d9ab595f4cd4f69e6cbbc081b32c9eee11dc3807"


# Kimi delta attention over whole sequences, which lie one after another. q and k are
# divided by sqrt(sum(x^2) + 1e-6) of their head, and q by sqrt(head_dim). With g =
# exp(-exp(A_log) * softplus(a + dt_bias)), one gate for each channel of the key, and
# beta = sigmoid(b), each token makes column i of its head's state S g[i] S[:, i], then
# adds beta (v - S k) k^T, and the output is S q. States are [values, keys]. An empty
# sequence keeps its state.
# stage:prefill, model:kimi-linear-48b-a3b
# Tolerances: those of reference_kda_decode.
def reference_kda_prefill():
    import torch

    EPS = 1e-06


    def normalised(x: torch.Tensor) -> torch.Tensor:
        x = x.float()
        return x * torch.rsqrt(x.square().sum(dim=-1, keepdim=True) + EPS)


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        a: torch.Tensor,
        b: torch.Tensor,
        A_log: torch.Tensor,
        dt_bias: torch.Tensor,
        state: torch.Tensor,
        cu_seqlens: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        starts = cu_seqlens[:-1].long()
        lengths = cu_seqlens[1:].long() - starts
        queries = normalised(q) * q.shape[-1] ** -0.5
        keys = normalised(k)
        values = v.float()
        steps = torch.nn.functional.softplus(a.float() + dt_bias)
        # One gate for each channel of the key: [total_tokens, num_heads, head_dim].
        decay = torch.exp(-torch.exp(A_log).unsqueeze(-1) * steps)
        beta = torch.sigmoid(b.float())

        output = torch.empty_like(v)
        # States are [num_seqs, num_heads, values, keys].
        new_state = state.clone()
        for position in range(max(lengths.tolist(), default=0)):
            # The token at this position of all sequences that are long enough.
            rows = (lengths > position).nonzero().squeeze(1)
            tokens = starts[rows] + position
            decayed = new_state[rows] * decay[tokens].unsqueeze(-2)
            recalled = (decayed * keys[tokens].unsqueeze(-2)).sum(dim=-1)
            # A share beta of what the key recalls is replaced by the new value.
            added = beta[tokens].unsqueeze(-1) * (values[tokens] - recalled)
            updated = decayed + added.unsqueeze(-1) * keys[tokens].unsqueeze(-2)
            read = (updated * queries[tokens].unsqueeze(-2)).sum(dim=-1)
            output[tokens] = read.to(v.dtype)
            new_state[rows] = updated
        return output, new_state

    return run


class KdaPrefillBase(KdaTests):
    reference = staticmethod(reference_kda_prefill)
    interface = INTERFACE_KDA_PREFILL
    axes = {"head_dim": 128}

class TestKdaPrefillH16D128(KdaPrefillBase):
    name = "kda_prefill_h16_d128"  # tp:2
    axes = {"num_heads": 16}
    sha256 = "6ea58010e73edc80217caa163583395a40e63f7d3eeef337a5955838540046cd"

class TestKdaPrefillH32D128(KdaPrefillBase):
    name = "kda_prefill_h32_d128"  # tp:1
    axes = {"num_heads": 32}
    sha256 = "563f4d9d4e724d2cbc1d2ad505a02631496ab08630da3e31bc4379ff405169b8"

class TestKdaPrefillH8D128(KdaPrefillBase):
    name = "kda_prefill_h8_d128"  # tp:4
    axes = {"num_heads": 8}
    sha256 = "43a7b672000e16835c454539a052b882353e7a95279e0eedba1d2a84b8c0c2bf"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
