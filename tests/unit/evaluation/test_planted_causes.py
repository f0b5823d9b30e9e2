"""How many of 24 planted defects the JSON of a failure names the cause of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from generator.evaluation.failures import Failures
from generator.evaluation.judge import Judge
from generator.evaluation.rounds import rounds_of
from generator.evaluation.verdict import PASSED
from tests.builders import CPU, loaded, replaced, run_of
from tools.evaluate_mutants import InProcess

NORM, LAYER, MERGE = "rmsnorm_h128", "layernorm_h128", "merge_state_h64_d64"
SILU, GEMM = "silu_and_mul_i512", "gemm_n128_k2048"
LSE = "torch.log2(total) + peak"
RETURN = "return (x * inverse_rms * weight.float()).to(hidden_states.dtype)"
STORED = "out = (x * inverse_rms * weight.float()).to(hidden_states.dtype)\n    "

# definition, a part of its reference, what stands there instead, and a word of the cause
PLANTED = [
    (NORM, " * weight.float()", "", "scale is missing or twice for each hidden_size"),
    (
        NORM,
        "weight.float()",
        "weight.float() ** 2",
        "scale is missing or twice for each hidden_size",
    ),
    (
        NORM,
        "weight.float()",
        "(1 + weight.float())",
        "scale is missing or twice for each hidden_size",
    ),
    (
        NORM,
        ".mean(dim=-1, keepdim=True)",
        ".sum(dim=-1, keepdim=True)",
        "scale is missing",
    ),
    (
        NORM,
        "torch.rsqrt",
        "torch.reciprocal",
        "scale is missing or twice for each batch_size",
    ),
    (NORM, "hidden_states.float()", "hidden_states", "narrower"),
    (NORM, "x * inverse_rms", "-x * inverse_rms", "sign"),
    (NORM, "x * inverse_rms", "2 * x * inverse_rms", "twice"),
    (NORM, RETURN, f"{STORED}out[:, -8:] = 0\n    return out", "tail"),
    (NORM, RETURN, f"{STORED}out[:, 1::2] = 0\n    return out", "every 2."),
    (NORM, RETURN, f"{STORED}out[-1:] = float('nan')\n    return out", "NaN"),
    (NORM, RETURN, f"{STORED}return out.roll(1, 1)", "other places"),
    (LAYER, " + bias)", ")", "mean is missing or twice for each hidden_size"),
    (LAYER, "normed * weight", "normed", "scale is another"),
    (LAYER, "x - x.mean(dim=-1, keepdim=True)", "x", "mean is missing"),
    (LAYER, "torch.rsqrt(variance", "torch.rsqrt(2 * variance", "scale is another"),
    (MERGE, LSE, f"({LSE}) * 0.6931471805599453", "logarithm"),
    (MERGE, LSE, "torch.log2(total)", "mean is missing"),
    (MERGE, "torch.where(total > 0, total, 1.0)[..., None]", "1.0", "scale is missing"),
    (MERGE, "v_b.float() * weight_b", "-v_b.float() * weight_b", "sign"),
    (SILU, "gate, up", "up, gate", "swapped"),
    (SILU, "functional.silu(gate)", "functional.gelu(gate)", "activation"),
    (
        GEMM,
        "a @ rows.float().T",
        "a[:, :-64] @ rows.float()[:, :-64].T",
        "part of a sum",
    ),
    (GEMM, "a @ rows.float().T", "(a @ rows.float().T) / 2", "half"),
]
RECOGNISED = 20


def causes(folder: Path, definition: str, run) -> set[str]:
    """Return the likely causes that the JSON files of a solution's failures name."""
    asked = rounds_of(loaded(definition), [], Path(), CPU, 3)
    failures = Failures(folder, {"definition": definition})
    verdicts = Judge(InProcess(run), asked, CPU, False, 3, failures).judge()
    assert any(case.verdict != PASSED for case in verdicts)
    files = (json.loads(p.read_text()) for p in folder.rglob("failure.json"))
    return {o["likely"] for f in files for o in f["outputs"] if o.get("likely")}


@pytest.mark.slow
def test_the_json_of_a_failure_names_most_causes(tmp_path: Path) -> None:
    recognised = []
    for number, (definition, old, new, word) in enumerate(PLANTED):
        text = replaced(loaded(definition).reference, old, new)
        named = causes(tmp_path / str(number), definition, run_of(text))
        if any(word in cause for cause in named):
            recognised.append(number)
    assert len(PLANTED) == 24
    assert len(recognised) >= RECOGNISED, recognised
