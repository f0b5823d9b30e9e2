"""Relations of attention's gradients: linear in the gradient; sequences for themselves."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from generator.ops.gradient_relations import gradient_scaled
from generator.ops.row_relations import in_two_parts, reordered
from kernel_judge.comparison.tolerance import Tolerance
from kernel_judge.definition import Definition
from kernel_judge.relation import (
    Bound,
    Claim,
    RelatedCalls,
    RelatedCase,
    Relation,
)

_ALIKE = Bound(
    Tolerance(rtol=8e-3, atol=2e-5, nmse=1e-6),
    "float32 sums in another order: both sides round nearly the same value once, to "
    "neighbours at most: 2^-7; where sums cancel, a few 2^-24 of what they sum are left",
)
_PREFIX = ("grad_output", "q", "k", "v", "output")


def gradient_relations(definition: Definition) -> list[Relation]:
    """Return the relations of attention's gradients."""
    axes = {"batch_size": 3, "seq_len": 7}
    cases = [RelatedCase("three-sequences", "small", axes)]
    bounds = dict.fromkeys(definition.interface.outputs, _ALIKE)
    return [
        reordered("sequences-reversed", ["batch_size"], bounds, cases),
        in_two_parts("sequences-in-two", "batch_size", bounds, cases),
        reordered("heads-reversed", ["num_qo_heads", "num_kv_heads"], bounds, cases),
        reordered("columns-reversed", ["head_dim"], bounds, cases),
        gradient_scaled(cases),
        Relation("end-has-no-gradient", _cut, cases),
    ]


def _cut(subject: RelatedCalls) -> Iterator[Claim]:
    """Give the last three queries no gradient: as if the sequences had ended before."""
    inputs = subject.inputs
    length = inputs["q"].shape[1] - 3
    grad = inputs["grad_output"].clone()
    grad[:, length:] = 0.0
    actual = subject.run({**inputs, "grad_output": grad})
    short = {name: inputs[name][:, :length].contiguous() for name in _PREFIX}
    short["lse"] = inputs["lse"][:, :, :length].contiguous()
    expected = subject.run({**inputs, **short})
    for name, value in expected.items():
        rest = torch.zeros_like(actual[name][:, length:])
        whole = torch.cat((value, rest), dim=1)
        yield Claim(name, actual[name], whole, _ALIKE)
