"""Check a JSON value against one of the format's schemas, one sentence an error.

jsonschema-rs decides, in microseconds; jsonschema explains what it refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jsonschema_rs import Draft202012Validator

from generator.dataset.json_file import JsonFile, JsonLines, read_json, read_json_lines
from generator.problems import Problem
from generator.problems.limit import MAX_PROBLEMS, limited
from generator.problems.messages import did_you_mean, listing, plural, quote, show
from generator.problems.rule import blocking

if TYPE_CHECKING:
    from jsonschema import ValidationError
    from jsonschema.protocols import Validator

NAME_UNSAFE = blocking(
    "name-unsafe",
    "A name can't be used as an identifier.",
    "Use letters, digits and underscores, begin with a letter, at most 200.",
    '`"axes": {"../x": ...}`, or an input named `lambda`',
)
SCHEMA_MISSING_FIELD = blocking(
    "schema-missing-field",
    "A required field is missing.",
    "Add the field.",
    "a definition without `reference`",
)
SCHEMA_UNKNOWN_FIELD = blocking(
    "schema-unknown-field",
    "A field is not one of the format's.",
    "Remove the field or correct its name.",
    '`"descriptoin": "..."`',
)
SCHEMA_TYPE = blocking(
    "schema-type",
    "A value has the wrong JSON type.",
    "Write a value of the right type.",
    '`"tags": "fused"`, not an array',
)
SCHEMA_VALUE = blocking(
    "schema-value",
    "A value is of the right type but not allowed.",
    "Write one of the allowed values.",
    '`"dtype": "bf16"`',
)


Kind = Literal[
    "definition", "workload", "solution", "trace", "audit", "evidence", "result"
]

_DUMP_FIELDS = frozenset(("init", "check", "param"))
_DUMP_FIX = (
    "This field is of FlashInfer's own dumps: convert the dump to a definition, "
    "whose reference has a top-level `run`."
)


def read_checked(root: Path, file: str, kind: Kind) -> JsonFile:
    """Read a JSON file of a kind; `ok` is False where it does not fit the schema."""
    read = read_json(root, file)
    if not read.ok:
        return read
    broken = check(read.value, kind, file)
    problems = (*read.problems, *_at_new_places(broken, read.problems))
    return replace(read, problems=problems, ok=not broken)


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
    if _fits(value, kind):
        return ()
    errors = _validator(kind).iter_errors(value)
    return limited(map(_explain, errors), file, line)


def _fits(value: Any, kind: Kind) -> bool:
    try:
        return _fast_validator(kind).is_valid(value)
    except UnicodeEncodeError:
        return False  # half of a surrogate pair: jsonschema can judge it


def _at_new_places(
    found: Iterable[Problem], before: Iterable[Problem]
) -> Iterator[Problem]:
    """Yield the Problems of places of which none in `before` is.

    What the JSON itself got wrong needs no second Problem at the same place.
    """
    known = {(p.line, p.pointer) for p in before if p.pointer}
    return (p for p in found if (p.line, p.pointer) not in known)


@lru_cache
def load_schema(kind: Kind) -> dict[str, Any]:
    """Return the packaged schema of `kind`."""
    path = Path(__file__).parent / "schemas" / f"{kind}.schema.json"
    schema: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return schema


@lru_cache
def _fast_validator(kind: Kind) -> Draft202012Validator:
    schema = _adapted(load_schema(kind), _integers_marked)
    return Draft202012Validator(schema, keywords={_NO_FLOAT: _NoFloat})


@lru_cache
def _validator(kind: Kind) -> Validator:
    # Imported here: it takes 70 ms, and a dataset without errors does not need it.
    from jsonschema import Draft202012Validator, ValidationError
    from jsonschema.validators import extend

    # a validator of ours yields one error a field, whose message is the field:
    # jsonschema's own are sentences, and come in a set's order
    def required(
        validator: Any, fields: list[str], instance: Any, schema: Any
    ) -> Iterator[ValidationError]:
        for field in fields:
            if isinstance(instance, dict) and field not in instance:
                yield ValidationError(field)

    def additional(
        validator: Any, child: Any, instance: Any, schema: Any
    ) -> Iterator[ValidationError]:
        for field in instance if isinstance(instance, dict) else ():
            if field not in schema.get("properties", {}):
                if child is False:
                    yield ValidationError(field, path=(field,))
                else:
                    yield from validator.descend(instance[field], child, path=field)

    own = {"required": required, "additionalProperties": additional}
    types = Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda checker, value: type(value) is int
    )
    make: Any = extend  # the stubs leave it untyped
    strict = make(Draft202012Validator, own, type_checker=types)
    validator: Validator = strict(_adapted(load_schema(kind), _for_jsonschema))
    return validator


def _adapted(schema: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """Return a copy of a schema in which every object was changed."""
    if isinstance(schema, list):
        return [_adapted(child, change) for child in schema]
    if not isinstance(schema, dict):
        return schema
    return change({key: _adapted(child, change) for key, child in schema.items()})


def _for_jsonschema(schema: dict[str, Any]) -> dict[str, Any]:
    """Mend what jsonschema does otherwise than ECMA's patterns and its own paths."""
    pattern = schema.get("pattern")
    if isinstance(pattern, str):
        # Python's `$` is also before a newline
        return {**schema, "pattern": re.sub(r"\$$", r"\\Z", pattern)}
    fields: dict[str, Any] = schema.get("properties", {})
    # the error of the schema `false` has the path of the object, not of the field
    never: Any = {name: {"not": {}} for name in fields if fields[name] is False}
    return {**schema, "properties": {**fields, **never}} if never else schema


def _integers_marked(schema: dict[str, Any]) -> dict[str, Any]:
    """Add a keyword of ours wherever the type is integer."""
    return {**schema, _NO_FLOAT: True} if schema.get("type") == "integer" else schema


_NO_FLOAT = "x-no-float"


class _NoFloat:
    """Refuse 4096.0, an integer to JSON Schema: a shape made of it fails in torch."""

    def __init__(self, schema: Any, value: Any, path: Any) -> None:
        """Take what jsonschema-rs passes to a keyword of ours."""

    def validate(self, value: Any) -> None:
        """Raise TypeError for a float."""
        if isinstance(value, float):
            raise TypeError("a float")


def _explain(error: ValidationError) -> Problem:
    """Return the Problem that one error stands for."""
    path = list(error.absolute_path)
    keyword = str(error.validator)
    instance: Any = error.instance
    schema: Any = error.schema
    wanted: Any = error.validator_value
    shown = show(instance)
    subject = _last(path) if path else "The value"
    of_names = "propertyNames" in error.absolute_schema_path
    if of_names:
        path.append(instance)
    is_name = schema.get("pattern", "").startswith("^[A-Za-z][") and keyword != "type"
    if of_names or is_name:
        message = f"The name {quote(instance)} can't be used as an identifier."
        return NAME_UNSAFE.at(message, *path)
    match keyword:
        case "required" | "additionalProperties":
            return _field(error, path)
        case "not":
            message = f"The field {subject} does not belong to this type."
            fix = "Remove the field or correct `type`."
            return SCHEMA_UNKNOWN_FIELD.at(message, *path, fix=fix)
        case "type":
            names = [wanted] if isinstance(wanted, str) else wanted
            allowed = " or ".join(_NOUNS.get(name, f"a {name}") for name in names)
            return SCHEMA_TYPE.at(f"{subject} must be {allowed}, is {shown}.", *path)
        case "pattern":
            what = f"is {shown}, which does not have the right form."
        case "enum":
            what = f"must be one of {listing(wanted)}, is {shown}."
            if isinstance(instance, str):
                what += did_you_mean(instance, wanted)
        case _:
            # minLength, maxItems and the like; minimum and maximum
            side = "at least" if keyword.startswith("min") else "at most"
            noun = {"L": "character", "I": "item", "P": "field"}.get(keyword[3])
            what = f"must be {side} {wanted}, is {shown}."
            if noun is not None:
                what = f"must have {side} {plural(wanted, noun)}, has {len(instance)}."
    return SCHEMA_VALUE.at(f"{subject} {what}", *path)


_NOUNS: Mapping[str, str] = {
    "object": "an object",
    "array": "an array",
    "integer": "an integer",
    "boolean": "true or false",
    "null": "null",
}


def _field(error: ValidationError, path: list[str | int]) -> Problem:
    """Return the Problem of a field that is missing, or that its object does not have."""
    schema: Any = error.schema
    instance: Any = error.instance
    field = error.message
    is_missing = error.validator == "required"
    parent = path if is_missing else path[:-1]
    where = f" in {_last(parent)}" if parent else ""
    if is_missing:
        message = f"The field {quote(field)} is missing{where}."
        fix = f"Add the field {quote(field)}."
        return SCHEMA_MISSING_FIELD.at(message, *path, fix=fix)
    message = f"The field {quote(field)} is unknown{where}."
    if not parent and field in _DUMP_FIELDS:
        return SCHEMA_UNKNOWN_FIELD.at(message, *path, fix=_DUMP_FIX)
    absent = [known for known in schema["properties"] if known not in instance]
    return SCHEMA_UNKNOWN_FIELD.at(message + did_you_mean(field, absent), *path)


def _last(path: list[str | int]) -> str:
    """Return how to name the last step of a path: `'shape'`, `'tags' item 2`."""
    if not path:
        return "the top level"
    last = path[-1]
    if isinstance(last, str):
        return quote(last)
    return f"{_last(path[:-1])} item {last}"
