"""Domain mutants of gated delta nets: gates, scale, states, heads, slots, drafts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from generator.ops.common_mutants import rounded_inputs
from generator.ops.mutants import (
    Change,
    DomainMutant,
    Inputs,
    MutantGroup,
    Outputs,
    Run,
    calling,
    on_inputs,
    on_outputs,
    shifted,
    taken,
)
from generator.ops.op_types.gdn.delta_rule import (
    L2_EPS,
    log_decay,
    sequences,
    states_before,
)
from generator.ops.op_types.gdn.stage import is_normalised
from generator.ops.sequence_mutants import ended_early
from kernel_judge.definition import Definition
from kernel_judge.inputs.trial import as_tuple

_BUFFER = "intermediate_states_buffer"
# softplus(_LOW) is 0, sigmoid(_HIGH) is 1, in bfloat16 too
_LOW, _HIGH = -1e4, 1e4


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of all stages, then those of the definition's stage."""
    return (
        *_of_gates(definition),
        *_of_scale(definition),
        *_of_states(definition),
        *_of_heads(definition),
        *_of_prefill(definition),
        *_of_drafts(definition),
    )


def _of_gates(definition: Definition) -> list[DomainMutant]:
    changes: dict[str, Change] = {
        "beta missing": lambda i: {"b": torch.full_like(i["b"], _HIGH)},
        "beta of opposite sign": lambda i: {"b": -i["b"]},
        "decay missing": lambda i: {"a": torch.full_like(i["a"], _LOW)},
        "dt_bias missing": lambda i: {"dt_bias": torch.zeros_like(i["dt_bias"])},
        "A_log of opposite sign": lambda i: {"A_log": -i["A_log"]},
        "softplus missing": _without_softplus,
    }
    defects = [on_inputs(definition, name, change) for name, change in changes.items()]
    return [*defects, calling(definition, "state decay after the update", _late_decay)]


def _without_softplus(inputs: Inputs) -> dict[str, Any]:
    """Return inputs whose softplus is max(a + dt_bias, 0), as if softplus were missing.

    The inverse of softplus is log(e^x - 1), about x for large x.
    """
    x = (inputs["a"].double() + inputs["dt_bias"].double()).clamp_min(1e-6)
    before = torch.where(x > 30.0, x, torch.log(torch.expm1(x.clamp_max(30.0))))
    return {
        "a": before.to(inputs["a"].dtype),
        "dt_bias": torch.zeros_like(inputs["dt_bias"]),
    }


def _late_decay(run: Run, inputs: dict[str, Any]) -> Any:
    """Apply each token's gate after its update instead of before.

    This is the correct recurrence with gates one token late, times the token's gate.
    """
    decay = log_decay(
        *(inputs[name].float() for name in ("A_log", "a", "dt_bias"))
    ).exp()
    late = inputs["a"].clone()
    for part in sequences(inputs):
        tokens = inputs["a"][part]
        late[part] = torch.cat([torch.full_like(tokens[:1], _LOW), tokens[:-1]])
    output, state = as_tuple(run(*{**inputs, "a": late}.values()))
    output = (output.float() * decay[..., None]).to(output.dtype)
    buffer = inputs.get(_BUFFER)
    if buffer is not None:
        buffer[: len(decay)] *= decay[..., None, None]
    if "initial_state" not in inputs:
        state = state.clone()
        for row, part in enumerate(sequences(inputs)):
            if len(decay[part]):
                state[row] *= decay[part][-1][:, None, None]
    return output, state


def _of_scale(definition: Definition) -> list[DomainMutant]:
    default = 1.0 / math.sqrt(definition.axes["head_size"])
    return [
        on_inputs(definition, "scale missing", lambda i: {"scale": 1.0}),
        on_inputs(
            definition,
            "scale doubled",
            lambda i: {"scale": 2.0 * (i["scale"] or default)},
        ),
        on_inputs(
            definition,
            "default scale 1",
            lambda i: {"scale": i["scale"] or 1.0},
        ),
        on_outputs(definition, "scale 0 taken as 0", _zero_for_scale_zero),
    ]


def _zero_for_scale_zero(outputs: Outputs, inputs: Inputs) -> Outputs:
    output, state = outputs
    return (output if inputs["scale"] != 0 else torch.zeros_like(output)), state


def _of_states(definition: Definition) -> list[DomainMutant]:
    """Return mutants of the initial and the final state."""
    name = "initial_state" if _is_mtp(definition) else "state"

    def before(change: Callable[[torch.Tensor], torch.Tensor]) -> Change:
        return lambda i: {} if i[name] is None else {name: change(i[name])}

    defects = [
        on_inputs(definition, "state transposed as it is read", before(_transposed)),
        on_inputs(definition, "state ignored", before(torch.zeros_like)),
        on_inputs(
            definition, "state of the next head", before(lambda s: shifted(s, 1))
        ),
    ]
    layout = calling(definition, "K/V state transposed", _other_layout)
    if _is_mtp(definition):
        return [*defects, layout]
    after = {
        "state transposed as it is written": lambda o, i: (o[0], _transposed(o[1])),
        "state not updated": lambda o, i: (o[0], states_before(i)),
    }
    defects += [on_outputs(definition, name, change) for name, change in after.items()]
    defects.append(
        on_inputs(
            definition, "state of the next sequence", before(lambda s: shifted(s, 0))
        )
    )
    return [*defects, layout]


def _transposed(state: torch.Tensor) -> torch.Tensor:
    return state.mT.contiguous()


def _other_layout(run: Run, inputs: dict[str, Any]) -> Any:
    """Return the result of a reference whose states are [keys, values]."""
    name = "initial_state" if "initial_state" in inputs else "state"
    buffer = inputs.get(_BUFFER)
    if inputs[name] is not None:
        inputs = {**inputs, name: _transposed(inputs[name])}
    output, state = as_tuple(run(*inputs.values()))
    if buffer is not None:
        buffer.copy_(_transposed(buffer))
    return output, _transposed(state)


def _of_heads(definition: Definition) -> list[DomainMutant]:
    axes = definition.axes
    key_heads, value_heads = axes["num_k_heads"], axes["num_v_heads"]
    changes: dict[str, Change] = {
        "q and k swapped": lambda i: {"q": i["k"], "k": i["q"]},
        **_of_lengths(definition),
    }
    if key_heads > 1:
        changes["k of the next head"] = lambda i: {
            "k": shifted(i["k"], -2 + i["k"].dim())
        }
        changes["q of the next head"] = lambda i: {
            "q": shifted(i["q"], -2 + i["q"].dim())
        }
    if key_heads == value_heads:
        changes["k and v swapped"] = lambda i: {"k": i["v"], "v": i["k"]}
    defects = [on_inputs(definition, name, change) for name, change in changes.items()]
    if is_normalised(definition):
        defects.append(on_outputs(definition, "queries not normalised", _lengthened))
    if 1 < key_heads < value_heads:
        defects.append(_interleaved(definition, key_heads))
    return defects


def _of_lengths(definition: Definition) -> dict[str, Change]:
    """Return changes of the lengths of queries and keys: what normalisation takes back."""
    if not is_normalised(definition):
        return {"queries normalised": lambda i: {"q": _unit(i["q"], 0.0)}}

    def other_eps(name: str, eps: float) -> Change:
        # a length that the right formula takes for what another eps makes of it
        def change(i: Inputs) -> dict[str, Any]:
            squares = i[name].double().square().sum(-1, keepdim=True)
            share = squares / (squares + eps)
            wanted = L2_EPS * share / (1.0 - share).clamp_min(1e-12)
            factor = (wanted / squares.clamp_min(1e-30)).sqrt()
            return {name: (i[name].double() * factor).to(i[name].dtype)}

        return change

    return {
        **{f"{name} with eps 1e-5": other_eps(name, 1e-5) for name in ("q", "k")},
        **{f"{name} without eps": other_eps(name, 1e-9) for name in ("q", "k")},
    }


def _lengthened(outputs: Outputs, inputs: Inputs) -> Outputs:
    """Return the output times the length of its query."""
    root = (inputs["q"].float().square().sum(-1, keepdim=True) + L2_EPS).sqrt()
    root = root.repeat_interleave(outputs[0].shape[-2] // root.shape[-2], dim=-2)
    return (outputs[0].float() * root).to(outputs[0].dtype), outputs[1]


def _unit(x: torch.Tensor, eps: float) -> torch.Tensor:
    root = (x.float().square().sum(-1, keepdim=True) + eps).sqrt()
    return (x.float() / root.clamp_min(1e-12)).to(x.dtype)


def _interleaved(definition: Definition, key_heads: int) -> DomainMutant:
    """Return the mutant whose value head h reads key head h % key_heads."""
    heads = definition.axes["num_v_heads"]
    order = torch.arange(heads).reshape(-1, key_heads).T.flatten()
    back = order.argsort()

    def place(name: str) -> int:
        interface = definition.interface
        specs = {**interface.input_specs, **interface.output_specs}
        shape = specs[name].shape or ()
        return shape.index("num_v_heads") if "num_v_heads" in shape else -1

    def call(run: Run, inputs: dict[str, Any]) -> Any:
        reordered = {
            name: taken(value, place(name), order)
            if isinstance(value, torch.Tensor) and place(name) >= 0
            else value
            for name, value in inputs.items()
        }
        returned = as_tuple(run(*reordered.values()))
        if inputs.get(_BUFFER) is not None:
            inputs[_BUFFER].copy_(taken(reordered[_BUFFER], place(_BUFFER), back))
        names = definition.interface.outputs
        return tuple(
            taken(value, place(name), back)
            for name, value in zip(names, returned, strict=True)
        )

    return calling(definition, "value head h reads key head h % k for h // ratio", call)


def _is_mtp(definition: Definition) -> bool:
    return "initial_state" in definition.interface.inputs


def _of_prefill(definition: Definition) -> list[DomainMutant]:
    if "cu_seqlens" not in definition.interface.inputs:
        return []

    def one_sequence(run: Run, inputs: dict[str, Any]) -> Any:
        """Start each sequence from the last state of the one before."""
        ends = inputs["cu_seqlens"]
        rows = len(ends) - 1
        state = inputs["state"]
        parts: list[tuple[Any, ...]] = []
        for row in range(rows):
            low, high = ends[row : row + 2].tolist()
            tokens = {
                name: inputs[name][low:high] for name in ("q", "k", "v", "a", "b")
            }
            first = state[:1] if row == 0 and state is not None else None
            before = parts[-1][1] if parts else first
            lengths = torch.tensor([0, high - low], dtype=ends.dtype)
            piece = {**inputs, **tokens, "state": before, "cu_seqlens": lengths}
            parts.append(as_tuple(run(*piece.values())))
        return tuple(torch.cat(part) for part in zip(*parts, strict=True))

    return [
        calling(definition, "state carried into the next sequence", one_sequence),
        on_inputs(
            definition, "last token of each sequence in the next one", ended_early
        ),
    ]


def _of_drafts(definition: Definition) -> list[DomainMutant]:
    if not _is_mtp(definition):
        return []

    def spoilt(
        name: str, change: Callable[[torch.Tensor], torch.Tensor]
    ) -> DomainMutant:
        def call(run: Run, inputs: dict[str, Any]) -> Any:
            buffer = inputs[_BUFFER]
            before = None if buffer is None else buffer.clone()
            returned = run(*inputs.values())
            if buffer is not None and before is not None:
                rows = len(inputs["q"])
                buffer[:rows] = change(buffer[:rows])
            return returned

        return calling(definition, name, call)

    def untouched(run: Run, inputs: dict[str, Any]) -> Any:
        buffer = inputs[_BUFFER]
        copied = None if buffer is None else buffer.clone()
        return run(*{**inputs, _BUFFER: copied}.values())

    def updated(outputs: Outputs, inputs: Inputs) -> Outputs:
        output, pool = outputs
        pool = pool.clone()
        slots = inputs["initial_state_indices"].long()
        if inputs[_BUFFER] is not None:
            pool[slots] = inputs[_BUFFER][: len(slots), -1]
        return output, pool

    return [
        calling(definition, "buffer of the drafts not filled", untouched),
        spoilt("buffer zero", torch.zeros_like),
        spoilt("buffer negated", torch.neg),
        spoilt("buffer 1 % too large", lambda b: b * 1.01),
        spoilt("buffer transposed", _transposed),
        spoilt("buffer of the next draft", lambda b: shifted(b, 1)),
        spoilt("buffer of the next row", lambda b: shifted(b, 0)),
        spoilt("buffer of the next head", lambda b: shifted(b, 2)),
        spoilt("buffer of the last draft alone", lambda b: b[:, -1:].expand_as(b)),
        on_outputs(definition, "pool updated", updated),
        on_inputs(
            definition,
            "slots ignored",
            lambda i: {
                "initial_state_indices": torch.arange(
                    len(i["initial_state_indices"]), dtype=torch.int32
                )
            },
        ),
    ]


_GATED = "q k v A_log a dt_bias b scale output head_size num_k_heads num_v_heads"
_DRAFTS = "initial_state initial_state_indices intermediate_states_buffer final_state"


MUTANTS = (
    MutantGroup(mutants, f"{_GATED} state new_state"),
    MutantGroup(mutants, f"{_GATED} {_DRAFTS}"),
    MutantGroup(rounded_inputs, _GATED),
)
