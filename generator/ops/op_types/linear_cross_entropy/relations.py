"""Relations of losses: tokens are for themselves, the vocabulary has no order."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from generator.ops.gradient_relations import gradient_scaled
from generator.ops.row_relations import in_two_parts, reordered
from kernel_judge.comparison.tolerance import Tolerance
from kernel_judge.definition import Definition
from kernel_judge.relation import Bound, Claim, RelatedCalls, RelatedCase, Relation

_SUMMED = Bound(
    Tolerance(rtol=1e-6, atol=2e-5, nmse=1e-10),
    "float32 sums in another order: logits of 10 by 8e-6, on either side",
)
_GRADIENT = Bound(
    Tolerance(rtol=8e-3, atol=1e-9, nmse=1e-6, of_row=5e-5),
    "float32 sums in another order; both sides round once, to neighbours at most: 2^-7, "
    "and that is rare; where terms cancel, 1e-5 of terms as large as the row's others",
)


def loss_relations(definition: Definition) -> list[Relation]:
    """Return the relations of a loss, or of its gradients."""
    cases = [RelatedCase("five-tokens", "small", {"num_tokens": 5})]
    outputs = definition.interface.outputs
    is_gradient = "grad_weight" in outputs
    bounds = dict.fromkeys(outputs, _GRADIENT if is_gradient else _SUMMED)
    of_tokens = {n: b for n, b in bounds.items() if n != "grad_weight"}
    return [
        reordered("tokens-reversed", ["num_tokens"], bounds, cases),
        in_two_parts("tokens-in-two", "num_tokens", of_tokens, cases),
        reordered("columns-reversed", ["hidden_size"], bounds, cases),
        Relation("vocabulary-reversed", _renamed, cases),
        *([gradient_scaled(cases, "grad_losses")] if is_gradient else []),
    ]


def _renamed(subject: RelatedCalls) -> Iterator[Claim]:
    """Turn the order of the vocabulary round, in the weight and in the labels."""
    weight, labels = subject.inputs["weight"], subject.inputs["labels"]
    other = torch.where(labels < 0, labels, len(weight) - 1 - labels)
    turned = weight.flip(0).contiguous()
    actual = subject.run({**subject.inputs, "weight": turned, "labels": other})
    for name, value in subject.whole.items():
        if name == "grad_weight":
            yield Claim(name, actual[name], value.flip(0), _GRADIENT)
        else:
            bound = _GRADIENT if name == "grad_hidden_states" else _SUMMED
            yield Claim(name, actual[name], value, bound)
