"""What definitions share is named after what their names share."""

from __future__ import annotations

import pytest

from generator.dataset.definition import LoadedDefinition
from generator.rendering.names import shared_names


def named(*names: str) -> list[LoadedDefinition]:
    return [
        LoadedDefinition(name, "rmsnorm", f"{name}.json", "", {}, {}, {}, "")
        for name in names
    ]


@pytest.mark.parametrize(
    ("names", "shared"),
    [
        (["gqa_paged_decode_h8_d64", "gqa_paged_decode_h4_d64"], "gqa_paged_decode"),
        (["gemma_rmsnorm_h256", "rmsnorm_eps_1em5_h128", "rmsnorm_h64"], "rmsnorm"),
        (["gemma_fused_add_rmsnorm_h8", "fused_add_rmsnorm_h8"], "fused_add_rmsnorm"),
        (["silu_i8", "rope_d64"], "silu"),
    ],
)
def test_a_group_is_named_by_the_words_that_its_names_share(names, shared):
    assert shared_names([named(*names)]) == [shared]
