"""Descriptions of definitions: the part that several share, and each one's own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from generator.dataset.definition import LoadedDefinition

_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_SENTENCE = re.compile(r"(?<=\.) (?=[^\W\d])")


def shared_tags(definitions: Sequence[LoadedDefinition]) -> tuple[str, ...]:
    """Return the tags that all definitions have, in the order of the first."""
    first, *others = definitions
    common = set(first.tags).intersection(*(other.tags for other in others))
    return tuple(tag for tag in first.tags if tag in common)


def shared_description(
    definitions: Sequence[LoadedDefinition], values: Sequence[Mapping[str, float]]
) -> tuple[str, list[str]]:
    """Return the sentences that all definitions have, and the others of each.

    `values` are the axes and constants of each definition. Sentences that differ only in
    numbers are shared where these numbers are the values of one axis or constant: its
    name stands in their place, as in "num_qo_heads query heads".
    """
    if len(definitions) == 1:
        return definitions[0].description, [""]
    lists = [_SENTENCE.split(d.description) for d in definitions]
    by_form = [{_NUMBER.sub("#", s): s for s in sentences} for sentences in lists]
    shared: dict[str, str] = {}
    for form in by_form[0]:
        if all(form in other for other in by_form):
            text = _in_names([other[form] for other in by_form], values)
            if text is not None:
                shared[form] = text
    rest = [
        " ".join(text for form, text in forms.items() if form not in shared)
        for forms in by_form
    ]
    return " ".join(shared.values()), rest


def grouped(
    texts: Sequence[str], values: Sequence[Mapping[str, float]]
) -> list[tuple[str, list[int]]]:
    """Return the texts that differ, each with its places; an empty one comes first.

    Texts are one where they differ only in numbers that have a name, as above.
    """
    by_form: dict[str, list[int]] = {}
    for place, text in enumerate(texts):
        by_form.setdefault(_NUMBER.sub("#", text), []).append(place)
    groups: dict[str, list[int]] = {}
    for places in by_form.values():
        named = _in_names([texts[i] for i in places], [values[i] for i in places])
        for place in places:
            text = texts[place] if named is None else named
            groups.setdefault(text, []).append(place)
    return sorted(groups.items(), key=lambda group: bool(group[0]))


def _in_names(
    sentences: Sequence[str], values: Sequence[Mapping[str, float]]
) -> str | None:
    """Return one sentence for several of one form; None if a number has no name."""
    if len(set(sentences)) == 1:
        return sentences[0]
    columns = zip(*(_NUMBER.findall(s) for s in sentences), strict=True)
    words = list(_words(columns, values))
    if None in words:
        return None
    left = iter(words)
    return _NUMBER.sub(lambda match: str(next(left)), sentences[0])


def _words(
    columns: Iterator[tuple[str, ...]], values: Sequence[Mapping[str, float]]
) -> Iterator[str | None]:
    """Yield what stands in the place of each number, None without a name."""
    used: set[str] = set()
    for column in columns:
        if len(set(column)) == 1:
            yield column[0]
            continue
        numbers = [float(number.replace(",", "")) for number in column]
        names = [
            name
            for name in values[0]
            if all(v.get(name) == n for v, n in zip(values, numbers, strict=True))
        ]
        # of two axes with equal values the sentence means one after the other
        name = next((n for n in names if n not in used), None)
        if name is not None:
            used.add(name)
        yield name
