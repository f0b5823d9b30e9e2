"""What checking a definition came to: values that a cache can keep.

Nothing here knows a rule, so that a run whose answers are all kept imports none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from generator.discover import DatasetFile
from generator.problems import Problem


@dataclass(frozen=True)
class Unit:
    """Name the files that are checked together, relative to the dataset's root."""

    file: DatasetFile
    workloads: str | None = None
    solutions: tuple[str, ...] = ()
    traces: tuple[str, ...] = ()


@dataclass(frozen=True)
class Summary:
    """Hold digests of a definition's geometry and reference, and what tags claim.

    `constants` are those that the reference's source has; `facts` are figures that all
    definitions of a model share; `fi_apis` and `verified` are places among the tags.
    """

    name: str
    path: str
    sha256: str
    geometry: str
    reference: str
    constants: tuple[tuple[str, float], ...] = ()
    facts: tuple[tuple[str, int], ...] = ()
    fi_apis: tuple[tuple[int, str], ...] = ()
    verified: int | None = None


@dataclass(frozen=True)
class Outcome:
    """Hold what checking a unit found.

    `name` is what the definition says, where that could be read. `blobs` maps the path
    of each blob that was looked at to its state. `elsewhere` are blobs in folders of
    other definitions that it uses, `unused` those of its own that it does not.
    """

    name: str | None
    problems: tuple[Problem, ...]
    workloads: int
    summary: Summary | None
    blobs: Mapping[str, str]
    elsewhere: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
