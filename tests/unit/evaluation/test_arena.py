from __future__ import annotations

import itertools

import pytest
import torch

from generator.evaluation.arena import Slot, laid_out, poison
from kernel_judge.definition import TensorSpec

SPECS = {"y": TensorSpec(("rows", "columns"), "float32")}
AXES = {"rows": 2, "columns": 3}
INPUTS = {"x": torch.arange(6.0).reshape(2, 3), "eps": 0.5, "n": torch.tensor([7])}


@pytest.fixture
def slot() -> Slot:
    return Slot.of(laid_out(INPUTS, SPECS, AXES).size)


def test_equal_shapes_have_equal_places() -> None:
    other = {**INPUTS, "x": torch.ones(2, 3), "eps": 0.25}
    first, second = laid_out(INPUTS, SPECS, AXES), laid_out(other, SPECS, AXES)
    assert first.inputs[0] == second.inputs[0]
    assert first.outputs == second.outputs
    assert [place.get("value") for place in second.inputs] == [None, 0.25, None]


def test_places_are_apart_and_aligned() -> None:
    layout = laid_out(INPUTS, SPECS, AXES)
    places = [p for p in (*layout.inputs, *layout.outputs) if "at" in p]
    assert all(place["at"] % 256 == 0 for place in places)
    for before, after in itertools.pairwise(places):
        assert after["at"] - before["at"] - before["bytes"] >= 256


def test_slot_holds_inputs_and_poison(slot: Slot) -> None:
    layout = laid_out(INPUTS, SPECS, AXES)
    slot.write(layout, INPUTS)
    assert torch.equal(slot.tensor(layout.inputs[0]), INPUTS["x"])
    assert slot.taken(layout.outputs[0]).isnan().all()
    assert slot.changed(layout) == []
    assert not slot.is_overrun(layout)


def test_written_input_is_seen(slot: Slot) -> None:
    layout = laid_out(INPUTS, SPECS, AXES)
    slot.write(layout, INPUTS)
    slot.tensor(layout.inputs[2])[0] = 8
    assert slot.changed(layout) == [2]


def test_the_same_input_is_there_in_the_next_call(slot: Slot) -> None:
    layout = laid_out(INPUTS, SPECS, AXES)
    inputs = {**INPUTS, "x": INPUTS["x"].clone()}
    for _ in range(2):
        slot.write(layout, inputs)
        assert torch.equal(slot.tensor(layout.inputs[0]), inputs["x"])
        assert slot.taken(layout.outputs[0]).isnan().all()
        assert slot.changed(layout) == []
    # the caller changed it
    inputs["x"][0, 0] = 9.0
    slot.write(layout, inputs)
    assert torch.equal(slot.tensor(layout.inputs[0]), inputs["x"])
    # the call changed it
    slot.tensor(layout.inputs[0])[1, 1] = -1.0
    assert slot.changed(layout) == [0]
    slot.write(layout, inputs)
    assert slot.changed(layout) == []


def test_what_another_call_did_to_an_input_is_seen(slot: Slot) -> None:
    layout = laid_out(INPUTS, SPECS, AXES)
    slot.write(layout, INPUTS)
    assert slot.changed(layout) == []
    slot.tensor(layout.inputs[0])[1, 1] = -1.0
    slot.write(layout, INPUTS)
    assert slot.changed(layout) == [0]


def test_write_beside_an_argument_is_seen(slot: Slot) -> None:
    layout = laid_out(INPUTS, SPECS, AXES)
    slot.write(layout, INPUTS)
    end = layout.outputs[0]["at"] + layout.outputs[0]["bytes"]
    slot.memory[end] = 0
    assert slot.is_overrun(layout)


def test_memory_can_not_be_shortened(slot: Slot) -> None:
    import os

    with pytest.raises(PermissionError):
        os.ftruncate(slot.file, 0)


@pytest.mark.parametrize(
    ("dtype", "is_poison"),
    [
        (torch.float32, lambda t: bool(t.isnan().all())),
        (torch.bfloat16, lambda t: bool(t.isnan().all())),
        (torch.float8_e4m3fn, lambda t: bool(t.float().isnan().all())),
        (torch.int32, lambda t: bool((t == -(2**31)).all())),
        (torch.bool, lambda t: bool((t.view(torch.uint8) > 1).all())),
    ],
)
def test_poison_is_no_right_value(dtype: torch.dtype, is_poison: object) -> None:
    tensor = torch.zeros(4).to(dtype)
    poison(tensor)
    assert is_poison(tensor)  # type: ignore[operator]
