"""What a check comes to: comparisons, a skip or a defect, and never a lost failure."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kernel_judge.checked import Compared, Defect, check
from kernel_judge.comparison.compare import FAILED, PASSED, Comparison
from kernel_judge.obstacle import Kind, Obstacle
from kernel_judge.skipping import skip


def one(verdict: str, **figures: float) -> Compared:
    comparison = Comparison(verdict, (), figures=figures)
    failures = () if verdict == PASSED else ("y against oracle: FAILED",)
    return Compared("y", "oracle", comparison, {"verdict": verdict}, failures)


@check
def steps(*items: Compared | BaseException) -> Iterator[Compared]:
    """Yield or raise what is given."""
    for item in items:
        if isinstance(item, BaseException):
            raise item
        yield item


def test_comparisons_that_agree_pass() -> None:
    checked = steps(one(PASSED), one(PASSED))
    assert checked.passed
    assert len(checked.comparisons) == 2


def test_one_that_does_not_agree_is_a_defect_and_all_are_compared() -> None:
    checked = steps(one(FAILED), one(PASSED))
    assert not checked.passed
    assert checked.defect == "\ny against oracle: FAILED"
    assert len(checked.comparisons) == 2


def test_a_skip_is_a_value_with_its_kind() -> None:
    @check
    def skipped() -> Iterator[Compared]:
        skip(Kind.NO_CASE, "nothing here")
        yield one(PASSED)

    checked = skipped()
    assert checked.skipped == Obstacle(Kind.NO_CASE, "nothing here")
    assert not checked.passed


def test_a_defect_is_a_value() -> None:
    assert (
        steps(Defect("y is (2,), declared (3,)")).defect == "y is (2,), declared (3,)"
    )


@pytest.mark.parametrize("error", [MemoryError(), ValueError("planted")])
def test_what_else_is_raised_is_raised(error: Exception) -> None:
    with pytest.raises(type(error)):
        steps(one(PASSED), error)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (MemoryError("no room"), "then it raised MemoryError: no room"),
        (Defect("it has y"), "it has y"),
    ],
)
def test_a_failed_comparison_is_not_lost_by_what_comes_after_it(
    error: Exception, line: str
) -> None:
    checked = steps(one(FAILED), error)
    assert checked.defect == f"\ny against oracle: FAILED\n{line}"
    assert len(checked.comparisons) == 1


def test_an_interrupt_is_never_a_defect() -> None:
    with pytest.raises(KeyboardInterrupt):
        steps(one(FAILED), KeyboardInterrupt())


def test_a_p_value_is_a_field() -> None:
    assert one(PASSED, p_value=0.25).p_value == 0.25
    assert one(PASSED).p_value is None
