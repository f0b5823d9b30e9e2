"""What a head's norm or its rotation rounds too early is refused, where a kernel loses nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from generator.evaluation.rounds import rounds_of
from generator.ops.head_norm_inputs import UNROUNDED_NORM
from tests.builders import CPU, loaded
from tools.evaluate_mutants import InProcess, UntilWrong, Wrong

OFFSET = "(1.0 + weight.float())"
MEAN = "x.square().mean(dim=-1, keepdim=True)"
TURN = "cos, sin = cos_sin_cache["


@pytest.mark.parametrize("before", [OFFSET, MEAN, TURN])
@pytest.mark.parametrize(
    "name",
    [
        "gemma_qk_rmsnorm_rope_eps_1em6_d256_rd64",
        "gemma_qk_rmsnorm_rope_store_eps_1em6_h16_kv2_d256_rd64",
    ],
)
def test_early_rounding_is_refused(name, before):
    definition = loaded(name)
    after = f"{before}.bfloat16()"
    if before == TURN:
        after = "cos, sin = cos_sin_cache.bfloat16().float()["
    assert definition.reference.count(before) == 1
    namespace: dict = {}
    exec(definition.reference.replace(before, after), namespace)  # noqa: S102
    asked = rounds_of(definition, [], Path(), CPU, 9)
    asked = replace(asked, rounds=[r for r in asked.rounds if r[0] == UNROUNDED_NORM])
    with pytest.raises(Wrong, match=UNROUNDED_NORM):
        UntilWrong(InProcess(namespace["run"]), asked, CPU, False, 9).judge()
