"""The rmsnorm and gemm cases turn every plausible fault of a reference red."""

from __future__ import annotations

import re

import pytest
import torch

from generator.ops import gemm, rmsnorm
from tests.builders import class_of, known, loaded, oracle_failures, replaced, run_of

# both eps, both offsets, fused or not, short and long rows
NORMS = [
    "rmsnorm_h128",
    "rmsnorm_h4096",
    "rmsnorm_h5376",
    "rmsnorm_h7168",
    "fused_add_rmsnorm_h2048",
    "fused_add_rmsnorm_h4096",
    "fused_add_rmsnorm_h5376",
]
_VARIANCE = "x.square().mean(dim=-1, keepdim=True)"
_OFFSET = "(1.0 + weight.float())"


def norm_mutants(reference: str) -> dict[str, str]:
    """Return faults of a norm as changed texts."""
    eps = re.search(r"EPS = (\S+)", reference)[1]

    def other_eps(factor: float) -> str:
        return replaced(reference, f"EPS = {eps}", f"EPS = {float(eps) * factor!r}")

    found = {
        "eps ten times too large": other_eps(10),
        "eps ten times too small": other_eps(0.1),
        "no eps": other_eps(0),
        "eps outside the root": replaced(
            reference,
            f"torch.rsqrt({_VARIANCE} + EPS)",
            f"1.0 / ({_VARIANCE}.sqrt() + EPS)",
        ),
        "a layer norm": replaced(
            reference, _VARIANCE, "x.var(dim=-1, keepdim=True, correction=0)"
        ),
        "rounded before the weight": replaced(
            reference, "x * inverse_rms", "(x * inverse_rms).bfloat16().float()"
        ),
        "all in bfloat16": reference.replace(".float()", ""),
    }
    if _OFFSET in reference:
        found["no unit offset"] = replaced(reference, _OFFSET, "weight.float()")
        found["weight missing"] = replaced(reference, f" * {_OFFSET}", "")
    else:
        weight = "* weight.float()"
        found["a unit offset"] = replaced(reference, weight, f"* {_OFFSET}")
        found["weight missing"] = replaced(reference, f" {weight}", "")
    if "residual" in reference:
        added = " + residual.float()"
        found["residual not added"] = replaced(reference, added, "")
        found["residual subtracted"] = replaced(reference, added, " - residual.float()")
        found["sum rounded"] = replaced(
            reference,
            f"hidden_states.float(){added}",
            "(hidden_states + residual).float()",
        )
    return found


@pytest.mark.parametrize("name", NORMS)
def test_no_fault_of_a_norm_survives(name):
    reference = loaded(name).reference
    mutants = norm_mutants(reference)
    assert len(mutants) >= 9
    assert red(rmsnorm, name, run_of(reference)) == []
    survivors = [m for m, t in mutants.items() if not red(rmsnorm, name, run_of(t))]
    assert survivors == []


def red(op, name, run):
    """Return the small and medium cases in which a run is red."""
    return oracle_failures(class_of(op, known(name), run))


@pytest.mark.parametrize("factor", [0.0, 1.004, 0.996, -1.0])
def test_a_scaled_norm_is_red_in_every_case(factor):
    run = run_of(loaded("rmsnorm_h4096").reference)

    def wrong(hidden_states, weight):
        return (run(hidden_states, weight).float() * factor).to(torch.bfloat16)

    names = [c.name for c in rmsnorm.cases(known("rmsnorm_h4096")) if c.size != "large"]
    assert red(rmsnorm, "rmsnorm_h4096", wrong) == names


def test_eps_shows_where_the_variance_is_about_eps():
    reference = norm_mutants(loaded("rmsnorm_h7168").reference)
    run = run_of(reference["eps ten times too large"])
    assert red(rmsnorm, "rmsnorm_h7168", run) == ["tiny-variance"]


def test_no_eps_shows_on_rows_of_zeros_too():
    run = run_of(norm_mutants(loaded("rmsnorm_h7168").reference)["no eps"])
    assert red(rmsnorm, "rmsnorm_h7168", run) == ["tiny-variance", "zero-rows"]


def accumulated_in_float16(a, b):
    total = torch.zeros(a.shape[0], b.shape[0], dtype=torch.float16)
    for x, y in zip(a.split(64, 1), b.split(64, 1), strict=True):
        total = (total.float() + x.float() @ y.float().T).half()
    return total


def one_column_stale(a, b):
    return torch.cat([b.new_zeros(a.shape[0], 1), product(a, b)[:, 1:]], dim=1)


def product(a, b):
    return (a.float() @ b.float().T).half()


GEMM_MUTANTS = {
    "accumulated in float16": accumulated_in_float16,
    "one column stale": one_column_stale,
    "the next row of B": lambda a, b: product(a, b.roll(1, 0)),
    "the next row of A": lambda a, b: product(a.roll(1, 0), b),
    "the last product missing": lambda a, b: product(a[:, :-1], b[:, :-1]),
    "inputs rounded to bfloat16": lambda a, b: product(a.bfloat16(), b.bfloat16()),
    "output rounded to bfloat16": lambda a, b: product(a, b).bfloat16().half(),
    "a thousandth too large": lambda a, b: (product(a, b).float() * 1.001).half(),
    "zero": lambda a, b: 0 * product(a, b),
}


@pytest.mark.parametrize("name", ["gemm_n128_k2048", "gemm_n256_k7168"])
def test_no_fault_of_gemm_survives(name):
    assert red(gemm, name, run_of(loaded(name).reference)) == []
    survivors = [m for m, wrong in GEMM_MUTANTS.items() if not red(gemm, name, wrong)]
    assert survivors == []


def test_a_square_b_that_is_not_transposed_is_red_in_every_case():
    name = "gemm_n3072_k3072"
    failed = red(gemm, name, lambda a, b: product(a, b.T))
    assert failed == ["one-row", "odd-rows", "rows"]
