"""What is never computed is seen where a tolerance lets a share of elements be wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from generator.evaluation.left_out import left_out
from generator.evaluation.rounds import rounds_of
from generator.ops.op_types.moe.op import _F8 as MOE
from generator.ops.op_types.quantization.op import _NEARLY_ALL as CODES
from kernel_judge.comparison.compare import compare
from kernel_judge.comparison.tolerance import DEFAULTS, Tolerance
from tests.builders import CPU, loaded, run_of
from tools.evaluate_mutants import InProcess, UntilWrong, Wrong

EIGHT_BITS = DEFAULTS["float8_e4m3fn"]
# of 8 bits: hidden states of 2,048
AXES = {
    "num_experts": 16,
    "hidden_size": 2048,
    "intermediate_size": 128,
    "num_hidden_blocks": 16,
    "num_intermediate_blocks": 1,
    "num_gemm1_blocks": 2,
}


def last_columns(x: torch.Tensor) -> torch.Tensor:
    x[:, -2:] = 0
    return x


def a_row(x: torch.Tensor) -> torch.Tensor:
    x[len(x) // 2] = 0
    return x


def a_tile(x: torch.Tensor) -> torch.Tensor:
    x[160:192, 256:288] = 0
    return x


def behind_a_multiple(x: torch.Tensor) -> torch.Tensor:
    x[-16:, 256:288] = 0
    return x


LEFT_OUT = (last_columns, a_row, a_tile, behind_a_multiple)


def answers(tolerance: Tolerance, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what is expected, and an honest answer that is wrong in few elements."""
    made = torch.Generator().manual_seed(seed)
    expected = torch.randn((1021, 2048), generator=made, dtype=torch.float64)
    noise = torch.randn(expected.shape, generator=made, dtype=torch.float64)
    if tolerance is not CODES:
        return expected, expected + 0.03 * expected * noise
    expected = (expected * 40.0).round()
    # 2 % are the next code, and some blocks of 32 have another scale
    blocks = (noise[:, ::32] > 3.0).repeat_interleave(32, dim=1)
    return expected, expected + ((noise > 2.06) | blocks)


@pytest.mark.parametrize(
    "tolerance", [MOE, EIGHT_BITS, CODES], ids=["moe", "8", "codes"]
)
@pytest.mark.parametrize("leave", LEFT_OUT)
def test_a_part_that_is_left_out_is_seen_where_the_comparison_passes(
    tolerance: Tolerance, leave: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    expected, right = answers(tolerance)
    assert compare(right, expected, tolerance).passed
    assert left_out(right, expected, tolerance) == ""
    wrong = leave(right)
    assert compare(wrong, expected, tolerance).passed
    assert "that lie together" in left_out(wrong, expected, tolerance)


@pytest.mark.parametrize("seed", range(1, 4))
def test_errors_that_lie_anywhere_are_no_part(seed: int) -> None:
    expected, right = answers(CODES, seed)
    assert left_out(right, expected, CODES) == ""


def test_where_every_element_counts_nothing_is_looked_at() -> None:
    expected, right = answers(MOE)
    assert left_out(torch.zeros_like(right), expected, DEFAULTS["bfloat16"]) == ""


def test_a_mixture_of_experts_without_its_last_columns_is_refused() -> None:
    definition = loaded("moe_fp8_block_scale_renorm_topk8_e128_h2048_i768")
    run = run_of(definition.reference)
    asked = rounds_of(definition, [], Path(), CPU, 3, axes=AXES)

    def judged(change: Callable[[torch.Tensor], torch.Tensor]) -> str:
        own = InProcess(lambda *inputs: change(run(*inputs)))
        try:
            UntilWrong(own, asked.of_case("batch"), CPU, False, 3).judge()
        except Wrong as wrong:
            return wrong.reason
        return ""

    assert judged(lambda out: out) == ""
    assert "of 8 elements are wrong that lie together" in judged(last_columns)
