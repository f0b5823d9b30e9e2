"""Findings of a confined call on a reference: a rule, a sentence and a line."""

from __future__ import annotations

SOURCE = "<reference>"
"""The name of the file that a reference's text is compiled as."""
MAX_MESSAGE = 400

Said = tuple[str, str, int | None]
"""The id of a rule, a sentence, and the line of the reference."""


def line_of(error: BaseException) -> int | None:
    """Return the last line of the reference that an exception came through."""
    line = None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == SOURCE:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def shown(error: BaseException) -> str:
    """Return an exception's kind and text in one line, whatever its `__str__` does."""
    kind = type(error).__name__
    try:
        text = " ".join(str(error).split())
    except BaseException:  # noqa: BLE001 - its __str__ is the reference's as well
        text = ""
    return f"{kind}: {text[:MAX_MESSAGE]}" if text else kind
