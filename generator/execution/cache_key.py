"""The cache's folder, and the digest of the code that cached outcomes depend on."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from importlib import metadata
from pathlib import Path

from generator import __version__

SOURCES = (
    "generator/dataset",
    "generator/execution",
    "generator/mutation",
    "generator/ops",
    "generator/problems",
    "generator/results",
    "generator/rules",
    "generator/running",
    "kernel_judge",
)
"""What decides the verdict on a mutant, beside the definition and its recording."""

_ROOT = Path(__file__).parents[2]
_FORMAT = 2


def default_folder() -> Path:
    """Return where outcomes are kept unless a caller says otherwise."""
    base = os.environ.get("XDG_CACHE_HOME")
    home = Path(base) if base and os.path.isabs(base) else Path.home() / ".cache"
    return home / "gen-tests" / "audit"


@cache
def sources() -> str:
    """Return the digest of the code that audits, and of the torch that computes."""
    # none where torch is not installed
    torch = "".join(one.version for one in metadata.distributions(name="torch"))
    digest = hashlib.sha256(f"{_FORMAT} {__version__}{torch}".encode())
    for name in SOURCES:
        files = sorted((_ROOT / name).rglob("*"))
        for path in (p for p in files if p.suffix in (".py", ".json", ".jinja")):
            digest.update(f"{path.relative_to(_ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()
