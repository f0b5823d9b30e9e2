"""Check a JSON value against one of the format's schemas, in sentences of our own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from generator.accept import Predicate, compile_schema
from generator.pointer import pointer
from generator.problems import Problem
from generator.rules.limit import limited
from generator.rules.table import finding
from generator.wording import did_you_mean, listing, plural, quote, show

if TYPE_CHECKING:
    from jsonschema import ValidationError
    from jsonschema.protocols import Validator

Kind = Literal["definition", "workload", "solution", "trace"]

_DUMP_FIELDS = frozenset(("init", "check", "param"))
_DUMP_FIX = (
    "This field is of FlashInfer's own dumps: convert the dump to a definition, "
    "whose reference has a top-level `run`."
)
_NOUNS: Mapping[str, str] = {
    "object": "an object",
    "array": "an array",
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}


def check(
    value: Any, kind: Kind, file: str, line: int | None = None
) -> tuple[Problem, ...]:
    """Return a Problem for each way in which `value` breaks the schema of its kind.

    `file` and `line` are where the value stands. All problems are found in one pass;
    where an object has a `type`, only the branch that it names is judged.
    """
    if _predicate(kind)(value):
        return ()
    errors = _validator(kind).iter_errors(value)
    return limited((_explain(error, file, line) for error in errors), file)


@lru_cache
def load_schema(kind: Kind) -> dict[str, Any]:
    """Return the schema of `kind` as it stands in the package."""
    path = Path(__file__).parent / "schemas" / f"{kind}.schema.json"
    schema: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return schema


@lru_cache
def _predicate(kind: Kind) -> Predicate:
    schema = load_schema(kind)
    return compile_schema(schema, schema)


@lru_cache
def _validator(kind: Kind) -> Validator:
    # Imported here: it takes 70 ms, and a dataset without errors does not need it.
    from generator.strict_validator import strict_validator

    return strict_validator(load_schema(kind))


def _explain(error: ValidationError, file: str, line: int | None) -> Problem:
    """Return the Problem that one error stands for."""
    path = list(error.absolute_path)
    keyword = str(error.validator)
    instance: Any = error.instance
    if "propertyNames" in error.absolute_schema_path:
        return _unsafe_name(instance, [*path, instance], file, line)
    if keyword in ("pattern", "maxLength") and _is_identifier(error.schema):
        return _unsafe_name(instance, path, file, line)
    if keyword == "required":
        return _missing(error.message, path, file, line)
    if keyword == "additionalProperties":
        return _unknown(error, path, file, line)
    if keyword == "properties":
        return finding(
            "schema-unknown-field",
            file,
            f"The field {quote(error.message)} does not belong to this type.",
            pointer=pointer(path),
            line=line,
            fix="Remove the field or correct `type`.",
        )
    rule = "schema-type" if keyword == "type" else "schema-value"
    message = f"{_subject(path)} {_SENTENCES[keyword](error)}."
    if keyword == "enum" and isinstance(instance, str):
        message += did_you_mean(instance, _keyword_value(error))
    return finding(rule, file, message, pointer=pointer(path), line=line)


def _is_identifier(schema: Any) -> bool:
    return bool(schema.get("pattern", "").startswith("^[A-Za-z]["))


def _unsafe_name(
    name: str, path: list[str | int], file: str, line: int | None
) -> Problem:
    message = f"The name {quote(name)} can't be used as an identifier."
    return finding("name-unsafe", file, message, pointer=pointer(path), line=line)


def _missing(name: str, path: list[str | int], file: str, line: int | None) -> Problem:
    where = f" in {_last(path)}" if path else ""
    return finding(
        "schema-missing-field",
        file,
        f"The field {quote(name)} is missing{where}.",
        pointer=pointer(path),
        line=line,
        fix=f"Add the field {quote(name)}.",
    )


def _unknown(
    error: ValidationError, path: list[str | int], file: str, line: int | None
) -> Problem:
    schema: Any = error.schema
    instance: Any = error.instance
    field, parent = error.message, path[:-1]
    dumped = not parent and field in _DUMP_FIELDS
    absent = [known for known in schema["properties"] if known not in instance]
    guess = "" if dumped else did_you_mean(field, absent)
    where = f" in {_last(parent)}" if parent else ""
    return finding(
        "schema-unknown-field",
        file,
        f"The field {quote(field)} is unknown{where}.{guess}",
        pointer=pointer(path),
        line=line,
        fix=_DUMP_FIX if dumped else None,
    )


def _last(path: list[str | int]) -> str:
    """Return how to name the last step of a path: `'shape'`, `'tags' item 2`."""
    if not path:
        return "the top level"
    last = path[-1]
    if isinstance(last, str):
        return quote(last)
    return f"{_last(path[:-1])} item {last}"


def _subject(path: list[str | int]) -> str:
    return _last(path) if path else "The value"


def _keyword_value(error: ValidationError) -> Any:
    return error.validator_value


def _type_sentence(error: ValidationError) -> str:
    names = _keyword_value(error)
    allowed = [_NOUNS[n] for n in ([names] if isinstance(names, str) else names)]
    return f"must be {' or '.join(allowed)}, is {show(error.instance)}"


def _length_sentence(error: ValidationError) -> str:
    instance: Any = error.instance
    bound = _keyword_value(error)
    side = "at least" if str(error.validator).startswith("min") else "at most"
    noun = {"L": "character", "I": "item", "P": "field"}[str(error.validator)[3]]
    return f"must have {side} {plural(bound, noun)}, has {len(instance)}"


def _bound_sentence(error: ValidationError) -> str:
    side = "at least" if error.validator == "minimum" else "at most"
    return f"must be {side} {_keyword_value(error)}, is {show(error.instance)}"


_SENTENCES: Mapping[str, Callable[[ValidationError], str]] = {
    "type": _type_sentence,
    "enum": lambda e: (
        f"must be one of {listing(_keyword_value(e))}, is {show(e.instance)}"
    ),
    "pattern": lambda e: f"is {show(e.instance)}, which does not have the right form",
    "minLength": _length_sentence,
    "maxLength": _length_sentence,
    "minItems": _length_sentence,
    "minProperties": _length_sentence,
    "minimum": _bound_sentence,
    "maximum": _bound_sentence,
}
