"""jsonschema with the format's stricter meaning, one error for each thing wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend

from generator.accept import ecma_pattern


def strict_validator(schema: Mapping[str, Any]) -> Validator:
    """Return a validator whose errors come in the file's order.

    `required`, `properties` and `additionalProperties` yield errors whose message is
    the field and whose path leads to it where it exists: jsonschema's own name
    several fields in one sentence, and in the order of a set.
    """
    # jsonschema takes 4096.0 for an integer; a shape made of it fails in torch.
    types = Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda checker, value: type(value) is int
    )
    own = {
        "pattern": _pattern,
        "required": _required,
        "properties": _properties,
        "additionalProperties": _additional,
    }
    make: Any = extend  # the stubs leave it untyped
    validator: Validator = make(Draft202012Validator, own, type_checker=types)(schema)
    return validator


def _pattern(
    validator: Any, pattern: str, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not ecma_pattern(pattern).search(instance):
        yield ValidationError("pattern")


def _required(
    validator: Any, fields: list[str], instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for field in fields:
            if field not in instance:
                yield ValidationError(field)


def _properties(
    validator: Any, fields: Mapping[str, Any], instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for field, child in fields.items():
            if field in instance:
                yield from _descend(validator, instance[field], child, field)


def _additional(
    validator: Any, child: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for field, value in instance.items():
            if field not in schema.get("properties", {}):
                yield from _descend(validator, value, child, field)


def _descend(
    validator: Any, value: Any, schema: Any, field: str
) -> Iterator[ValidationError]:
    if schema is False:
        yield ValidationError(field, path=(field,))
    else:
        yield from validator.descend(value, schema, path=field, schema_path=field)
