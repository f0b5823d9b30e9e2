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
_UNSEEN = ("Cc", "Cf", "Zl", "Zp", "Co")
# letters and marks without a shape: fillers of Hangul, variations of a glyph
_SHAPELESS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0") | {
    chr(code) for code in (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))
}


def check(definition: LoadedDefinition) -> Iterator[Problem]:
    """Yield a Problem for the first such character of a reference."""
    text = definition.reference
    if _PLAIN.fullmatch(text):
        return
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        for char in line:
            is_unseen = unicodedata.category(char) in _UNSEEN or char in _SHAPELESS
            if is_unseen and char != "\t":
                name = unicodedata.name(char, "a control character")
                message = (
                    f"The reference has U+{ord(char):04X} ({name}) in {quote(line)}."
                )
                yield REFERENCE_HIDDEN.at(message, "reference", line=number)
                return
