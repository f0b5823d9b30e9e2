"""Choose the names in a rendered file: classes, shared references and interfaces."""

from __future__ import annotations

import keyword
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from generator.dataset.definition import LoadedDefinition

# a number of the geometry, unlike the 8 of fp8
_TOKEN = re.compile(r"(?!(?:fp|bf|int|mxfp|nvfp)\d)[a-z]+\d+")
_SNAKE = re.compile(r"[a-z_][a-z0-9_]*")


def class_names(names: Iterable[str]) -> list[str]:
    """Return a unique class name for each definition name.

    Later names are numbered where several, such as `a_b` and `aB`, give the same one.
    """
    return _unique(f"Test{_pascal(name)}" for name in names)


def base_class(op_type: str) -> str:
    """Return the name of the base class; pytest must not take it for a test class."""
    name = f"{_pascal(op_type)}Tests"
    return f"Op{name}" if name.startswith("Test") else name


def block_classes(base: str, references: Iterable[str]) -> list[str]:
    """Return a unique class name for the definitions of each reference.

    `base` is the class of the file. As there, pytest must not take one for a test class.
    """
    names = [f"{_pascal(r.removeprefix('reference_'))}Base" for r in references]
    _, *unique = _unique(
        [base, *(f"Op{n}" if n.startswith("Test") else n for n in names)]
    )
    return unique


def shared_names(groups: Sequence[Sequence[LoadedDefinition]]) -> list[str]:
    """Return a unique name for each group of definitions that share something.

    It is the common first words of the group's names (`gqa_paged_decode`), else
    the most that they have in common (`rmsnorm`), or the kernel's name if that is more
    specific (`gemma_rmsnorm`). The parts that all of the
    group have and another group of these words lacks (`ps1`) follow.
    """
    stems = [_stem(group) for group in groups]
    rivals = Counter(stems)
    # how many groups of a stem have a part in some name: a rival lacks it if not all
    having = Counter(
        (stem, part)
        for group, stem in zip(groups, stems, strict=True)
        for part in {part for d in group for part in d.name.split("_")}
    )

    def name(group: Sequence[LoadedDefinition], stem: str) -> str:
        def is_rare(part: str) -> bool:
            return having[stem, part] < rivals[stem]

        return "_".join([stem, *_distinguishing(group, is_rare)])

    return _unique(map(name, groups, stems))


def _stem(group: Sequence[LoadedDefinition]) -> str:
    words = [_words(definition.name) for definition in group]
    shared = words[0]
    for other in words[1:]:
        shared = shared[: _common(shared, other)]
    stem = "_".join(shared or _longest_run(words) or words[0]) or "shared"
    kernels = {_kernel(definition) for definition in group}
    if len(kernels) == 1:
        kernel = kernels.pop()
        if kernel != stem and kernel.endswith(f"_{stem}"):
            return kernel
    return stem


def _longest_run(lists: Sequence[list[str]]) -> list[str]:
    """Return the longest run of words that all lists have, the first of several."""
    first = lists[0]
    runs = (first[i:j] for i in range(len(first)) for j in range(len(first), i, -1))
    shared = (run for run in runs if all(_has(words, run) for words in lists))
    return max(shared, key=len, default=[])


def _has(words: list[str], run: list[str]) -> bool:
    return any(words[i : i + len(run)] == run for i in range(len(words)))


def _kernel(definition: LoadedDefinition) -> str:
    """Return the last part of the function that a definition's first tag names."""
    named = [value.rpartition(".")[2] for value in definition.tag_values("fi_api")]
    return named[0] if named and _SNAKE.fullmatch(named[0]) else ""


def _words(name: str) -> list[str]:
    """Return the words of a name before its first token with a number."""
    words: list[str] = []
    for word in name.split("_"):
        if words and _TOKEN.fullmatch(word):
            break
        words.append(re.sub(r"\W", "", word))
    return words


def _common(left: Sequence[str], right: Sequence[str]) -> int:
    pairs = zip(left, right, strict=False)
    return next(
        (i for i, (a, b) in enumerate(pairs) if a != b), min(len(left), len(right))
    )


def _distinguishing(
    group: Sequence[LoadedDefinition], is_rare: Callable[[str], bool]
) -> list[str]:
    """Return the parts of names that all of a group have, and all of a rival lack."""
    names = [d.name.split("_") for d in group]
    shared = set(names[0]).intersection(*names[1:])
    return [
        part
        for part in names[0][len(_words(group[0].name)) :]
        if part in shared and is_rare(part)
    ]


def _unique(names: Iterable[str]) -> list[str]:
    taken: Counter[str] = Counter()
    # a dict keeps the order
    result: dict[str, None] = {}
    for name in names:
        candidate = name
        while candidate in result:
            taken[name] += 1
            candidate = f"{name}_{taken[name] + 1}"
        result[candidate] = None
    return list(result)


def _pascal(name: str) -> str:
    words = "".join(word[:1].upper() + word[1:] for word in name.split("_"))
    return f"{words}_" if keyword.iskeyword(words) else words
