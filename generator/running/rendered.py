"""The subjects of a rendered file."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import generator.running.sglang  # noqa: F401 - has SGLang called in its process
from kernel_judge.subject import SubjectFile


def load_rendered(file: Path) -> SubjectFile:
    """Import a rendered file and return its subjects. Raises what the import raises."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # inspect looks for a function's source through its module
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return subjects_in(vars(module))


def subjects_in(names: Mapping[str, Any]) -> SubjectFile:
    """Return the subjects of a module's test classes, in the module's order.

    A base class of the file has no definition, and so no subject.
    """
    classes = (value for value in names.values() if isinstance(value, type))
    # as pytest collects it, a class that is imported from another file is a test too
    with_subject = (c for c in classes if hasattr(c, "subject") and hasattr(c, "name"))
    return SubjectFile(tuple(cls.subject() for cls in with_subject))
