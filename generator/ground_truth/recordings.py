"""Recordings of production kernels in a dataset: a ground truth on any machine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from generator.dataset.file_reading import read_text
from generator.dataset.libraries import versioned_as
from kernel_judge.obstacle import Kind, Obstacle
from kernel_judge.recording.recording_file import (
    METADATA_KEY,
    Damaged,
    content_digest,
    read_description,
    recording_path,
)

# beside the recordings: definition → why it has none
_UNRECORDED = "unrecorded.json"


@dataclass(frozen=True)
class Recorded:
    """One recording that a definition's tests replay.

    `source` is `flashinfer/fa3`; `version` is the provider's; `cases` are those that it
    has.
    """

    source: str
    version: str
    gpu: str
    date: str
    cases: int


@dataclass(frozen=True)
class Replay:
    """A definition's recordings, or else why there is none to replay."""

    recordings: tuple[Recorded, ...]
    obstacle: Obstacle | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON values."""
        return {
            "recordings": [asdict(recorded) for recorded in self.recordings],
            "kind": self.obstacle.kind.value if self.obstacle else None,
            "reason": self.obstacle.reason if self.obstacle else "",
        }

    @property
    def summary(self) -> str:
        """Return `replays flashinfer/fa3, recorded on an NVIDIA H200`, or nothing."""
        sources = dict.fromkeys(recorded.source for recorded in self.recordings)
        gpus = sorted({_with_article(recorded.gpu) for recorded in self.recordings})
        if not sources:
            return ""
        return f"replays {_and(list(sources))}, recorded on {_and(gpus)}"


def replay_of(folder: Path, op_type: str, definition: str) -> Replay:
    """Return what a folder of recordings has of a definition; only a header is read."""
    try:
        body = read_description(recording_path(folder, op_type, definition))
        recorded = tuple(_recorded(about) for about in body["recordings"].values())
    except FileNotFoundError:
        return Replay((), Obstacle(Kind.NOT_RECORDED, _why_not(folder, definition)))
    except (Damaged, OSError) as error:
        return Replay((), Obstacle(Kind.BROKEN, str(error)))
    except (AttributeError, KeyError, TypeError) as error:
        reason = f"its recording is damaged: {type(error).__name__}: {error}"
        return Replay((), Obstacle(Kind.BROKEN, reason))
    return Replay(recorded)


def why_damaged(content: bytes) -> str | None:
    """Return why a file's content is no recording as it was written, None where it is.

    Its description and digest are read; the tensors are not, and torch is not needed.
    """
    length = int.from_bytes(content[:8], "little")
    try:
        header = json.loads(content[8 : 8 + length])
        about = json.loads(header["__metadata__"][METADATA_KEY])
        body, announced = about["body"], about["sha256"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return "it has no description of a recording"
    text = json.dumps(body, separators=(",", ":"))
    if content_digest(text, content[8 + length :]) != announced:
        return "its SHA-256 is not the one it announces"
    return None


def _recorded(about: dict[str, Any]) -> Recorded:
    return Recorded(
        str(about["source"]),
        str(about["versions"].get(versioned_as(about["provider"]), "")),
        str(about["gpu"]),
        str(about["date"]),
        len(about["cases"]),
    )


def _why_not(folder: Path, definition: str) -> str:
    try:
        reasons = json.loads(read_text(folder, _UNRECORDED))
        return str(reasons[definition])
    except (OSError, ValueError, KeyError, TypeError):
        return "not recorded"


def _with_article(gpu: str) -> str:
    return f"an {gpu}" if gpu.startswith("NVIDIA") else f"a {gpu}"


def _and(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
