"""Magnitude of a case's logits, with which their float32 errors grow."""

from __future__ import annotations

from contextlib import suppress

import torch

from generator.ops.attention.caches import drawn_scale, stored_scales
from generator.ops.attention.cases import QK_NOPE_HEAD_DIM, scale_of
from kernel_judge.definition import Case, Definition

USUAL = 2.0
"""The deviation of logits, `q_std`, for which bounds are derived."""


def growth(definition: Definition, case: Case) -> float:
    """Return the largest deviation of a case's logits over the usual one, at least 1.

    An own case has it as `q_std`, before any soft cap: its queries have that deviation,
    its keys 1, and its sm_scale is the inverse root of a key's length. A workload's
    queries and keys are drawn alike, and what it states of sm_scale and of the scales of
    stored queries and keys changes the logits in proportion: with sm_scale 1 and keys of
    512 they have a deviation of 2·sqrt(512) = 45.
    """
    drawn = next(iter(getattr(case, "cases", ())), case)
    factor = float(drawn.params.get("q_std", USUAL)) / USUAL
    if case.stated("sm_scale") is not None:
        usual = scale_of(drawn, _key_length(definition))
        factor *= _ratio(case, "sm_scale", usual)
    by_head = factor * _of_heads(definition, drawn, case)
    # a latent key has two parts, of which one may be what grows
    of_keys = [1.0]
    for name in stored_scales(definition):
        usual = drawn_scale(definition, drawn, name.removesuffix("_scale"))
        ratio = _ratio(case, name, usual)
        if name == "q_scale":
            factor *= ratio
        elif name != "v_scale":
            of_keys.append(ratio)
    return max(1.0, by_head, factor * max(of_keys))


def _of_heads(definition: Definition, drawn: Case, case: Case) -> float:
    """Return the largest factor of a head's logits, by scales of heads that a file states.

    A workload's queries are drawn as those of the op's case `drawn`, and the codes of its
    keys with a deviation of 1. Of another case, and of what can't be read, it is 1.
    """
    read = getattr(case, "stated_inputs", None)
    specs = definition.interface.input_specs
    if read is None or any(
        name not in specs or not specs[name].shape for name in ("q_scale", "k_scale")
    ):
        return 1.0
    with suppress(KeyError, OSError, ValueError):
        stated = read(definition)
        of_queries = stated["q_scale"] / drawn_scale(definition, drawn, "q")
        of_keys = stated["k_scale"][:, None]
        return float((of_queries.view(len(of_keys), -1) * of_keys).max())
    return 1.0


def growth_of_values(definition: Definition, case: Case) -> float:
    """Return `growth`, times that of the values.

    Outputs before they are rounded, and their errors, are as many times as large.
    """
    return growth(definition, case) * values_moved(definition, case)


def values_moved(definition: Definition, case: Case) -> float:
    """Return what a case multiplies stored values by: their codes, and the scale of these.

    Codes as much smaller as their scale is larger leave outputs as large as they were.
    """
    stem = "ckv" if "ckv_scale" in case.moved else "v"
    of_values = (f"{stem}_scale", f"{stem}_cache", stem)
    return float(2.0 ** sum(case.moved.get(name, 0.0) for name in of_values))


def _ratio(case: Case, name: str, usual: object) -> float:
    """Return what a case states for a scale over the usual one, 1 where it states none."""
    stated = case.stated(name)
    if stated is None:
        return 1.0
    return abs(float(stated)) / float(torch.as_tensor(usual).min())


def _key_length(definition: Definition) -> int:
    """Return the length whose inverse root is the sm_scale of an op's own cases."""
    axes = definition.axes
    if "head_dim_kpe" in axes:
        return QK_NOPE_HEAD_DIM + axes["head_dim_kpe"]
    return axes["qk_dim"] if "qk_dim" in axes else axes["head_dim"]
