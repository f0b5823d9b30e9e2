"""gdn: gated delta nets (Qwen3-Next): decode, drafts to verify (mtp), prefill.

A state is a memory [values, keys]. Each token makes it fade by g = exp(-exp(A_log) ·
softplus(a + dt_bias)), replaces a share beta = sigmoid(b) of what its key recalls by
its value, and reads with its query: S' = g S, S = S' + beta (v - S' k) k^T, o = scale ·
S q. The keys are of length 1, or the states would explode. Value heads share key heads.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from generator.support.definition import Backend, Case, Definition
from generator.support.delta_rule import log_decay, solve, unit_rows
from generator.support.gdn_native import loop
from generator.support.stream import Stream
from generator.support.tolerance import EXACT, Override, Tolerance

TOLERANCES: tuple[Override, ...] = ()

BUFFER = "intermediate_states_buffer"
# all of FlashInfer's are written in CuTe DSL, which its wheel does without
_CUTE_DSL = ("cutlass",)
_FLASHINFER = {
    "decode": (Backend("pretranspose", min_sm=90, needs=_CUTE_DSL),),
    "mtp": (Backend("mtp", min_sm=90, needs=_CUTE_DSL),),
    # what it chooses between by the number of sequences and heads
    "prefill": (
        Backend("fused", min_sm=90, needs=_CUTE_DSL),
        Backend("context-parallel", min_sm=90, needs=_CUTE_DSL),
    ),
}
_NATIVE = Backend("native", needs_cuda=False)
_RECURRENT = Backend("triton", needs=("triton",))
_CHUNKED = Backend("triton-chunked", min_sm=80, needs=("triton",))


def cases(definition: Definition) -> list[Case]:
    """Return batches or sequences with long and short memory, and every default."""
    stage = _stage(definition)
    if stage == "prefill":
        return _prefill_cases()
    tokens = 1 if stage == "decode" else 4
    default = 1.0 / math.sqrt(definition.axes["head_size"])
    small: list[tuple[str, int, int, dict[str, Any]]] = [
        ("one-sequence", 1, max(tokens, 1), {"scale": default}),
        ("three-sequences", 3, min(tokens, 2), {"scale": 0.25}),
        ("default-scale", 2, tokens, {"scale": None}),
        ("zero-scale", 2, tokens, {"scale": 0.0}),
        ("no-state", 2, tokens, {"state": False}),
        ("no-buffer", 2, tokens, {"buffer": False}),
        # g about exp(-2), and softplus around 20, from where kernels take it as linear
        ("short-memory", 2, tokens, {"dt_mean": 2.0}),
        ("linear-softplus", 2, tokens, {"dt_mean": 20.0, "A_mean": -5.0}),
    ]
    left_out = "no-buffer" if stage == "decode" else "no-state"
    found = [case for case in small if case[0] != left_out]
    cases = [_case(stage, name, "small", *rest) for name, *rest in found]
    cases.append(_case(stage, "batch", "medium", 8, 6 if tokens > 1 else 1, {}))
    cases.append(_case(stage, "large-batch", "large", 96 // tokens, tokens, {}))
    return cases


def _case(
    stage: str, name: str, size: str, batch: int, tokens: int, params: dict[str, Any]
) -> Case:
    axes = {"batch_size": batch}
    if stage == "mtp":
        # more slots than rows, so that one taken for the other shows
        axes |= {"seq_len": tokens, "pool_size": batch + 2}
    return Case(name, size, axes, params)


def _prefill_cases() -> list[Case]:
    """Return sequences shorter and longer than a kernel's chunk of 64 tokens."""

    def case(name: str, size: str, *lengths: int, **params: Any) -> Case:
        axes = {
            "total_seq_len": sum(lengths),
            "num_seqs": len(lengths),
            "len_cu_seqlens": len(lengths) + 1,
        }
        return Case(name, size, axes, {"lengths": lengths, **params})

    return [
        case("one-token", "small", 1, scale=None),
        case("around-a-chunk", "small", 63, 64, 65),
        case("an-empty-sequence", "small", 5, 0, 9, scale=0.25),
        case("no-state", "small", 70, 3, scale=0.0, state=False),
        case("short-memory", "small", 40, 17, dt_mean=2.0),
        case("linear-softplus", "small", 33, dt_mean=20.0, A_mean=-5.0),
        case("ragged", "medium", 300, 1, 129, 17, scale=None),
        case("long-memory", "medium", 400, dt_mean=-6.0),
        case("long-sequences", "large", 2500, 64, 1, 1300, dt_mean=-5.0),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return queries and keys of length 1, and gates as trained models have them.

    States are random, so that one taken for its transpose shows; the buffer that a
    reference fills holds other values before, so that a row left out shows as well.
    """
    axes = {**definition.axes, **case.axes}
    interface = definition.interface.input_specs

    def shape(name: str) -> tuple[int, ...]:
        return tuple(axes[axis] for axis in interface[name].shape or ())

    def drawn(name: str, mean: float = 0.0, std: float = 1.0) -> torch.Tensor:
        return stream.child(name).values(shape(name), std) + mean

    params = {"scale": axes["head_size"] ** -0.5, **case.params}
    made: dict[str, Any] = {
        "q": unit_rows(stream.child("q"), shape("q")),
        "k": unit_rows(stream.child("k"), shape("k")),
        "v": drawn("v").to(torch.bfloat16),
        "A_log": drawn("A_log", params.get("A_mean", 0.0)),
        "a": drawn("a").to(torch.bfloat16),
        "dt_bias": drawn("dt_bias", params.get("dt_mean", -3.0)),
        "b": drawn("b", std=1.5).to(torch.bfloat16),
        "scale": params["scale"],
    }
    if "lengths" in params:
        ends = torch.tensor([0, *params["lengths"]], dtype=torch.int64).cumsum(0)
        made["cu_seqlens"] = ends
    if "initial_state_indices" in interface:
        slots = stream.child("slots").permutation(axes["pool_size"])
        made["initial_state_indices"] = slots[: axes["batch_size"]].to(torch.int32)
        made["initial_state"] = drawn("initial_state", std=0.5)
        made[BUFFER] = drawn(BUFFER) if params.get("buffer", True) else None
    else:
        made["state"] = drawn("state", std=0.5) if params.get("state", True) else None
    return {name: made[name] for name in interface}


def oracle(definition: Definition, inputs: dict[str, Any]) -> tuple[torch.Tensor, ...]:
    """Return outputs and states in float64, a sequence at a time, a chunk at a time."""
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
    tensors = [q, k, wide["v"], log_g, beta]
    states = _states(definition, inputs).double()

    output = torch.zeros_like(wide["v"])
    after = states.clone()
    buffer = wide.get(BUFFER)
    for row, part in enumerate(_sequences(inputs)):
        sequence = [tensor[part] for tensor in tensors]
        solved = solve(*sequence, states[row])
        output[part] = _scale(definition, inputs) * solved.output
        after[row] = solved.state
        for t in range(0 if buffer is None else len(solved.output)):
            until = [tensor[: t + 1] for tensor in sequence]
            buffer[row, t] = solve(*until, states[row]).state
    if "initial_state" not in inputs:
        return output, after
    return (output, wide["initial_state"], *([] if buffer is None else [buffer]))


def filled_inputs(inputs: dict[str, Any]) -> tuple[str, ...]:
    """Return the buffer's name where the drafts' states are asked for."""
    return () if inputs.get(BUFFER) is None else (BUFFER,)


def _stage(definition: Definition) -> str:
    names = definition.interface.inputs
    if "cu_seqlens" in names:
        return "prefill"
    return "mtp" if "initial_state_indices" in names else "decode"


def _scale(definition: Definition, inputs: dict[str, Any]) -> float:
    """Return the factor of the output: 1/sqrt(head_size) for None and for 0."""
    return inputs["scale"] or 1.0 / math.sqrt(definition.axes["head_size"])


def _states(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return each sequence's state before it, zeros where there is none: a copy."""
    if "initial_state" in inputs:
        return inputs["initial_state"][inputs["initial_state_indices"].long()]
    if inputs["state"] is not None:
        return inputs["state"].clone()
    size, heads = definition.axes["head_size"], definition.axes["num_v_heads"]
    rows = len(_sequences(inputs))
    return torch.zeros((rows, heads, size, size), device=inputs["q"].device)


def _sequences(inputs: dict[str, Any]) -> list[Any]:
    """Return the index of each sequence's tokens in a tensor of all tokens."""
    if "cu_seqlens" not in inputs:
        return list(range(len(inputs["q"])))
    ends = inputs["cu_seqlens"].tolist()
    return [slice(a, b) for a, b in zip(ends, ends[1:], strict=False)]


def _with_buffer(inputs: dict[str, Any], output: Any, state: Any) -> tuple[Any, ...]:
    """Return what a kernel gave: its outputs, and the buffer where it filled one."""
    return (output, state, *(inputs[name] for name in filled_inputs(inputs)))


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the kernels of the definition's stage."""
    return _FLASHINFER[_stage(definition)]


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> tuple[Any, ...]:
    """Call FlashInfer's kernels, which write decode's states and the buffer in place.

    They normalise neither queries nor keys here, and know no default for a scale of 0.
    """
    gates = [inputs[name] for name in ("A_log", "a", "dt_bias", "b")]
    tokens = [inputs[name] for name in ("q", "k", "v")]
    scale = _scale(definition, inputs)
    if backend == "pretranspose":
        from flashinfer.gdn_decode import gated_delta_rule_decode_pretranspose

        states = _states(definition, inputs)
        return gated_delta_rule_decode_pretranspose(
            *tokens, states, *gates, scale=scale, use_qk_l2norm=False
        )
    if backend == "mtp":
        from flashinfer.gdn_decode import gated_delta_rule_mtp

        output, pool = gated_delta_rule_mtp(
            *tokens,
            inputs["initial_state"],
            inputs["initial_state_indices"],
            *gates,
            scale=scale,
            intermediate_states_buffer=inputs[BUFFER],
            disable_state_update=True,
            use_qk_l2norm=False,
        )
        return _with_buffer(inputs, output, pool)
    from flashinfer.gdn_prefill import chunk_gated_delta_rule

    log_g, beta = _gates(inputs)
    output, states = chunk_gated_delta_rule(
        *tokens,
        # the gate itself, not its logarithm
        g=log_g.exp(),
        beta=beta,
        scale=scale,
        initial_state=inputs["state"],
        output_final_state=True,
        cu_seqlens=inputs["cu_seqlens"],
        # for an empty sequence the kernels write nothing
        output_state=_states(definition, inputs),
        use_cp=backend == "context-parallel",
    )
    return output, states


def _gates(inputs: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ln g and beta as a model computes them before the kernel: float32."""
    names = ("A_log", "a", "dt_bias", "b")
    A_log, a, dt_bias, b = (inputs[name].float() for name in names)
    return log_decay(A_log, a, dt_bias).contiguous(), b.sigmoid().contiguous()


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the test suite's PyTorch code, then the Triton kernels."""
    chunked = (_CHUNKED,) if _stage(definition) == "prefill" else ()
    return (_NATIVE, _RECURRENT, *chunked)


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> tuple[Any, ...]:
    """Call SGLang's kernels, which write states and the buffer in place."""
    if backend == "native":
        return _sglang_native(definition, inputs)
    states = _states(definition, inputs)
    rows = torch.arange(len(states), dtype=torch.int32, device=states.device)
    q, k, v = (inputs[name] for name in ("q", "k", "v"))
    scale = _scale(definition, inputs)
    if _stage(definition) != "prefill":
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
            disable_state_update=mtp,
            intermediate_states_buffer=inputs[BUFFER] if mtp else None,
            intermediate_state_indices=rows if mtp else None,
            cache_steps=q.shape[1] if mtp else None,
        )
        return _with_buffer(inputs, output, inputs["initial_state"] if mtp else states)
    log_g, beta = _gates(inputs)
    given = [tensor[None] for tensor in (q, k, v, log_g, beta)]
    if backend == "triton-chunked":
        from sglang.kernels.ops.attention.fla.chunk import chunk_gated_delta_rule

        output, *_ = chunk_gated_delta_rule(
            *given,
            scale=scale,
            initial_state=states,
            initial_state_indices=rows,
            cu_seqlens=inputs["cu_seqlens"],
        )
        return output[0], states
    from sglang.kernels.ops.attention.fla.fused_recurrent import (
        fused_recurrent_gated_delta_rule,
    )

    output, states = fused_recurrent_gated_delta_rule(
        *given,
        scale=scale,
        initial_state=states,
        output_final_state=True,
        cu_seqlens=inputs["cu_seqlens"],
    )
    return output[0], states


def _sglang_native(
    definition: Definition, inputs: dict[str, Any]
) -> tuple[torch.Tensor, ...]:
    """Return what the loop of SGLang's test suite gives, once for each prefix in mtp."""
    states, scale = _states(definition, inputs), _scale(definition, inputs)
    tokens = [inputs[name] for name in ("q", "k", "v")]
    shape = tokens[-1].shape

    def run(until: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Run the sequences of a batch up to a token, or all tokens of a prefill."""
        if "cu_seqlens" in inputs:
            lengths = inputs["cu_seqlens"].diff().tolist()
            part = {name: inputs[name] for name in ("q", "k", "v", "a", "b")}
        else:
            lengths = [until] * shape[0]
            part = {
                name: inputs[name][:, :until].flatten(0, 1)
                for name in ("q", "k", "v", "a", "b")
            }
        gates = (inputs["A_log"], part["a"], inputs["dt_bias"], part["b"])
        return loop((part["q"], part["k"], part["v"]), gates, lengths, states, scale)

    output, after = run(shape[1])
    output = output.reshape(shape).to(torch.bfloat16)
    if "initial_state" not in inputs:
        return output, after
    if inputs[BUFFER] is not None:
        for t in range(shape[1]):
            inputs[BUFFER][: shape[0], t] = run(t + 1)[1]
    return _with_buffer(inputs, output, inputs["initial_state"])
