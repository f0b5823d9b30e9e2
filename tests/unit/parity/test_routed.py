"""Experts that bfloat16 chooses otherwise than float32."""

from __future__ import annotations

import pytest
import torch

from generator.parity.capture import choice
from generator.parity.routed import as_exact, flipped, returned_as_exact, too_many

EXACT = torch.tensor([[0.75, 0.25, 0.0], [0.5, 0.0, 0.5]])
OWN = torch.tensor([[0.7, 0.3, 0.0], [0.0, 0.5, 0.5]])


def test_only_a_token_that_flips_goes_to_the_experts_of_float32() -> None:
    assert flipped(OWN, EXACT).tolist() == [False, True]
    assert torch.equal(as_exact(OWN, EXACT), torch.stack((OWN[0], EXACT[1])))


def test_gradients_pass_through_the_other_tokens() -> None:
    own = OWN.clone().requires_grad_()
    as_exact(own, EXACT).sum().backward()  # type: ignore[no-untyped-call]
    assert own.grad is not None
    assert own.grad.sum(dim=1).tolist() == [3, 0]


@pytest.mark.parametrize("parts", [2, 3])
def test_a_router_of_transformers_returns_the_same(parts: int) -> None:
    logits = torch.zeros(2, 3)
    top = OWN.topk(2, dim=1)
    returned = (OWN, logits) if parts == 2 else (logits, top.values, top.indices)
    steered = returned_as_exact(returned, EXACT)
    assert len(steered) == parts
    assert torch.equal(choice(steered), as_exact(OWN, EXACT))


def test_a_weight_has_the_dtype_of_the_side_that_takes_it() -> None:
    assert as_exact(OWN.bfloat16(), EXACT).dtype == torch.bfloat16


@pytest.mark.parametrize(("ours", "theirs"), [(20, 13), (0, 0), (8, 0), (150, 100)])
def test_as_many_flips_as_transformers_are_roundings(ours: int, theirs: int) -> None:
    assert too_many(ours, theirs) == ""


@pytest.mark.parametrize(("ours", "theirs"), [(60, 13), (9, 0), (300, 100)])
def test_more_flips_than_that_are_a_fault(ours: int, theirs: int) -> None:
    assert f"{ours} choices of experts" in too_many(ours, theirs)
