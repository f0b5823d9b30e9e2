"""tools/apply_check.py, with a FlashInfer that applies what is registered, or breaks it."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from generator.ops.registry import op_module
from kernel_judge.inputs.trial import Trial, as_tuple
from tests.builders import CPU, loaded
from tools import apply_check
from tools.apply_solutions import solution_of

NORM, SAMPLER = "rmsnorm_h4096", "min_p_sampling_v128256"


def norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Be the kernel."""
    rows = torch.nn.functional.rms_norm(x.float(), x.shape[-1:], weight.float(), eps)
    return rows.to(x.dtype)


@pytest.fixture
def flashinfer(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Install a FlashInfer whose rmsnorm asks for solutions, and return its state."""
    state = SimpleNamespace(solutions={}, hits=0, name=NORM, factor=1.0)
    vars(state).update(residual=False, first=False)

    def asked(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        solution = state.solutions.get(state.name)
        if solution is None:
            return norm(x, weight, eps)
        state.hits += 1
        more: dict[str, Any] = {"residual": x} if state.residual else {}
        found: torch.Tensor = solution(hidden_states=x, weight=weight, **more)
        factor: float = state.factor
        return found * factor

    def drawn(probs: torch.Tensor, min_p: torch.Tensor, **_: Any) -> torch.Tensor:
        solution = state.solutions.get(SAMPLER)
        state.hits += solution is not None
        if solution is None or state.first:
            return probs.argmax(dim=1).int()
        found: torch.Tensor = solution(probs=probs, min_p=min_p)
        return found.int()

    package, norms = ModuleType("flashinfer"), ModuleType("flashinfer.norm")
    apply, sampling = (
        ModuleType(f"flashinfer.{n}") for n in ("trace_apply", "sampling")
    )
    names: dict[str, Any] = {
        "enable_apply": lambda found: state.solutions.update(found),
        "disable_apply": lambda: state.solutions.clear(),
        "stats_snapshot": lambda: {"norm": {"hit": state.hits}},
    }
    vars(apply).update(names)
    vars(norms).update({"rmsnorm": asked})
    vars(sampling).update({"min_p_sampling_from_probs": drawn})
    vars(package).update({"norm": norms, "trace_apply": apply, "sampling": sampling})
    for module in (package, norms, apply, sampling):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(apply_check, "backend_obstacle", lambda *_: None)
    return state


def test_a_reference_that_is_applied_agrees(flashinfer: SimpleNamespace) -> None:
    outcome = apply_check.checked(loaded(NORM), CPU)
    assert outcome == "hit, equal within tolerances; no graph without CUDA"
    assert flashinfer.solutions == {}


def test_a_result_that_differs_is_told(flashinfer: SimpleNamespace) -> None:
    flashinfer.factor = 1.1
    assert apply_check.checked(loaded(NORM), CPU) == "differs in output"


def test_draws_are_held_to_their_law(flashinfer: SimpleNamespace) -> None:
    outcome = apply_check.checked(loaded(SAMPLER), CPU)
    assert outcome == "hit, equal by the law of their draws; no graph without CUDA"
    flashinfer.first = True
    outcome = apply_check.checked(loaded(SAMPLER), CPU)
    assert outcome.startswith("differs in samples (actual: ")


def test_a_call_that_raises_is_told(flashinfer: SimpleNamespace) -> None:
    flashinfer.residual = True
    outcome = apply_check.checked(loaded(NORM), CPU)
    assert outcome.startswith("raised TypeError")
    assert flashinfer.solutions == {}


def test_a_call_that_asks_for_another_name_is_no_success(
    flashinfer: SimpleNamespace,
) -> None:
    flashinfer.name = "rmsnorm_eps_1em5_h4096"
    assert apply_check.checked(loaded(NORM), CPU) == "the call did not ask for it"


def test_the_exit_status_says_whether_a_call_broke(
    flashinfer: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert apply_check.main([NORM]) == 0
    flashinfer.factor = 2.0
    assert apply_check.main([NORM]) == 1
    assert f"FAILED {NORM}: differs in output" in capsys.readouterr().out


class FakeGraph:
    """Capture by running at once, and replay nothing."""

    def __init__(self) -> None:
        self.replayed = 0

    def replay(self) -> None:
        self.replayed += 1


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a machine without CUDA capture."""
    monkeypatch.setattr(torch.cuda, "CUDAGraph", FakeGraph)
    monkeypatch.setattr(torch.cuda, "graph", lambda _: nullcontext())
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)


@pytest.mark.usefixtures("flashinfer", "graphs")
def test_a_function_is_captured_once_and_replayed_at_each_call() -> None:
    norms, calls = sys.modules["flashinfer.norm"], []

    def counted(x: torch.Tensor) -> torch.Tensor:
        calls.append(x)
        return x + 1

    vars(norms)["rmsnorm"] = counted
    with apply_check.captured("flashinfer.norm.rmsnorm") as graph:
        first, second = (vars(norms)["rmsnorm"](torch.zeros(2)) for _ in range(2))
    assert (len(calls), graph.replays) == (1, 2)
    assert first.tolist() == second.tolist() == [1.0, 1.0]
    assert first.data_ptr() != second.data_ptr()
    assert vars(norms)["rmsnorm"] is counted


@pytest.mark.usefixtures("flashinfer", "graphs")
def test_of_a_wrapper_the_run_is_captured_behind_its_plan() -> None:
    class Wrapper:
        def plan(self) -> None:
            self.planned = torch.ones(2)

        def run(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.planned

    norms = sys.modules["flashinfer.norm"]
    vars(norms)["Wrapper"] = Wrapper
    with apply_check.captured("flashinfer.norm.Wrapper") as graph:
        wrapper = Wrapper()
        wrapper.plan()
        assert wrapper.run(torch.ones(2)).tolist() == [2.0, 2.0]
    assert graph.replays == 1


@pytest.mark.usefixtures("flashinfer", "graphs")
def test_what_can_not_be_captured_says_why() -> None:
    norms = sys.modules["flashinfer.norm"]

    def waiting() -> None:
        raise RuntimeError("a copy to the host")

    vars(norms)["rmsnorm"] = waiting
    with (
        pytest.raises(
            apply_check.NotCaptured, match="RuntimeError: a copy to the host"
        ),
        apply_check.captured("flashinfer.norm.rmsnorm"),
    ):
        vars(norms)["rmsnorm"]()
    with (
        pytest.raises(apply_check.NotCaptured, match=r"nobody called flashinfer\.norm"),
        apply_check.captured("flashinfer.norm.rmsnorm"),
    ):
        pass
    assert vars(norms)["rmsnorm"] is waiting


@pytest.mark.parametrize(
    "name",
    [
        SAMPLER,
        "top_k_top_p_sampling_from_logits_v128256",
        "top_k_renorm_probs_v128256",
        "top_k_mask_logits_v128256",
        "gqa_paged_decode_return_lse_h16_kv2_d128_ps1",
        "mla_paged_decode_return_lse_h8_ckv512_kpe64_ps1",
    ],
)
def test_solutions_that_do_not_wait_are_the_references(name: str) -> None:
    """What their calls give is what the references give, or follows the law."""
    read = loaded(name)
    definition, op = apply_check.as_tested(read), op_module(read.op_type)
    small = [case for case in op.cases(definition) if case.size == "small"]
    # draws of one case, the cheapest, take seconds
    some = small[-1:] if "sampling" in name else small
    more = {"return_lse": True} if "return_lse" in name else {}
    solution, reference = solution_of(name), apply_check.run_of(read.reference)
    assert solution is not None
    for case in some:
        trial = Trial(definition, case, CPU, op.make_inputs, lambda: None)
        # no value can be read where there is none: neither here nor in a capture
        given = trial.fresh_inputs().items()
        nowhere = {n: to_meta(value) for n, value in given} | more
        assert as_tuple(solution(**nowhere))[0].is_meta
        with pytest.raises((RuntimeError, NotImplementedError)):
            reference(**nowhere)

        def call(trial: Trial = trial) -> tuple[torch.Tensor, ...]:
            return as_tuple(solution(**trial.fresh_inputs() | more))

        asked = apply_check.Asked(trial, op)
        expected = as_tuple(reference(**trial.fresh_inputs() | more))
        assert len(call()) == len(expected)
        assert not [*asked.differences(call, expected)], case.name
        wrong = [torch.roll(value, 1, -1) for value in expected]
        assert [*asked.differences(partial(tuple, wrong), expected)], case.name


def to_meta(value: Any) -> Any:
    return value.to("meta") if isinstance(value, torch.Tensor) else value
