"""tools/apply_check.py, with a FlashInfer that applies what is registered, or breaks it."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from tests.builders import CPU, loaded
from tools import apply_check

NORM = "rmsnorm_h4096"


def norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Be the kernel."""
    rows = torch.nn.functional.rms_norm(x.float(), x.shape[-1:], weight.float(), eps)
    return rows.to(x.dtype)


@pytest.fixture
def flashinfer(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Install a FlashInfer whose rmsnorm asks for solutions, and return its state."""
    state = SimpleNamespace(solutions={}, hits=0, name=NORM, factor=1.0)
    vars(state).update(residual=False, draws=False)

    def asked(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        solution = state.solutions.get(state.name)
        if solution is None:
            return norm(x, weight, eps)
        state.hits += 1
        more: dict[str, Any] = {"residual": x} if state.residual else {}
        found: torch.Tensor = solution(hidden_states=x, weight=weight, **more)
        factor: float = state.factor
        return found * factor

    def drawn(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        rows = asked(x, weight, eps)
        return torch.rand_like(rows) if state.draws else rows

    package, norms = ModuleType("flashinfer"), ModuleType("flashinfer.norm")
    apply = ModuleType("flashinfer.trace_apply")
    names: dict[str, Any] = {
        "enable_apply": lambda found: state.solutions.update(found),
        "disable_apply": lambda: state.solutions.clear(),
        "stats_snapshot": lambda: {"norm": {"hit": state.hits}},
    }
    vars(apply).update(names)
    vars(norms).update({"rmsnorm": drawn})
    vars(package).update({"norm": norms, "trace_apply": apply})
    for module in (package, norms, apply):
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


def test_what_the_api_draws_is_no_difference(flashinfer: SimpleNamespace) -> None:
    flashinfer.draws = True
    outcome = apply_check.checked(loaded(NORM), CPU)
    assert outcome == "hit, nothing raised; output drawn, not compared"
    flashinfer.residual = True
    assert apply_check.checked(loaded(NORM), CPU).startswith("raised TypeError")


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
