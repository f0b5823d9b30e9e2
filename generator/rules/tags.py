"""Tags: the vocabulary, and what a tag claims about its definition."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from generator.definition import Definition
from generator.models import model_figures
from generator.pointer import pointer
from generator.problems import Problem
from generator.rules.table import finding
from generator.wording import did_you_mean, nearest, quote

BARE = frozenset(("fused",))
_SYNONYMS: Mapping[str, str] = {"quant": "quantization"}
_STAGES = ("decode", "prefill", "mtp", "indexer")
_STATUSES = ("verified", "unverified", "reference")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
_COUNT = re.compile(r"[1-9][0-9]{0,4}")
_GPU = re.compile(r"sm[0-9]{2,3}[a-z]?")
_SYMBOL = re.compile(r"flashinfer(\.[A-Za-z_][A-Za-z0-9_]*)+")
_VALUES: Mapping[str, tuple[Callable[[str], object], str]] = {
    "status": (_STATUSES.__contains__, "one of verified, unverified, reference"),
    "stage": (_STAGES.__contains__, "one of decode, prefill, mtp, indexer"),
    "tp": (_COUNT.fullmatch, "a positive number"),
    "ep": (_COUNT.fullmatch, "a positive number"),
    "gpu": (_GPU.fullmatch, "an architecture such as sm100"),
    "fi_api": (_SYMBOL.fullmatch, "a dotted name that begins with flashinfer"),
    **dict.fromkeys(
        ("model", "quantization", "layout", "routing", "sparse"),
        (_WORD.fullmatch, "a word of letters, digits and . _ + -"),
    ),
}


def check(definition: Definition) -> list[Problem]:
    """Return the Problems of a definition's tags."""
    problems = []
    seen: set[str] = set()
    for index, tag in enumerate(definition.tags):
        where = pointer(("tags", index))
        for rule, message in (
            [("tag-duplicate", f"The tag {quote(tag)} is there twice.")]
            if tag in seen
            else _judge(tag)
        ):
            problems.append(finding(rule, definition.path, message, pointer=where))
        seen.add(tag)
    problems += [
        finding("tag-conflict", definition.path, message, pointer="/tags")
        for message in _conflicts(definition)
    ]
    return problems


def _judge(tag: str) -> Iterator[tuple[str, str]]:
    key, colon, value = tag.partition(":")
    if not colon:
        if tag not in BARE:
            guess = next(
                (f"{k}:{tag}" for k in ("stage", "status") if _fits(k, tag)), ""
            )
            hint = f" Did you mean {quote(guess)}?" if guess else ""
            yield "tag-form", f"The tag {quote(tag)} is not key:value.{hint}"
    elif key in _SYNONYMS:
        usual = _SYNONYMS[key]
        yield "tag-synonym", f"The tag {quote(tag)} is usually written {usual}:..."
        yield from _judge(f"{usual}:{value}")
    elif key not in _VALUES:
        close = nearest(key, _VALUES)
        hint = f" Did you mean {quote(close)}?" if close else ""
        yield "tag-unknown", f"The key of the tag {quote(tag)} is unknown.{hint}"
    elif not _fits(key, value):
        known = _STAGES if key == "stage" else _STATUSES if key == "status" else ()
        guess = did_you_mean(value, known)
        message = f"The value of the tag {quote(tag)} must be {_VALUES[key][1]}.{guess}"
        yield "tag-value", message
    elif key == "model" and value not in model_figures():
        guess = did_you_mean(value, model_figures())
        yield "tag-model", f"The model {quote(value)} is not in the table.{guess}"


def _fits(key: str, value: str) -> bool:
    return len(value) <= 200 and bool(_VALUES[key][0](value))


def _conflicts(definition: Definition) -> Iterator[str]:
    # of tp: and ep: a definition may have several, which all give its sizes
    statuses = sorted(set(definition.tag_values("status")))
    if len(statuses) > 1:
        yield f"There are several status: tags: {quote(', '.join(statuses))}."
    stages = set(definition.tag_values("stage"))
    parts = definition.name.lower().split("_")
    named = {stage for stage in ("decode", "prefill") if stage in parts}
    wrong = stages & {"decode", "prefill"}
    if len(named) == 1 and wrong and not wrong & named:
        stage = next(iter(wrong))
        yield f"The name says {named.pop()}, the tag stage:{stage}."
