"""Tags: the vocabulary, and what a tag claims about its definition."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from generator.dataset.definition import Definition
from generator.dataset.model_figures import model_figures
from generator.problems import Problem
from generator.problems.messages import did_you_mean, nearest, quote
from generator.problems.pointer import pointer
from generator.problems.rule import Rule, note, warning

TAG_FORM = warning(
    "tag-form",
    "A tag is neither key:value nor one of the bare tags.",
    "Write it as key:value, without spaces or special characters.",
    '`"decode"` instead of `"stage:decode"`',
)
TAG_UNKNOWN = warning(
    "tag-unknown",
    "A tag's key is not one of the vocabulary, so no search finds it.",
    "Use a key of the vocabulary: model, status, fi_api, stage, tp, ep and the like.",
    '`"stages:decode"`',
)
TAG_SYNONYM = note(
    "tag-synonym",
    "A tag's key is seldom used; another one means the same.",
    "Use the usual key.",
    '`"quant:fp8"` instead of `"quantization:..."`',
)
TAG_VALUE = warning(
    "tag-value",
    "A tag's value is not one that its key may have.",
    "Write one of the allowed values.",
    '`"tp:two"`, or `"status:tested"`',
)
TAG_DUPLICATE = warning(
    "tag-duplicate",
    "A definition has the same tag twice.",
    "Remove one of them.",
    '`["tp:1", "tp:1"]`',
)
TAG_CONFLICT = warning(
    "tag-conflict",
    "Tags contradict each other or the definition's name.",
    "Keep the one that is right.",
    "stage:prefill on gqa_paged_decode_...",
)
TAG_MODEL = note(
    "tag-model",
    "The figures of a model that a tag names are not known here.",
    "Check the const axes with --model-config and the model's config.json.",
    '`"model:my-model"`',
)


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
            [(TAG_DUPLICATE, f"The tag {quote(tag)} is there twice.")]
            if tag in seen
            else _judge(tag)
        ):
            problems.append(rule.problem(definition.path, message, pointer=where))
        seen.add(tag)
    problems += [
        TAG_CONFLICT.problem(definition.path, message, pointer="/tags")
        for message in _conflicts(definition)
    ]
    return problems


def _judge(tag: str) -> Iterator[tuple[Rule, str]]:
    key, colon, value = tag.partition(":")
    if not colon:
        if tag not in BARE:
            guess = next(
                (f"{k}:{tag}" for k in ("stage", "status") if _fits(k, tag)), ""
            )
            hint = f" Did you mean {quote(guess)}?" if guess else ""
            yield TAG_FORM, f"The tag {quote(tag)} is not key:value.{hint}"
    elif key in _SYNONYMS:
        usual = _SYNONYMS[key]
        yield TAG_SYNONYM, f"The tag {quote(tag)} is usually written {usual}:..."
        yield from _judge(f"{usual}:{value}")
    elif key not in _VALUES:
        close = nearest(key, _VALUES)
        hint = f" Did you mean {quote(close)}?" if close else ""
        yield TAG_UNKNOWN, f"The key of the tag {quote(tag)} is unknown.{hint}"
    elif not _fits(key, value):
        known = _STAGES if key == "stage" else _STATUSES if key == "status" else ()
        guess = did_you_mean(value, known)
        message = f"The value of the tag {quote(tag)} must be {_VALUES[key][1]}.{guess}"
        yield TAG_VALUE, message
    elif key == "model" and value not in model_figures():
        guess = did_you_mean(value, model_figures())
        yield TAG_MODEL, f"The model {quote(value)} is not in the table.{guess}"


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
