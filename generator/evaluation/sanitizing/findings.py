"""Read what compute-sanitizer writes: the first finding, its kernel, and how many there are.

The format is that of NVIDIA's documentation of Compute Sanitizer (2021.2 to 2025.3), whose
examples are the test data: each line begins with `=========`, details are indented.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import takewhile

_LINE = re.compile(r"={8,9}(?:$| (?P<text>.*))")
_SUMMARY = re.compile(
    r"(?:ERROR SUMMARY: (\d+) errors?$|RACECHECK SUMMARY: (\d+) hazards? displayed)"
)
# what is said beside findings: of the program, of the tool, of calls that failed
_BESIDE = re.compile(
    r"COMPUTE-SANITIZER|.*SUMMARY:|Program hit|Target application|Saved host|"
    r"Host Frame|Process ID|Internal Sanitizer Error|Error: (?!Race)"
)
_DETAIL = re.compile(
    r"\s|at |by thread|Address |Access |and |Device Frame|Barrier is|The block|Current "
)
_AT = re.compile(
    r"\bat (?:0x[0-9a-fA-F]+ in )?(?:\S+:\d+:)?(?P<kernel>.+?)(?:[+:]0x[0-9a-fA-F]+)?"
    r"(?: in (?P<where>\S+:\d+))?(?: \[\d+ hazards?\])?$"
)
_FRAME = re.compile(r"Device Frame: ?(?P<kernel>.+?)(?:\+0x[0-9a-fA-F]+| \(|$)")


@dataclass(frozen=True)
class Findings:
    """The result of a tool's run: the number of findings, None without a summary.

    `first` is the first one in a line, empty without one; `kernel` is where it was.
    """

    count: int | None = None
    first: str = ""
    kernel: str = ""


def findings_in(text: str) -> Findings:
    """Return what a log says; whatever else is in it is passed over."""
    matches = map(_LINE.fullmatch, text.splitlines())
    lines = [(match["text"] or "").rstrip() for match in matches if match is not None]
    counts = [
        int(match[1] or match[2]) for match in map(_SUMMARY.match, lines) if match
    ]
    count = max(counts, default=None)
    for number, line in enumerate(lines):
        if line and not _BESIDE.match(line) and not _DETAIL.match(line):
            details = [*takewhile(_DETAIL.match, lines[number + 1 :])]
            return _finding(count, line, [detail.strip() for detail in details])
    return Findings(count)


def _finding(count: int | None, line: str, details: list[str]) -> Findings:
    """Return a finding of its first line and its details."""
    kernel, where = "", ""
    for text in (line, *details):
        at = _AT.search(text)
        if at is not None and not kernel:
            kernel, where = at["kernel"], at["where"] or ""
        frame = _FRAME.match(text)
        if frame is not None:
            # the last one is the kernel, those before it are functions that it calls
            kernel = frame["kernel"]
    what = line.partition(" at ")[0] if _AT.search(line) else line.rstrip(".")
    parts = [f"{what} in {kernel}" if kernel else what]
    parts += [f"at {where}"] if where else []
    other = [text for text in details if text.startswith(("and ", "by ", "A"))]
    return Findings(count, "; ".join([*parts, *other]), kernel)
