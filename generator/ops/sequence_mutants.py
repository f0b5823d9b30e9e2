"""Domain mutants of sequences with a state each, which stand one after another."""

from __future__ import annotations

from typing import Any

from generator.ops.mutants import Inputs, Run
from kernel_judge.inputs.trial import as_tuple


def one_sequence(inputs: Inputs) -> dict[str, Any]:
    """Return ends by which the first sequence has all tokens."""
    ends = inputs["cu_seqlens"].clone()
    ends[1:] = ends[-1]
    return {"cu_seqlens": ends}


def ended_early(inputs: Inputs) -> dict[str, Any]:
    """Return ends by which the last token of each sequence is in the next one."""
    ends = inputs["cu_seqlens"].clone()
    ends[1:-1] = (ends[1:-1] - 1).clamp_min(0)
    return {"cu_seqlens": ends}


def leaking(run: Run, inputs: dict[str, Any]) -> Any:
    """Start each sequence from the state behind the one before it, added to its own."""
    _, behind = as_tuple(run(*inputs.values()))
    state = inputs["state"].clone()
    state[1:] += behind[:-1]
    return run(*{**inputs, "state": state}.values())
