"""A small dataset on disk that a test can bend out of shape."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from generator.problems import Problem
from generator.rules.unproven import UNPROVEN
from tests.validating import validate

# on a busy machine to draw takes long, which is no fault of what is tested
settings.register_profile("busy", suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

DEFINITION: dict[str, Any] = {
    "name": "gemm_n8_k4",
    "op_type": "gemm",
    "description": "Multiplies.",
    "tags": ["model:qwen3-14b"],
    "axes": {
        "M": {"type": "var"},
        "N": {"type": "const", "value": 8},
        "K": {"type": "const", "value": 4, "description": "Depth."},
    },
    "inputs": {
        "A": {"shape": ["M", "K"], "dtype": "float16"},
        "B": {"shape": ["N", "K"], "dtype": "float16"},
        "alpha": {"shape": None, "dtype": "float32", "optional": True},
    },
    "outputs": {"C": {"shape": ["M", "N"], "dtype": "float16"}},
    "constraints": ["M >= 1"],
    "reference": "import torch\n\n\ndef run(A, B, alpha=1.0):\n    return A @ B.T\n",
}

WORKLOAD: dict[str, Any] = {
    "definition": "gemm_n8_k4",
    "workload": {
        "uuid": "one",
        "axes": {"M": 3},
        "inputs": {"A": {"type": "random"}, "B": {"type": "random"}},
    },
    "solution": None,
    "evaluation": None,
}


class Dataset:
    """Write files of a dataset and say what is wrong with it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, path: str, content: bytes | str) -> Path:
        """Write a file, making its folders."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        data = content.encode() if isinstance(content, str) else content
        target.write_bytes(data)
        return target

    def definition(self, path: str | None = None, **changes: Any) -> Path:
        """Write the valid definition with fields changed; its name follows `path`."""
        value = {**copy.deepcopy(DEFINITION), **changes}
        if path is None:
            path = f"{value['op_type']}/{value['name']}"
        return self.write(f"definitions/{path}.json", json.dumps(value))

    def workloads(self, *lines: Any, name: str = "gemm/gemm_n8_k4") -> Path:
        """Write a workload file; a string is a line as it stands."""
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        return self.write(f"workloads/{name}.jsonl", "\n".join(texts) + "\n")

    def problems(self) -> tuple[Problem, ...]:
        """Return all problems of the dataset but that no kernel computes its toys."""
        return tuple(p for p in validate(self.root) if p.rule != UNPROVEN.id)

    def only(self, rule: str) -> Problem:
        """Return the only problem, which must be of `rule`."""
        found = self.problems()
        assert [p.rule for p in found] == [rule], [str(p) for p in found]
        return found[0]


@pytest.fixture(autouse=True)
def cache_home(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keep what commands remember out of the user's cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    """Return a valid dataset of one definition with one workload."""
    made = Dataset(tmp_path)
    made.definition()
    made.workloads(WORKLOAD)
    return made


@pytest.fixture
def definition() -> dict[str, Any]:
    """Return a copy of the valid definition."""
    return copy.deepcopy(DEFINITION)


@pytest.fixture
def workload() -> Callable[..., dict[str, Any]]:
    """Return a function that makes a workload line with parts changed."""

    def make(definition: str = "gemm_n8_k4", **parts: Any) -> dict[str, Any]:
        line = copy.deepcopy(WORKLOAD)
        line["definition"] = definition
        line["workload"].update(parts)
        return line

    return make
