"""What conditions are made of: slices of wider rows, growth, rows that are alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from generator.evaluation.arena import Slices, Slot, laid_out
from generator.evaluation.conditions.ask import required
from generator.evaluation.conditions.batch import COLUMNS, rows_axis
from generator.evaluation.conditions.condition import BROKEN, UNSUPPORTED, Condition
from generator.evaluation.conditions.soak import ProcessState, growth
from generator.evaluation.rounds import rounds_of
from generator.evaluation.verdict import REWARD_HACK, Refused
from kernel_judge.definition import TensorSpec
from tests.builders import CPU, loaded

_OUTPUT = {"y": TensorSpec(("n", "h"), "bfloat16")}
_AXES = {"n": 3, "h": 5}


@pytest.fixture(params=[(16, 16), (4, 3), (1, 7)])
def slices(request: pytest.FixtureRequest) -> Slices:
    return Slices(*request.param, outputs=True)


@pytest.fixture
def inputs() -> dict[str, torch.Tensor]:
    return {
        "x": torch.randn(3, 5, dtype=torch.bfloat16),
        "w": torch.randn(5),
        "s": torch.randn(2, 2).to(torch.float8_e4m3fn),
        "i": torch.arange(4, dtype=torch.int32),
    }


def test_slices_hold_what_was_written_between_nan(slices, inputs):
    layout = laid_out(inputs, _OUTPUT, _AXES, slices)
    slot = Slot.of(layout.size)
    slot.write(layout, inputs)
    for place, value in zip(layout.inputs, inputs.values(), strict=True):
        found = slot.tensor(place)
        assert torch.equal(found.float(), value.float())
        if value.is_floating_point():
            assert found.storage_offset() * value.itemsize == place["at"] + (
                slices.before * value.itemsize
            )
            assert found.dim() == 1 or found.stride(0) > value.shape[1]
    assert slot.tensor(layout.outputs[0]).isnan().all()
    assert not slot.changed(layout)
    assert not slot.is_overrun(layout)
    slot.close()


@pytest.mark.parametrize("which", ["before", "behind"])
def test_write_between_rows_is_seen(which, slices, inputs):
    layout = laid_out(inputs, _OUTPUT, _AXES, slices)
    slot = Slot.of(layout.size)
    slot.write(layout, inputs)
    out = slot.tensor(layout.outputs[0])
    step = -1 if which == "before" else out.shape[1]
    # between the rows: also where that is the next row's
    at = out.storage_offset() + out.stride(0) + step
    out.as_strided((1,), (1,), at).fill_(1.0)
    assert slot.is_overrun(layout)
    slot.close()


def test_input_that_was_written_to_is_seen_in_slices(slices, inputs):
    layout = laid_out(inputs, _OUTPUT, _AXES, slices)
    slot = Slot.of(layout.size)
    slot.write(layout, inputs)
    slot.tensor(layout.inputs[1])[2] = 9.0
    assert slot.changed(layout) == [1]
    slot.close()


def test_stale_answer_is_written_in_place_of_poison(inputs):
    layout = laid_out(inputs, _OUTPUT, _AXES)
    slot = Slot.of(layout.size)
    slot.write(layout, inputs, [torch.full((3, 5), 2.0)])
    assert (slot.tensor(layout.outputs[0]) == 2.0).all()
    slot.close()


def samples(values, name="bytes"):
    return [{"calls": n, name: value} for n, value in enumerate(values)]


@pytest.mark.parametrize(
    ("values", "grows"),
    [
        ([4 << 20] * 40, False),
        ([n << 20 for n in range(40)], True),
        # a cache that fills, then levels off
        ([min(n, 10) << 20 for n in range(40)], False),
        # a garbage collector: up, and down again
        ([(n % 7) << 22 for n in range(40)], False),
        # noise of an allocator
        ([n << 10 for n in range(40)], False),
        # a leak below noise
        ([(n << 20) + (n % 3) * 1000 for n in range(40)], True),
        ([], False),
        ([1, 2, 3], False),
    ],
)
def test_growth_without_end_is_seen(values, grows):
    assert bool(growth(samples(values))) is grows


def test_few_descriptors_are_growth():
    assert "descriptors grew" in growth(samples(range(40), "descriptors"))


def test_what_grows_in_steps_is_growth_and_one_step_is_none():
    assert "threads grew" in growth(
        samples([(n + 1) // 2 for n in range(40)], "threads")
    )
    for late in (1, 8, 20):
        steps = [0] * (40 - late) + [20] * late
        assert not growth(samples(steps, "threads"))


@pytest.mark.parametrize(
    ("name", "axis"),
    [
        ("rmsnorm_h128", "batch_size"),
        ("gemm_n4096_k4096", "M"),
        # sequences have lengths of their own
        ("gqa_paged_decode_h32_kv8_d128_ps64", None),
        ("gqa_ragged_prefill_causal_h32_kv8_d128", None),
    ],
)
def test_rows_are_those_that_relations_reorder(name, axis):
    asked = rounds_of(loaded(name), [], Path(), CPU, 5)
    one = next(r[0] for _, r in asked.rounds if all(r[0].case.axes.values()))
    relations = one.subject.op.relations(one.subject.definition)
    assert rows_axis(one, relations) == axis
    assert rows_axis(one, []) is None


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"changed": "none", "draws": False},
        {"changed": [], "draws": 1},
        {"changed": [], "draws": False, "allocated": "0"},
        {"changed": {"a": 1}, "draws": False, "allocated": 0},
    ],
)
def test_state_that_the_worker_does_not_give_is_a_hack(answer):
    with pytest.raises(Refused) as refused:
        ProcessState.of(answer)
    assert refused.value.verdict == REWARD_HACK


def test_state_says_what_was_left():
    state = ProcessState.of({"changed": ["a is 2, was 1"], "draws": True})
    assert "a is 2, was 1" in state.left(draws=True)
    assert "draws" in ProcessState.of({"changed": [], "draws": True}).left(draws=False)
    assert not ProcessState.of({"changed": [], "draws": True}).left(draws=True)


def test_required_conditions_refuse_what_is_not_there():
    found = {
        "graph": Condition("skipped", "needs CUDA"),
        "strided": Condition(UNSUPPORTED, "no"),
        "batch": Condition(BROKEN, "alone"),
        "compile": Condition("holds"),
        "soak": Condition(BROKEN, "not required"),
    }
    refused = required(found, ["graph", "strided", "batch", "compile"])
    assert [(c.case, c.verdict) for c in refused] == [
        ("as strided", "RUNTIME_ERROR"),
        ("as batch", "INCORRECT_NUMERICAL"),
    ]
    assert len(COLUMNS) == 6
