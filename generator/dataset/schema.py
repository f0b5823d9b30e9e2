"""Check a JSON value against one of the format's schemas, one sentence for each error.

jsonschema-rs finds the errors; the sentences about them are ours.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from jsonschema_rs import Draft202012Validator

from generator.dataset.json_file import (
    JSON_NAN,
    JSON_NUMBER,
    MAX_BYTES,
    MAX_SMALL,
    MAX_VALUES,
    JsonFile,
    JsonLines,
    json_of,
    read_json,
    read_json_lines,
)
from generator.problems import MAX_PROBLEMS, Problem, Rule, blocking, limited
from generator.problems.messages import did_you_mean, listing, plural, quote, show

NAME_UNSAFE = blocking("""name-unsafe: A name can't be used as an identifier.
    Fix: Use letters, digits and underscores, begin with a letter, at most 200.
    Finds: `"axes": {"../x": ...}`, or an input named `lambda`""")
SCHEMA_MISSING_FIELD = blocking("""schema-missing-field: A required field is missing.
    Fix: Add the field.
    Finds: a definition without `reference`""")
SCHEMA_UNKNOWN_FIELD = blocking("""schema-unknown-field: A field is not one of the
    format's.
    Fix: Remove the field or correct its name.
    Finds: `"descriptoin": "..."`""")
SCHEMA_TYPE = blocking("""schema-type: A value has the wrong JSON type.
    Fix: Write a value of the right type.
    Finds: `"tags": "fused"`, not an array""")
SCHEMA_VALUE = blocking("""schema-value: A value is of the right type but not allowed.
    Fix: Write one of the allowed values.
    Finds: `"dtype": "bf16"`""")

Kind = Literal[
    "definition",
    "workload",
    "solution",
    "trace",
    "audit",
    "evidence",
    "result",
    "loadable-solution",
    "loadable-trace",
]

_NO_FLOAT = "x-no-float"
_FIELDS = "fields"
_NAME = "^[A-Za-z][A-Za-z0-9_]*$"
_SURROGATE = re.compile("[\ud800-\udfff]")
_DUMP_FIELDS = frozenset(("init", "check", "param"))
_DUMP_FIX = (
    "This field is of FlashInfer's own dumps: convert the dump to a definition, "
    "whose reference has a top-level `run`."
)


def read_checked(root: Path, file: str, kind: Kind) -> JsonFile:
    """Read a JSON file of a kind; `ok` is False where it does not fit the schema."""
    is_small = kind in ("definition", "solution")
    return _checked(
        read_json(root, file, MAX_SMALL if is_small else MAX_VALUES), kind, file
    )


def checked_definition(data: bytes, file: str) -> JsonFile:
    """Return the content of a definition's file, as `read_checked` does."""
    if len(data) > MAX_BYTES:
        return JsonFile(None, (), ok=False)
    return _checked(json_of(data, file, MAX_SMALL), "definition", file)


def _checked(read: JsonFile, kind: Kind, file: str) -> JsonFile:
    if not read.ok:
        return read
    broken = check(read.value, kind, file)
    problems = (*read.problems, *_at_new_places(broken, read.problems))
    # where a number can't be read a 0 stands, of which no rule is to speak
    unread = any(p.rule in (JSON_NAN.id, JSON_NUMBER.id) for p in read.problems)
    return replace(read, problems=problems, ok=not (broken or unread))


def read_checked_lines(root: Path, file: str, kind: Kind) -> JsonLines:
    """Read a JSON Lines file of a kind; `lines` are those that fit the schema."""
    read = read_json_lines(root, file)
    problems, lines = [*read.problems], []
    for number, value in read.lines:
        broken = check(value, kind, file, number)
        if not broken:
            lines.append((number, value))
        elif len(problems) <= MAX_PROBLEMS:
            problems += _at_new_places(broken, read.problems)
    return JsonLines(tuple(lines), limited(problems, file), read.count)


def check(
    value: Any, kind: Kind, file: str, line: int | None = None
) -> tuple[Problem, ...]:
    """Return a Problem for each error of a JSON value.

    `file` and `line` are the place of the value. All problems are found in one pass;
    where an object has a `type`, only the branch that it names is checked.
    """
    validator = _validator(kind)
    try:
        if validator.is_valid(value):
            return ()
        errors = dict.fromkeys(map(_broken, validator.evaluate(value).errors()))
    except UnicodeEncodeError:
        # half of a surrogate pair is no UTF-8, and another character to the schemas
        text = json.dumps(value, ensure_ascii=False)
        return check(json.loads(_SURROGATE.sub("\ufffd", text)), kind, file, line)
    schema = load_schema(kind)
    problems = (
        problem for error in errors for problem in _explain(value, schema, *error)
    )
    return limited(problems, file, line)


def foremost(problems: Sequence[Problem]) -> Problem:
    """Return the first Problem; before all one of the format, which explains the others."""
    return next((p for p in problems if p.pointer == "/format"), problems[0])


def _at_new_places(
    problems: Iterable[Problem], before: Iterable[Problem]
) -> Iterator[Problem]:
    """Yield the Problems of places of which none in `before` is.

    What the JSON itself got wrong needs no second Problem at the same place.
    """
    known = {(p.line, p.pointer) for p in before if p.pointer}
    return (p for p in problems if (p.line, p.pointer) not in known)


@lru_cache
def load_schema(kind: Kind) -> dict[str, Any]:
    """Return the packaged schema of `kind`, every integer marked as no float."""
    text = (Path(__file__).parent / "schemas" / f"{kind}.schema.json").read_text(
        "utf-8"
    )
    schema: dict[str, Any] = json.loads(text, object_hook=_marked)
    return schema


def _marked(schema: dict[str, Any]) -> dict[str, Any]:
    return {**schema, _NO_FLOAT: True} if schema.get("type") == "integer" else schema


@lru_cache
def _validator(kind: Kind) -> Draft202012Validator:
    return Draft202012Validator(load_schema(kind), keywords={_NO_FLOAT: _NoFloat})


class _NoFloat:
    """The keyword that refuses 4096.0, an integer to JSON Schema and no size to torch."""

    def __init__(self, schema: Any, value: Any, path: Any) -> None:
        """Take what jsonschema-rs passes to a keyword of ours."""

    def validate(self, value: Any) -> None:
        """Raise TypeError for a float without a fraction."""
        if isinstance(value, float) and value.is_integer():
            raise TypeError("a float")


def _broken(error: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return the pointer to a schema, the keyword that is broken, and the value's place.

    Fields that are missing or unknown come one by one, and some at the other's keyword.
    """
    within, _, keyword = error["schemaLocation"].rpartition("#")[2].rpartition("/")
    is_of_fields = keyword in ("required", "additionalProperties")
    return within, _FIELDS if is_of_fields else keyword, error["instanceLocation"]


def _explain(
    value: Any, schema: Any, within: str, keyword: str, place: str
) -> Iterator[Problem]:
    """Yield the Problems of one error that `_broken` names."""
    (*_, parent), _ = _walked(schema, within)
    (*_, instance), path = _walked(value, place)
    if keyword == _FIELDS:
        yield from _of_fields(parent, instance, path)
        return
    wanted = parent[keyword]
    if keyword == "type" and "number" in wanted and isinstance(instance, float):
        return  # NaN and Infinity, which a run's results may have
    if wanted is False:
        message = f"The field {_last(path)} does not belong to this type."
        fix = "Remove the field or correct `type`."
        yield SCHEMA_UNKNOWN_FIELD.at(message, *path, fix=fix)
    elif parent.get("pattern") == _NAME and keyword != "type":
        # of an object, its keys are the names
        is_value = isinstance(instance, str)
        for name in [instance] if is_value else instance:
            is_long = len(name) > parent["maxLength"]
            if is_long if keyword == "maxLength" else not re.fullmatch(_NAME, name):
                message = f"The name {quote(name)} can't be used as an identifier."
                yield NAME_UNSAFE.at(message, *path, *(() if is_value else [name]))
    else:
        rule, what = _judged(keyword, wanted, parent, instance)
        yield rule.at(f"{_last(path) if path else 'The value'} {what}", *path)


def _of_fields(schema: Any, value: Any, path: list[str | int]) -> Iterator[Problem]:
    """Yield a Problem for each field that an object lacks, or should not have."""
    where = f" in {_last(path)}" if path else ""
    for field in (f for f in schema.get("required", ()) if f not in value):
        message = f"The field {quote(field)} is missing{where}."
        fix = f"Add the field {quote(field)}."
        yield SCHEMA_MISSING_FIELD.at(message, *path, fix=fix)
    if schema.get("additionalProperties") is not False:
        return
    known = schema["properties"]
    absent = [field for field in known if field not in value]
    for field in (f for f in value if f not in known):
        message = f"The field {quote(field)} is unknown{where}."
        if not path and field in _DUMP_FIELDS:
            yield SCHEMA_UNKNOWN_FIELD.at(message, field, fix=_DUMP_FIX)
        else:
            message += did_you_mean(field, absent)
            yield SCHEMA_UNKNOWN_FIELD.at(message, *path, field)


def _judged(keyword: str, wanted: Any, schema: Any, value: Any) -> tuple[Rule, str]:
    """Return the rule that a value breaks by one keyword, and the end of a message."""
    shown = show(value)
    match keyword:
        case "type" | "x-no-float":
            types = schema["type"]
            names = [types] if isinstance(types, str) else types
            allowed = " or ".join(_NOUNS.get(name, f"a {name}") for name in names)
            return SCHEMA_TYPE, f"must be {allowed}, is {shown}."
        case "pattern":
            like = "".join(
                f", as {show(e)} has" for e in schema.get("examples", ())[:1]
            )
            what = f"is {shown}, which does not have the right form{like}."
        case "enum":
            what = f"must be one of {listing(wanted)}, is {shown}."
            if isinstance(value, str):
                what += did_you_mean(value, wanted)
        case _:
            # minLength, maxItems and the like; minimum and maximum
            side = "at least" if keyword.startswith("min") else "at most"
            noun = {"L": "character", "I": "item", "P": "field"}.get(keyword[3])
            what = f"must be {side} {wanted}, is {shown}."
            if noun is not None:
                what = f"must have {side} {plural(wanted, noun)}, has {len(value)}."
    return SCHEMA_VALUE, what


_NOUNS: Mapping[str, str] = {
    "object": "an object",
    "array": "an array",
    "integer": "an integer",
    "boolean": "true or false",
    "null": "null",
}


def _walked(value: Any, place: str) -> tuple[list[Any], list[str | int]]:
    """Return the values on the way to a pointer's place, and the steps of the way."""
    values, steps = [value], list[str | int]()
    for token in place.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        steps.append(int(name) if isinstance(value, list) else name)
        value = value[steps[-1]]
        values.append(value)
    return values, steps


def _last(path: list[str | int]) -> str:
    """Return how to name the last step of a path: `'shape'`, `'tags' item 2`."""
    *before, last = path
    return quote(last) if isinstance(last, str) else f"{_last(before)} item {last}"
