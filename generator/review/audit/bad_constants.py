"""A bad pull request that lets the reference alone say which constants it has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from generator.review.audit.bad_claims import TRUSTED
from generator.review.audit.changes import render
from generator.review.audit.pull_request import PullRequest, editing, together
from generator.review.audit.subject import AuditedDataset, Files, evidence
from generator.review.findings import WEAKER

_NAME = "rmsnorm_h4096"
_PATH = f"definitions/rmsnorm/{_NAME}.json"
_EVIDENCE = "verification/2026-01-03_audit.json"
_REFERENCE = """\
import torch

EPS = 1e-05


def run(hidden_states, weight):
    x = hidden_states.float()
    scale = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + EPS)
    return (x * scale * weight.float()).to(hidden_states.dtype)
"""


def of_constants() -> Iterator[PullRequest]:
    """Yield a norm whose eps no model states any more: its author's runs agree."""
    yield PullRequest(
        "definition: no model states its constants any more",
        together(editing(_PATH, lambda value: value.update(tags=[])), render, _agreed),
        WEAKER.id,
        TRUSTED,
        before=together(_with_norm, render, _agreed),
    )


def _with_norm(files: Files, subject: AuditedDataset) -> None:
    rows: dict[str, Any] = {"shape": ["batch_size", "hidden_size"], "dtype": "bfloat16"}
    value = {
        "name": _NAME,
        "description": "RMS norm of rows.",
        "op_type": "rmsnorm",
        "tags": ["model:llama-3.1-8b"],
        "axes": {
            "batch_size": {"type": "var"},
            "hidden_size": {"type": "const", "value": 4096},
        },
        "inputs": {
            "hidden_states": rows,
            "weight": {"shape": ["hidden_size"], "dtype": "bfloat16"},
        },
        "outputs": {"output": rows},
        "reference": _REFERENCE,
    }
    files[_PATH] = json.dumps(value, indent=2).encode()


def _agreed(files: Files, subject: AuditedDataset) -> None:
    files[_EVIDENCE] = evidence(files, replace(subject, op_type="rmsnorm"), _NAME)
