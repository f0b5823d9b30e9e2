"""The rmsnorm and gemm cases turn every plausible fault of a reference red."""

from __future__ import annotations

import pytest
import torch

from generator.ops.op_types.gemm import op as gemm
from generator.ops.op_types.rmsnorm import op as rmsnorm
from tests.builders import class_of, known, loaded, oracle_failures, replaced, run_of
from tests.unit.ops.survivors import with_defect

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


def norm_mutants(reference: str) -> dict[str, str]:
    """Return faults of a norm as changed texts, those that no wrapper can plant."""
    found = {
        "a layer norm": replaced(
            reference, _VARIANCE, "x.var(dim=-1, keepdim=True, correction=0)"
        ),
        "rounded before the weight": replaced(
            reference, "x * inverse_rms", "(x * inverse_rms).bfloat16().float()"
        ),
        "all in bfloat16": reference.replace(".float()", ""),
    }
    if "residual" in reference:
        found["sum rounded"] = replaced(
            reference,
            "hidden_states.float() + residual.float()",
            "(hidden_states + residual).float()",
        )
    return found


@pytest.mark.parametrize("name", NORMS)
def test_no_fault_of_a_norm_survives(name):
    reference = loaded(name).reference
    mutants = norm_mutants(reference)
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

    names = [
        c.name
        for c in rmsnorm.cases(known("rmsnorm_h4096"))
        if c.size in ("small", "medium")
    ]
    assert red(rmsnorm, "rmsnorm_h4096", wrong) == names


@pytest.mark.parametrize(
    ("mutant", "cases"),
    [
        ("eps ten times too large", ["tiny-variance"]),
        ("eps ten times too small", ["tiny-variance"]),
        # rows of zeros are 0 / 0 then
        ("eps missing", ["tiny-variance", "zero-rows"]),
    ],
)
def test_eps_shows_where_the_variance_is_about_eps(mutant, cases):
    name = "rmsnorm_h7168"
    run = with_defect(known(name), run_of(loaded(name).reference), mutant)
    assert red(rmsnorm, name, run) == cases


def accumulated_in_float16(a, b):
    total = torch.zeros(a.shape[0], b.shape[0], dtype=torch.float16)
    for x, y in zip(a.split(64, 1), b.split(64, 1), strict=True):
        total = (total.float() + x.float() @ y.float().T).half()
    return total


def product(a, b):
    return (a.float() @ b.float().T).half()


GEMM_MUTANTS = {
    "accumulated in float16": accumulated_in_float16,
    "a thousandth too large": lambda a, b: (product(a, b).float() * 1.001).half(),
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
