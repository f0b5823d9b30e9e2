"""The checkers by name: which inputs each poses, how often, and what it calls right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import torch

from generator.evaluation.checkers import drawing, formulas
from generator.evaluation.checkers.drawing import Draw
from generator.evaluation.checkers.formulas import Formula
from generator.evaluation.checkers.names import (
    FLASHINFER_BENCH,
    GPU_MODE,
    KERNELBENCH,
    SOL_EXECBENCH,
)
from kernel_judge.definition import Definition
from kernel_judge.inputs.memory import dtype_of

_FLOATS = (torch.float32, torch.float16, torch.bfloat16)
# of GPU MODE's tasks those that compute what an op_type here does: rtol, atol
_TASKS = {
    "gemm_fp8": (2e-2, 1e-3),
    "mla_paged": (2e-2, 8e-3),
    "mla_ragged": (2e-2, 8e-3),
    "moe": (1e-2, 1e-2),
}
_OF_MOE = 0.95


def _of_samples(definition: Definition) -> str:
    if definition.op_type == "sampling":
        return "it has one right value for a sample, which has many"
    return ""


@dataclass(frozen=True)
class Checker:
    """A checker: `rounds` are the sets of inputs that it poses for a workload.

    `formula` returns the rule for a definition. `obstacle` says why the checker has none
    for it. With `casts`, tensors are all cast to the precision of the first output.
    """

    name: str
    rounds: int
    draw: Draw
    formula: Callable[[Definition], Formula]
    obstacle: Callable[[Definition], str] = _of_samples
    casts: bool = False


def _of_flashinfer_bench(definition: Definition) -> Formula:
    if definition.op_type == "moe":
        return partial(formulas.flashinfer_bench, ratio=_OF_MOE)
    return formulas.flashinfer_bench


def _own_rule(definition: Definition) -> str:
    if definition.op_type == "sampling":
        return "it draws 500,000 samples a row, which is not done here"
    if "topk_indexer" in definition.name:
        return "its rule for indices is not implemented here"
    return ""


def _of_gpu_mode(definition: Definition) -> Formula:
    if definition.op_type not in _TASKS:
        return formulas.gpu_mode
    rtol, atol = _TASKS[definition.op_type]
    return partial(formulas.gpu_mode, rtol=rtol, atol=atol)


def _not_of_one_precision(definition: Definition) -> str:
    specs = definition.interface.input_specs
    for name, spec in specs.items():
        if spec.shape is not None and dtype_of(spec.dtype) not in _FLOATS:
            return f"it would cast {name}, of {spec.dtype}, to a float"
    return _of_samples(definition)


CHECKERS: Mapping[str, Checker] = {
    checker.name: checker
    for checker in (
        Checker(
            FLASHINFER_BENCH,
            3,
            drawing.flashinfer_bench,
            _of_flashinfer_bench,
            _own_rule,
        ),
        Checker(
            SOL_EXECBENCH,
            10,
            drawing.sol_execbench,
            lambda definition: formulas.sol_execbench,
        ),
        Checker(
            KERNELBENCH,
            5,
            drawing.normal,
            lambda definition: formulas.kernelbench,
            _not_of_one_precision,
            casts=True,
        ),
        Checker(GPU_MODE, 3, drawing.normal, _of_gpu_mode),
    )
}
