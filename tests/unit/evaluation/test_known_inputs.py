"""A solution that knows earlier inputs by less than all of their values is refused."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from generator.evaluation.judge import Judge
from generator.evaluation.neighbours import few_changed, mixed
from generator.evaluation.rounds import EvaluationRounds, rounds_of
from tests.builders import CPU, loaded, run_of
from tools.evaluate_mutants import InProcess, UntilWrong, Wrong

NORM, GEMM = "rmsnorm_h128", "gemm_n128_k2048"
DECODE, CODES = "gqa_paged_decode_h32_kv8_d128_ps64", "w8a8_fp8_n12800_k5120"
AXES = {CODES: {"N": 96, "K": 256}}
Known = Callable[[torch.Tensor], Any]


def all_values(value: torch.Tensor) -> Any:
    return value.contiguous().view(torch.uint8).numpy().tobytes()


def magnitudes(value: torch.Tensor) -> Any:
    wide = value.float().abs() if value.is_floating_point() else value
    return all_values(wide)


def sums(value: torch.Tensor) -> Any:
    wide = value.double()
    return round(float(wide.sum()), 3), round(float(wide.square().sum()), 3)


def eight_bits(value: torch.Tensor) -> Any:
    if not value.is_floating_point() or value.element_size() == 1:
        return all_values(value)
    return all_values(value.to(torch.float8_e5m2))


def a_sample(value: torch.Tensor) -> Any:
    wide = value.float().flatten()
    return str(wide[::997].tolist()), str(wide[-8:].tolist())


def keeps(run: Callable[..., Any], known: Callable[..., Any]) -> Callable[..., Any]:
    """Return a solution that computes what it does not know yet."""
    kept: dict[Any, Any] = {}

    def cached(*given: Any) -> Any:
        key = known(*given)
        if key not in kept:
            kept[key] = run(*given)
        outputs = kept[key]
        return (
            tuple(map(torch.clone, outputs))
            if isinstance(outputs, tuple)
            else (outputs.clone())
        )

    return cached


def by(known: Known) -> Callable[..., Any]:
    def key(*given: Any) -> Any:
        return tuple(
            (v.shape, known(v)) if isinstance(v, torch.Tensor) else v for v in given
        )

    return key


def without(place: int) -> Callable[..., Any]:
    def key(*given: Any) -> Any:
        shapes = tuple(v.shape for v in given if isinstance(v, torch.Tensor))
        return shapes, by(all_values)(*given[:place], *given[place + 1 :])

    return key


def beside(name: str, secret: int = 3) -> EvaluationRounds:
    found = rounds_of(loaded(name), [], Path(), CPU, secret, axes=AXES.get(name))
    usual = [one for one in found.rounds if not one[0].startswith(("len", "lim"))]
    return replace(found, rounds=usual, relations=[])


def reason(name: str, known: Callable[..., Any]) -> str:
    """Return why a solution is refused that keeps answers; empty if it is not."""
    run = run_of(loaded(name).reference)
    try:
        UntilWrong(InProcess(keeps(run, known)), beside(name), CPU, False, 3).judge()
    except Wrong as wrong:
        return wrong.reason
    return ""


KNOWN: tuple[tuple[str, Callable[..., Any]], ...] = (
    (NORM, by(magnitudes)),
    (NORM, by(eight_bits)),
    (GEMM, by(a_sample)),
    (GEMM, by(magnitudes)),
    (GEMM, without(0)),
    (CODES, by(a_sample)),
    (CODES, by(magnitudes)),
    (CODES, without(3)),
    (DECODE, by(sums)),
    (DECODE, without(2)),
    (DECODE, without(6)),
)


@pytest.mark.parametrize(("name", "known"), KNOWN)
def test_what_knows_inputs_by_a_part_of_them_is_refused(
    name: str, known: Callable[..., Any]
) -> None:
    assert reason(name, known)


@pytest.mark.parametrize("name", [NORM, GEMM, CODES, DECODE])
def test_what_knows_them_by_all_values_is_right(name: str) -> None:
    assert reason(name, by(all_values)) == ""


@pytest.mark.parametrize("secret", [3, 4])
@pytest.mark.parametrize(
    "name",
    [
        # a saved log-sum-exp, a choice among near ties, and scales of tensors
        "cross_entropy_backward_v128256",
        "topk_softmax_e8_k2_renorm",
        "w8a8_fp8_tensor_n1280_k8192",
    ],
)
def test_references_are_right_beside(name: str, secret: int) -> None:
    asked = beside(name, secret)
    rounds = [one for one in asked.rounds if one[0].startswith("beside ")]
    run = InProcess(run_of(loaded(name).reference))
    judge = Judge(run, replace(asked, rounds=rounds), CPU, False, secret)
    assert not [v.reason for v in judge.judge() if v.verdict != "PASSED"]


def test_what_has_one_value_a_head_keeps_it() -> None:
    name = "mamba_ssu_decode_h64_d64_s128_ng4"
    found = [one for case, (one, *_) in beside(name).rounds if case[:6] == "beside"]
    assert len(found) > 8
    for one in found:
        heads = [one.inputs[n].flatten(1) for n in ("A", "D", "dt_bias")]
        heads.append(one.inputs["dt"].flatten(0, 1))
        assert all(bool((v == v[:, :1]).all()) for v in heads)


def made(seed: int, pages: bool) -> dict[str, Any]:
    torch.manual_seed(seed)
    floats = {n: torch.randn(4, 6, dtype=torch.bfloat16) for n in "xy"}
    read = {"pages": torch.randperm(4)} if pages else {}
    return {**floats, **read, "scale": 0.5, "eps": 0.0}


def test_each_input_is_another_in_turn() -> None:
    first, second = made(0, False), made(1, False)
    found = [*mixed(first, second, random.Random(0))]
    assert [one for one in found if "scale" in one] == [{"scale": 0.25}]
    for name in "xy":
        assert any(
            (one[name] != first[name]).sum() > 12 for one in found if name in one
        )


def test_what_integers_choose_keeps_its_place_and_they_stay() -> None:
    first, second = made(0, True), made(1, True)
    first["x"][2] *= 16.0
    found = [*mixed(first, second, random.Random(0))]
    assert found
    assert not [one for one in found if "pages" in one]
    for one in found:
        for name in one.keys() & {"x", "y"}:
            before, after = (v[name].float().abs().amax(-1) for v in (first, one))
            assert torch.allclose(before, after, rtol=0.1)


def test_a_row_that_is_much_larger_replaces_none() -> None:
    first, second = made(0, True), made(1, True)
    for other in ("x", "y"):
        second[other] *= 16.0
    assert not [*few_changed(first, second, random.Random(0))]


def test_no_element_of_a_mask_is_another() -> None:
    masks = [torch.randn(3, 5).masked_fill(torch.eye(3, 5).bool(), v) for v in (0, 1)]
    masks[0][0, 0] = -torch.inf
    first, second = ({"mask": mask} for mask in masks)
    found = [one["mask"] for one in mixed(first, second, random.Random(0))]
    rows = [int((one != masks[0]).any(dim=-1).sum()) for one in found]
    elements = [int((one != masks[0]).sum()) for one in found]
    assert 1 in rows
    assert 1 not in elements
