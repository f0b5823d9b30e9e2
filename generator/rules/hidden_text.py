"""Characters that no reader sees, and names of letters that look like others.

A text with them looks different from what Python runs, or from what a program reads.
"""

from __future__ import annotations

import re
import tokenize
import unicodedata
from collections.abc import Iterator, Mapping
from io import StringIO
from typing import Any

from generator.dataset.definition import LoadedAxis, LoadedDefinition, LoadedTensor
from generator.problems import Problem, error
from generator.problems.messages import quote

REFERENCE_HIDDEN = error("""reference-hidden: The reference has a character that no reader
    sees: one that turns the direction of text, has no width, or ends a line for an
    editor and not for Python. Or it has a name of other letters than those of ASCII, of
    which some look like these.
    Fix: Take it out, or write it as an escape, such as "\\u202e".
    Finds: a comment with U+202E, after which a line reads backwards""")
TEXT_HIDDEN = error("""text-hidden: A description has a character that no reader sees: one
    that turns the direction of text, moves a terminal's cursor, or has no width.
    Fix: Take it out.
    Finds: U+E0041, a tag that agents read and people don't""")
SOLUTION_HIDDEN = error("""solution-hidden: A source of a solution has a character that no
    reader sees.
    Fix: Take it out, or write it as an escape of the language.
    Finds: a comment with U+202E, after which a line of code reads as a part of it""")

# ends of lines for Python, and tabs
_PLAIN = re.compile(r"[\t\n\r\x20-\x7e]*")
_LINE_END = re.compile(r"\r\n|\r|\n")
# PEP 263: what such a comment says of the first two lines of a file
_CODING = re.compile(r"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_USUAL = re.compile(r"utf[-_]?8|ascii", re.IGNORECASE)
_UNSEEN = ("Cc", "Cf", "Zl", "Zp", "Co")
# letters and marks without a shape: fillers of Hangul, variations of a glyph
_SHAPELESS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0") | {
    chr(code) for code in (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))
}
# an emoji is several characters: joined, or a letter as a picture
_OF_EMOJI = "\u200d\ufe0e\ufe0f"


def check(definition: LoadedDefinition) -> Iterator[Problem]:
    """Yield a Problem for the first such character of each text, or a text's coding."""
    yield from _of_reference(definition.reference)
    described: tuple[tuple[str, Mapping[str, LoadedAxis | LoadedTensor]], ...] = (
        ("axes", definition.axes),
        ("inputs", definition.inputs),
        ("outputs", definition.outputs),
    )
    texts: dict[tuple[str, ...], str] = {(): definition.description}
    for group, parts in described:
        texts |= {(group, name): part.description for name, part in parts.items()}
    for where, text in texts.items():
        if (hidden := first_hidden(text)) is not None:
            message = f"The description has {hidden[1]}."
            yield TEXT_HIDDEN.at(message, *where, "description")


def check_solution(value: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield a Problem for the first such character of each source of a solution."""
    for index, source in enumerate(value["sources"]):
        if (hidden := first_hidden(source["content"], _OF_EMOJI)) is not None:
            line, what = hidden
            message = f"The source {quote(source['path'], 200)} has {what}."
            yield SOLUTION_HIDDEN.at(message, "sources", index, "content", line=line)


def first_hidden(text: str, allowed: str = "") -> tuple[int, str] | None:
    """Return the line and the name of the first character that no reader sees."""
    if _PLAIN.fullmatch(text):
        return None
    for number, line in enumerate(_LINE_END.split(text), 1):
        for char in line:
            is_unseen = unicodedata.category(char) in _UNSEEN or char in _SHAPELESS
            if is_unseen and char != "\t" and char not in allowed:
                name = unicodedata.name(char, "a control character")
                return number, f"U+{ord(char):04X} ({name}) in {quote(line)}"
    return None


def is_shown_whole(data: bytes) -> bool:
    """Return whether a page is UTF-8 of which a reader sees each character."""
    try:
        return first_hidden(data.decode("utf-8"), _OF_EMOJI) is None
    except UnicodeDecodeError:
        return False


def _of_reference(text: str) -> Iterator[Problem]:
    for number, line in enumerate(_LINE_END.split(text, 2)[:2], 1):
        named = _CODING.match(line)
        if named and not _USUAL.fullmatch(named[1]):
            message = f"The reference says that it is {quote(named[1], 40)}."
            yield REFERENCE_HIDDEN.at(message, "reference", line=number)
            return
    if _PLAIN.fullmatch(text):
        return
    hidden = first_hidden(text) or _foreign_name(text)
    if hidden is not None:
        line_number, what = hidden
        message = f"The reference has {what}."
        yield REFERENCE_HIDDEN.at(message, "reference", line=line_number)


def _foreign_name(text: str) -> tuple[int, str] | None:
    """Return the line of the first name that has other letters than ASCII's.

    Python takes some for the letters that they look like, and others for new names.
    """
    try:
        for token in tokenize.generate_tokens(StringIO(text).readline):
            if token.type == tokenize.NAME and not token.string.isascii():
                return token.start[0], f"the name {ascii(token.string)[:60]}"
    except (tokenize.TokenError, SyntaxError):
        # no Python: rules of the group reference say so
        pass
    return None
