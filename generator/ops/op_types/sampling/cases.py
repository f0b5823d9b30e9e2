"""The cases of samplers: which rows are drawn from, under which filters, how often."""

from __future__ import annotations

from kernel_judge.definition import LIMITS, Case, Definition

FILTERS = ("top_k", "top_p", "min_p")
_ALL = 2**30
# case → size, calls, rows: (distribution, k, p, number of rows)
_Rows = tuple[tuple[str, int, float, int], ...]
_CASES: dict[str, dict[str, tuple[str, int, _Rows]]] = {
    "top_k": {
        "k-per-row": (
            "small",
            24,
            (
                ("steps", 1, 1.0, 3),
                ("steps", 2, 1.0, 8),
                ("steps", 3, 1.0, 12),
                ("steps", 4, 1.0, 16),
                ("steps", 5, 1.0, 19),
            ),
        ),
        "ties-at-k": ("small", 16, (("tied", 3, 1.0, 10), ("tied", 6, 1.0, 12))),
        "zero-probability": (
            "small",
            16,
            (("zeros", 20, 1.0, 8), ("zeros", 2, 1.0, 8), ("certain", 5, 1.0, 2)),
        ),
        # few draws, as each one sorts the whole vocabulary
        "k-keeps-all": (
            "small",
            5,
            (
                ("steps", _ALL, 1.0, 4),
                ("steps", 0, 1.0, 4),
                ("steps", -1, 1.0, 4),
                ("steps", 1, 1.0, 1),
            ),
        ),
        "k-not-positive": (
            "small",
            12,
            (("even", -1, 1.0, 2), ("even", 0, 1.0, 2), ("steps", 1, 1.0, 1)),
        ),
        "vocabulary-ends": ("small", 16, (("ends", 2, 1.0, 6),)),
        # tokens that tie when rounded to bfloat16; the most probable are kept
        "near-ties": ("small", 16, (("near", 1, 1.0, 6), ("near", 8, 1.0, 6))),
        "batch": (
            "medium",
            112,
            (("even", 32, 1.0, 56), ("steps", 3, 1.0, 4), ("zipf", 50, 1.0, 4)),
        ),
        "two-percent": (
            "large",
            1536,
            (("halves", 2, 1.0, 32), ("even", 32, 1.0, 16), ("zipf", 50, 1.0, 16)),
        ),
    },
    "top_p": {
        "p-per-row": (
            "small",
            24,
            (
                ("steps", 0, 0.1, 3),
                ("steps", 0, 0.3, 8),
                ("steps", 0, 0.5, 12),
                ("steps", 0, 0.6, 16),
                ("steps", 0, 0.7, 19),
            ),
        ),
        # a sum of tokens equals p exactly: no further token crosses it
        "p-is-a-sum": ("small", 16, (("steps", 0, 0.25, 4), ("steps", 0, 0.4375, 8))),
        # p is 2^-11 below a sum that bfloat16 rounds down
        "p-near-a-sum": ("small", 16, (("half", 0, 191.5 / 1024, 6),)),
        "ties-at-p": ("small", 16, (("tied", 0, 0.4, 10), ("tied", 0, 0.8, 12))),
        "argmax": (
            "small",
            8,
            (("steps", 0, 0.0, 4), ("even", 0, -1.0, 4), ("steps", 0, 1e-9, 4)),
        ),
        "zero-probability": (
            "small",
            16,
            (("zeros", 0, 1.0, 10), ("certain", 0, 0.9, 2), ("certain", 0, 1.0, 2)),
        ),
        "whole-vocabulary": ("small", 5, (("steps", 0, 1.0, 4), ("zipf", 0, 0.5, 1))),
        # all tokens together stay below p
        "sum-below-one": ("small", 5, (("short", 0, 1.0, 4),)),
        "vocabulary-ends": ("small", 16, (("ends", 0, 0.6, 6),)),
        # p falls into the middle of a token
        "near-ties": ("small", 16, (("near", 0, 0.01, 6), ("near", 0, 7.5 / 32, 6))),
        # rows of 448 tokens and of one: a row's limit must not apply to its neighbour
        "wide-and-narrow": (
            "small",
            16,
            (("wide", 0, 0.949, 10), ("steps", 0, 0.1, 2)),
        ),
        "batch": (
            "medium",
            112,
            (
                ("even", 0, 0.95, 56),
                ("steps", 0, 0.5, 4),
                ("zipf", 0, 0.6, 4),
                # p is 2^-11 above a sum; bfloat16 rounds it to the sum
                ("half", 0, 192.5 / 1024, 4),
            ),
        ),
        # two tokens of 1/297 each beyond 256, expected 21 times: the probability that
        # any token is never drawn is 1e-7
        "beyond-256": ("medium", 100, (("edge", 0, 0.5038, 64),)),
        "two-percent": (
            "large",
            1536,
            (("halves", 0, 0.9, 32), ("even", 0, 0.95, 16), ("zipf", 0, 0.6, 16)),
        ),
    },
    "top_k_top_p": {
        # p is a share of the kept mass; as a share of all, one more token is kept
        "p-of-the-kept": (
            "small",
            24,
            (
                ("steps", 3, 0.6, 8),
                ("steps", 5, 0.75, 16),
                ("steps", 2, 0.55, 6),
                ("steps", 1, 0.9, 2),
                ("steps", 3, 0.3, 3),
                ("steps", 4, 1.0, 16),
            ),
        ),
        "ties": (
            "small",
            16,
            (("tied", 3, 0.9, 10), ("tied", 5, 0.4, 10), ("tied", 7, 0.99, 12)),
        ),
        "argmax": (
            "small",
            8,
            (("steps", 5, 0.0, 4), ("even", 9, -1.0, 4), ("steps", 5, 1e-9, 4)),
        ),
        "zero-probability": (
            "small",
            16,
            (("zeros", 20, 1.0, 8), ("zeros", 20, 0.7, 8), ("certain", 5, 0.5, 2)),
        ),
        "k-keeps-all": (
            "small",
            5,
            (("steps", _ALL, 0.4, 4), ("steps", -1, 0.4, 2), ("steps", 1, 0.4, 1)),
        ),
        # about 30 equal tokens are kept: a positive k in place of these shows
        "k-not-positive": (
            "small",
            12,
            (("even", -1, 0.9, 2), ("even", 0, 0.9, 2), ("steps", 1, 0.9, 1)),
        ),
        "vocabulary-ends": ("small", 16, (("ends", 2, 0.9, 6),)),
        "near-ties": ("small", 16, (("near", 8, 1.0, 6), ("near", 16, 7.5 / 16, 6))),
        # a sum of tokens equals p exactly
        "p-is-a-sum": (
            "small",
            16,
            (("half", 3, 192 / 512, 6), ("half", 3, 365 / 512, 6)),
        ),
        # p is about 2^-10 from a sum: rounding the kept mass, or the sum before a token,
        # to bfloat16 moves the sum to the other side of p
        "p-near-a-sum": (
            "small",
            16,
            (
                ("half", 3, 191.5 / 512, 6),
                ("thirds", 2, 171.75 / 343, 6),
                ("thirds", 3, 343.35 / 513, 8),
            ),
        ),
        "batch": (
            "medium",
            112,
            (("even", 32, 1.0, 56), ("steps", 4, 0.7, 4), ("zipf", 50, 0.8, 4)),
        ),
        "two-percent": (
            "large",
            1536,
            (("halves", 2, 1.0, 32), ("even", 32, 1.0, 16), ("zipf", 50, 0.8, 16)),
        ),
    },
}

# Without a filter each draw goes over the whole vocabulary: few draws, of clear laws.
_PLAIN: dict[str, tuple[str, int, _Rows]] = {
    "vocabulary-ends": (
        "small",
        12,
        (("ends", 0, 1.0, 13), ("zeros", 0, 1.0, 2), ("certain", 0, 1.0, 1)),
    ),
    "half-in-the-tail": ("small", 10, (("one", 0, 1.0, 6),)),
    "one-row": ("small", 1, (("certain", 0, 1.0, 1),)),
    "batch": ("medium", 3, (("even", 0, 1.0, 16), ("half", 0, 1.0, 16))),
    "two-percent": ("large", 1536, (("halves", 0, 1.0, 32), ("even", 0, 1.0, 16))),
}
# the third number is min_p; steps have 256, 192, 144, 96, ... of 1024
_MIN_P: dict[str, tuple[str, int, _Rows]] = {
    # the last token kept is at the limit exactly
    "limit-is-kept": ("small", 12, (("steps", 0, 0.75, 5), ("steps", 0, 0.5625, 12))),
    "min-p-per-row": (
        "small",
        9,
        (("steps", 0, 1.0, 2), ("steps", 0, 0.7, 6), ("steps", 0, 0.2, 10)),
    ),
    # rounded to bfloat16 all of these tie, and the limit is the first one
    "near-ties": ("small", 8, (("near", 0, 1.0 - 7.5 * 2.0**-19, 4),)),
    "keeps-all": ("small", 6, (("steps", 0, 0.0, 4),)),
    # fewer rows than tokens that are kept, all as probable: those behind the third are missed
    "keeps-more-than-rows": ("small", 6, (("even", 0, 0.0, 3),)),
    "zero-probability": (
        "small",
        8,
        (("zeros", 0, 0.0, 4), ("certain", 0, 0.5, 1), ("tied", 0, 0.5, 6)),
    ),
    "vocabulary-ends": ("small", 12, (("ends", 0, 0.5, 8),)),
    "batch": (
        "medium",
        6,
        (("even", 0, 0.7, 16), ("steps", 0, 0.3, 4), ("zipf", 0, 0.3, 4)),
    ),
    "two-percent": ("large", 1536, (("halves", 0, 0.9, 32), ("even", 0, 0.7, 16))),
}
# Softmaxes are not exact: what decides by a sum that is p stays out.
_EXACT = ("p-is-a-sum", "k-not-positive")
_LOGITS: dict[str, tuple[str, int, _Rows]] = {
    name: (size, min(calls, 12), rows)
    for name, (size, calls, rows) in _CASES["top_k_top_p"].items()
    if name not in _EXACT and size == "small"
} | {
    "k-keeps-all": (
        "small",
        9,
        (
            ("one", _ALL, 1.0, 1),
            ("one", 0, 1.0, 2),
            ("one", -1, 1.0, 2),
            ("steps", 1, 0.4, 1),
        ),
    ),
    "batch": ("medium", 16, (("even", 32, 1.0, 24), ("steps", 4, 0.7, 4))),
    "two-percent": _CASES["top_k_top_p"]["two-percent"],
}


# the last rows have one token; of 257 tokens that are nearly alike half are behind 128
_PAST_LIMITS: dict[str, tuple[str, int, _Rows]] = {
    "past-limits": (
        LIMITS,
        8,
        (("distinct", 257, 1.0, 64), ("zipf", 200, 0.9, 64), ("certain", 5, 0.5, 3)),
    ),
}


def sampling_cases(definition: Definition) -> list[Case]:
    """Return the cases of the definition's filters."""
    kind = kind_of(definition)
    table = {"": _PLAIN, "min_p": _MIN_P}.get(kind) or _CASES[kind]
    if kind == "top_k_top_p" and "logits" in definition.interface.inputs:
        table = _LOGITS
    return [
        Case(
            name,
            size,
            {"batch_size": sum(count for *_, count in rows)},
            {"calls": calls, "rows": rows},
        )
        for name, (size, calls, rows) in {**table, **_PAST_LIMITS}.items()
    ]


def kind_of(definition: Definition) -> str:
    """Return the filters of a definition, such as `top_k_top_p`; empty without."""
    return "_".join(n for n in FILTERS if n in definition.interface.inputs)
