"""Rendered files: they are what `gen-tests` wrote."""

from __future__ import annotations

from generator.problems import Problem
from generator.problems.rule import error

RENDERED_FILE_EDITED = error("""rendered-file-edited: A rendered file is not what
    gen-tests wrote last: somebody edited it.
    Fix: Move the change to the definition or the op's module and render with --force,
    or keep the file under another name.
    Finds: a tolerance changed in tests/references/test_gemm.py""")

CUSTOM_INPUTS_UNFIT = error("""custom-inputs-unfit: A file of custom inputs can't be
    used for its definition.
    Fix: Import the definition again, or correct the file's constants.
    Finds: custom_inputs/... whose ARGUMENTS lack an input""")


def edited(path: str) -> Problem:
    """Return the Problem of a rendered file that was edited."""
    message = "The file is not what gen-tests wrote last: somebody edited it."
    return RENDERED_FILE_EDITED.problem(path, message)
