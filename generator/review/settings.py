"""A dataset's requirements of its pull requests: `review.toml`, read from base alone.

    [points]
    required = ["agreed", "recording"]
    advice = ["audit", "captured"]

A point that is not named keeps its default. The head's file is not read: a change that
could lower what is asked of it would be asked for nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from generator.dataset.file_reading import is_file, read_bytes
from generator.problems import Failure
from generator.problems.messages import did_you_mean, one_line, quote

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

SETTINGS = "review.toml"
_MAX_BYTES = 64 * 1024

ALWAYS = ("readable", "proven")
"""Points that no dataset can do without."""

POINTS: Mapping[str, bool] = MappingProxyType(
    {
        "one-definition": False,
        "readable": True,
        "proven": True,
        "tags": False,
        "rendered-test": True,
        "agreed": True,
        "workloads": True,
        "captured": False,
        "at-workloads": False,
        "blobs": True,
        "baseline": False,
        "traces": False,
        "recording": False,
        "audit": False,
        "provenance": False,
    }
)
"""Point → whether it is required where review.toml does not say."""


@dataclass(frozen=True)
class ReviewSettings:
    """The required points; the others are advice."""

    required: frozenset[str] = field(
        default_factory=lambda: frozenset(p for p, needed in POINTS.items() if needed)
    )


def read_settings(base: Path) -> ReviewSettings:
    """Return the settings of a dataset, the defaults without a file.

    Raises Failure where the file is something else: nobody knows what is asked then.
    """
    if not is_file(base, SETTINGS):
        return ReviewSettings()
    try:
        data = read_bytes(base, SETTINGS, _MAX_BYTES)
    except OSError as error:
        raise _bad(error.strerror or str(error)) from None
    try:
        value = tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise _bad(str(error)) from None
    return _settings(value)


def _settings(value: Mapping[str, Any]) -> ReviewSettings:
    if unknown := value.keys() - {"points"}:
        raise _bad(f"unknown table {quote(min(unknown))}; it has [points]")
    points = value.get("points", {})
    if not isinstance(points, dict):
        raise _bad("points is a table")
    if unknown := points.keys() - {"required", "advice"}:
        raise _bad(f"points/{one_line(min(unknown), 60)}: required or advice")
    named: dict[str, list[str]] = {}
    for kind in ("required", "advice"):
        listed = points.get(kind, [])
        if not isinstance(listed, list) or not all(isinstance(p, str) for p in listed):
            raise _bad(f"points/{kind} is an array of strings")
        for point in listed:
            if point not in POINTS:
                hint = did_you_mean(point, POINTS) or f" Choose of {', '.join(POINTS)}."
                raise _bad(f"points/{kind}: no point is named {quote(point)}.{hint}")
        named[kind] = listed
    if both := {*named["required"]} & {*named["advice"]}:
        raise _bad(f"{min(both)} is both required and advice")
    if free := {*named["advice"]} & {*ALWAYS}:
        raise _bad(f"{min(free)} is always required")
    usual = ReviewSettings().required
    return ReviewSettings((usual | {*named["required"]}) - {*named["advice"]})


def _bad(what: str) -> Failure:
    return Failure(one_line(f"The base's {SETTINGS} can't be used: {what}", 400))
