"""Reference tests of op_type gdn.

Rendered: don't edit. `gen-tests --op-type gdn` renders this file anew.

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
from dataclasses import replace
from typing import Any

import torch

from generator.ops.far_factors import far_apart
from generator.ops.op_types.gdn.cases import decode_cases, prefill_cases
from generator.ops.op_types.gdn.delta_rule import (
    L2_EPS,
    gates,
    log_decay,
    occupied,
    sequences,
    solve,
    states_before,
)
from generator.ops.op_types.gdn.inputs import make_inputs
from generator.ops.op_types.gdn.names import BUFFER, FADES
from generator.ops.op_types.gdn.native import native_outputs
from generator.ops.op_types.gdn.relations import gdn_relations
from generator.ops.op_types.gdn.stage import is_normalised, scale_of, stage_of
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.comparison.tolerance import EXACT, Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition, Interface
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# oracle: generator.ops.op_types.gdn.delta_rule, generator.ops.op_types.gdn.names,
# generator.ops.op_types.gdn.stage
# bounds: generator.ops.op_types.gdn.names
# relations: generator.ops.op_types.gdn.relations

_ONE_ROUNDING = (
    "one rounding to bfloat16: half an ulp is 2^-8 at most; the state's float32 errors, "
    "3e-6 at most, reach the output times a scale of 0.2 at most, and cancel in part"
)
_FLOAT32 = (
    "a token rounds a state of 3 four times, by 2^-24 each, 7e-7; keys of length 1 and "
    "gates below 1 never enlarge an error, so that 400 tokens' errors, which differ in "
    "sign, add up to sqrt(400)·7e-7 at most, 1.4e-5; those of up to 6 tokens to 2e-6"
)
_FAST_GATES = (
    "kernels take the gates from fast exponentials, off by 2^-22, whose errors add up "
    "where a state hardly fades: over 400 steps to 1e-4 of a state of 3"
)
_GATES_HAVE_A_SIGN = (
    "; gates just below 1 are multiples of 2^-24, and an exponential that rounds most of "
    "them one way is off by up to 2^-25 a token: over 400 tokens that hardly fade this "
    "makes a state 3e-6 too large, 128 keys of length 1 replacing what is older"
)
_CHUNKED_REASON = (
    "tensor cores multiply bfloat16: the state (rows up to 8), the recalled values, the "
    "updates and the triangular inverse are rounded by 2^-9 each, once a chunk of 64; "
    "at worst that is 2^-9·8·4, 6e-2, in a state and 1/sqrt(128) of it in an output. "
    "Errors that differ in sign stay at a quarter: PyTorch with the same roundings is "
    "off by 1.5e-2 and 1e-3, with an NMSE of 2e-5"
)
# prefill kernels that process chunks of 64 tokens
_CHUNKED_SOURCES = (
    "flashinfer/fused",
    "flashinfer/context-parallel",
    "sglang/triton-chunked",
)
_CHUNKED_TOLERANCES = (
    ("output", Tolerance(rtol=1e-2, atol=2e-3, nmse=5e-5)),
    ("new_state", Tolerance(rtol=1e-2, atol=3e-2, nmse=5e-5)),
)
_FADED = Tolerance(rtol=1e-4, atol=1e-6, nmse=1e-9)
_ONLY_GATES = (
    "kernels multiply the state, in float32, by the exponential of a sum of up to 64 "
    "logarithms of gates, which a fast logarithm makes 2^-22 off each, 1.5e-5 in all"
)


def _by_scale(definition: Definition, case: Case) -> float:
    """Return what a case multiplies the scale by: errors before it grow with it."""
    return float(2.0 ** case.moved.get("scale", 0.0))


TOLERANCES = (
    Override(
        "output",
        Tolerance(rtol=4e-3, atol=1e-6, nmse=5e-6),
        _ONE_ROUNDING,
        source="oracle",
        growth=_by_scale,
    ),
    Override(
        "new_state",
        Tolerance(rtol=1e-6, atol=1.4e-5, nmse=1e-11, bias=4e-6),
        _FLOAT32 + _GATES_HAVE_A_SIGN,
        source="oracle",
    ),
    Override(
        BUFFER, Tolerance(rtol=1e-6, atol=2e-6, nmse=1e-12), _FLOAT32, source="oracle"
    ),
    Override(
        "new_state",
        Tolerance(rtol=2.5e-3, atol=1e-6, nmse=1e-6),
        "the states and the products of gates are multiplied in TF32, whose 10 bits leave "
        f"either 2^-10 off at most, 2e-3 in all, and 6e-7 of the power. {_ONLY_GATES}",
        source="flashinfer/context-parallel",
        case=FADES,
    ),
    Override("new_state", _FADED, _ONLY_GATES, case=FADES),
    *(
        Override(
            output,
            tolerance,
            _CHUNKED_REASON,
            source=source,
            growth=_by_scale if output == "output" else None,
        )
        for source in _CHUNKED_SOURCES
        for output, tolerance in _CHUNKED_TOLERANCES
    ),
    Override(
        "output",
        Tolerance(rtol=8e-3, atol=5e-5, nmse=1e-5),
        f"both sides round once, to neighbours at most: 2^-7; {_FAST_GATES}",
        growth=_by_scale,
    ),
    Override(
        "new_state",
        Tolerance(rtol=1e-5, atol=3e-4, nmse=5e-7, bias=8e-6),
        _FAST_GATES + _GATES_HAVE_A_SIGN + ", and the other side as much too small",
    ),
    Override(
        BUFFER,
        Tolerance(rtol=1e-5, atol=5e-5, nmse=1e-9),
        "at most 6 steps; softplus is off by 2.5e-7 where the fast logarithm is taken "
        "near 1, and a rate of 12 makes that 3e-6 of a gate, 2e-5 after all steps",
    ),
    Override("final_state", EXACT, "the pool is returned unchanged, not computed"),
)
_GATES = "inputs rewritten: the adapter computes g and beta of A_log, a, dt_bias and b"
# FlashInfer's kernels need CuTe DSL, which its wheel does not install
_CUTE_DSL = ("cutlass",)
_FLASHINFER = {
    "decode": (Backend("pretranspose", min_sm=90, needs=_CUTE_DSL),),
    "mtp": (Backend("mtp", min_sm=90, needs=_CUTE_DSL),),
    # FlashInfer selects one by the number of sequences and heads
    "prefill": tuple(
        Backend(name, min_sm=90, needs=_CUTE_DSL, rewrites=_GATES)
        for name in ("fused", "context-parallel")
    ),
}
_NATIVE = Backend(
    "native",
    needs_cuda=False,
    rewrites="inputs rewritten: the loop normalises q and k, so that b and v are scaled; "
    "outputs rewritten: rows are scaled",
)
_SCALED = "outputs rewritten: rows are multiplied by scale * sqrt(head_size)"
_RECURRENT = Backend("triton", needs=("triton",))
_CHUNKED = Backend("triton-chunked", min_sm=80, needs=("triton",))


def cases(definition: Definition) -> list[Case]:
    """Return the cases of the stage: short and long memory, and every default."""
    stage, l2norm = stage_of(definition), is_normalised(definition)
    if stage == "prefill":
        usual = prefill_cases(l2norm)
    else:
        usual = decode_cases(stage == "mtp", l2norm)
    (some,) = (case for case in usual if case.name == "short-memory")
    return [*usual, *far_apart(some, "scale", exponent=20.0)]


def oracle(definition: Definition, inputs: dict[str, Any]) -> tuple[torch.Tensor, ...]:
    """Return the outputs, shaped as v, and the states, in float64."""
    ratio = definition.axes["num_v_heads"] // definition.axes["num_k_heads"]
    heads = torch.arange(definition.axes["num_v_heads"], device=inputs["q"].device)
    wide = {
        name: value.double()
        for name, value in inputs.items()
        if isinstance(value, torch.Tensor) and value.is_floating_point()
    }
    log_g = log_decay(wide["A_log"], wide["a"], wide["dt_bias"])
    beta = wide["b"].sigmoid()
    q, k = (wide[name][..., heads // ratio, :] for name in ("q", "k"))
    if is_normalised(definition):
        q, k = (x / (x.square().sum(-1, keepdim=True) + L2_EPS).sqrt() for x in (q, k))
    tensors = (q, k, wide["v"], log_g, beta)
    states = states_before(inputs).double()

    output = torch.zeros_like(wide["v"])
    after = states.clone()
    buffers = [wide[name] for name in filled_inputs(inputs)]
    for row, part in enumerate(sequences(inputs)):
        sequence = [tensor[part] for tensor in tensors]
        solved = solve(sequence, states[row])
        output[part] = scale_of(definition, inputs) * solved.output
        after[row] = solved.state
        for buffer in buffers:
            for t in range(len(solved.output)):
                until = [tensor[: t + 1] for tensor in sequence]
                buffer[row, t] = solve(until, states[row]).state
    if "initial_state" in inputs:
        return (output, wide["initial_state"], *buffers)
    return output, after


def filled_inputs(inputs: dict[str, Any]) -> tuple[str, ...]:
    """Return the name of the buffer of the drafts' states, if it is given."""
    return () if inputs.get(BUFFER) is None else (BUFFER,)


def _with_buffer(inputs: dict[str, Any], output: Any, state: Any) -> tuple[Any, ...]:
    """Return a kernel's outputs, followed by the buffer if it is given."""
    return (output, state, *(inputs[name] for name in filled_inputs(inputs)))


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the kernels of the definition's stage; that of prefill does not normalise."""
    stage = stage_of(definition)
    if is_normalised(definition) and stage == "prefill":
        return ()
    return _FLASHINFER[stage]


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> tuple[Any, ...]:
    """Return outputs and states of FlashInfer's kernels.

    They update states in place; a scale of 0 has no default.
    """
    raw = [inputs[name] for name in ("A_log", "a", "dt_bias", "b")]
    tokens = [inputs[name] for name in ("q", "k", "v")]
    scale, l2norm = scale_of(definition, inputs), is_normalised(definition)
    if backend == "pretranspose":
        from flashinfer.gdn_decode import gated_delta_rule_decode_pretranspose

        states = states_before(inputs)
        output, states = gated_delta_rule_decode_pretranspose(
            *tokens, states, *raw, scale=scale, use_qk_l2norm=l2norm
        )
        return output, states
    if backend == "mtp":
        from flashinfer.gdn_decode import gated_delta_rule_mtp

        output, pool = gated_delta_rule_mtp(
            *tokens,
            inputs["initial_state"],
            inputs["initial_state_indices"],
            *raw,
            scale=scale,
            intermediate_states_buffer=inputs[BUFFER],
            disable_state_update=True,
            use_qk_l2norm=l2norm,
        )
        return _with_buffer(inputs, output, pool)
    from flashinfer.gdn_prefill import chunk_gated_delta_rule

    log_g, beta = gates(inputs)
    output, states = chunk_gated_delta_rule(
        *tokens,
        # g, not ln g
        g=log_g.exp(),
        beta=beta,
        scale=scale,
        initial_state=inputs["state"],
        output_final_state=True,
        cu_seqlens=inputs["cu_seqlens"],
        # the kernels do not write the state of an empty sequence
        output_state=states_before(inputs),
        use_cp=backend == "context-parallel",
    )
    return output, states


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return SGLang's PyTorch test code and its Triton kernels."""
    native = _NATIVE
    if is_normalised(definition):
        native = replace(native, rewrites=_SCALED)
    if stage_of(definition) != "prefill":
        return native, _RECURRENT
    triton = (replace(b, rewrites=_GATES) for b in (_RECURRENT, _CHUNKED))
    return (native, *triton)


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> tuple[Any, ...]:
    """Return outputs and states of SGLang's kernels, which update states in place."""
    if backend == "native":
        return native_outputs(definition, inputs, filled_inputs(inputs))
    states = states_before(inputs)
    rows = torch.arange(len(states), dtype=torch.int32, device=states.device)
    q, k, v = (inputs[name] for name in ("q", "k", "v"))
    scale, l2norm = scale_of(definition, inputs), is_normalised(definition)
    if stage_of(definition) != "prefill":
        from sglang.kernels.ops.attention.linear import (
            fused_sigmoid_gating_recurrent as fused,
        )

        mtp = "initial_state" in inputs
        output = fused.fused_sigmoid_gating_delta_rule_update(
            A_log=inputs["A_log"],
            a=inputs["a"],
            dt_bias=inputs["dt_bias"],
            softplus_beta=1.0,
            softplus_threshold=20.0,
            q=q,
            k=k,
            v=v,
            b=inputs["b"],
            initial_state_source=inputs["initial_state"] if mtp else states,
            initial_state_indices=inputs["initial_state_indices"] if mtp else rows,
            scale=scale,
            use_qk_l2norm_in_kernel=l2norm,
            disable_state_update=mtp,
            intermediate_states_buffer=inputs[BUFFER] if mtp else None,
            intermediate_state_indices=rows if mtp else None,
            cache_steps=q.shape[1] if mtp else None,
        )
        return _with_buffer(inputs, output, inputs["initial_state"] if mtp else states)
    log_g, beta = gates(inputs)
    batched = [tensor[None] for tensor in (q, k, v, log_g, beta)]
    if backend == "triton-chunked":
        from sglang.kernels.ops.attention.fla.chunk import chunk_gated_delta_rule

        ends, has_tokens = occupied(inputs["cu_seqlens"])
        output, *_ = chunk_gated_delta_rule(
            *batched,
            scale=scale,
            initial_state=states,
            initial_state_indices=rows[has_tokens],
            cu_seqlens=ends,
            use_qk_l2norm_in_kernel=l2norm,
        )
        return output[0], states
    from sglang.kernels.ops.attention.fla.fused_recurrent import (
        fused_recurrent_gated_delta_rule,
    )

    output, states = fused_recurrent_gated_delta_rule(
        *batched,
        scale=scale,
        initial_state=states,
        output_final_state=True,
        cu_seqlens=inputs["cu_seqlens"],
        use_qk_l2norm_in_kernel=l2norm,
    )
    return output[0], states


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    filled_inputs=filled_inputs,
    relations=gdn_relations,
    tolerances=TOLERANCES,
    kernels={
        "flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth),
        "sglang": Kernel(sglang_backends, sglang_ground_truth),
    },
)


# ---- the interfaces

INTERFACE_GDN_DECODE = Interface(
    inputs={
        "q": "bfloat16[batch_size, seq_len, num_q_heads, head_size]",
        "k": "bfloat16[batch_size, seq_len, num_k_heads, head_size]",
        "v": "bfloat16[batch_size, seq_len, num_v_heads, head_size]",
        "state": "float32[batch_size, num_v_heads, head_size, head_size]",
        "A_log": "float32[num_v_heads]",
        "a": "bfloat16[batch_size, seq_len, num_v_heads]",
        "dt_bias": "float32[num_v_heads]",
        "b": "bfloat16[batch_size, seq_len, num_v_heads]",
        "scale": "float32",
    },
    outputs={
        "output": "bfloat16[batch_size, seq_len, num_v_heads, head_size]",
        "new_state": "float32[batch_size, num_v_heads, head_size, head_size]",
    },
    constraints=(
        "num_v_heads >= num_q_heads",
        "num_v_heads % num_q_heads == 0",
        "num_k_heads == num_q_heads",
    ),
)
INTERFACE_GDN_MTP = Interface(
    inputs={
        "q": "bfloat16[batch_size, seq_len, num_q_heads, head_size]",
        "k": "bfloat16[batch_size, seq_len, num_k_heads, head_size]",
        "v": "bfloat16[batch_size, seq_len, num_v_heads, head_size]",
        "initial_state": "float32[pool_size, num_v_heads, head_size, head_size]",
        "initial_state_indices": "int32[batch_size]",
        "A_log": "float32[num_v_heads]",
        "a": "bfloat16[batch_size, seq_len, num_v_heads]",
        "dt_bias": "float32[num_v_heads]",
        "b": "bfloat16[batch_size, seq_len, num_v_heads]",
        "scale": "float32",
        "intermediate_states_buffer": "float32[pool_size, seq_len, num_v_heads, head_size, head_size]",
    },
    outputs={
        "output": "bfloat16[batch_size, seq_len, num_v_heads, head_size]",
        "final_state": "float32[pool_size, num_v_heads, head_size, head_size]",
    },
    constraints=(
        "num_v_heads >= num_q_heads",
        "num_v_heads % num_q_heads == 0",
        "num_k_heads == num_q_heads",
        "seq_len > 1",
    ),
)
INTERFACE_GDN_PREFILL = Interface(
    inputs={
        "q": "bfloat16[total_seq_len, num_q_heads, head_size]",
        "k": "bfloat16[total_seq_len, num_k_heads, head_size]",
        "v": "bfloat16[total_seq_len, num_v_heads, head_size]",
        "state": "float32[num_seqs, num_v_heads, head_size, head_size]",
        "A_log": "float32[num_v_heads]",
        "a": "bfloat16[total_seq_len, num_v_heads]",
        "dt_bias": "float32[num_v_heads]",
        "b": "bfloat16[total_seq_len, num_v_heads]",
        "cu_seqlens": "int64[len_cu_seqlens]",
        "scale": "float32",
    },
    outputs={
        "output": "bfloat16[total_seq_len, num_v_heads, head_size]",
        "new_state": "float32[num_seqs, num_v_heads, head_size, head_size]",
    },
    constraints=(
        "len_cu_seqlens == num_seqs + 1",
        "total_seq_len == cu_seqlens[-1].item()",
    ),
)

# ---- the tests


class GdnTests(
    GroundTruthsAgree, matches("flashinfer", "sglang"), MatchesRecorded, Metamorphic
):
    """What the tests of gdn share."""

    op_type = "gdn"
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
# (6) the states and the products of gates are multiplied in TF32, whose 10 bits leave
# either 2^-10 off at most, 2e-3 in all, and 6e-7 of the power. kernels multiply the
# state, in float32, by the exponential of a sum of up to 64 logarithms of gates, which
# a fast logarithm makes 2^-22 off each, 1.5e-5 in all.
# (7) kernels multiply the state, in float32, by the exponential of a sum of up to 64
# logarithms of gates, which a fast logarithm makes 2^-22 off each, 1.5e-5 in all.
# (8) kernels take the gates from fast exponentials, off by 2^-22, whose errors add up
# where a state hardly fades.
# (9) a factor or an offset of 8e-06 is allowed.
# (10) the pool is returned unchanged, not computed.


# Gated delta net, one token a sequence. Each query and each key x is first divided by
# sqrt(sum(x^2) + 1e-6). With g = exp(-exp(A_log) * softplus(a + dt_bias)) and beta =
# sigmoid(b), each token makes the state S of its value head g S, then adds beta (v - S
# k) k^T, and the output is scale * S q. States are [values, keys].
# stage:decode, model:qwen3-next-80b-a3b, layout:k-last,
# fi_api:flashinfer.gdn_decode.gated_delta_rule_decode_pretranspose
# Tolerances:
#   output     source                                           rtol    atol     NMSE   reason
#   output     oracle                                           0.004   1e-06*   5e-06  (1)
#   output     flashinfer/fused                                 0.01    0.002*   5e-05  (2)
#   output     flashinfer/context-parallel                      0.01    0.002*   5e-05  (2)
#   output     sglang/triton-chunked                            0.01    0.002*   5e-05  (2)
#   output     flashinfer, sglang                               0.008   5e-05*   1e-05  (3)
#   new_state  oracle                                           1e-06   1.4e-05  1e-11  (4) (5)
#   new_state  flashinfer/context-parallel in state-only-fades  0.0025  1e-06    1e-06  (6)
#   new_state  flashinfer, sglang in state-only-fades           0.0001  1e-06    1e-09  (7)
#   new_state  flashinfer/fused                                 0.01    0.03     5e-05  (2)
#   new_state  flashinfer/context-parallel                      0.01    0.03     5e-05  (2)
#   new_state  sglang/triton-chunked                            0.01    0.03     5e-05  (2)
#   new_state  flashinfer, sglang                               1e-05   0.0003   5e-07  (8) (9)
def reference_gdn_decode_l2norm():
    import math

    import torch


    def unit(x: torch.Tensor) -> torch.Tensor:
        # Of a vector of zeros 1e-6 leaves zeros.
        return x * torch.rsqrt(x.square().sum(dim=-1, keepdim=True) + 1e-6)


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        state: torch.Tensor | None,
        A_log: torch.Tensor,
        a: torch.Tensor,
        dt_bias: torch.Tensor,
        b: torch.Tensor,
        scale: float | None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        batch_size, _, num_v_heads, head_size = v.shape
        heads_per_key = num_v_heads // k.shape[2]
        if not scale:
            scale = 1.0 / math.sqrt(head_size)
        if state is None:
            shape = (batch_size, num_v_heads, head_size, head_size)
            state = torch.zeros(shape, dtype=torch.float32, device=v.device)

        # Value heads h * heads_per_key ... (h + 1) * heads_per_key - 1 share key head h.
        queries = unit(q[:, 0].float()).repeat_interleave(heads_per_key, dim=1)
        keys = unit(k[:, 0].float()).repeat_interleave(heads_per_key, dim=1)
        steps = torch.nn.functional.softplus(a[:, 0].float() + dt_bias.float())
        decay = torch.exp(-torch.exp(A_log.float()) * steps)  # [batch_size, num_v_heads]
        beta = torch.sigmoid(b[:, 0].float())

        # States are [batch_size, num_v_heads, values, keys].
        decayed = state * decay[..., None, None]
        recalled = torch.einsum("bhvk,bhk->bhv", decayed, keys)
        # A share beta of what the key recalls is replaced by the new value.
        added = beta.unsqueeze(-1) * (v[:, 0].float() - recalled)
        new_state = decayed + added.unsqueeze(-1) * keys.unsqueeze(-2)
        read = torch.einsum("bhvk,bhk->bhv", new_state, queries)
        return (scale * read).to(torch.bfloat16).unsqueeze(1), new_state

    return run


class GdnDecodeL2normBase(GdnTests):
    reference = staticmethod(reference_gdn_decode_l2norm)
    interface = INTERFACE_GDN_DECODE
    axes = {"seq_len": 1, "head_size": 128}
    constants = ("l2norm",)
    L2NORM = True  # "l2norm" in the name

class TestGdnDecodeL2normQk16V32D128KLast(GdnDecodeL2normBase):
    name = "gdn_decode_l2norm_qk16_v32_d128_k_last"  # tp:1
    axes = {"num_q_heads": 16, "num_k_heads": 16, "num_v_heads": 32}
    sha256 = "2d1e5583a2b9f1f3539b071b28d00cab14b820035704992542e2f7741a2b6649"

class TestGdnDecodeL2normQk4V8D128KLast(GdnDecodeL2normBase):
    name = "gdn_decode_l2norm_qk4_v8_d128_k_last"  # tp:4
    axes = {"num_q_heads": 4, "num_k_heads": 4, "num_v_heads": 8}
    sha256 = "d5e18e3289deef6861183582ed1fb878b9b53bee12ad28860a24df32c8baeaec"

class TestGdnDecodeL2normQk8V16D128KLast(GdnDecodeL2normBase):
    name = "gdn_decode_l2norm_qk8_v16_d128_k_last"  # tp:2
    axes = {"num_q_heads": 8, "num_k_heads": 8, "num_v_heads": 16}
    sha256 = "b1f5c9dc2367c8a9fc689e9875064b0901efb05d935fdbbf28ecf0be4d48fbf2"


# Gated delta net, one token a sequence. With g = exp(-exp(A_log) * softplus(a +
# dt_bias)) and beta = sigmoid(b), each token makes the state S of its value head g S,
# then adds beta (v - S k) k^T, and the output is scale * S q. States are [values,
# keys]; k is meant to have length 1.
# stage:decode, model:qwen3-next, layout:k-last,
# fi_api:flashinfer.gdn_decode.gated_delta_rule_decode_pretranspose
# Tolerances: those of reference_gdn_decode_l2norm.
def reference_gdn_decode():
    import math

    import torch


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        state: torch.Tensor | None,
        A_log: torch.Tensor,
        a: torch.Tensor,
        dt_bias: torch.Tensor,
        b: torch.Tensor,
        scale: float | None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        batch_size, _, num_v_heads, head_size = v.shape
        heads_per_key = num_v_heads // k.shape[2]
        if not scale:
            scale = 1.0 / math.sqrt(head_size)
        if state is None:
            shape = (batch_size, num_v_heads, head_size, head_size)
            state = torch.zeros(shape, dtype=torch.float32, device=v.device)

        # Value heads h * heads_per_key ... (h + 1) * heads_per_key - 1 share key head h.
        queries = q[:, 0].float().repeat_interleave(heads_per_key, dim=1)
        keys = k[:, 0].float().repeat_interleave(heads_per_key, dim=1)
        steps = torch.nn.functional.softplus(a[:, 0].float() + dt_bias.float())
        decay = torch.exp(-torch.exp(A_log.float()) * steps)  # [batch_size, num_v_heads]
        beta = torch.sigmoid(b[:, 0].float())

        # States are [batch_size, num_v_heads, values, keys].
        decayed = state * decay[..., None, None]
        recalled = torch.einsum("bhvk,bhk->bhv", decayed, keys)
        # A share beta of what the key recalls is replaced by the new value.
        added = beta.unsqueeze(-1) * (v[:, 0].float() - recalled)
        new_state = decayed + added.unsqueeze(-1) * keys.unsqueeze(-2)
        read = torch.einsum("bhvk,bhk->bhv", new_state, queries)
        return (scale * read).to(torch.bfloat16).unsqueeze(1), new_state

    return run


class GdnDecodeBase(GdnTests):
    reference = staticmethod(reference_gdn_decode)
    interface = INTERFACE_GDN_DECODE
    axes = {"seq_len": 1, "head_size": 128}

class TestGdnDecodeQk16V32D128KLast(GdnDecodeBase):
    name = "gdn_decode_qk16_v32_d128_k_last"  # tp:1
    axes = {"num_q_heads": 16, "num_k_heads": 16, "num_v_heads": 32}
    sha256 = "79651124c3a7e310b6e7c2ead00adef871b1de28c035795e971d05d96394bb54"

class TestGdnDecodeQk4V8D128KLast(GdnDecodeBase):
    name = "gdn_decode_qk4_v8_d128_k_last"  # tp:4
    axes = {"num_q_heads": 4, "num_k_heads": 4, "num_v_heads": 8}
    sha256 = "1e6ed9df93bf86658dbc32b155bee063e8dcb53c583a8ccf60e2173a3ca36f7b"

class TestGdnDecodeQk8V16D128KLast(GdnDecodeBase):
    name = "gdn_decode_qk8_v16_d128_k_last"  # tp:2
    axes = {"num_q_heads": 8, "num_k_heads": 8, "num_v_heads": 16}
    sha256 = "7bdcb44c3e25d336e7791ee027c2aef8732ccd6498b958ec9d415c5b23621a2c"


# Gated delta net over the draft tokens of each sequence. Each query and each key x is
# first divided by sqrt(sum(x^2) + 1e-6). With g = exp(-exp(A_log) * softplus(a +
# dt_bias)) and beta = sigmoid(b), each token makes the state S of its value head g S,
# then adds beta (v - S k) k^T, and the output is scale * S q. States are [values,
# keys]. States lie in a pool, which stays as it was until the drafts are verified: it
# is returned unchanged. If there is a buffer, the state after token t of sequence b is
# written to intermediate_states_buffer[b, t]: its rows are those of the batch, not
# slots of the pool, and others are left alone.
# stage:mtp, model:qwen3-next-80b-a3b, layout:k-last,
# fi_api:flashinfer.gdn_decode.gated_delta_rule_mtp
# Tolerances:
#   output       source                       rtol   atol    NMSE   reason
#   output       oracle                       0.004  1e-06*  5e-06  (1)
#   output       flashinfer/fused             0.01   0.002*  5e-05  (2)
#   output       flashinfer/context-parallel  0.01   0.002*  5e-05  (2)
#   output       sglang/triton-chunked        0.01   0.002*  5e-05  (2)
#   output       flashinfer, sglang           0.008  5e-05*  1e-05  (3)
#   final_state  oracle, flashinfer, sglang   exact                 (10)
def reference_gdn_mtp_l2norm():
    import math

    import torch


    def unit(x: torch.Tensor) -> torch.Tensor:
        # Of a vector of zeros 1e-6 leaves zeros.
        return x * torch.rsqrt(x.square().sum(dim=-1, keepdim=True) + 1e-6)


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        initial_state: torch.Tensor,
        initial_state_indices: torch.Tensor,
        A_log: torch.Tensor,
        a: torch.Tensor,
        dt_bias: torch.Tensor,
        b: torch.Tensor,
        scale: float | None,
        intermediate_states_buffer: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        batch_size, seq_len, num_v_heads, head_size = v.shape
        heads_per_key = num_v_heads // k.shape[2]
        if not scale:
            scale = 1.0 / math.sqrt(head_size)

        # Value heads h * heads_per_key ... (h + 1) * heads_per_key - 1 share key head h.
        queries = unit(q.float()).repeat_interleave(heads_per_key, dim=2)
        keys = unit(k.float()).repeat_interleave(heads_per_key, dim=2)
        values = v.float()
        steps = torch.nn.functional.softplus(a.float() + dt_bias.float())
        # [batch_size, seq_len, num_v_heads]
        decay = torch.exp(-torch.exp(A_log.float()) * steps)
        beta = torch.sigmoid(b.float())

        # States are [batch_size, num_v_heads, values, keys].
        state = initial_state[initial_state_indices.long()]
        output = torch.empty_like(v, dtype=torch.bfloat16)
        for t in range(seq_len):
            decayed = state * decay[:, t, :, None, None]
            recalled = torch.einsum("bhvk,bhk->bhv", decayed, keys[:, t])
            # A share beta of what the key recalls is replaced by the new value.
            added = beta[:, t].unsqueeze(-1) * (values[:, t] - recalled)
            state = decayed + added.unsqueeze(-1) * keys[:, t].unsqueeze(-2)
            read = torch.einsum("bhvk,bhk->bhv", state, queries[:, t])
            output[:, t] = (scale * read).to(torch.bfloat16)
            if intermediate_states_buffer is not None:
                # Row by row of the batch, not by slot of the pool.
                intermediate_states_buffer[:batch_size, t] = state
        # Which drafts are accepted is not known yet: the pool stays as it was.
        return output, initial_state.clone()

    return run


class GdnMtpL2normBase(GdnTests):
    reference = staticmethod(reference_gdn_mtp_l2norm)
    interface = INTERFACE_GDN_MTP
    axes = {"head_size": 128}
    constants = ("l2norm",)
    L2NORM = True  # "l2norm" in the name

class TestGdnMtpL2normQk16V32D128KLast(GdnMtpL2normBase):
    name = "gdn_mtp_l2norm_qk16_v32_d128_k_last"  # tp:1
    axes = {"num_q_heads": 16, "num_k_heads": 16, "num_v_heads": 32}
    sha256 = "41a7db459f75f797ea97967d8b30491a4752fa5a155fa0e54f5ce665cd7a397a"

class TestGdnMtpL2normQk4V8D128KLast(GdnMtpL2normBase):
    name = "gdn_mtp_l2norm_qk4_v8_d128_k_last"  # tp:4
    axes = {"num_q_heads": 4, "num_k_heads": 4, "num_v_heads": 8}
    sha256 = "8c2acf5ea68c583b2000e5c624fd5ffa8f9736f811101a3e91f59fc3ffeae20f"

class TestGdnMtpL2normQk8V16D128KLast(GdnMtpL2normBase):
    name = "gdn_mtp_l2norm_qk8_v16_d128_k_last"  # tp:2
    axes = {"num_q_heads": 8, "num_k_heads": 8, "num_v_heads": 16}
    sha256 = "efddf02628d7c7d11b6ec8c7d6a5e7c874276e26074425b5eebb58d5e66fc764"


# Gated delta net over the draft tokens of each sequence. With g = exp(-exp(A_log) *
# softplus(a + dt_bias)) and beta = sigmoid(b), each token makes the state S of its
# value head g S, then adds beta (v - S k) k^T, and the output is scale * S q. States
# are [values, keys]; k is meant to have length 1. States lie in a pool, which stays as
# it was until the drafts are verified: it is returned unchanged. If there is a buffer,
# the state after token t of sequence b is written to intermediate_states_buffer[b, t]:
# its rows are those of the batch, not slots of the pool, and others are left alone.
# stage:mtp, model:qwen3-next, layout:k-last,
# fi_api:flashinfer.gdn_decode.gated_delta_rule_mtp
# Tolerances: those of reference_gdn_mtp_l2norm.
def reference_gdn_mtp():
    import math

    import torch


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        initial_state: torch.Tensor,
        initial_state_indices: torch.Tensor,
        A_log: torch.Tensor,
        a: torch.Tensor,
        dt_bias: torch.Tensor,
        b: torch.Tensor,
        scale: float | None,
        intermediate_states_buffer: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        batch_size, seq_len, num_v_heads, head_size = v.shape
        heads_per_key = num_v_heads // k.shape[2]
        if not scale:
            scale = 1.0 / math.sqrt(head_size)

        # Value heads h * heads_per_key ... (h + 1) * heads_per_key - 1 share key head h.
        queries = q.float().repeat_interleave(heads_per_key, dim=2)
        keys = k.float().repeat_interleave(heads_per_key, dim=2)
        values = v.float()
        steps = torch.nn.functional.softplus(a.float() + dt_bias.float())
        # [batch_size, seq_len, num_v_heads]
        decay = torch.exp(-torch.exp(A_log.float()) * steps)
        beta = torch.sigmoid(b.float())

        # States are [batch_size, num_v_heads, values, keys].
        state = initial_state[initial_state_indices.long()]
        output = torch.empty_like(v, dtype=torch.bfloat16)
        for t in range(seq_len):
            decayed = state * decay[:, t, :, None, None]
            recalled = torch.einsum("bhvk,bhk->bhv", decayed, keys[:, t])
            # A share beta of what the key recalls is replaced by the new value.
            added = beta[:, t].unsqueeze(-1) * (values[:, t] - recalled)
            state = decayed + added.unsqueeze(-1) * keys[:, t].unsqueeze(-2)
            read = torch.einsum("bhvk,bhk->bhv", state, queries[:, t])
            output[:, t] = (scale * read).to(torch.bfloat16)
            if intermediate_states_buffer is not None:
                # Row by row of the batch, not by slot of the pool.
                intermediate_states_buffer[:batch_size, t] = state
        # Which drafts are accepted is not known yet: the pool stays as it was.
        return output, initial_state.clone()

    return run


class GdnMtpBase(GdnTests):
    reference = staticmethod(reference_gdn_mtp)
    interface = INTERFACE_GDN_MTP
    axes = {"head_size": 128}

class TestGdnMtpQk16V32D128KLast(GdnMtpBase):
    name = "gdn_mtp_qk16_v32_d128_k_last"  # tp:1
    axes = {"num_q_heads": 16, "num_k_heads": 16, "num_v_heads": 32}
    sha256 = "3c4a18b88a49f58dcfc7b103af2cdf1a2ff69188f3b0e1c3ef7a0af18135df4f"

class TestGdnMtpQk4V8D128KLast(GdnMtpBase):
    name = "gdn_mtp_qk4_v8_d128_k_last"  # tp:4
    axes = {"num_q_heads": 4, "num_k_heads": 4, "num_v_heads": 8}
    sha256 = "9de10d19913a59b8dcae8c4e3b089e26dbad9e341869f844bb3235868b2aa883"

class TestGdnMtpQk8V16D128KLast(GdnMtpBase):
    name = "gdn_mtp_qk8_v16_d128_k_last"  # tp:2
    axes = {"num_q_heads": 8, "num_k_heads": 8, "num_v_heads": 16}
    sha256 = "d358f7e28437e009660b8e2321441e81527987f9c1cecec760754f198c0a6ca7"


# Gated delta net over whole sequences, which lie one after another. Each query and each
# key x is first divided by sqrt(sum(x^2) + 1e-6). With g = exp(-exp(A_log) * softplus(a
# + dt_bias)) and beta = sigmoid(b), each token makes the state S of its value head g S,
# then adds beta (v - S k) k^T, and the output is scale * S q. States are [values,
# keys]. An empty sequence keeps its state.
# stage:prefill, model:qwen3-next-80b-a3b, layout:k-last,
# fi_api:flashinfer.gdn_prefill.chunk_gated_delta_rule
# Tolerances: those of reference_gdn_decode_l2norm.
def reference_gdn_prefill_l2norm():
    import math

    import torch


    def unit(x: torch.Tensor) -> torch.Tensor:
        # Of a vector of zeros 1e-6 leaves zeros.
        return x * torch.rsqrt(x.square().sum(dim=-1, keepdim=True) + 1e-6)


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        state: torch.Tensor | None,
        A_log: torch.Tensor,
        a: torch.Tensor,
        dt_bias: torch.Tensor,
        b: torch.Tensor,
        cu_seqlens: torch.Tensor,
        scale: float | None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        _, num_v_heads, head_size = v.shape
        heads_per_key = num_v_heads // k.shape[1]
        if not scale:
            scale = 1.0 / math.sqrt(head_size)
        starts = cu_seqlens[:-1].long()
        lengths = cu_seqlens[1:].long() - starts
        # States are [num_seqs, num_v_heads, values, keys].
        if state is None:
            shape = (len(starts), num_v_heads, head_size, head_size)
            new_state = torch.zeros(shape, dtype=torch.float32, device=v.device)
        else:
            new_state = state.clone()

        # Value heads h * heads_per_key ... (h + 1) * heads_per_key - 1 share key head h.
        queries = unit(q.float()).repeat_interleave(heads_per_key, dim=1)
        keys = unit(k.float()).repeat_interleave(heads_per_key, dim=1)
        values = v.float()
        steps = torch.nn.functional.softplus(a.float() + dt_bias.float())
        decay = torch.exp(-torch.exp(A_log.float()) * steps)  # [tokens, num_v_heads]
        beta = torch.sigmoid(b.float())

        output = torch.empty_like(v, dtype=torch.bfloat16)
        for position in range(max(lengths.tolist(), default=0)):
            # The token at this position of all sequences that are long enough.
            rows = (lengths > position).nonzero().squeeze(1)
            tokens = starts[rows] + position
            decayed = new_state[rows] * decay[tokens][..., None, None]
            recalled = torch.einsum("bhvk,bhk->bhv", decayed, keys[tokens])
            # A share beta of what the key recalls is replaced by the new value.
            added = beta[tokens].unsqueeze(-1) * (values[tokens] - recalled)
            updated = decayed + added.unsqueeze(-1) * keys[tokens].unsqueeze(-2)
            read = torch.einsum("bhvk,bhk->bhv", updated, queries[tokens])
            output[tokens] = (scale * read).to(torch.bfloat16)
            new_state[rows] = updated
        return output, new_state

    return run


class GdnPrefillL2normBase(GdnTests):
    reference = staticmethod(reference_gdn_prefill_l2norm)
    interface = INTERFACE_GDN_PREFILL
    axes = {"head_size": 128}
    constants = ("l2norm",)
    L2NORM = True  # "l2norm" in the name

class TestGdnPrefillL2normQk16V32D128KLast(GdnPrefillL2normBase):
    name = "gdn_prefill_l2norm_qk16_v32_d128_k_last"  # tp:1
    axes = {"num_q_heads": 16, "num_k_heads": 16, "num_v_heads": 32}
    sha256 = "94886364f2c5b686a85e0f8cb76ab211f39faa64af3716b84ea510bfa2c0aeef"

class TestGdnPrefillL2normQk4V8D128KLast(GdnPrefillL2normBase):
    name = "gdn_prefill_l2norm_qk4_v8_d128_k_last"  # tp:4
    axes = {"num_q_heads": 4, "num_k_heads": 4, "num_v_heads": 8}
    sha256 = "efc509facb67678d4f5d810e139c3f5ff68b8d62b4d31e42bc4eedf06e87a818"

class TestGdnPrefillL2normQk8V16D128KLast(GdnPrefillL2normBase):
    name = "gdn_prefill_l2norm_qk8_v16_d128_k_last"  # tp:2
    axes = {"num_q_heads": 8, "num_k_heads": 8, "num_v_heads": 16}
    sha256 = "9309a3938144f71d3ac28385ec06d8629a01f5776cae8873b4706acbfca272db"


# Gated delta net over whole sequences, which lie one after another. With g =
# exp(-exp(A_log) * softplus(a + dt_bias)) and beta = sigmoid(b), each token makes the
# state S of its value head g S, then adds beta (v - S k) k^T, and the output is scale *
# S q. States are [values, keys]; k is meant to have length 1. An empty sequence keeps
# its state.
# stage:prefill, model:qwen3-next, layout:k-last,
# fi_api:flashinfer.gdn_prefill.chunk_gated_delta_rule
# Tolerances: those of reference_gdn_decode_l2norm.
def reference_gdn_prefill():
    import math

    import torch


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        state: torch.Tensor | None,
        A_log: torch.Tensor,
        a: torch.Tensor,
        dt_bias: torch.Tensor,
        b: torch.Tensor,
        cu_seqlens: torch.Tensor,
        scale: float | None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        _, num_v_heads, head_size = v.shape
        heads_per_key = num_v_heads // k.shape[1]
        if not scale:
            scale = 1.0 / math.sqrt(head_size)
        starts = cu_seqlens[:-1].long()
        lengths = cu_seqlens[1:].long() - starts
        # States are [num_seqs, num_v_heads, values, keys].
        if state is None:
            shape = (len(starts), num_v_heads, head_size, head_size)
            new_state = torch.zeros(shape, dtype=torch.float32, device=v.device)
        else:
            new_state = state.clone()

        # Value heads h * heads_per_key ... (h + 1) * heads_per_key - 1 share key head h.
        queries = q.float().repeat_interleave(heads_per_key, dim=1)
        keys = k.float().repeat_interleave(heads_per_key, dim=1)
        values = v.float()
        steps = torch.nn.functional.softplus(a.float() + dt_bias.float())
        decay = torch.exp(-torch.exp(A_log.float()) * steps)  # [tokens, num_v_heads]
        beta = torch.sigmoid(b.float())

        output = torch.empty_like(v, dtype=torch.bfloat16)
        for position in range(max(lengths.tolist(), default=0)):
            # The token at this position of all sequences that are long enough.
            rows = (lengths > position).nonzero().squeeze(1)
            tokens = starts[rows] + position
            decayed = new_state[rows] * decay[tokens][..., None, None]
            recalled = torch.einsum("bhvk,bhk->bhv", decayed, keys[tokens])
            # A share beta of what the key recalls is replaced by the new value.
            added = beta[tokens].unsqueeze(-1) * (values[tokens] - recalled)
            updated = decayed + added.unsqueeze(-1) * keys[tokens].unsqueeze(-2)
            read = torch.einsum("bhvk,bhk->bhv", updated, queries[tokens])
            output[tokens] = (scale * read).to(torch.bfloat16)
            new_state[rows] = updated
        return output, new_state

    return run


class GdnPrefillBase(GdnTests):
    reference = staticmethod(reference_gdn_prefill)
    interface = INTERFACE_GDN_PREFILL
    axes = {"head_size": 128}

class TestGdnPrefillQk16V32D128KLast(GdnPrefillBase):
    name = "gdn_prefill_qk16_v32_d128_k_last"  # tp:1
    axes = {"num_q_heads": 16, "num_k_heads": 16, "num_v_heads": 32}
    sha256 = "06766d34ed8ea6408784c8a89fa46072216cfa4b77299e5b3040314dc0bdfb72"

class TestGdnPrefillQk4V8D128KLast(GdnPrefillBase):
    name = "gdn_prefill_qk4_v8_d128_k_last"  # tp:4
    axes = {"num_q_heads": 4, "num_k_heads": 4, "num_v_heads": 8}
    sha256 = "aabb9fb265673ebc78ac6ca5560dfa7404cbcec1cc8c26d5eb25b5d2f4ef9126"

class TestGdnPrefillQk8V16D128KLast(GdnPrefillBase):
    name = "gdn_prefill_qk8_v16_d128_k_last"  # tp:2
    axes = {"num_q_heads": 8, "num_k_heads": 8, "num_v_heads": 16}
    sha256 = "f547da1af07a0b44777075a0446386677393cfbd23937e2a6e972c87b9b05a63"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
