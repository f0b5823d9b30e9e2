"""What is sorted once is what was there: never what another tensor had, or has now."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
import torch

from generator.mutation.sorting import sorted_once


@pytest.fixture
def calls() -> Iterator[list[Any]]:
    """Collect the tensors that torch itself is asked to sort."""
    asked: list[Any] = []
    originals = torch.Tensor.topk, torch.sort

    def topk(tensor: torch.Tensor, *rest: Any, **named: Any) -> Any:
        asked.append(tensor)
        return originals[0](tensor, *rest, **named)

    def sort(tensor: torch.Tensor, *rest: Any, **named: Any) -> Any:
        asked.append(tensor)
        return originals[1](tensor, *rest, **named)

    with (
        mock.patch.object(torch.Tensor, "topk", topk),
        mock.patch.object(torch, "sort", sort),
    ):
        yield asked


def test_the_same_question_is_asked_once(calls):
    values = torch.tensor([3.0, 1.0, 2.0])
    with sorted_once():
        first, second = values.topk(2), values.topk(2)
        assert first.values.tolist() == second.values.tolist() == [3.0, 2.0]
        assert first.indices.tolist() == second.indices.tolist() == [0, 2]
        assert len(calls) == 1
        assert [torch.sort(values, dim=0).values.tolist() for _ in range(3)] == [
            [1.0, 2.0, 3.0]
        ] * 3
        assert len(calls) == 2


def test_another_question_is_another_one(calls):
    values = torch.tensor([3.0, 1.0, 2.0])
    with sorted_once():
        assert values.topk(1).values.tolist() == [3.0]
        assert values.topk(2).values.tolist() == [3.0, 2.0]
        assert values.topk(1, largest=False).values.tolist() == [1.0]
        assert values.clone().topk(1).values.tolist() == [3.0]
    assert len(calls) == 4


def test_what_was_written_to_is_sorted_anew(calls):
    values = torch.tensor([3.0, 1.0, 2.0])
    with sorted_once():
        values.topk(2)
        values[1] = 9.0
        found = values.topk(2)
        assert found.values.tolist() == [9.0, 3.0]
        # a caller that writes to what it got gets it whole the next time
        found.values.zero_()
        assert values.topk(2).values.tolist() == [9.0, 3.0]
        values.view(3, 1)[0] = 10.0
        assert values.topk(1).values.tolist() == [10.0]
    assert len(calls) == 4


def test_nothing_is_patched_behind_it(calls):
    before = torch.Tensor.topk, torch.topk, torch.sort, torch.Tensor.sort
    with sorted_once():
        assert torch.Tensor.topk is not before[0]
        with pytest.raises(RuntimeError):
            torch.ones(2).topk(3)
    assert (torch.Tensor.topk, torch.topk, torch.sort, torch.Tensor.sort) == before
