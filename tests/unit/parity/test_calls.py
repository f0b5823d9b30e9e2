"""What takes a reference's place, and shares of several GPUs."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from generator.parity import calls
from generator.parity.calls import (
    KernelCall,
    Sharded,
    StageCall,
    kernels_of,
    solution_of,
)
from generator.problems import Failure
from kernel_judge import providers
from kernel_judge.definition import Backend
from kernel_judge.obstacle import Kind, Obstacle
from kernel_judge.subject import Kernel, Op

BOUND = {
    "name": "double_h4_d2",
    "op_type": "double",
    "text": "def run(x, scale):\n    return x * scale",
    "inputs": {"x": "bfloat16[rows, heads, dim]", "scale": "float32"},
    "outputs": {"output": "bfloat16[rows, heads, dim]"},
    "axes": {"heads": 4, "dim": 2},
    "constants": {},
}


def op(adapter: Any) -> Op:
    kernel = Kernel(lambda definition: (Backend("plain", needs_cuda=False),), adapter)
    return Op(kernels={"pytorch": kernel})


def kernel(monkeypatch: pytest.MonkeyPatch, adapter: Any) -> KernelCall:
    monkeypatch.setattr(calls, "op_of", lambda *_: op(adapter))
    monkeypatch.setattr(calls, "provider_obstacle", lambda *_: None)
    monkeypatch.setattr(calls, "backend_obstacle", lambda *_: None)
    made = kernels_of("flashinfer")(BOUND, torch.bfloat16)
    assert isinstance(made, KernelCall)
    return made


def test_a_kernel_gets_copies_and_the_lengths_that_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = {}

    def adapter(definition: Any, inputs: dict[str, Any], backend: str) -> torch.Tensor:
        seen.update(definition.axes)
        return inputs["x"].mul_(inputs["scale"])

    call = kernel(monkeypatch, adapter)
    x = torch.ones(3, 2, 2)
    assert call(x=x, scale=2.0)["output"].tolist() == (2 * x).tolist()
    assert call.source == "pytorch/plain"
    assert seen == {"rows": 3, "heads": 2, "dim": 2}
    assert x.eq(1).all()


def test_what_ran_in_the_place_of_a_kernel_that_raises_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def adapter(*_: Any) -> None:
        raise ValueError("head_dim 2")

    call = kernel(monkeypatch, adapter)
    assert call(x=torch.ones(1, 4, 2), scale=3.0)["output"].eq(3).all()
    assert call.source == "reference (pytorch/plain raised ValueError: head_dim 2)"


def test_a_provider_that_is_not_there_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    absent = Obstacle(Kind.NOT_INSTALLED, "not installed")
    monkeypatch.setattr(providers, "import_failure", lambda module: absent)
    with pytest.raises(Failure, match=r"flashinfer's kernels .* here: not installed"):
        kernels_of("flashinfer")


def test_a_solution_that_can_not_be_loaded_is_named() -> None:
    source = {"path": "main.py", "content": "import nothing_of_this_name"}
    solution = {"name": "mine", "entry_point": "main.py::run", "sources": [source]}
    with pytest.raises(Failure, match="mine: it can't be loaded: ModuleNotFoundError"):
        solution_of(solution)


def test_shares_are_cut_where_the_definition_is_shorter() -> None:
    x = torch.arange(48.0).view(3, 8, 2)
    whole = Sharded(StageCall(BOUND, torch.float32), 2)(x=x, scale=2.0)["output"]
    assert whole.tolist() == (2 * x).tolist()
