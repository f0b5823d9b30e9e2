"""Tags: the vocabulary, and what a tag claims about its definition."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from generator.dataset.definition import LoadedDefinition
from generator.dataset.model_figures import model_figures
from generator.problems import Problem, Rule, note, warning
from generator.problems.messages import did_you_mean, quote

TAG_FORM = warning("""tag-form: A tag is neither key:value nor one of the bare tags.
    Fix: Write it as key:value, without spaces or special characters.
    Finds: `"decode"` instead of `"stage:decode"`""")
TAG_UNKNOWN = warning("""tag-unknown: A tag's key is not one of the vocabulary, so no
    search finds it.
    Fix: Use a key of the vocabulary: model, status, fi_api, stage, tp, ep and the like.
    Finds: `"stages:decode"`""")
TAG_SYNONYM = note("""tag-synonym: A tag's key is seldom used; another one means the
    same.
    Fix: Use the usual key.
    Finds: `"quant:fp8"` instead of `"quantization:..."`""")
TAG_VALUE = warning("""tag-value: A tag's value is not one that its key may have.
    Fix: Write one of the allowed values.
    Finds: `"tp:two"`, or `"status:tested"`""")
TAG_DUPLICATE = warning("""tag-duplicate: A definition has the same tag twice.
    Fix: Remove one of them.
    Finds: `["tp:1", "tp:1"]`""")
TAG_CONFLICT = warning("""tag-conflict: Tags contradict each other or the definition's
    name.
    Fix: Keep the one that is right.
    Finds: stage:prefill on gqa_paged_decode_...""")
TAG_MODEL = note("""tag-model: The figures of a model that a tag names are not known
    here.
    Fix: Check the const axes with --model-config and the model's config.json.
    Finds: `"model:my-model"`""")

_SYNONYMS: Mapping[str, str] = {"quant": "quantization"}
_STAGES = ("decode", "prefill", "mtp", "indexer")
# inference has no tag
_MODES = ("training",)
_STATUSES = ("verified", "unverified", "reference")
_Allowed = tuple[re.Pattern[str] | tuple[str, ...], str]
_COUNT: _Allowed = (re.compile(r"[1-9][0-9]{0,4}"), "a positive number")
_VALUES: Mapping[str, _Allowed] = {
    "status": (_STATUSES, "one of verified, unverified, reference"),
    "stage": (_STAGES, "one of decode, prefill, mtp, indexer"),
    "mode": (_MODES, "training"),
    "tp": _COUNT,
    "ep": _COUNT,
    "gpu": (re.compile(r"sm[0-9]{2,3}[a-z]?"), "an architecture such as sm100"),
    "fi_api": (
        re.compile(r"flashinfer(\.[A-Za-z_][A-Za-z0-9_]*)+"),
        "a dotted name that begins with flashinfer",
    ),
    **dict.fromkeys(
        ("model", "quantization", "layout", "routing", "sparse"),
        (
            re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*"),
            "a word of letters, digits and . _ + -",
        ),
    ),
}
"""Key of a tag → the values that it may have, and words for them."""


def check(definition: LoadedDefinition) -> Iterator[Problem]:
    """Yield the Problems of a definition's tags."""
    first: dict[str, int] = {}
    for index, tag in enumerate(definition.tags):
        if first.setdefault(tag, index) != index:
            yield TAG_DUPLICATE.at(
                f"The tag {quote(tag)} is there twice.", "tags", index
            )
            continue
        for rule, message in _judged(tag):
            yield rule.at(message, "tags", index)
    for message in _conflicts(definition):
        yield TAG_CONFLICT.at(message, "tags")


# many definitions have the same tags
@lru_cache(maxsize=1024)
def _judged(tag: str) -> tuple[tuple[Rule, str], ...]:
    return tuple(_judge(tag))


def _judge(tag: str) -> Iterator[tuple[Rule, str]]:
    shown = quote(tag)
    key, colon, value = tag.partition(":")
    if not colon:
        if tag != "fused":
            key = next((k for k in ("stage", "status") if _fits(k, tag)), "")
            hint = f" Did you mean {quote(f'{key}:{tag}')}?" if key else ""
            yield TAG_FORM, f"The tag {shown} is not key:value.{hint}"
    elif key in _SYNONYMS:
        usual = _SYNONYMS[key]
        yield TAG_SYNONYM, f"The tag {shown} is usually written {usual}:..."
        yield from _judge(f"{usual}:{value}")
    elif key not in _VALUES:
        guess = did_you_mean(key, _VALUES)
        yield TAG_UNKNOWN, f"The key of the tag {shown} is unknown.{guess}"
    elif not _fits(key, value):
        allowed, words = _VALUES[key]
        guess = did_you_mean(value, allowed) if isinstance(allowed, tuple) else ""
        yield TAG_VALUE, f"The value of the tag {shown} must be {words}.{guess}"
    elif key == "model" and value not in model_figures():
        guess = did_you_mean(value, model_figures())
        yield TAG_MODEL, f"The model {quote(value)} is not in the table.{guess}"


def _fits(key: str, value: str) -> bool:
    allowed, _ = _VALUES[key]
    if isinstance(allowed, tuple):
        return value in allowed
    return len(value) <= 200 and allowed.fullmatch(value) is not None


def _conflicts(definition: LoadedDefinition) -> Iterator[str]:
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
