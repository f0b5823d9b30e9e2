"""A folder for a confined run of tests: rendered alone, with what they read beside them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from generator.dataset.atomic_write import write_below
from generator.dataset.definition import LoadedDefinition
from generator.dataset.file_reading import read_bytes
from generator.dataset.workload_files import copy_workloads
from generator.rendering.generate import generate
from generator.rendering.plan import RenderOptions, TestPlan
from generator.rules.load import load_definitions

_MAX_RECORDING = 1 << 30


def render(
    names: Sequence[str], dataset: Path, output: Path, tolerance: float | None = None
) -> tuple[TestPlan, ...]:
    """Render the tests of definitions; return the plans of those that could be."""
    loaded = load_definitions(dataset, names=names) if names else None
    if loaded is None or not loaded.definitions:
        return ()
    options = RenderOptions(standalone=True, tolerance=tolerance)
    return generate(dataset, loaded, output, options, force=True).plans


def lay_out(
    names: Sequence[str], dataset: Path, folder: Path, tolerance: float | None = None
) -> tuple[TestPlan, ...]:
    """Render the tests of definitions into tests/references, and copy what they read."""
    # the sandbox runs as another user where we are root
    folder.chmod(0o755)
    plans = render(names, dataset, folder / "tests" / "references", tolerance)
    definitions = [planned.definition for plan in plans for planned in plan.classes]
    _copy_recordings(definitions, dataset, folder)
    copy_workloads([(d.op_type, d.name) for d in definitions], dataset, folder)
    return plans


def readable(folder: Path) -> list[Path]:
    """Return what of such a folder a confined run sees."""
    parts = (folder / name for name in ("tests", "blob", "workloads"))
    return [path for path in parts if path.exists()]


def _copy_recordings(
    definitions: Sequence[LoadedDefinition], dataset: Path, folder: Path
) -> None:
    """Put recordings where rendered tests look for them; links are left out.

    So are files without content, as a review has of definitions that did not change: a
    test that has no recording skips, one that finds an empty file fails.
    """
    for definition in definitions:
        path = f"blob/ground_truth/{definition.op_type}/{definition.name}.safetensors"
        with suppress(OSError):
            content = read_bytes(dataset, path, _MAX_RECORDING)
            if content:
                write_below(folder, path, content)
