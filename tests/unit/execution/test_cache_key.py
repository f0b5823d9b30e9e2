"""The digest of the code that cached outcomes depend on."""

from __future__ import annotations

import subprocess
import sys

from generator.execution.cache_key import SOURCES
from tests.builders import ROOT

# its top module alone, which has the version, is in the digest by that
_BESIDE = {"generator"}


def test_all_that_a_task_imports_is_in_the_digest():
    """A module outside would change verdicts, and what was cached would still count."""
    listed = (
        "import sys; import generator.mutation.task_functions; "
        "print(*(m for m in sys.modules if m.startswith(('generator', 'kernel_judge'))))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", listed],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    modules = set(ran.stdout.split()) - _BESIDE
    assert "kernel_judge.subject" in modules
    packages = tuple(f"{name.replace('/', '.')}." for name in SOURCES)
    assert not [m for m in modules if not f"{m}.".startswith(packages)]


def test_every_part_of_the_digest_is_there():
    assert [name for name in SOURCES if not any((ROOT / name).rglob("*.py"))] == []
