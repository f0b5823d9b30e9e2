"""Definitions, test classes and small datasets that several test modules build."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from generator.dataset.definition import LoadedAxis, LoadedDefinition, LoadedTensor
from generator.ops.op_source import OP_FIELDS
from generator.ops.reference_text import reference_text, variants
from generator.ops.registry import op_packages
from generator.rules.load import load_definitions
from generator.rules.subjects import subject_of
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    matches,
)
from kernel_judge.checks.pairs import compared, pairs
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.repeated import DISTINCT
from kernel_judge.inputs.trial import Trial
from kernel_judge.provider import providers
from kernel_judge.reference import load_run
from kernel_judge.skipping import Skip
from kernel_judge.subject import Subject

ROOT = Path(__file__).parents[1]
CPU = torch.device("cpu")
REFERENCES = {
    "_".join((name, *words)): str(reference_text(op_type, name, words))
    for op_type in op_packages()
    for name, words in variants(op_type)
}
"""The texts of all references, by name and words: `gqa_paged_decode_cap_window`."""


@cache
def loaded(name: str) -> LoadedDefinition:
    """Return one of the repository's definitions."""
    (definition,) = load_definitions(ROOT, names=[name]).definitions
    return definition


@cache
def known(name: str) -> Definition:
    """Return one of the repository's definitions as a rendered test knows it."""
    return subject_of(loaded(name)).definition


def sized(name: str, **axes: int) -> Definition:
    """Return a known definition with other constant axes: references take any."""
    definition = known(name)
    unknown = set(axes) - set(definition.axes)
    assert not unknown, f"{name} has no axes {unknown}"
    return replace(definition, axes={**definition.axes, **axes})


def run_of(reference: str) -> Callable[..., Any]:
    """Execute a reference's text and return its `run`."""
    return load_run(reference)


def replaced(text: str, old: str, new: str) -> str:
    """Return a text with a part replaced, which must be there exactly once."""
    assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in:\n{text}"
    return text.replace(old, new)


def class_of(
    op: ModuleType, definition: Definition, run: Callable[..., Any], **changes: Any
) -> Any:
    """Return the test class that a rendered file would have for a definition.

    `changes` replace fields of its op, the two functions of a provider's kernel
    (`flashinfer_backends`, `flashinfer_ground_truth`), or attributes of the class.
    """
    plain = {name: getattr(value, "__func__", value) for name, value in changes.items()}
    kernels = dict(op.OP.kernels)
    for provider in providers():
        parts = {"backends": "backends", "ground_truth": "call"}
        replaced_parts = {
            field: plain.pop(f"{provider}_{part}")
            for part, field in parts.items()
            if f"{provider}_{part}" in plain
        }
        if replaced_parts:
            kernels[provider] = replace(kernels[provider], **replaced_parts)
    fields = {name: plain.pop(name) for name in OP_FIELDS if name in plain}
    constants = {name.upper(): value for name, value in definition.constants.items()}
    live = matches("flashinfer", "pytorch")
    bases = (GroundTruthsAgree, live, MatchesRecorded)
    attributes: dict[str, Any] = {
        **constants,
        "axes": definition.axes,
        "name": definition.name,
        "op_type": definition.op_type,
        "interface": definition.interface,
        "constants": tuple(definition.constants),
        "op": replace(op.OP, **{"kernels": kernels, **fields}),
        "reference": staticmethod(lambda: run),
    }
    return type("Rendered", bases, {**attributes, **plain})


def of_flashinfer(cls: Any, trial: Trial, backend: str) -> Any:
    """Return what an op's adapter of FlashInfer gives for a trial."""
    call = cls.subject().op.kernels["flashinfer"].call
    return call(trial.definition, trial.fresh_inputs(), backend)


def trial_of(cls: Any, case: Case) -> Trial:
    """Return one case of a test class on the CPU, as the fixture would."""
    trial: Trial = cls.subject().trial(case)
    return trial


def cases_of(cls: Any, sizes: Sequence[str] = ("small",)) -> list[Case]:
    """Return a test class's cases of some sizes."""
    return [case for case in cls.op.cases(cls.definition()) if case.size in sizes]


def distinct(case: Case) -> Case:
    """Return a case of the slices that one which repeats draws, else the case."""
    if not case.repeats:
        return case
    return replace(case, axes={**case.axes, case.repeats: DISTINCT}, repeats="")


def oracle_failures(cls: Any, sizes: Sequence[str] = ("small", "medium")) -> list[str]:
    """Return the names of the cases in which test_matches_oracle is red."""
    failed = []
    for case in cases_of(cls, sizes):
        try:
            cls().test_matches_oracle(trial_of(cls, case), lambda name, value: None)
        except AssertionError:
            failed.append(case.name)
    return failed


def compare_all(
    subject: Subject,
    trial: Trial,
    actual: Sequence[Any],
    expected: Sequence[Any],
    source: str,
    other: str | None = None,
) -> None:
    """Compare all outputs with those of a source; raise AssertionError as a test does."""
    found = pairs(subject, trial, tuple(actual), tuple(expected), source, other)
    failures = [f for pair in found for f in compared(subject, trial, pair).failures]
    assert not failures, failures


def ignore_property(name: str, value: object) -> None:
    """Stand in for record_property where nobody looks at the record."""


def definition_value(
    reference: str,
    *,
    name: str = "twice_n4",
    op_type: str = "twice",
    tags: Sequence[str] = (),
    **changes: Any,
) -> LoadedDefinition:
    """Return a loaded definition with one input and one output, by hand."""
    tensor = LoadedTensor("x", ("M", "N"), "float32")
    base = LoadedDefinition(
        name=name,
        op_type=op_type,
        path=f"definitions/{op_type}/{name}.json",
        sha256="0" * 64,
        axes={"M": LoadedAxis("M", None), "N": LoadedAxis("N", 4)},
        inputs={"x": tensor},
        outputs={"y": replace(tensor, name="y")},
        reference=reference,
        tags=tuple(tags),
    )
    return replace(base, **changes)


def resized_json(name: str, new_name: str, **axes: int) -> dict[str, Any]:
    """Return the JSON of a repository's definition with other constant axes."""
    path = ROOT / loaded(name).path
    value: dict[str, Any] = json.loads(path.read_text("utf-8"))
    value["name"] = new_name
    for axis, length in axes.items():
        value["axes"][axis]["value"] = length
    return value


def write_dataset(root: Path, definitions: Sequence[Mapping[str, Any]]) -> Path:
    """Write definitions, as JSON values, where a dataset has them."""
    for value in definitions:
        path = root / "definitions" / value["op_type"] / f"{value['name']}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value), "utf-8")
    return root


def skip_reason(call: Callable[[], object]) -> str:
    """Return the reason with which a call skips; it must skip."""
    with pytest.raises((Skip, pytest.skip.Exception)) as caught:
        call()
    return str(caught.value)
