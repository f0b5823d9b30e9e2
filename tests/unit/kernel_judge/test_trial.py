"""A trial: inputs made once, copied for every callee, and compared bit by bit."""

from __future__ import annotations

import math

import pytest
import torch

from kernel_judge.definition import Case, Definition, Interface
from kernel_judge.inputs.lazy_weights import Tiled, base_length, lazy
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.inputs.trial import Trial, as_tuple, same_bits, seed
from kernel_judge.reference import load_reference
from tests.builders import CPU, skip_reason

DEFINITION = Definition(
    "d", "op", Interface({"x": "float32[n]", "s": "float32"}, {}), {}
)
CASE = Case("c", "small", {"n": 3})


def make_inputs(definition, case, stream):
    return {"x": stream.values((case.axes["n"],)), "s": 2.0}


def trial(run, *, guessed=False) -> Trial:
    return Trial(DEFINITION, CASE, CPU, make_inputs, run, guessed=guessed)


def test_the_seed_is_of_the_definition_and_the_case():
    assert same_bits(
        trial(None).inputs["x"], Stream("d", "c").values((3,), dtype=torch.float32)
    )


def test_inputs_are_made_once_and_copied_for_every_callee():
    tried = trial(lambda x, s: x * s)
    first, second = tried.fresh_inputs(), tried.fresh_inputs()
    first["x"].fill_(7.0)
    assert first["x"].data_ptr() != second["x"].data_ptr()
    assert same_bits(second["x"], tried.inputs["x"])
    assert tried.inputs is tried.inputs
    assert first["s"] == 2.0


def test_inputs_go_to_a_device_once_whatever_the_number_of_callees(monkeypatch):
    """A device without memory stands for a GPU: what leaves the host is counted."""
    from_host = []

    def noted(value, device):
        if isinstance(value, torch.Tensor) and value.device == CPU:
            from_host.append(value)
        return lazy(value, device)

    monkeypatch.setattr("kernel_judge.inputs.trial.lazy", noted)
    tried = Trial(DEFINITION, CASE, torch.device("meta"), make_inputs, None)
    copies = [tried.fresh_inputs()["x"], tried.lazy_inputs()["x"]]
    copies += [tried._run_inputs()["x"], tried._originals["x"]]
    assert all(copy.device.type == "meta" for copy in copies)
    assert len({id(copy) for copy in copies}) == 4
    assert len(from_host) == 1
    tried.release()
    tried.fresh_inputs()
    assert len(from_host) == 2


def test_run_gets_the_inputs_positionally_and_is_called_once_for_its_outputs():
    calls = []

    def run(first, second):
        calls.append(second)
        return first * second

    tried = trial(run)
    assert len(tried.outputs) == 1
    assert tried.outputs is tried.outputs
    assert tried.modified_inputs == ()
    assert calls == [2.0]
    tried.repeat()
    assert calls == [2.0, 2.0]


def test_an_input_that_is_written_to_is_named_and_does_not_spoil_the_next_call():
    tried = trial(lambda x, s: x.mul_(s))
    assert tried.modified_inputs == ("x",)
    assert same_bits(tried.repeat()[0], tried.outputs[0])
    assert same_bits(tried.inputs["x"], Stream("d", "c").values((3,)))


def test_an_input_can_be_had_as_run_left_it():
    tried = trial(lambda x, s: x.mul_(s))
    assert same_bits(tried.after("x"), 2.0 * tried.inputs["x"])
    assert tried.after("s") == 2.0
    assert trial(lambda x, s: x * s).after("x") is not None


def test_a_write_of_the_same_bits_is_no_modification():
    assert trial(lambda x, s: x.copy_(x.clone())).modified_inputs == ()


def test_an_exception_of_run_is_passed_on():
    with pytest.raises(ZeroDivisionError):
        _ = trial(lambda x, s: 1 // 0).outputs


def test_an_exception_on_guessed_inputs_is_a_skip_with_the_reason():
    def run(x, s):
        raise ValueError("page 7 of 3")

    reason = skip_reason(lambda: trial(run, guessed=True).outputs)
    assert reason == (
        "UNRESOLVED: run() rejects guessed inputs: ValueError: page 7 of 3"
    )


def test_outputs_are_a_tuple_whatever_run_returns():
    x = torch.ones(1)
    assert as_tuple(x) == (x,)
    assert as_tuple([x, 1]) == (x, 1)
    assert as_tuple((x,)) == (x,)
    assert as_tuple(None) == (None,)


def bits(*values: float, dtype=torch.float32) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype)


def test_equal_bits_are_the_same_nan_included():
    nan = bits(math.nan, 1.0)
    assert same_bits(nan, nan.clone())
    assert same_bits(torch.ones(2, 3).T, torch.ones(3, 2))
    assert same_bits(torch.zeros(0), torch.zeros(0))
    assert same_bits(2.0, 2.0)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (bits(0.0), bits(-0.0)),
        (bits(1.0), bits(math.nan)),
        (bits(1.0), bits(1.0 + 2**-23)),
        (bits(1.0), bits(1.0, dtype=torch.float64)),
        (bits(1.0, 1.0), bits(1.0)),
        (torch.ones(2, 3), torch.ones(3, 2)),
        (bits(1.0), 1.0),
        (1, 1.0),
        (1.0, 2.0),
        (bits(0.0, dtype=torch.float8_e4m3fn), bits(-0.0, dtype=torch.float8_e4m3fn)),
    ],
)
def test_anything_else_is_not(first, second):
    assert not same_bits(first, second)
    assert not same_bits(second, first)


def test_a_reference_that_is_a_module_of_its_own_is_executed_when_asked():
    lines = [
        "from __future__ import annotations",
        "from math import *",
        "state = 0",
        "def run(x):",
        "    global state",
        "    state += 1",
        "    return floor(x) + state",
    ]
    reference = load_reference(lines)
    run = reference()
    assert (run(2.5), run(2.5)) == (3, 4)
    assert reference()(2.5) == 3, "each load is a module of its own"


def test_a_broken_reference_raises_only_when_it_is_loaded():
    reference = load_reference(["raise OSError('late')"])
    with pytest.raises(OSError, match="late"):
        reference()


def tiled_trial(run):
    def make_inputs(definition, case, stream):
        shape = (2, 3, 32)
        return {"w": Tiled(stream.values((base_length(shape),)), shape)}

    return Trial(DEFINITION, CASE, CPU, make_inputs, run)


def test_run_gets_a_tensor_and_the_oracle_a_stand_in():
    trial = tiled_trial(lambda w: w.sum(dim=2))
    (output,) = trial.outputs
    (again,) = trial.repeat()
    assert torch.equal(output, again)
    assert trial.modified_inputs == ()
    assert isinstance(trial.lazy_inputs()["w"], Tiled)
    fresh = trial.fresh_inputs()["w"]
    assert torch.equal(fresh.sum(dim=2), output)
    fresh.zero_()
    assert trial.fresh_inputs()["w"].any()


def test_a_write_to_a_stand_ins_tensor_is_seen():
    trial = tiled_trial(lambda w: w[1].mul_(2.0).sum())
    assert trial.modified_inputs == ("w",)


def test_torch_is_seeded_before_each_first_call_and_otherwise_where_inputs_shift():
    def of(**seeds: int) -> Trial:
        return Trial(
            DEFINITION, CASE, CPU, make_inputs, lambda x, s: torch.rand(4), **seeds
        )

    usual, again, other = of(), of(), of(shift=3)
    assert torch.equal(usual.outputs[0], again.outputs[0])
    assert torch.equal(other.outputs[0], other.repeat()[0])
    assert not torch.equal(usual.outputs[0], other.outputs[0])
    assert not torch.equal(usual.joined_outputs(2)[0], other.joined_outputs(2)[0])


def test_a_seed_draws_what_torch_s_own_does_and_leaves_nothing_for_a_gpu():
    torch.manual_seed(7)
    expected = torch.rand(3)
    waiting = len(torch.cuda._queued_calls)
    seed(7)
    assert same_bits(torch.rand(3), expected)
    assert torch.cuda.is_available() or len(torch.cuda._queued_calls) == waiting
