"""What `init` made is passed to functions and to wrappers as they take it."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import pytest
import torch

from generator.running import stand_ins
from generator.running.custom_inputs import UnusableInputs, call_kernel
from generator.running.harness import MatchesCustomInputs

Tensors = list[torch.Tensor]


class Wrapper:
    """Stand for a wrapper of several levels: what it got is what it returns."""

    def __init__(
        self, num_levels: int, float_workspace_buffer: torch.Tensor, layout: str = "NHD"
    ) -> None:
        self.got: dict[str, Any] = {"levels": num_levels}
        self.got["workspace"] = float_workspace_buffer.dtype

    def plan(
        self, kv_indptr_arr: list[torch.Tensor], last: int, sm_scale: float = 1.0
    ) -> None:
        self.got |= {"indptr": kv_indptr_arr, "last": last, "sm_scale": sm_scale}

    def run(self, q: torch.Tensor, return_lse: bool = False) -> Any:
        return (self.got, return_lse)


@pytest.fixture(autouse=True)
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("flashinfer")
    module.Wrapper = Wrapper  # type: ignore[attr-defined]
    Wrapper.plan.__annotations__["kv_indptr_arr"] = "List[torch.Tensor]"
    module.scaled = lambda x, scale: x * scale  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "flashinfer", module)
    # what lets `init` run on the CPU wants the whole package
    monkeypatch.setattr(stand_ins, "on_cpu", nullcontext)


def test_a_wrapper_gets_a_workspace_levels_and_lists_by_its_names() -> None:
    indptr = torch.arange(2)
    made = {"plan": {"indptr": indptr, "kv_last": 3}, "run": {"q": torch.ones(1)}}
    got, return_lse = call_kernel("flashinfer.Wrapper.run", made, return_lse=True)
    assert (got["levels"], got["workspace"], got["last"]) == (1, torch.uint8, 3)
    assert got["indptr"][0] is indptr
    assert return_lse is True


def test_a_function_without_an_lse_is_called_as_ever() -> None:
    made = {"x": torch.ones(1), "scale": 2}
    assert call_kernel("flashinfer.scaled", made, return_lse=True) == 2
    with pytest.raises(UnusableInputs, match=r"rejects custom inputs: TypeError"):
        call_kernel("flashinfer.scaled", {"x": torch.ones(1)})


def test_a_kernel_gets_the_inputs_of_a_definition_without_init() -> None:
    class Scaled(MatchesCustomInputs):
        arguments: ClassVar = {"x": ("x", None), "factor": ("scale", None)}
        places: ClassVar = {"y": (0, None)}
        fi_apis = ("flashinfer.scaled",)

    specs = {"y": SimpleNamespace(dtype="float32")}
    definition: Any = SimpleNamespace(interface=SimpleNamespace(output_specs=specs))
    inputs = {"x": torch.ones(2), "factor": 3.0}
    (y,) = Scaled.declared_op().kernels["flashinfer"].call(definition, inputs, "scaled")
    assert y.tolist() == [3.0, 3.0]


def test_a_wrapper_plans_with_an_input_that_init_lacks() -> None:
    class Planned(MatchesCustomInputs):
        arguments: ClassVar = {"q": ("q", None), "sm_scale": ("sm_scale", None)}
        places: ClassVar = {"got": (0, None)}
        fi_apis = ("flashinfer.Wrapper.run",)

        @staticmethod
        def init() -> Any:
            return lambda device: {
                "plan": {"indptr": torch.arange(2), "kv_last": 3},
                "run": {"q": torch.ones(1)},
            }

    specs = {"got": SimpleNamespace(dtype="float32")}
    definition: Any = SimpleNamespace(interface=SimpleNamespace(output_specs=specs))
    inputs = {"q": torch.ones(1), "sm_scale": 0.5}
    (got,) = (
        Planned.declared_op()
        .kernels["flashinfer"]
        .call(definition, inputs, "Wrapper.run")
    )
    assert got["sm_scale"] == 0.5
