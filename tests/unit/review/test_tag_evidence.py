"""Tags that a change gives to a definition, or takes from it, and that files show or not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from generator.review.change import Change
from generator.review.loosened import loosened
from generator.review.tag_evidence import claimed_tags
from generator.rules.load import load_definitions
from tests.builders import ROOT

(SILU,) = load_definitions(ROOT, names=["silu_and_mul_i14336"]).definitions
BARE = replace(SILU, tags=())


@pytest.mark.parametrize(
    ("tag", "claims"),
    [
        ("fi_api:flashinfer.activation.silu_and_mul", []),
        # the name of the function in a module that FlashInfer has not
        (
            "fi_api:flashinfer.no.such.silu_and_mul",
            ["'fi_api:flashinfer.no.such.silu_and_mul'"],
        ),
        # a function, and another one's name
        (
            "fi_api:flashinfer.activation.gelu_and_mul",
            ["'fi_api:flashinfer.activation.gelu_and_mul'"],
        ),
        ("model:llama-3.1-8b", []),
        ("status:verified", ["'status:verified'"]),
    ],
)
def test_a_tag_is_shown_or_claimed(tag: str, claims: list[str]) -> None:
    assert claimed_tags(BARE, replace(SILU, tags=(tag,))) == claims


def test_a_status_that_goes_is_a_claim() -> None:
    old = replace(SILU, tags=("status:unverified", "tp:1"))
    assert claimed_tags(old, BARE) == ["'status:unverified' is gone"]


@pytest.mark.parametrize(
    ("tags", "weaker"),
    [
        ((), True),
        # no figure of it is of these axes
        (("model:nobody-knows-it",), True),
        (("model:qwen3-14b",), False),
        (("model:llama-3.1-8b", "tp:1"), False),
    ],
)
def test_axes_that_no_model_is_asked_about_any_more(
    tags: tuple[str, ...], weaker: bool
) -> None:
    old = replace(SILU, tags=("model:llama-3.1-8b",))
    new = replace(SILU, tags=tags)
    key = SILU.op_type, SILU.name
    change = Change("changed", key, SILU.path, SILU.path, old, new, (), None)
    problems = list(loosened([change]))
    assert [problem.rule for problem in problems] == ["review-weaker"] * weaker
