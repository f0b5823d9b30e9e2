"""gdn: gated delta nets (Qwen3-Next): decode, multi-token prediction (mtp), prefill.

The state S is [values, keys]. Each token computes S' = g S, S = S' + beta (v - S' k) k^T
and o = scale · S q, with g = exp(-exp(A_log) · softplus(a + dt_bias)) and beta =
sigmoid(b). Keys have length 1, or the states would explode; `l2norm` in the name makes
queries and keys so. Value heads share key heads.
"""

from __future__ import annotations

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
from kernel_judge.comparison.tolerance import EXACT, Override, Tolerance
from kernel_judge.definition import Backend, Case, Definition
from kernel_judge.subject import Kernel, Op

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
