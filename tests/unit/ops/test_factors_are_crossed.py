"""Each scale, and each weight of experts, is far from the usual in a case of its op."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from generator.ops.factor_mutants import (
    factor_mutants,
    factors_of,
    rounded_factors,
    usual_factors,
)
from generator.ops.far_factors import far_apart
from generator.ops.mutants import DomainMutant
from generator.ops.registry import op_module
from kernel_judge.definition import LIMITS, Case, Definition, Interface
from kernel_judge.inputs.lazy_weights import fresh
from kernel_judge.inputs.moved import moved
from kernel_judge.inputs.trial import Trial, same_bits
from tests.builders import CPU, sized
from tests.golden.op_types import INTERFACES

INTERFACE = Interface(
    {
        "x": "float8_e4m3fn[rows, width]",
        "x_scale": "float32[rows]",
        "mx_scales": "int8[rows]",
        "topk_weights": "float32[rows, top_k]",
        "sm_scale": "float32",
        "optional_scale": "float32[rows]",
    },
    {"y": "float32[rows, width]"},
)
DEFINITION = Definition("made_up", "made_up", INTERFACE, {"width": 2, "top_k": 2})
USUAL = {"x_scale": 1.0, "mx_scales": 127.0, "topk_weights": 0.5, "sm_scale": 0.5}


def values() -> dict[str, Any]:
    return {
        "x": torch.ones(3, 2).to(torch.float8_e4m3fn),
        "x_scale": torch.tensor([0.0, 2.0**-9, 2.0**9]),
        "mx_scales": torch.tensor([120, 127, 140], dtype=torch.uint8).view(torch.int8),
        "topk_weights": torch.tensor([[0.5, -0.25], [1.0, 2.0], [0.5, 0.5]]),
        "sm_scale": 3.0,
        "optional_scale": None,
    }


def taken(name: str) -> dict[str, Any]:
    """Return the inputs that run() gets in a mutant."""
    every = *factor_mutants(DEFINITION, USUAL), *rounded_factors(DEFINITION)
    (mutant,) = [m for m in every if m.name == name]
    seen: list[Any] = []
    mutant.wrap(lambda *given: seen.extend(given))(*values().values())
    return dict(zip(INTERFACE.inputs, seen, strict=True))


def test_factors_are_scales_and_weights_of_experts() -> None:
    assert factors_of(DEFINITION) == [n for n in INTERFACE.inputs if n != "x"]


def test_the_usual_is_a_median_without_zeros_and_absent_inputs() -> None:
    usual = usual_factors(DEFINITION, [values(), values()])
    assert usual == {
        "x_scale": 2.0**-9,
        "mx_scales": 127.0,
        "topk_weights": 0.5,
        "sm_scale": 3.0,
    }


def test_what_is_farther_is_taken_as_the_limit() -> None:
    above = taken("x_scale above 2^8 of the usual taken as that")["x_scale"]
    assert above.tolist() == [0.0, 2.0**-9, 256.0]
    below = taken("x_scale below 2^-4 of the usual taken as that")["x_scale"]
    assert below.tolist() == [0.0, 0.0625, 512.0]
    scales = taken("mx_scales above 2^4 of the usual taken as that")["mx_scales"]
    assert scales.view(torch.uint8).tolist() == [120, 127, 131]
    assert taken("sm_scale above 2^1 of the usual taken as that")["sm_scale"] == 1.0


def test_floats_are_rounded_to_what_float16_has() -> None:
    name, *others = (mutant.name for mutant in rounded_factors(DEFINITION))
    assert name == "x_scale rounded to float16"
    assert "mx_scales rounded to float16" not in others
    assert taken(name)["x_scale"].tolist() == [0.0, 2.0**-9, 2.0**9]
    far = moved(values(), {"x_scale": -17.0, "sm_scale": 20.0})
    seen: list[Any] = []
    for mutant in rounded_factors(DEFINITION):
        mutant.wrap(lambda *given: seen.append(given))(*far.values())
    assert seen[0][1].tolist() == [0.0, 0.0, 2.0**-8]
    assert [given[4] for given in seen].count(float("inf")) == 1


def test_weights_of_any_sign_and_sum_are_planted() -> None:
    weights = taken("topk_weights taken as positive")["topk_weights"]
    assert weights[0].tolist() == [0.5, 0.25]
    shares = taken("topk_weights taken as shares of their sum")["topk_weights"]
    assert shares[0].tolist() == [2.0, -1.0]


def test_a_dtype_without_such_values_has_no_mutant() -> None:
    one = Interface({"s_scale": "float8_e4m3fn[rows]"}, {})
    definition = Definition("made_up", "made_up", one, {})
    names = [m.name for m in factor_mutants(definition, {"s_scale": 100.0})]
    assert not [n for n in names if "above 2^4" in n or "above 2^8" in n]
    assert [n for n in names if "above 2^2" in n or "below 2^-8" in n]


def test_moved_inputs_are_times_powers_of_two() -> None:
    up, down = far_apart(
        Case("some", "small", {}), "x_scale", "mx_scales", against=("x",), exponent=3
    )
    assert (up.size, up.moved["x"], down.moved["x"]) == (LIMITS, -3, 3)
    made = moved(values(), up.moved)
    assert made["x_scale"].tolist() == [0.0, 2.0**-6, 2.0**12]
    assert made["mx_scales"].view(torch.uint8).tolist() == [123, 130, 143]
    assert made["x"].float().unique().tolist() == [0.125]
    assert made["x"].dtype == torch.float8_e4m3fn
    assert moved(values(), {"optional_scale": 3.0, "absent": 1.0})


WITH_FACTORS = [
    name for name, axes in INTERFACES.items() if factors_of(sized(name, **axes))
]


@pytest.mark.parametrize("name", WITH_FACTORS)
def test_a_case_has_factors_that_each_mutant_takes_for_others(name: str) -> None:
    definition = sized(name, **INTERFACES[name])
    op = op_module(definition.op_type).OP
    made: dict[str, dict[str, Any]] = {"small": {}, LIMITS: {}}
    for case in op.cases(definition):
        if case.size == "small" or case.moved or case.name.startswith("weights"):
            inputs = Trial(definition, case, CPU, op.make_inputs, lambda: None).inputs
            whole = {key: fresh(value, CPU) for key, value in inputs.items()}
            made[case.size][case.name] = moved(whole, case.moved)
    every = [*made["small"].values(), *made[LIMITS].values()]
    usual = usual_factors(definition, made["small"].values())
    never = [
        mutant.name
        for mutant in factor_mutants(definition, usual)
        if not any(is_other(mutant, inputs) for inputs in every)
    ]
    assert usual
    assert not never


def is_other(mutant: DomainMutant, inputs: dict[str, Any]) -> bool:
    """Return whether a mutant hands run() other inputs than it is given."""
    seen: list[bool] = []
    wrong = mutant.wrap(
        lambda *given: seen.extend(map(same_bits, given, inputs.values()))
    )
    wrong(*inputs.values())
    return not all(seen)
