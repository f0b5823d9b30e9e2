"""Models that have every definition, at the parallelism at which they are served."""

from __future__ import annotations

from dataclasses import replace

import pytest

from generator.dataset.paths import discover_definitions
from generator.models.config import load
from generator.models.coverage import State, coverage
from generator.models.parallel import Deployment
from generator.results.evidence import kept_runs
from generator.results.verification import agreed, table_of
from tests.builders import ROOT

ONE_GPU = (
    "gemma-3-27b",
    "gpt-oss-120b",
    "gpt-oss-20b",
    "llama-3.1-8b",
    "llama-3.2-1b",
    "llama-3.2-3b",
    "mistral-7b-v0.1",
    "mixtral-8x7b",
    "qwen2.5-7b",
    "qwen3-14b",
    "qwen3-30b-a3b",
    "qwen3-32b",
    "qwen3-8b",
    "qwen3-vl-8b",
    "smollm3-3b",
)
SERVED = (
    *((model, 1) for model in ONE_GPU),
    ("llama-3.1-70b", 4),
    ("llama-3.1-70b", 8),
    ("llama-3.3-70b", 4),
    ("llama-3.3-70b", 8),
    ("qwen3-235b-a22b", 4),
    ("qwen3-235b-a22b", 8),
    ("qwen3-vl-235b-a22b", 4),
    ("qwen3-vl-235b-a22b", 8),
)
THERE = discover_definitions(ROOT)


def missing(model, tp, there=THERE):
    entries = coverage(load(model), Deployment(tp=tp), ROOT, there, {})
    return sorted({e.need.name for e in entries if not e.state.is_there})


@pytest.mark.parametrize(("model", "tp"), SERVED)
def test_every_definition_is_there(model, tp):
    assert missing(model, tp) == []


def test_one_that_is_gone_is_missing():
    gone = ("gemm_bf16_n24576_k4096", "allreduce_tp8_h8192")
    left = tuple(file for file in THERE.files if file.name not in gone)
    there = replace(THERE, files=left)
    assert missing("qwen3-8b", 1, there) == [gone[0]]
    assert missing("llama-3.3-70b", 8, there) == [gone[1]]
    assert missing("llama-3.1-8b", 1, there) == []


def test_all_but_gpt_oss_agree_with_kernels_from_embedding_to_token():
    sources = agreed(table_of(ROOT, THERE, kept_runs(ROOT)).lines)

    def left(model, tp):
        covered = coverage(load(model), Deployment(tp=tp), ROOT, THERE, sources)
        return any(entry.state is not State.KERNEL for entry in covered)

    # collectives of 8 GPUs ran nowhere yet
    assert {model for model, tp in SERVED if tp < 8 and left(model, tp)} == {
        "gpt-oss-120b",
        "gpt-oss-20b",
    }
