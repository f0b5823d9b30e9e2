"""How far a solution may be from what is expected."""

from types import SimpleNamespace

import pytest
import torch

from generator.evaluation.judge import Judge
from generator.evaluation.lengths import sizes_of
from generator.evaluation.solution_tolerance import REFERENCE, solution_tolerance
from generator.ops.op_types.moe.op import TOLERANCES
from generator.rules.subjects import subject_of
from kernel_judge.checks.pairs import ORACLE
from kernel_judge.comparison.tolerance import Tolerance, choose_tolerance
from kernel_judge.definition import Case
from kernel_judge.relation import Bound, Claim
from kernel_judge.subject import Subject
from tests.builders import CPU, loaded


def case_of(subject: Subject, name: str) -> Case:
    """Return a case of a subject by its name."""
    return next(case for case in subject.cases() if case.name == name)


@pytest.mark.parametrize(
    ("name", "output", "case", "rtol", "atol"),
    [
        # kernels round once, as references do
        ("rmsnorm_h128", "output", "one-row", 4e-3, 1e-6),
        # the tangent that the hardware has, 9e-3, less what the reference is off
        ("gelu_tanh_and_mul_i14336", "output", "one-row", 4e-3, 9e-3 - 3e-6),
        # a kernel that multiplies in bfloat16
        ("causal_conv1d_fwd_d4096_w4", "output", "several", 4e-3, 3e-2 - 4e-6),
    ],
)
def test_share_of_the_reference_is_left_out(
    name: str, output: str, case: str, rtol: float, atol: float
) -> None:
    subject = subject_of(loaded(name))
    one = case_of(subject, case)
    found = solution_tolerance(subject, output, ORACLE, one)
    assert (found.rtol, found.atol) == pytest.approx((rtol, atol))
    # a reference that is all there is to compare with has an error of its own
    against_reference = solution_tolerance(subject, output, REFERENCE, one)
    assert against_reference.rtol == 8e-3
    assert against_reference.atol >= atol


def test_no_kernel_that_rounds_once_is_refused() -> None:
    # held against a reference, which rounds as it does, its NMSE is 1e-6 at most
    subject = subject_of(loaded("rope_with_cos_sin_cache_neox_style_d128_rd128"))
    one = case_of(subject, "one-token")
    found = solution_tolerance(subject, "q_out", ORACLE, one)
    strict = subject.tolerance("q_out", ORACLE, one)
    assert found.nmse is not None
    assert found.nmse == strict.nmse


@pytest.mark.parametrize(("times", "verdict"), [(1.9, "PASSED"), (2.1, "FAILED")])
def test_a_claim_about_several_outputs_has_twice_its_own_bound(
    times: float, verdict: str
) -> None:
    subject = subject_of(loaded("rope_with_cos_sin_cache_neox_style_d128_rd128"))
    one = SimpleNamespace(subject=subject, source=ORACLE, case=Case("c", "small", {}))
    bound = Bound(Tolerance(rtol=0.0, atol=0.25, nmse=None), "seven deviations")
    dots = torch.full((4,), 11.0)
    claim = Claim("q_out·k_out", dots + 0.25 * times, dots, bound)
    judge = Judge(None, None, CPU, True, 1)  # type: ignore[arg-type]
    assert judge._claimed(claim, one).verdict == verdict


def test_an_axis_that_no_input_has_comes_from_a_constraint() -> None:
    subject = subject_of(loaded("gdn_prefill_qk4_v8_d128_k_last"))
    inputs = dict.fromkeys(subject.interface.input_specs)
    inputs["cu_seqlens"] = torch.tensor([0, 3, 5, 9])
    # the state, which alone has num_seqs, is optional
    axes = subject.definition.axes
    assert sizes_of(subject.interface, axes, inputs)["num_seqs"] == 3


def test_lengths_that_follow_from_one_another_are_known() -> None:
    subject = subject_of(loaded("moe_align_block_size_e8_k2_bs16"))
    inputs = {"topk_ids": torch.zeros(3, 2, dtype=torch.int32)}
    sizes = sizes_of(subject.interface, subject.definition.axes, inputs)
    # more places than any length that is known, and blocks of these
    assert sizes["num_places"] == 3 * 2 + 135
    assert sizes["num_blocks"] == 9


def test_a_solution_may_be_as_large_as_a_kernel_is() -> None:
    # tests hold a reference against the kernel, whose outputs are larger by 0.3 %
    name, case = (
        "moe_fp8_block_scale_renorm_topk8_e128_h2048_i768",
        "scales-below-midpoints",
    )
    subject = subject_of(loaded(name))
    of_kernel = choose_tolerance(
        TOLERANCES, "output", "bfloat16", "sglang/triton-fp8", case=case
    )
    assert of_kernel.norm_ratio == (0.996, 1.002)
    for source in (ORACLE, REFERENCE):
        found = solution_tolerance(subject, "output", source, case_of(subject, case))
        assert found.norm_ratio == pytest.approx((1 / 1.002, 1 / 0.996))
