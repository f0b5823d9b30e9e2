"""The inputs of gated delta nets: rows, gates, states and their slots."""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.op_types.gdn.delta_rule import any_rows, unit_rows
from generator.ops.op_types.gdn.names import BUFFER
from generator.ops.op_types.gdn.stage import is_normalised
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the stage's inputs, shaped as the interface declares them.

    q, k, v, a, b are bfloat16, A_log, dt_bias and states float32. Keys, and in most cases
    queries, have length 1, any length where they are normalised. Random states show a transposed one, a random output buffer
    shows a row that is not written.
    """
    axes = {**definition.axes, **case.axes}
    interface = definition.interface.input_specs

    def shape(name: str) -> tuple[int, ...]:
        return tuple(axes[axis] for axis in interface[name].shape or ())

    def drawn(name: str, mean: float = 0.0, std: float = 1.0) -> torch.Tensor:
        return stream.child(name).values(shape(name), std) + mean

    params = {"scale": axes["head_size"] ** -0.5, **case.params}
    vectors = any_rows if is_normalised(definition) else unit_rows
    inputs: dict[str, Any] = {
        "q": vectors(stream.child("q"), shape("q")) * params.get("q_length", 1.0),
        "k": vectors(stream.child("k"), shape("k")) * params.get("k_length", 1.0),
        "v": drawn("v").to(torch.bfloat16),
        "A_log": drawn("A_log", params.get("A_mean", 0.0)),
        "a": drawn("a").to(torch.bfloat16),
        "dt_bias": drawn("dt_bias", params.get("dt_mean", -3.0)),
        "b": drawn("b", std=1.5).to(torch.bfloat16),
        "scale": params["scale"],
    }
    optional = params.get("optional", True)
    if "cu_seqlens" in interface:
        # a workload has ends of its own
        lengths = params.get("lengths", (axes["total_seq_len"],))
        inputs["cu_seqlens"] = torch.tensor([0, *lengths], dtype=torch.int64).cumsum(0)
    if "initial_state_indices" in interface:
        slots = stream.child("slots").permutation(axes["pool_size"])
        inputs["initial_state_indices"] = slots[: axes["batch_size"]].to(torch.int32)
        inputs["initial_state"] = drawn("initial_state", std=0.5)
        inputs[BUFFER] = drawn(BUFFER) if optional else None
    else:
        inputs["state"] = drawn("state", std=0.5) if optional else None
    return {name: inputs[name] for name in interface}
