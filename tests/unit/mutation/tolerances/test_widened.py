"""The float64 run: what is widened, what stays, and what `run()` can see of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.mutation.tolerances.widened import Widened, run_widened
from generator.ops.registry import op_module
from kernel_judge.inputs.trial import Trial, as_tuple
from tests.builders import CPU, class_of, known, loaded, run_of

F64 = torch.float64
X = torch.linspace(-2.0, 2.0, 24).reshape(4, 6).bfloat16()
Y = torch.linspace(0.1, 1.3, 24).reshape(4, 6)  # float32


def wide(run: Callable[..., Any], *values: Any) -> Any:
    """Return the first output of a run in float64."""
    given = {str(place): value for place, value in enumerate(values)}
    return run_widened(lambda: run, given)[0][0]


# float32 code, and what it is in float64
TWINS = {
    "float": (lambda x, y: x.float().exp(), lambda x, y: x.double().exp()),
    "to": (lambda x, y: x.to(torch.float32).exp(), lambda x, y: x.double().exp()),
    "to named": (
        lambda x, y: x.to(dtype=torch.float32).exp(),
        lambda x, y: x.double().exp(),
    ),
    "to other": (lambda x, y: x.to(y).exp(), lambda x, y: x.double().exp()),
    "type": (lambda x, y: x.type(torch.float32).exp(), lambda x, y: x.double().exp()),
    "an input": (lambda x, y: y / 3.0, lambda x, y: y / 3.0),
    "promotion": (lambda x, y: x * y, lambda x, y: x.double() * y),
    "clone": (lambda x, y: y.clone().mul_(0.1), lambda x, y: y * 0.1),
    "integers": (
        lambda x, y: torch.arange(7) / 3,
        lambda x, y: torch.arange(7, dtype=F64) / 3,
    ),
    "arange": (
        lambda x, y: torch.arange(0, 1, 0.1),
        lambda x, y: torch.arange(0, 1, 0.1, dtype=F64),
    ),
    "tensor": (
        lambda x, y: torch.tensor([0.1, math.pi]),
        lambda x, y: torch.tensor([0.1, math.pi], dtype=F64),
    ),
    "full": (
        lambda x, y: torch.full((2,), 0.1, dtype=torch.float32),
        lambda x, y: torch.full((2,), 0.1, dtype=F64),
    ),
    "new": (lambda x, y: y.new_full((2,), 0.1), lambda x, y: y.new_full((2,), 0.1)),
    "softmax": (
        lambda x, y: torch.softmax(x, -1, dtype=torch.float32),
        lambda x, y: torch.softmax(x, -1, dtype=F64),
    ),
    "softmax by place": (
        lambda x, y: torch.nn.functional.softmax(x, -1, 3, torch.float32),
        lambda x, y: torch.softmax(x, -1, dtype=F64),
    ),
    "silu": (
        lambda x, y: torch.nn.functional.silu(x.float()),
        lambda x, y: torch.nn.functional.silu(x.double()),
    ),
    "einsum": (
        lambda x, y: torch.einsum("ab,cb->ac", x.float(), y),
        lambda x, y: torch.einsum("ab,cb->ac", x.double(), y),
    ),
    "sum": (
        lambda x, y: x.sum(dim=0, dtype=torch.float32) / 7,
        lambda x, y: x.double().sum(dim=0) / 7,
    ),
    "where": (
        lambda x, y: torch.where(x > 0, y, 0.1),
        lambda x, y: torch.where(x > 0, y, 0.1),
    ),
    "topk": (
        lambda x, y: (y / 3).topk(2).values,
        lambda x, y: (y / 3).topk(2).values,
    ),
    "bits": (
        lambda x, y: y.view(torch.int32).view(torch.float32) / 3,
        lambda x, y: y / 3,
    ),
}


@pytest.mark.parametrize("name", TWINS)
def test_float32_is_float64(name: str) -> None:
    run, twin = TWINS[name]
    result, expected = wide(run, X, Y), twin(X, Y.double())
    assert result.dtype == expected.dtype == F64
    assert torch.equal(result, expected)
    # and that is something else than float32
    assert not torch.equal(result, run(X, Y).double())


def test_an_output_made_first_is_filled_in_float64() -> None:
    def run(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        lse = torch.full((4,), -math.inf, dtype=torch.float32)
        for row in range(1, 4):
            lse[row] = x[row].float().logsumexp(0) / math.log(2)
        lse[2:] += y[2:, 0]
        return lse

    expected = X.double().logsumexp(1) / math.log(2)
    expected[0] = -math.inf
    expected[2:] += Y.double()[2:, 0]
    torch.testing.assert_close(wide(run, X, Y), expected, rtol=1e-15, atol=0.0)


def rounded_rows(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    output = torch.zeros_like(x)
    output[0] = (x[0].float() / 3).to(x.dtype)
    output[1:3].copy_(x[1:3].float() / 3)
    output.select(0, 3)[:] = (x[3].float() / 3).bfloat16()
    return output


MOVED = {
    "rows": rounded_rows,
    "cast": lambda x, y: (x.float() / 3).to(torch.bfloat16),
    "cast as": lambda x, y: (x.float() / 3).to(x),
    "cast like": lambda x, y: (x.float() / 3).type_as(x),
    "halved": lambda x, y: (x.float() / 3).half(),
    "computed so": lambda x, y: x / 3,
    "moved": lambda x, y: (x.float() / 3).bfloat16().unsqueeze(1).flatten(0, 1),
    "joined": lambda x, y: torch.cat(
        [(part.float() / 3).bfloat16() for part in x.split(3)]
    ),
    "picked": lambda x, y: (x.float() / 3).bfloat16()[torch.arange(4)],
    "transposed": lambda x, y: (x.float().T / 3).bfloat16().T.contiguous(),
}


@pytest.mark.parametrize("name", MOVED)
def test_the_last_rounding_is_left_out(name: str) -> None:
    assert torch.equal(wide(MOVED[name], X, Y), X.double() / 3)


def test_a_rounding_in_the_middle_stays() -> None:
    def run(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x.float() / 3).bfloat16().float() / 7

    rounded = (X.double() / 3).bfloat16()
    assert torch.equal(wide(run, X, Y), rounded.double() / 7)


def test_what_was_rounded_again_is_as_it_is_stored() -> None:
    def run(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        output = (x.float() / 3).bfloat16()
        output += x
        return output

    once = (X.double() / 3).bfloat16()
    assert torch.equal(wide(run, X, Y), (once + X).double())


def test_what_nobody_saw_being_written_is_as_it_is_stored() -> None:
    def run(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        output = (x.float() / 3).bfloat16()
        with torch._C.DisableTorchFunction():
            output[0] = 1.0
        return output

    result = wide(run, X, Y)
    assert torch.equal(result, result.bfloat16().double())
    assert torch.equal(result[0], torch.ones(6, dtype=F64))


def test_run_sees_the_dtypes_that_it_expects() -> None:
    def run(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        assert (x.dtype, y.dtype, z.dtype) == (torch.bfloat16, torch.float32, F64)
        assert x.float().dtype == torch.zeros(2).dtype == torch.float32
        assert (y / 3).to(x.dtype).dtype == torch.bfloat16
        assert y.double().dtype == (z * y).dtype == (y.double() / 2).dtype == F64
        assert y.dtype == z.float().dtype == y.double().float().dtype == torch.float32
        assert y.argmax().dtype == torch.int64
        return z.float() + y.to(y.dtype)

    z = torch.full((4, 6), 0.1, dtype=F64)
    assert torch.equal(wide(run, X, Y, z), z + Y.double())


def test_inputs_that_are_filled_are_returned_and_the_caller_s_stay() -> None:
    def run(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        y[0] = x[0].float() / 3
        return y[1:].clone()

    before = Y.clone()
    outputs, after = run_widened(lambda: run, {"x": X, "y": Y})
    assert torch.equal(after["y"][0], X[0].double() / 3)
    assert torch.equal(outputs[0], Y[1:].double())
    assert torch.equal(Y, before)


def test_the_default_dtype_is_as_before_whatever_is_raised() -> None:
    def fail() -> None:
        assert torch.zeros(1).element_size() == 8
        raise ValueError("planted")

    with pytest.raises(ValueError, match="planted"), Widened():
        fail()
    assert torch.get_default_dtype() == torch.float32
    assert torch.zeros(1).element_size() == 4


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.lists(
        st.sampled_from(["sum", "half", "mul", "row", "cat", "exp", "view"]), max_size=6
    )
)
def test_any_chain_is_what_float64_gives(steps: list[str]) -> None:
    def run(x: torch.Tensor, first: Any, half: Any) -> torch.Tensor:
        x = first(x)
        for step in steps:
            if step == "half":
                x = half(x)
            if step == "sum":
                x = x - x.mean(dim=-1, keepdim=True)
            if step == "mul":
                x = x * 0.37
            if step == "row":
                x = x.index_select(0, torch.tensor([1, 0, 3, 2]))
            if step == "cat":
                x = torch.cat((x[2:], x[:2]))
            if step == "exp":
                x = torch.sigmoid(x)
            if step == "view":
                x = x.reshape(6, 4).reshape(4, 6)
        return x / 3

    def half(x: torch.Tensor) -> torch.Tensor:
        return x.bfloat16().float()

    result = wide(lambda x: run(x, torch.Tensor.float, half), X)
    twin = run(X, torch.Tensor.double, lambda x: x.bfloat16().double())
    assert torch.equal(result, twin)


@pytest.mark.parametrize(
    "name",
    [
        "fused_add_rmsnorm_h2048",
        "rope_with_cos_sin_cache_neox_style_d128_rd64",
        "gqa_paged_decode_h5_kv1_d128_ps1",
        "mla_ragged_prefill_causal_h8_qk192_vo128",
        "gdn_mtp_qk4_v8_d128_k_last",
        "gdn_prefill_qk4_v8_d128_k_last",
        "mamba_ssu_decode_h64_d64_s128_ng4",
        "gemm_n128_k2048",
    ],
)
def test_the_float64_run_is_the_oracle_s(name: str) -> None:

    definition = known(name)
    op = op_module(definition.op_type)
    reference = loaded(name).reference
    tests = class_of(op, definition, run_of(reference))
    case = op.cases(definition)[1]
    trial = Trial(definition, case, CPU, op.make_inputs, run_of(reference))
    outputs, after = run_widened(lambda: run_of(reference), trial.inputs)
    filled = tests.subject().filled(trial.inputs)
    found = (*outputs, *(after[name] for name in filled))
    expected = as_tuple(op.oracle(definition, trial.lazy_inputs()))
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.dtype == F64
        torch.testing.assert_close(mine, theirs.double(), rtol=1e-12, atol=1e-12)
