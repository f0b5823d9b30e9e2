"""Fixtures around the loopback Hub; a conftest imports those it needs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub.server import Hub

REPO = "lab/kernels"


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    """Serve one empty repository, `REPO`; the token hf_maintainer may write to it."""
    with Hub(tmp_path / "hub") as made:
        made.add_repository(REPO)
        yield made
