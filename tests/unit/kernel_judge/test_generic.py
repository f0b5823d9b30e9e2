"""Guessed inputs for an op_type without a module, and what constraints say of them."""

from __future__ import annotations

import pytest
import torch

from kernel_judge.constraints import Unknown
from kernel_judge.definition import Case, Definition, Interface, TensorSpec
from kernel_judge.inputs import generic
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.inputs.trial import Trial, same_bits
from tests.builders import CPU, skip_reason


def definition(inputs, outputs=None, constraints=(), **axes) -> Definition:
    interface = Interface(inputs, outputs or {}, tuple(constraints))
    return Definition("d", "unknown", interface, axes)


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("bfloat16[a, b]", TensorSpec(("a", "b"), "bfloat16")),
        ("int32[a]", TensorSpec(("a",), "int32")),
        ("int32[]", TensorSpec((), "int32")),
        ("float32", TensorSpec(None, "float32")),
    ],
)
def test_a_declaration_is_read(text, spec):
    assert TensorSpec.parse(text) == spec


@pytest.mark.parametrize("text", ["", "float32[", "float32[a]]", "a b", "f[a; b]"])
def test_what_is_no_declaration_is_refused(text):
    with pytest.raises(ValueError, match="not a tensor declaration"):
        TensorSpec.parse(text)


def test_free_axes_get_distinct_lengths():
    made = definition({"x": "float32[M, K]"}, {"y": "float32[M, L, N]"}, K=7)
    (case,) = generic.cases(made)
    assert case.size == "small"
    assert case.axes.keys() == {"M", "L", "N"}
    assert len(set(case.axes.values())) == 3
    assert min(case.axes.values()) >= 2


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        ("len_indptr == batch + 1", lambda axes: axes["batch"] + 1),
        ("len_indptr == batch - 1", lambda axes: axes["batch"] - 1),
        ("len_indptr==batch", lambda axes: axes["batch"]),
        ("len_indptr == 9", lambda axes: 9),
        ("len_indptr == heads", lambda axes: 4),
    ],
)
def test_a_constraint_on_one_axis_is_solved(constraint, expected):
    made = definition(
        {"x": "float32[batch, heads]", "p": "int32[len_indptr]"},
        constraints=[constraint],
        heads=4,
    )
    (case,) = generic.cases(made)
    assert case.axes["len_indptr"] == expected(case.axes)


@pytest.mark.parametrize("constraint", ["n <= 3", "n == p[-1].item()", "n == other"])
def test_a_constraint_that_is_no_equation_leaves_the_axes_alone(constraint):
    plain = definition({"x": "float32[n]"})
    bound = definition({"x": "float32[n]"}, constraints=[constraint])
    assert generic.cases(bound) == generic.cases(plain)


def test_inputs_have_the_declared_shapes_and_dtypes():
    made = definition(
        {
            "x": "bfloat16[M, K]",
            "q": "float8_e4m3fn[M]",
            "ids": "int32[M]",
            "mask": "bool[K]",
            "scale": "float32",
            "top_k": "int32",
        },
        K=3,
    )
    (case,) = generic.cases(made)
    inputs = generic.make_inputs(made, case, Stream("s"))
    assert list(inputs) == list(made.interface.inputs)
    assert inputs["x"].shape == (case.axes["M"], 3)
    assert inputs["x"].dtype == torch.bfloat16
    assert bool(inputs["x"].float().any())
    assert inputs["q"].dtype == torch.float8_e4m3fn
    assert inputs["ids"].dtype == torch.int32
    # an index into x or the mask, whichever it is
    assert set(inputs["ids"].tolist()) <= set(range(min(case.axes["M"], 3)))
    assert inputs["mask"].dtype == torch.bool
    assert bool(inputs["mask"][0])
    assert (inputs["scale"], inputs["top_k"]) == (1.0, 1)
    assert isinstance(inputs["scale"], float)
    assert isinstance(inputs["top_k"], int)
    again = generic.make_inputs(made, case, Stream("s"))
    assert same_bits(inputs["x"], again["x"])


def test_names_say_what_is_positive_and_what_rises():
    made = definition(
        {
            "x": "float32[num_tokens, K]",
            "x_scale": "float8_e4m3fn[num_tokens]",
            "qo_indptr": "int32[len_indptr]",
            "free_indptr": "int64[len_indptr]",
            "seq_lens": "int32[batch]",
            "mask": "bool[batch, K]",
            "none": "int32[zero]",
        },
        constraints=[
            "len_indptr == batch + 1",
            "num_tokens == qo_indptr[-1].item()",
        ],
        K=3,
        zero=0,
    )
    (case,) = generic.cases(made)
    inputs = generic.make_inputs(made, case, Stream("s"))
    batch = case.axes["batch"]
    assert case.axes["num_tokens"] == 3 * batch
    assert bool((inputs["x_scale"].float() > 0).all())
    steps = inputs["qo_indptr"].diff()
    assert inputs["qo_indptr"][0] == 0
    assert inputs["qo_indptr"][-1] == 3 * batch
    assert bool((steps >= 1).all())
    assert len(set(steps.tolist())) > 1
    assert inputs["free_indptr"].tolist() == list(range(batch + 1))
    assert inputs["free_indptr"].dtype == torch.int64
    assert bool((inputs["seq_lens"] >= 1).all())
    assert bool(inputs["mask"][:, 0].all())
    assert inputs["none"].shape == (0,)
    tried = Trial(made, case, CPU, generic.make_inputs, lambda *given: given)
    assert made.interface.constraints
    assert tried.broken_constraints() == []


@pytest.mark.parametrize(
    ("length", "end", "expected"),
    [(1, 0, [0]), (4, 1, [0, 0, 0, 1]), (4, 3, [0, 1, 2, 3]), (3, 10, [0, 3, 10])],
)
def test_offsets_rise_to_their_end(length, end, expected):
    assert generic._indptr(length, end).tolist() == expected


def test_packed_float4_is_a_skip_with_the_reason():
    made = definition({"x": "float4_e2m1[M]"})
    (case,) = generic.cases(made)
    reason = skip_reason(lambda: generic.make_inputs(made, case, Stream("s")))
    assert reason == "generic inputs: no packed float4_e2m1 without an op module"


def trial(constraint, axes, **inputs) -> Trial:
    made = definition(dict.fromkeys(inputs, "int32[n]"), constraints=[constraint])
    case = Case("c", "small", axes)
    return Trial(made, case, CPU, lambda *_: inputs, lambda *given: given)


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        ("n == 3", True),
        ("n == 4", False),
        ("starts[-1].item() == total", True),
        ("starts[-1] == total", True),
        ("starts[-1].item() > total", False),
        ("all(s >= 0 for s in starts.tolist())", True),
        ("max(starts.tolist()) == total and len(starts) == n", True),
        ("scale > 0", True),
    ],
)
def test_a_constraint_is_judged_over_axes_and_inputs(constraint, expected):
    starts = torch.tensor([0, 2, 9])
    tried = trial(constraint, {"n": 3, "total": 9}, starts=starts, scale=0.5)
    assert tried.broken_constraints() == ([] if expected else [constraint])


def test_a_name_that_is_neither_raises():
    with pytest.raises(Unknown, match="'unknown'"):
        trial("unknown == 1", {"n": 3}, scale=1.0).broken_constraints()


@pytest.mark.parametrize("constraint", ["open('x')", "__import__('os')", "scale.real"])
def test_a_constraint_that_is_not_evaluated_is_a_skip_with_the_reason(constraint):
    reason = skip_reason(trial(constraint, {}, scale=1.0).broken_constraints)
    assert reason.startswith("UNRESOLVED: constraints that were not checked: ")
    assert "not understood" in reason
