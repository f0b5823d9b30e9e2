"""Characters of a reference that no reader sees: what is shown is not what runs."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from generator.dataset.definition import LoadedDefinition
from generator.problems import Problem, error
from generator.problems.messages import quote

REFERENCE_HIDDEN = error("""reference-hidden: The reference has a character that no reader
    sees: one that turns the direction of text, has no width, or ends a line for an
    editor and not for Python.
    Fix: Take it out, or write it as an escape, such as "\\u202e".
    Finds: a comment with U+202E, after which a line reads backwards""")

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


def check(definition: LoadedDefinition) -> Iterator[Problem]:
    """Yield a Problem for the first such character of a reference, or its coding."""
    text = definition.reference
    for number, line in enumerate(_LINE_END.split(text, 2)[:2], 1):
        named = _CODING.match(line)
        if named and not _USUAL.fullmatch(named[1]):
            message = f"The reference says that it is {quote(named[1], 40)}."
            yield REFERENCE_HIDDEN.at(message, "reference", line=number)
            return
    if _PLAIN.fullmatch(text):
        return
    for number, line in enumerate(_LINE_END.split(text), 1):
        for char in line:
            is_unseen = unicodedata.category(char) in _UNSEEN or char in _SHAPELESS
            if is_unseen and char != "\t":
                name = unicodedata.name(char, "a control character")
                message = (
                    f"The reference has U+{ord(char):04X} ({name}) in {quote(line)}."
                )
                yield REFERENCE_HIDDEN.at(message, "reference", line=number)
                return
