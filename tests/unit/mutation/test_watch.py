"""A watch tells which mutants change no value while the reference runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from generator.mutation import watch as watching
from generator.mutation.generic import generic_mutants
from generator.mutation.watch import Watch
from kernel_judge.inputs.trial import as_tuple, same_bits
from kernel_judge.reference import load_run

HEAD = "import torch\n\n\ndef run(x, n):\n"


def watched(body: str, *calls: Sequence[Any]) -> tuple[set[str], set[str]]:
    """Return the changes that are seen to change no value, and all others.

    In each call the reference returns what it does unwatched, and so does each mutant
    that is said to change nothing.
    """
    text = HEAD + "".join(f"    {line}\n" for line in body.splitlines())
    mutants = generic_mutants(text)
    watch = Watch.of(text, {n: mutant.edit for n, mutant in enumerate(mutants)})
    assert watch is not None
    run = watch.load()
    for call in calls:
        expected = outputs(load_run(text), call)
        assert same(outputs(run, call), expected)
    unchanged = set(watch.unchanged)
    for call in calls:
        expected = outputs(load_run(text), call)
        for n in unchanged:
            assert same(outputs(load_run(mutants[n].source), call), expected)
    names = {n: mutant.name for n, mutant in enumerate(mutants)}
    return {names[n] for n in unchanged}, {names[n] for n in names.keys() - unchanged}


def outputs(run: Any, call: Sequence[Any]) -> tuple[Any, ...]:
    """Return what a run returns, and its inputs afterwards."""
    torch.manual_seed(0)
    copies = [v.clone() if isinstance(v, torch.Tensor) else v for v in call]
    return (*as_tuple(run(*copies)), *copies)


def same(first: Sequence[Any], second: Sequence[Any]) -> bool:
    return len(first) == len(second) and all(map(same_bits, first, second))


def of(names: set[str], part: str) -> list[str]:
    return [name for name in names if part in name]


X = torch.arange(1.0, 9.0).view(2, 4)


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ("return x * (n // 1)", "n // 1 → n"),
        ("return x.float() + n", "x.float() → x"),
        ("return x.float() + n", "x.bfloat16().float()"),
        ("if n == 0 or n == 1:\n    x = -x\nreturn x", "or n == 1 → False"),
        ("if n < 0:\n    x = -x\nreturn x", "x = -x → pass"),
        # nothing writes to the copy
        ("y = x.clone()\nreturn y + n", "x.clone() → x"),
        # another value that all uses cut off
        ("y = x[0:n]\nz = y[0:1]\nreturn z * 2", "0:n → 0:n + 1"),
        # it is written into float32
        ("y = x.clone()\ny[0:1] = x[0:1].float() + 1\nreturn y", "x[0:1].float() → x"),
        # what is written to in place was made there
        ("return torch.zeros_like(x).masked_fill_(x > 4, 3) > 0", "3 → "),
    ],
)
def test_a_change_that_changes_no_value_is_told(body, part):
    unchanged, _ = watched(body, (X, 3))
    assert of(unchanged, part)


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ("return x * (n // 2)", "n // 2 → n"),
        # a statement that runs, whatever it does
        ("if n > 0:\n    x = x + 0\nreturn x", "x = x + 0 → pass"),
        # the copy is written to, and with it what it was copied from
        ("y = x.clone()\ny[0] = n\nreturn y", "x.clone() → x"),
        ("y = x.clone()\nx.mul_(2)\nreturn y", "x.clone() → x"),
        # both would be written to
        ("return x.add_(n) * 1.0", "x.add_(n) → x"),
        ("y = x.mul_(2)\nreturn y * 1", "x.mul_(2) → x"),
        # draws
        (
            "return x * torch.rand(2 + 2).abs()",
            "torch.rand(2 + 2).abs() → torch.rand(2 + 2)",
        ),
        # other bits of the same number
        ("return x * (0.0 * -n)", "-n → n"),
        # a tensor of places takes no other dtype
        (
            "y = x.bfloat16()\ny[torch.arange(2)] = (x + n).to(torch.bfloat16)\nreturn y",
            "(x + n).to(torch.bfloat16) → (x + n)",
        ),
        # another variable that is returned, written to, or read in the next round
        ("y = x[0:n]\nreturn y", "0:n → 0:n - 1"),
        ("y = x[0:1] + n\ny.add_(1)\nreturn y", "x[0:1] + n → x[0:1]"),
        (
            "y = x[0:1]\nfor i in range(2):\n    z = y * 1.0\n    y = x[1:2] + i\nreturn z",
            "x[1:2] + i → i",
        ),
        # it raises in the mutant's place
        ("y = x.view(2, 2 * 2)\nreturn y", "2 * 2 → (2 / 2)"),
    ],
)
def test_a_change_that_may_change_more_is_not(body, part):
    unchanged, changed = watched(body, (X, 1))
    assert not of(unchanged, part)
    assert of(changed, part)


def test_one_call_in_which_a_value_differs_is_enough():
    body = "return x * max(n, 2)"
    unchanged, _ = watched(body, (X, 3), (X, 5))
    assert of(unchanged, "2 → 1")
    unchanged, changed = watched(body, (X, 3), (X, 1), (X, 5))
    assert of(changed, "2 → 1")


@pytest.mark.parametrize(
    "body",
    [
        "try:\n    y = x.view(n)\nexcept RuntimeError:\n    y = x\nreturn y",
        "run.last = x\nreturn x",
        "return x.data + n",
        "return sum(row for row in x)",
        "rows = zip(x, x)\nreturn x * len([*rows])",
        "max = min\nreturn x * max(n, 2)",
        "class C:\n    pass\nreturn x",
    ],
)
def test_what_can_t_be_followed_is_not_watched(body):
    text = HEAD + "".join(f"    {line}\n" for line in body.splitlines())
    edits = {n: mutant.edit for n, mutant in enumerate(generic_mutants(text))}
    assert Watch.of(text, edits) is None


def test_what_would_take_too_much_memory_to_compare_is_not_told(monkeypatch):
    body = "return x.float() + n"
    monkeypatch.setattr(watching, "_HELD_BYTES", 2 * X.nbytes - 1)
    assert not of(watched(body, (X, 1))[0], "x.bfloat16().float()")
    monkeypatch.setattr(watching, "_HELD_BYTES", 4 * X.nbytes)
    assert of(watched(body, (X, 1))[0], "x.bfloat16().float()")


def test_what_nothing_refers_to_is_not_held(monkeypatch):
    # each round's values are gone by the next; those of `kept` are not
    monkeypatch.setattr(watching, "_HELD_BYTES", 4 * X.nbytes)
    body = "y = x\nfor i in range(20):\n    y = y * 2.0 + x.float()\nreturn y"
    assert of(watched(body, (X, 1))[0], "x.bfloat16().float()")
    body = (
        "kept = []\nfor i in range(20):\n    kept.append(x.float() + i)\nreturn kept[0]"
    )
    assert not of(watched(body, (X, 1))[0], "x.bfloat16().float()")
