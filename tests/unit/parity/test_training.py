from __future__ import annotations

import math

import pytest

from generator.parity.training import _losses, _threshold, _trend


class Exact:
    is_exact = True


class Rounded:
    is_exact = False


@pytest.mark.parametrize(
    ("step", "allowed"), [(1, 1e-5), (2, 1e-2), (5, 1e-2), (20, 0.1), (21, math.inf)]
)
def test_a_loss_has_the_threshold_of_its_step(step: int, allowed: float) -> None:
    losses = [[6.0, 6.0, 6.0]] * (step - 1) + [[6.0, 6.0 + 0.5 * allowed, 6.0]]
    found = _losses(Exact(), losses)  # type: ignore[arg-type]
    assert found["loss_bound"] == allowed
    assert _threshold({1: 1e-5, 5: 1e-2, 20: 0.1}, step) == allowed


def test_a_loss_in_bfloat16_may_be_twice_as_far_as_transformers_own() -> None:
    losses = [[6.1, 6.0, 6.0], [5.9, 5.77, 5.9]]
    found = _losses(Rounded(), losses)  # type: ignore[arg-type]
    assert found["loss_bound"] == pytest.approx(0.2)
    assert found["loss_apart"] == pytest.approx(0.13)
    near = [[6.0, 6.0, 6.0], [5.9, 5.77, 5.9]]
    found = _losses(Rounded(), near)  # type: ignore[arg-type]
    assert found["loss_apart"] > found["loss_bound"]


def test_a_run_that_does_not_learn_has_another_trend() -> None:
    falling = [6.0 - 0.03 * step for step in range(100)]
    assert _trend([[a, a, a] for a in falling]) == ""
    flat = [6.0 + 0.01 * (step % 3) for step in range(100)]
    why = _trend([[a, b, a] for a, b in zip(falling, flat, strict=True)])
    assert "over 100 steps the loss changes by" in why
    assert "nan" in _trend([[a, math.nan, a] for a in falling])
