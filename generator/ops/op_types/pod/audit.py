"""Audit sizes of prefill on decode, and the ranges of its random cases."""

from __future__ import annotations

from generator.ops.attention.audit import LONGEST, fewer_heads, scaled
from generator.ops.op_types.pod.inputs import pod_axes
from generator.ops.variation import Variation
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream

tiny = fewer_heads


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return a prefill and one to four decodes of other lengths, and another scale."""
    kv_lens = draw.child("kv").integers(0, LONGEST, draw.integers(1, 5, 1)[0])
    q_len, kv_len = draw.child("prefill").integers(1, LONGEST, 2)
    axes = pod_axes(q_len, kv_len, kv_lens, definition.axes["page_size"])
    return axes, {**scaled(case, draw, other), "kv_lens": tuple(kv_lens)}
