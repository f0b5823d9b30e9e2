"""Effect of a kernel or a solution on a model, against that of references."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from generator.reports.report import Quoted, Row, Status, Table

Found = Mapping[str, Any]
_STAGES = (
    "stage",
    "layer",
    "definition",
    "computed by",
    "NMSE",
    "reference's",
    "allowed",
)
_WHOLE = ("level", "NMSE", "reference's", "transformers' own", "note")


def effect(plain: Found, changed: Found) -> Iterator[Table]:
    """Yield tables of the errors with a kernel or a solution beside the reference's.

    Both are what levels found of one model in bfloat16: level → values. Stages are those
    that something else than the reference computed, or should have.
    """
    pairs = zip(plain.get("stage", ()), changed.get("stage", ()), strict=False)
    rows = [
        Row(
            (
                after["stage"],
                "" if after["layer"] is None else str(after["layer"]),
                Quoted(after["definition"]),
                Quoted(after["source"]),
                f"{after['nmse']:.1e}",
                f"{before['nmse']:.1e}",
                f"{after['bound']:.1g}",
            ),
            _stage_status(after),
        )
        for before, after in pairs
        if after.get("source", "reference") not in ("", "reference")
        and "nmse" in before
    ]
    yield Table(rows, _STAGES, ("stage", "definition", "computed by"))
    rows = [
        Row((level, *_whole(before, after)), _status(after))
        for level, before, after in _pairs(plain, changed)
    ]
    yield Table(rows, _WHOLE, ("level", "note"))


def _stage_status(entry: Found) -> Status:
    if not entry["passed"]:
        return Status.FAILED
    # in the end the reference ran: nothing was compared
    return Status.OPEN if entry["source"].startswith("reference") else Status.PASSED


def _status(entry: Found) -> Status:
    return Status.FAILED if entry["passed"] is False else Status.PASSED


def _pairs(plain: Found, changed: Found) -> Iterator[tuple[str, Found, Found]]:
    for before, after in zip(
        plain.get("layer", ()), changed.get("layer", ()), strict=False
    ):
        yield f"layer {after['layer']}", before, after
    if "forward" in changed:
        yield "logits", plain["forward"], changed["forward"]
    if "decode" in changed:
        pages = zip(plain["decode"]["pages"], changed["decode"]["pages"], strict=False)
        for before, after in pages:
            yield f"decoding, pages of {after['page_size']}", before, after


def _whole(before: Found, after: Found) -> tuple[str, str, str, str]:
    theirs = f"{after['own']:.1e}" if "own" in after else ""
    note = ""
    if "top1" in after:
        note = f"top-1 as transformers': {after['top1']:.1%}, was {before['top1']:.1%}"
    return f"{after['nmse']:.1e}", f"{before['nmse']:.1e}", theirs, note
