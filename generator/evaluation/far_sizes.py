"""Cases of values far from one: what is right for values of about one alone is wrong there.

Whether an op is homogeneous in an input is not declared but measured: the oracle is called
with the values, and with the same values times a power of two, which is exact in floats.
Where the second output is the first one times a power of two, the bounds of usual values
hold for it, divided by that power.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations, islice, product

import torch

from generator.ops.far_factors import with_factors
from kernel_judge.definition import Case
from kernel_judge.inputs.memory import tensor_bytes
from kernel_judge.inputs.trial import as_tuple
from kernel_judge.subject import Subject

# values of about 1 are beyond float16 with the first, and subnormal in it with the second
_POWERS = (17.0, -17.0)
_DTYPE = "bfloat16"
_MOST_BYTES, _FEWEST = 64 << 20, 3
# where one case's softmax is certain of a token, another's is not
_CASES = 3
# so that float32 holds sums of squares of what is larger
_USUAL = 1024.0
# what an eps beside large values, or another order of sums, may leave
_ALIKE = 2.0**-9
_CPU = torch.device("cpu")
_known: dict[tuple[object, ...], list[FarSize]] = {}


@dataclass(frozen=True)
class FarSize:
    """A case whose inputs are `moved`, and the power of two of each output, in order.

    `name` says which inputs; the case keeps its own, by which bounds know it.
    """

    name: str
    case: Case
    gains: tuple[float, ...]


def far_sizes(subject: Subject, cases: Sequence[Case]) -> list[FarSize]:
    """Return a small case with its bfloat16 inputs much larger, and much smaller.

    All inputs are scaled at once if the outputs follow; else each input that they
    follow is scaled alone, and of the others each two that they follow together, as a
    product and what is added to it; one of two may be in float32. The list is empty where
    the op has no oracle, or an output has a policy of its own. It is computed once for
    each definition, since its values are always the same.
    """
    known = subject.definition
    key = (known.name, tuple(sorted(known.axes.items())), id(subject.op))
    if key not in _known:
        _known[key] = list(_cases_that_outputs_follow(subject, cases))
    return _known[key]


def _cases_that_outputs_follow(
    subject: Subject, cases: Sequence[Case]
) -> Iterator[FarSize]:
    known = subject.definition
    # of one key attention is homogeneous in queries, of which large ones meet the finite
    # logits that kernels give to masked keys
    few = [c for c in cases if _fewest(c) >= _FEWEST]
    if not few or subject.op.policies or subject.op.oracle is None:
        return
    specs = known.interface.input_specs.items()
    names = [n for n, s in specs if s.dtype == _DTYPE and s.shape]
    if not names:
        return
    few.sort(key=lambda c: tensor_bytes(known, c))
    some = list(islice((c for c in few if _is_usual(subject, c)), _CASES))
    usual = [_expected(subject, case) for case in some]
    singles = [(name,) for name in names] if len(names) > 1 else []
    pairs: list[tuple[str, ...]] = []
    if len(names) > 2:
        pairs += combinations(names, 2)
    # a state in float32 and what is added to it
    pairs += product(names, [n for n, s in specs if s.dtype == "float32" and s.shape])
    followed_pairs: list[tuple[str, ...]] = []
    for power in _POWERS if some and None not in usual else ():
        if power != _POWERS[0]:
            # there are many, and an oracle may be slow
            pairs = followed_pairs
        followed: set[str] = set()
        for group in (tuple(names), *singles, *pairs):
            if followed & {*group}:
                continue
            moves = dict.fromkeys(group, power)
            moved = [with_factors(case, case.name, **moves) for case in some]
            gains = _common(
                _gains(one or (), _expected(subject, case))
                for one, case in zip(usual, moved, strict=True)
            )
            if gains is not None:
                followed |= {*group}
                followed_pairs += [group] if group in pairs else []
                size = "large" if power > 0 else "small"
                yield FarSize(f"{' and '.join(group)} {size}", moved[0], gains)
                if group == tuple(names):
                    break


def _fewest(case: Case) -> int:
    """Return the shortest axis of a case; that of a batch of sequences is none of these."""
    others = [n for name, n in case.axes.items() if name != "batch_size"]
    return min(others or case.axes.values(), default=_FEWEST)


def _common(
    gains: Iterator[tuple[float, ...] | None],
) -> tuple[float, ...] | None:
    """Return what all cases have, None at the first that has another."""
    first = next(gains)
    return first if first is not None and all(one == first for one in gains) else None


def _is_usual(subject: Subject, case: Case) -> bool:
    """Return whether a case's values are neither large nor all zero, and few."""
    if tensor_bytes(subject.definition, case) > _MOST_BYTES:
        return False
    with suppress(Exception):
        inputs = subject.trial(case, _CPU).inputs
        sizes = [float(v.abs().max()) for v in inputs.values() if _is_bfloat16(v)]
        return all(2.0**-20 < size <= _USUAL for size in sizes)
    return False


def _is_bfloat16(value: object) -> bool:
    return isinstance(value, torch.Tensor) and str(value.dtype) == f"torch.{_DTYPE}"


def _expected(subject: Subject, case: Case) -> tuple[object, ...] | None:
    """Return what the oracle gives, None where the case can't be had."""
    oracle = subject.op.oracle
    assert oracle is not None
    # inputs that break a constraint, or that a family can't have, for one
    with suppress(Exception):
        trial = subject.trial(case, _CPU)
        if not trial.broken_constraints():
            return as_tuple(oracle(trial.definition, trial.fresh_inputs()))
    return None


def _gains(
    usual: Sequence[object], far: Sequence[object] | None
) -> tuple[float, ...] | None:
    """Return the power of two between outputs, of each; None where there is none."""
    if far is None:
        return None
    gains = [_gain(a, b) for a, b in zip(usual, far, strict=True)]
    return None if None in gains else tuple(g for g in gains if g is not None)


def _gain(usual: object, far: object) -> float | None:
    if not isinstance(usual, torch.Tensor) or not isinstance(far, torch.Tensor):
        return None
    a, b = usual.double(), far.double()
    sizes = [float(x.square().mean().sqrt()) for x in (a, b)]
    if not a.numel() or not all(map(math.isfinite, sizes)) or not all(sizes):
        return None
    power = float(round(math.log2(sizes[1] / sizes[0])))
    off = float((b * 2.0**-power - a).abs().max())
    return power if off <= _ALIKE * sizes[0] else None
