"""Workloads as flashinfer-bench draws them: does the reference give finite numbers?

Its runner draws every `random` tensor from one distribution and calls an output that is
not finite incorrect. Draws are made values of the domain that the definition states.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from generator.dataset.definition import LoadedDefinition
from generator.evaluation.checkers.domain import into
from generator.evaluation.checkers.drawing import flashinfer_bench
from generator.rules.subjects import declared_definition
from generator.running.workload_case import workload_case
from kernel_judge.inputs.memory import dtype_of, shape_of
from kernel_judge.inputs.trial import as_tuple, seed
from kernel_judge.reference import load_run

_SEED = 42


def drawn_inputs(
    definition: LoadedDefinition,
    workload: Mapping[str, Any],
    dataset: Path,
    *,
    domains: bool = True,
) -> dict[str, Any]:
    """Return a workload's inputs, on the CPU; without `domains` as that runner draws.

    Raises what reading the workload's tensors raises, and KeyError for another's.
    """
    known = declared_definition(definition)
    case = workload_case(workload, dataset, known, (), lambda *_: {})
    stated = case.stated_inputs(known)
    random = torch.Generator().manual_seed(_SEED)
    sizes = {**known.axes, **case.axes}
    inputs: dict[str, Any] = {}
    for name, spec in known.interface.input_specs.items():
        if name in stated:
            inputs[name] = stated[name]
            continue
        # of sampling alone the runner makes probabilities
        alias = name if definition.op_type == "sampling" else ""
        value = flashinfer_bench(
            alias, shape_of(spec, sizes), dtype_of(spec.dtype), random
        )
        domain = definition.inputs[name].domain
        is_made = domains and domain and alias != "probs"
        inputs[name] = into(domain, value) if is_made else value
    return inputs


def not_finite(
    definition: LoadedDefinition,
    workload: Mapping[str, Any],
    dataset: Path,
    *,
    domains: bool = True,
    device: str = "cpu",
) -> dict[str, float]:
    """Return output → share of its numbers that are NaN or infinite, where there are any.

    Raises what `drawn_inputs` and the reference raise.
    """
    drawn = drawn_inputs(definition, workload, dataset, domains=domains)
    inputs = [
        v.to(device) if isinstance(v, torch.Tensor) else v for v in drawn.values()
    ]
    seed(_SEED)
    outputs = as_tuple(load_run(definition.reference)(*inputs))
    places = {}
    for name, value in zip(definition.outputs, outputs, strict=False):
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            share = float((~value.float().isfinite()).float().sum()) / max(
                1, value.numel()
            )
            if share:
                places[name] = share
    return places
