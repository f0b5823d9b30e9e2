"""Check a JSON value against one of the format's schemas, one sentence an error.

jsonschema-rs decides, in microseconds; jsonschema explains what it refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jsonschema_rs import Draft202012Validator

from generator.problems import Problem
from generator.problems.limit import limited
from generator.problems.messages import did_you_mean, listing, plural, quote, show
from generator.problems.pointer import pointer
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

    `file` and `line` are the place of the value. All problems are found in one pass;
    where an object has a `type`, only the branch that it names is checked.
    """
    if _fits(value, kind):
        return ()
    errors = _validator(kind).iter_errors(value)
    return limited((_explain(error, file, line) for error in errors), file)


def _fits(value: Any, kind: Kind) -> bool:
    try:
        return _fast_validator(kind).is_valid(value)
    except UnicodeEncodeError:
        return False  # half of a surrogate pair: jsonschema can judge it


def at_new_places(
    found: Iterable[Problem], before: Iterable[Problem]
) -> tuple[Problem, ...]:
    """Return the Problems of places of which none in `before` is.

    What the JSON itself got wrong needs no second Problem at the same place.
    """
    known = {(p.line, p.pointer) for p in before if p.pointer}
    return tuple(p for p in found if (p.line, p.pointer) not in known)


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

    def required(
        validator: Any, fields: list[str], instance: Any, schema: Any
    ) -> Iterator[ValidationError]:
        """Yield an error whose message is the field: jsonschema's own is a sentence."""
        for field in fields:
            if isinstance(instance, dict) and field not in instance:
                yield ValidationError(field)

    def additional(
        validator: Any, child: Any, instance: Any, schema: Any
    ) -> Iterator[ValidationError]:
        """Yield the errors field by field: jsonschema's own come in a set's order."""
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


def _explain(error: ValidationError, file: str, line: int | None) -> Problem:
    """Return the Problem that one error stands for."""
    path = list(error.absolute_path)
    keyword = str(error.validator)
    instance: Any = error.instance
    schema: Any = error.schema
    fix: str | None = None
    of_names = "propertyNames" in error.absolute_schema_path
    if of_names:
        path.append(instance)
    if of_names or (
        keyword in ("pattern", "maxLength")
        and schema.get("pattern", "").startswith("^[A-Za-z][")
    ):
        rule = NAME_UNSAFE
        message = f"The name {quote(instance)} can't be used as an identifier."
    elif keyword == "required":
        rule = SCHEMA_MISSING_FIELD
        field = quote(error.message)
        where = f" in {_last(path)}" if path else ""
        message, fix = (
            f"The field {field} is missing{where}.",
            f"Add the field {field}.",
        )
    elif keyword == "additionalProperties":
        rule = SCHEMA_UNKNOWN_FIELD
        message, fix = _unknown(error, path)
    elif keyword == "not":
        rule = SCHEMA_UNKNOWN_FIELD
        message = f"The field {_last(path)} does not belong to this type."
        fix = "Remove the field or correct `type`."
    else:
        rule = SCHEMA_TYPE if keyword == "type" else SCHEMA_VALUE
        subject = _last(path) if path else "The value"
        message = f"{subject} {_SENTENCES[keyword](error)}."
        if keyword == "enum" and isinstance(instance, str):
            message += did_you_mean(instance, _keyword_value(error))
    return rule.problem(file, message, pointer=pointer(path), line=line, fix=fix)


def _unknown(error: ValidationError, path: list[str | int]) -> tuple[str, str | None]:
    """Return message and fix for a field that its object does not have."""
    schema: Any = error.schema
    instance: Any = error.instance
    field, parent = error.message, path[:-1]
    where = f" in {_last(parent)}" if parent else ""
    message = f"The field {quote(field)} is unknown{where}."
    if not parent and field in _DUMP_FIELDS:
        return message, _DUMP_FIX
    absent = [known for known in schema["properties"] if known not in instance]
    return message + did_you_mean(field, absent), None


def _last(path: list[str | int]) -> str:
    """Return how to name the last step of a path: `'shape'`, `'tags' item 2`."""
    if not path:
        return "the top level"
    last = path[-1]
    if isinstance(last, str):
        return quote(last)
    return f"{_last(path[:-1])} item {last}"


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
    "maxItems": _length_sentence,
    "minProperties": _length_sentence,
    "minimum": _bound_sentence,
    "maximum": _bound_sentence,
}
