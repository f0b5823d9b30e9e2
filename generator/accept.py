"""Compile a schema to a fast predicate, so that jsonschema explains only bad values.

jsonschema takes about 0.2 ms for one workload line and 70 ms to import; a dataset has
hundreds of lines and nearly all are right. The predicate is built from the same
schema file, never from a second description, and a property test holds it equal to
jsonschema's verdict. It says yes or no; `schema` asks jsonschema why.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

Predicate = Callable[[Any], bool]
Schema = Mapping[str, Any] | bool

_IGNORED = frozenset(
    ("$schema", "$id", "$defs", "title", "description", "default", "examples")
)
_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


@lru_cache(maxsize=64)
def ecma_pattern(pattern: str) -> re.Pattern[str]:
    """Return a schema's pattern as Python's: `$` is the end, not before a newline."""
    return re.compile(re.sub(r"\$$", r"\\Z", pattern))


def compile_schema(schema: Schema, root: Mapping[str, Any]) -> Predicate:
    """Return a predicate that holds exactly for the values that `schema` allows.

    `root` is the schema that `$ref` looks up `$defs` in. Raises ValueError for a
    keyword that is not understood: silence would accept what it forbids.
    """
    if isinstance(schema, bool):
        return lambda value: bool(schema)
    checks: list[Predicate] = []
    done = set(_IGNORED)
    if "$ref" in schema:
        done.add("$ref")
        definition = root["$defs"][schema["$ref"].removeprefix("#/$defs/")]
        checks.append(compile_schema(definition, root))
    if "type" in schema:
        done.add("type")
        names = schema["type"]
        checks.append(_type_check([names] if isinstance(names, str) else names))
    for build, keywords in _BUILDERS:
        if not keywords.isdisjoint(schema):
            done |= keywords
            checks.append(build(schema, root))
    unknown = sorted(set(schema) - done)
    if unknown:
        raise ValueError(f"schema keywords that are not understood: {unknown}")
    return _every(checks)


def _every(checks: list[Predicate]) -> Predicate:
    """Return the predicate that all hold; loops, since a generator costs as much."""
    if len(checks) == 1:
        return checks[0]
    if len(checks) == 2:
        first, second = checks
        return lambda value: first(value) and second(value)

    def check(value: Any) -> bool:
        for part in checks:  # noqa: SIM110
            if not part(value):
                return False
        return True

    return check


def _type_check(names: list[str]) -> Predicate:
    # type(), not isinstance(): JSON's true is no integer, though Python's bool is one.
    allowed = frozenset(t for name in names for t in _TYPES[name])
    if len(allowed) == 1:
        (only,) = allowed
        return lambda value: type(value) is only
    return lambda value: type(value) in allowed


def _value_check(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Predicate:
    allowed = schema.get("enum", [schema.get("const")])
    if not all(isinstance(a, str) for a in allowed):
        raise ValueError("enum and const are understood for strings only")
    return lambda value: isinstance(value, str) and value in allowed


def _string_check(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Predicate:
    shortest = schema.get("minLength", 0)
    longest = schema.get("maxLength", float("inf"))
    if "pattern" not in schema:
        return lambda value: (
            not isinstance(value, str) or shortest <= len(value) <= longest
        )
    search = ecma_pattern(schema["pattern"]).search
    return lambda value: (
        not isinstance(value, str)
        or (shortest <= len(value) <= longest and search(value) is not None)
    )


def _number_check(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Predicate:
    low = schema.get("minimum", float("-inf"))
    high = schema.get("maximum", float("inf"))
    numbers = (int, float)
    return lambda value: type(value) not in numbers or low <= value <= high


def _array_check(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Predicate:
    fewest = schema.get("minItems", 0)
    item = compile_schema(schema.get("items", True), root)
    return lambda value: (
        not isinstance(value, list)
        or (len(value) >= fewest and all(item(child) for child in value))
    )


def _object_check(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Predicate:
    required = tuple(schema.get("required", ()))
    fewest = schema.get("minProperties", 0)
    fields = {
        key: compile_schema(field, root)
        for key, field in schema.get("properties", {}).items()
    }
    if schema.get("additionalProperties", True) is True and (
        schema.get("propertyNames", True) is True
    ):
        return _known_fields(required, fewest, fields)
    other = compile_schema(schema.get("additionalProperties", True), root)
    name = compile_schema(schema.get("propertyNames", True), root)

    def check(value: Any) -> bool:
        if not isinstance(value, dict):
            return True
        if len(value) < fewest:
            return False
        for key in required:
            if key not in value:
                return False
        for key, child in value.items():
            if not (name(key) and fields.get(key, other)(child)):
                return False
        return True

    return check


def _known_fields(
    required: tuple[str, ...], fewest: int, fields: Mapping[str, Predicate]
) -> Predicate:
    """Return the check of an object whose other fields may be anything."""
    pairs = tuple(fields.items())

    def check(value: Any) -> bool:
        if not isinstance(value, dict):
            return True
        if len(value) < fewest:
            return False
        for key in required:
            if key not in value:
                return False
        for key, field in pairs:  # noqa: SIM110
            if key in value and not field(value[key]):
                return False
        return True

    return check


def _branch_check(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Predicate:
    condition = compile_schema(schema["if"], root)
    then = compile_schema(schema["then"], root)
    return lambda value: not condition(value) or then(value)


def _all_check(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Predicate:
    return _every([compile_schema(part, root) for part in schema["allOf"]])


_Builder = Callable[[Mapping[str, Any], Mapping[str, Any]], Predicate]
_BUILDERS: tuple[tuple[_Builder, frozenset[str]], ...] = (
    (_value_check, frozenset(("enum", "const"))),
    (_string_check, frozenset(("minLength", "maxLength", "pattern"))),
    (_number_check, frozenset(("minimum", "maximum"))),
    (_array_check, frozenset(("items", "minItems"))),
    (
        _object_check,
        frozenset(
            (
                "required",
                "properties",
                "additionalProperties",
                "propertyNames",
                "minProperties",
            )
        ),
    ),
    (_branch_check, frozenset(("if", "then"))),
    (_all_check, frozenset(("allOf",))),
)
