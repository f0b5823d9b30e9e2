"""Bad pull requests that change with which constants a kernel is called, and no text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from generator.review.audit.bad_claims import TRUSTED
from generator.review.audit.changes import render
from generator.review.audit.pull_request import Change, PullRequest, editing, together
from generator.review.audit.subject import AuditedDataset, Files, evidence
from generator.review.findings import REMOVED, WEAKER

_NORM, _SQUARE = "rmsnorm_h4096", "relu2_i21504"
_EVIDENCE = "verification/2026-01-03_audit.json"
_NORM_REFERENCE = """\
import torch

EPS = 1e-05


def run(hidden_states, weight):
    x = hidden_states.float()
    scale = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + EPS)
    return (x * scale * weight.float()).to(hidden_states.dtype)
"""
_SQUARE_REFERENCE = """\
import torch


def run(input):
    return input.float().relu().square().to(input.dtype)
"""


def of_constants() -> Iterator[PullRequest]:
    """Yield constants that nothing states any more: their author's runs agree."""
    yield PullRequest(
        "definition: no model states its constants any more",
        together(
            editing(_path("rmsnorm", _NORM), lambda value: value.update(tags=[])),
            render,
            _agreed("rmsnorm", _NORM),
        ),
        WEAKER.id,
        TRUSTED,
        before=together(_with_norm, render, _agreed("rmsnorm", _NORM)),
    )
    yield PullRequest(
        "definition: renamed, and its name no longer says which function it is",
        together(_renamed, render),
        REMOVED.id,
        before=together(_with_square, render, _agreed("activation", _SQUARE)),
    )


def _path(op_type: str, name: str) -> str:
    return f"definitions/{op_type}/{name}.json"


def _with_norm(files: Files, subject: AuditedDataset) -> None:
    rows = {"shape": ["batch_size", "hidden_size"], "dtype": "bfloat16"}
    weight = {"shape": ["hidden_size"], "dtype": "bfloat16"}
    files[_path("rmsnorm", _NORM)] = _definition(
        name=_NORM,
        description="RMS norm of rows.",
        op_type="rmsnorm",
        tags=["model:llama-3.1-8b"],
        axes={
            "batch_size": {"type": "var"},
            "hidden_size": {"type": "const", "value": 4096},
        },
        inputs={"hidden_states": rows, "weight": weight},
        outputs={"output": rows},
        reference=_NORM_REFERENCE,
    )


def _with_square(files: Files, subject: AuditedDataset) -> None:
    rows = {"shape": ["num_tokens", "intermediate_size"], "dtype": "bfloat16"}
    files[_path("activation", _SQUARE)] = _definition(
        name=_SQUARE,
        description="The square of max(x, 0).",
        op_type="activation",
        tags=["model:nemotron-h-8b"],
        axes={
            "num_tokens": {"type": "var"},
            "intermediate_size": {"type": "const", "value": 21504},
        },
        inputs={"input": rows},
        outputs={"output": rows},
        reference=_SQUARE_REFERENCE,
    )


def _definition(**fields: Any) -> bytes:
    return json.dumps(fields, indent=2).encode()


def _renamed(files: Files, subject: AuditedDataset) -> None:
    value = json.loads(files.pop(_path("activation", _SQUARE)))
    value["name"] = "rows_i21504"
    files[_path("activation", value["name"])] = _definition(**value)


def _agreed(op_type: str, name: str) -> Change:
    def change(files: Files, subject: AuditedDataset) -> None:
        files[_EVIDENCE] = evidence(files, replace(subject, op_type=op_type), name)

    return change
