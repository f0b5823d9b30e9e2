"""Read a JSON or JSON Lines file strictly: a value or Problems, never an exception."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from generator.dataset.file_reading import FILE_TOO_LARGE, read_text_file
from generator.problems import MAX_PROBLEMS, Problem, Rule, blocking, limited, warning
from generator.problems.messages import one_line, plural, quote

JSON_ENCODING = blocking("""json-encoding: The file's bytes are not UTF-8.
    Fix: Save the file as UTF-8 without a byte order mark.
    Finds: a description saved as Latin-1""")
JSON_BOM = blocking("""json-bom: The file begins with a byte order mark, which many JSON
    readers refuse.
    Fix: Save the file as UTF-8 without a byte order mark.
    Finds: a file saved by an editor as UTF-8 with signature""")
JSON_SYNTAX = blocking("""json-syntax: The text is not JSON.
    Fix: Correct the text at that place.
    Finds: `{"name": "gemm_n8_k4",}`, a comma too many""")
JSON_DEPTH = blocking("""json-depth: The JSON is nested deeper than any real file.
    Fix: Flatten the value.
    Finds: `[[[[...]]]]`, 10,000 levels of it""")
JSON_DUPLICATE_KEY = blocking("""json-duplicate-key: An object has one key twice;
    readers disagree about which one counts.
    Fix: Keep one of them.
    Finds: `{"N": {...}, "N": {...}}` in axes""")
JSON_NAN = blocking("""json-nan: NaN and Infinity are not JSON.
    Fix: Use a finite number, or null where the format allows it.
    Finds: `{"type": "scalar", "value": NaN}`""")
JSON_NUMBER = blocking("""json-number: A number is too large to be represented.
    Fix: Use a number that fits 64 bits.
    Finds: `{"value": 1e999}`""")
JSON_SURROGATE = blocking("""json-surrogate: A string has half of a surrogate pair,
    which is not a character.
    Fix: Write the whole character.
    Finds: `"\\ud800"` without the other half""")
JSONL_BLANK_LINE = warning("""jsonl-blank-line: A JSON Lines file has an empty line
    between others.
    Fix: Remove the empty line.
    Finds: an empty line between two workloads""")

MAX_BYTES = 16 * 1024 * 1024
"""Largest file that is read; real ones have a few hundred KiB at most."""

MAX_DEPTH = 64
"""Levels of arrays and objects; a definition needs 4, a trace about 6."""

MAX_VALUES = 500_000
"""Commas of the largest JSON text that is parsed: the evidence of thousands of runs."""

MAX_SMALL = 50_000
"""Commas of the largest definition, solution or line of a file; real ones have hundreds."""

_MAX_DIGITS = 40
_BOM = b"\xef\xbb\xbf"
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_BRACKET = re.compile(r"[\[\]{}]")
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
# a regular expression would take longer than parsing does
_DIGITS_ALIKE = bytes.maketrans(b"123456789", b"0" * 9)
_LONG_NUMBER = b"0" * _MAX_DIGITS


@dataclass(frozen=True)
class JsonFile:
    """The value of one text; `ok` is False where there is none.

    `sha256` is the digest of the file's bytes, empty if they could not be read.
    """

    value: Any
    problems: tuple[Problem, ...] = ()
    ok: bool = True
    sha256: str = ""


@dataclass(frozen=True)
class JsonLines:
    """The values of a JSON Lines file with the number of each one's line.

    `count` is the number of lines that are not empty, whether they parse or not.
    """

    lines: tuple[tuple[int, Any], ...]
    problems: tuple[Problem, ...]
    count: int = 0


def read_json(root: Path, file: str, max_values: int = MAX_VALUES) -> JsonFile:
    """Read the JSON file `file`, a path relative to `root`; raises nothing."""
    data = read_text_file(root, file, MAX_BYTES)
    if isinstance(data, Problem):
        return JsonFile(None, (data,), ok=False)
    return json_of(data, file, max_values)


def json_of(data: bytes, file: str, max_values: int = MAX_VALUES) -> JsonFile:
    """Return what the content of a JSON file is, with its SHA-256; raises nothing."""
    return replace(
        parse(data, file, None, max_values), sha256=hashlib.sha256(data).hexdigest()
    )


def read_json_lines(root: Path, file: str) -> JsonLines:
    """Read the JSON Lines file `file`; a wrong line does not hide those after it."""
    data = read_text_file(root, file, MAX_BYTES)
    if isinstance(data, Problem):
        return JsonLines((), (data,))
    lines: list[tuple[int, Any]] = []
    problems: list[Problem] = []
    count = 0
    # Not splitlines(): JSON strings may hold U+2028 and the like as they are.
    for number, raw in enumerate(data.rstrip().split(b"\n") if data.strip() else (), 1):
        if not raw.strip():
            message = f"Line {number} is empty."
            problems.append(JSONL_BLANK_LINE.problem(file, message, line=number))
            continue
        count += 1
        parsed = parse(raw, file, number, MAX_SMALL)
        if number == 1 and not parsed.ok and parse(data, file).ok:
            # an editor's layout of one value: each of its lines would be an error
            message = "One JSON value goes over several lines of a JSON Lines file."
            fix = "Write each value on one line of its own."
            problem = JSON_SYNTAX.problem(file, message, line=1, fix=fix)
            return JsonLines((), (problem,), 1)
        problems += parsed.problems
        if parsed.ok:
            lines.append((number, parsed.value))
        if len(problems) > MAX_PROBLEMS:
            break
    return JsonLines(tuple(lines), limited(problems, file), count)


@dataclass(frozen=True)
class _Odd:
    """A bad number, or an object with a key twice, until its place is known."""

    rule: Rule
    content: Any


def parse(
    data: bytes, file: str, line: int | None = None, max_values: int = MAX_VALUES
) -> JsonFile:
    """Return the value of a JSON text, and the Problems of the text.

    Duplicate keys keep the last value and a bad number becomes 0, so that the rest
    can be checked in the same pass. `line` is where the text stands in a JSON Lines
    file; without it a syntax error carries its own line. More than `max_values` commas
    are not parsed: a value takes a hundred times the memory of its text.
    """
    problems: list[Problem] = []
    odd: list[_Odd] = []
    if data.startswith(_BOM) and line in (None, 1):
        data = data[len(_BOM) :]
        problems.append(JSON_BOM.at("The file begins with a byte order mark."))
    value, ok = None, False
    try:
        text = data.decode("utf-8")
        if len(text) > max_values and text.count(",") > max_values:
            message = (
                f"The JSON has over {max_values:,} commas, more than any real one."
            )
            problems.append(FILE_TOO_LARGE.at(message))
        elif _is_deep(text):
            message = f"The JSON is nested more than {MAX_DEPTH} levels deep."
            problems.append(JSON_DEPTH.at(message))
        else:
            try:
                value = _without_odd(data, text)
            except ValueError:
                value = _with_odd(text, odd)
            ok = True
    except UnicodeDecodeError as error:
        start = error.start
        message = f"Byte {start} is 0x{data[start]:02x}, which is not UTF-8 here."
        place = data.count(b"\n", 0, start) + 1
        problems.append(JSON_ENCODING.at(message, line=line or place))
    except json.JSONDecodeError as error:
        message = _syntax(text, error, line)
        problems.append(JSON_SYNTAX.at(message, line=line or error.lineno))
    if ok and (odd or _ESCAPED_SURROGATE.search(text)):
        value = _mended(value, (), problems)
    if not problems:
        return JsonFile(value)
    return JsonFile(value, limited(problems, file, line), ok)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key appears twice")
    return value


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


_PLAIN = json.JSONDecoder(
    object_pairs_hook=_distinct, parse_float=_finite, parse_constant=_finite
)


def _without_odd(data: bytes, text: str) -> Any:
    """Return the value of a text in which nothing is odd, in two thirds of the time.

    Raises ValueError for any other.
    """
    if _LONG_NUMBER in data.translate(_DIGITS_ALIKE):
        raise ValueError("a number may be too long")
    return _PLAIN.decode(text)


def _with_odd(text: str, odd: list[_Odd]) -> Any:
    """Return the value of a text; put into `odd` what stands in it for what is odd.

    Raises JSONDecodeError.
    """

    def number(text: str, kind: Callable[[str], float]) -> Any:
        # int() of thousands of digits is quadratic, and refused since Python 3.11
        fits = len(text) <= _MAX_DIGITS if kind is int else math.isfinite(float(text))
        return kind(text) if fits else stand_in(JSON_NUMBER, text)

    def stand_in(rule: Rule, content: Any) -> Any:
        odd.append(_Odd(rule, content))
        return odd[-1]

    def on_object(pairs: list[tuple[str, Any]]) -> Any:
        value = dict(pairs)
        return (
            value if len(value) == len(pairs) else stand_in(JSON_DUPLICATE_KEY, pairs)
        )

    return json.loads(
        text,
        object_pairs_hook=on_object,
        parse_constant=lambda text: stand_in(JSON_NAN, text),
        parse_int=partial(number, kind=int),
        parse_float=partial(number, kind=float),
    )


def _is_deep(text: str) -> bool:
    """Return whether the brackets outside of strings are nested too deep."""
    depth = 0
    if text.count("[") + text.count("{") > MAX_DEPTH:
        outside = "".join(_ESCAPED.sub("", text).split('"')[::2])
        for bracket in _BRACKET.finditer(outside):
            depth += 1 if bracket[0] in "[{" else -1
            if depth > MAX_DEPTH:
                return True
    return False


def _syntax(text: str, error: json.JSONDecodeError, line: int | None) -> str:
    if not text.strip():
        return "The text is empty."
    if error.pos >= len(text.rstrip()):
        return "The text ends before the JSON value does."
    place = f"line {error.lineno}, column" if line is None else "column"
    return f"Not JSON at {place} {error.colno}: {one_line(error.msg)}."


def _mended(value: Any, path: tuple[str | int, ...], problems: list[Problem]) -> Any:
    """Return the value without stand-ins; put what is odd below `path` into `problems`."""

    def report(rule: Rule, what: str, *more: str) -> None:
        # the rest would not be listed
        if len(problems) <= MAX_PROBLEMS:
            problems.append(rule.at(f"The {what}.", *path, *more))

    def text(kind: str, value: str) -> None:
        if any("\ud800" <= c <= "\udfff" for c in value):
            report(
                JSON_SURROGATE, f"{kind} {quote(value)} has half of a surrogate pair"
            )

    pairs: Sequence[tuple[str, Any]] = ()
    match value:
        case str():
            text("string", value)
        case list():
            return [_mended(item, (*path, i), problems) for i, item in enumerate(value)]
        case dict():
            pairs = list(value.items())
        case _Odd(rule, list() as pairs):
            for name, count in Counter(name for name, _ in pairs).items():
                if count > 1:
                    times = plural(count, "time")
                    report(
                        rule, f"key {quote(name)} appears {times} in one object", name
                    )
        case _Odd(rule, number):
            what = "is not JSON" if rule is JSON_NAN else "is too large"
            report(rule, f"number {one_line(number, 30)} {what}")
            return 0
    if not pairs:
        return value
    mended = {}
    for name, child in pairs:
        text("key", name)
        mended[name] = _mended(child, (*path, name), problems)
    return mended
