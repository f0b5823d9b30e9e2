"""Constraints are evaluated without Python's eval, with its results."""

from __future__ import annotations

import ast
import time
from collections.abc import Mapping
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_judge.constraints import TensorValue, Unknown, Unsupported, evaluate

NAMES: dict[str, Any] = {
    "n": 3,
    "m": 4,
    "scale": 0.5,
    "indptr": TensorValue((4,), [0, 2, 2, 5]),
    "table": TensorValue((2, 2), [1, 2, 3, 4]),
    "q": TensorValue((3, 8)),
    "big": TensorValue((10**7,), range(10**7)),
}


TENSORS = {
    **NAMES,
    "indptr": torch.tensor([0, 2, 2, 5], dtype=torch.int32),
    "table": torch.tensor([[1, 2], [3, 4]]),
}


def value_of(text: str, names: Mapping[str, Any] = NAMES) -> bool:
    return evaluate(ast.parse(text, mode="eval").body, names)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("m == n + 1", True),
        ("indptr[-1].item() == 5", True),
        ("indptr[-1] == 5", True),
        ("int(indptr[0]) == 0", True),
        ("len(indptr) == m", True),
        ("indptr.shape[0] == m and indptr.numel() == 4", True),
        ("q.shape == (3, 8) and q.ndim == 2 and q.size(-1) == 8", True),
        ("q.size()[0] == n", True),
        ("all(indptr[i] <= indptr[i + 1] for i in range(n))", True),
        ("all(a <= b for a, b in zip(indptr, indptr[1:]))", True),
        ("max(indptr) - min(indptr) == 5 and indptr.max() == 5", True),
        ("sum(x for x in indptr if x > 2) == 5", True),
        ("table.sum() == 10 and table.max().item() == 4", True),
        ("5 in indptr and 7 not in indptr.tolist()", True),
        ("n < m < 5 and not n > m", True),
        ("(n if m > 4 else m) == 4", True),
        (
            "2 ** n == 8 and -n < 0 and n // 2 == 1 and n % 2 == 1 and n / 2 == 1.5",
            True,
        ),
        ("scale * 2 == 1", True),
        ("n == m", False),
        ("indptr[-1] == 4", False),
        ("q[0] == 1", None),
        ("n == 4 and q[0] == 1", False),
        ("n == 3 or q[0] == 1", True),
        ("n is None", False),
        ("abs(-n) == 3 and round(2.6) == 3 and sorted([2, 1]) == [1, 2]", True),
        ("indptr.tolist() == [0, 2, 2, 5] and q.shape != [3, 8]", True),
        ("indptr == indptr", None),
    ],
)
@pytest.mark.parametrize("names", [NAMES, TENSORS], ids=["values", "torch"])
def test_values(text: str, expected: bool | None, names: Mapping[str, Any]) -> None:
    if expected is None:
        with pytest.raises((Unknown, Unsupported)):
            value_of(text, names)
    else:
        assert value_of(text, names) is expected


@pytest.mark.parametrize("text", ["q.sum() > 0", "q[0, 0] > 1", "gone == 1", "q == 1"])
def test_what_is_random_is_unknown(text: str) -> None:
    with pytest.raises((Unknown, Unsupported)):
        value_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "().__class__ == 1",
        "n.real == 3",
        "indptr.__len__() == 4",
        "print(n)",
        "open('/etc/passwd')",
        "'a' * 10**9 == n",
        "[0] * 10**9 == n",
        "9**9**9 == n",
        "10**64**64 > n",
        "range(10**30)[0] == 0",
        "all(i == i for i in range(10**9))",
        "all(all(j < 3 for j in range(10**4)) for i in range(10**4))",
        "indptr.apply_(print)",
        "indptr[10**30] == 1",
        "indptr[1:2:0] == 1",
        "1 // 0 == n",
        "1 < (2, 3)",
        "1 << 10**9 > n",
        "f'{n}' == '3'",
        "{n: 1} == n",
        "(lambda: n)() == 3",
        "max() == 1",
        "int(n, 2) == 1",
        "sum(indptr, start=1) == 1",
        "max(*indptr) == 1",
        "all(max(big) > i for i in range(10**4))",
        "big.sum() == big.sum() + big.max() + big.min() + big.sum()",
        "-(1, 2) == 1",
        "-" * 80 + "n." + "x." * 80 + "y == 1",
    ],
)
def test_what_is_not_understood_says_so_at_once(text: str) -> None:
    start = time.process_time()
    with pytest.raises((Unknown, Unsupported)):
        value_of(text)
    # unbounded, these take minutes to years; the processor's time, not the clock's
    assert time.process_time() - start < 10


NUMBERS = st.sampled_from(["n", "m", "0", "1", "7", "-2"])
EXPRESSIONS = st.recursive(
    NUMBERS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%"]), inner).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        st.tuples(inner, st.sampled_from(["<", "<=", "==", "!=", ">"]), inner).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(
            lambda t: f"(bool({t[0]}) {t[1]} bool({t[2]}))"
        ),
        inner.map(lambda t: f"(not {t})"),
    ),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(text=EXPRESSIONS)
def test_results_are_python_s(text: str) -> None:
    try:
        expected = bool(eval(text, {"__builtins__": {"bool": bool}, "n": 3, "m": 4}))
    except ZeroDivisionError:
        with pytest.raises(Unsupported):
            value_of(text)
    else:
        assert value_of(text) is expected
