"""What a careful reader would find in a reference, and would not."""

from __future__ import annotations

from typing import Any

import pytest

from generator.dataset.definition import build_definition
from generator.rules import static

RUN = "def run(A, B, alpha=1.0):\n"
FINE = [
    "assert A.shape[1] == 4 and B.shape == (8, 4)",
    "m, k = A.shape\n    assert k == 4\n    assert m == 7",
    "n = 3\n    assert n == 3",
    "k = alpha\n    assert k == 5",
    "assert A.shape[1] == 5 or B is None",
    "A = A.clone()\n    A[0] = 1\n    A += 1\n    A.mul_(2)",
    "x = A.float()\n    x[0] = 1\n    x.add_(1)",
    "alpha += 1",
    "for j in range(A.shape[1]):\n        pass",
    "for j in range(8):\n        pass",
    "x = []\n    x.append(1)",
    "torch.Generator().manual_seed(0)",
]
FOUND = [
    ("reference-assert", "assert A.shape[-1] == 5"),
    ("reference-assert", "assert 5 == A.shape[1] and B is not None"),
    ("reference-assert", "n, k = B.shape\n    assert n == k"),
    ("reference-assert", "K = A.shape[1]\n    assert K == 5"),
    ("reference-in-place", "A[0] = 1"),
    ("reference-in-place", "A[0][1] += 1"),
    ("reference-in-place", "A += 1"),
    ("reference-in-place", "B.copy_(A)"),
    ("reference-in-place", "A[0].zero_()"),
    ("reference-global", "global counter"),
    ("reference-global", "torch.set_default_dtype(torch.float64)"),
    ("reference-global", "np.random.seed(0)"),
    ("reference-global", "torch.backends.cuda.matmul.allow_tf32 = True"),
    ("reference-global", "CACHE[1] = A"),
    ("reference-global", "CACHE.update({1: A})"),
    ("reference-token-loop", "M = A.shape[0]\n    for i in range(M):\n        pass"),
    ("reference-token-loop", "for i in range(0, A.shape[0]):\n        pass"),
    ("reference-token-loop", "m = A.shape[0]\n    for i in range(m):\n        pass"),
]


def _rules(dataset: Any, body: str) -> list[str]:
    head = "import torch\nimport numpy as np\n\nCACHE = {}\n\n\n"
    dataset.definition(reference=f"{head}{RUN}    {body}\n    return A\n")
    return [problem.rule for problem in dataset.problems()]


@pytest.mark.parametrize("body", FINE)
def test_what_is_fine(dataset: Any, body: str) -> None:
    assert _rules(dataset, body) == []


@pytest.mark.parametrize(("rule", "body"), FOUND)
def test_what_is_found(dataset: Any, rule: str, body: str) -> None:
    assert set(_rules(dataset, body)) == {rule}


def _writing_to(definition: Any, op_type: str, name: str) -> list[str]:
    """Return the rules that a definition breaks whose `run` writes to an input."""
    definition["op_type"] = op_type
    definition["inputs"][name] = definition["inputs"].pop("B")
    definition["reference"] = f"def run(A, {name}):\n    {name}[0] = 1\n    return A\n"
    built = build_definition(definition, "definitions/x.json", "")
    return [problem.rule for problem in static.check(built)]


def test_the_name_of_a_buffer_says_so_where_the_op_type_is_unknown(
    definition: Any,
) -> None:
    assert _writing_to(definition, "scatter", "B_buffer") == []


@pytest.mark.parametrize(
    ("op_type", "name"),
    [("scatter", "buffer_of_B"), ("gemm", "B_buffer"), ("gdn", "B_buffer")],
)
def test_other_inputs_are_not_written_to(
    definition: Any, op_type: str, name: str
) -> None:
    assert _writing_to(definition, op_type, name) == ["reference-in-place"]


def test_the_spec_says_which_inputs_are_buffers_of_a_known_op_type(
    definition: Any,
) -> None:
    assert _writing_to(definition, "gdn", "intermediate_states_buffer") == []
