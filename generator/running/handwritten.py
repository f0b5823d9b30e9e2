"""Names that hand-written tests beside rendered ones import from conftest.py.

Tests of the published dataset, written by people and agents, have these names from
theirs. They keep running beside rendered tests; rendered tests use none of them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def device(request: pytest.FixtureRequest) -> str:
    """Return `cuda`, `cuda:N` or `cpu`: what --device says, else what is there."""
    import torch

    usable = "cuda" if torch.cuda.is_available() else "cpu"
    return str(request.config.getoption("--device") or usable)


def definitions_of(conftest: str) -> Callable[[str], dict[str, Any]]:
    """Return the `load_definition` of a dataset's tests, of the path of their conftest."""
    folder = Path(conftest).resolve().parents[2] / "definitions"

    def load_definition(name: str) -> dict[str, Any]:
        """Return a definition's JSON by its name. Raises FileNotFoundError."""
        for path in sorted(folder.glob("*/*.json")):
            if path.stem == name:
                definition: dict[str, Any] = json.loads(path.read_text("utf-8"))
                return definition
        raise FileNotFoundError(f"no definition {name} in {folder}")

    return load_definition


def compile_reference(reference: str) -> Callable[..., Any]:
    """Execute a reference's text and return its `run`; torch, math and np are there."""
    import numpy as np
    import torch

    names: dict[str, Any] = {"torch": torch, "math": math, "np": np}
    exec(compile(reference, "<reference>", "exec"), names)  # noqa: S102
    run: Callable[..., Any] = names["run"]
    return run


def assert_close(
    actual: Any, expected: Any, rtol: float = 1e-3, atol: float = 1e-3
) -> None:
    """Assert that tensors, or all of a tuple, list or dict of them, are close.

    NaN is close to nothing. A structure with more or fewer values fails.
    """
    import torch

    if isinstance(actual, Mapping):
        assert actual.keys() == expected.keys(), f"{[*actual]}, expected {[*expected]}"
        for name in actual:
            assert_close(actual[name], expected[name], rtol, atol)
    elif isinstance(actual, Sequence):
        assert len(actual) == len(expected), f"{len(actual)}, expected {len(expected)}"
        for one, wanted in zip(actual, expected, strict=True):
            assert_close(one, wanted, rtol, atol)
    else:
        torch.testing.assert_close(actual, expected, rtol=rtol, atol=atol)


def compute_error_metrics(ref: Any, gt: Any, name: str = "output") -> tuple[Any, Any]:
    """Print the figures of two tensors; return absolute and relative errors, float64.

    An error is relative to |gt| + 1e-8.
    """
    from kernel_judge.comparison.metrics import measure

    metrics = measure(ref, gt)
    print(f"\n{name}: {metrics.summary()}")
    print(f"  largest error {metrics.max_abs:.6e}, mean {metrics.mean_abs:.6e}")
    for worst in metrics.worst:
        print(f"  {worst}")
    error = (ref.double() - gt.double()).abs()
    return error, error / (gt.double().abs() + 1e-8)


def check_hit_ratio(
    ref: Any, gt: Any, atol: float, rtol: float, required_percent: float = 0.85
) -> bool:
    """Print and judge the share of elements within atol + rtol·|gt|; NaN is not within.

    `required_percent` is a share, 0.85 for 85 %.
    """
    expected = gt.double()
    within = (ref.double() - expected).abs() <= atol + rtol * expected.abs()
    ratio = float(within.double().mean())
    print(f"\nhit ratio {ratio:.2%}, at least {required_percent:.2%}")
    return ratio >= required_percent
