"""Bad pull requests that make the tests check less, or that the tests can't be trusted."""

from __future__ import annotations

from collections.abc import Iterator

from generator.review.audit.changes import SUMS, sums
from generator.review.audit.pull_request import (
    Change,
    NotApplicable,
    PullRequest,
    adding,
    moving,
    removing,
    replacing,
    together,
)
from generator.review.audit.subject import TESTS, AuditedDataset, Files, rendered
from generator.review.findings import (
    LINK,
    REMOVED,
    RUNS,
    UNCOMPARED,
    UNRENDERED,
    WEAKER,
)

_CONFTEST, _INI = f"{TESTS}/conftest.py", f"{TESTS}/pytest.ini"
_SKIPPED = '\nimport pytest\npytestmark = pytest.mark.skip(reason="slow")\n'


def of_tests() -> Iterator[PullRequest]:
    """Yield edits of rendered tests, with and without the hash that fits."""
    edits = {
        "an import loses its name": ("import torch\n", "import torch as t\n"),
        "the class of all tests has another base": ("GroundTruthsAgree", "object"),
        "only small cases run": ('"small", "medium"', '"small"'),
        "cases are renamed": ("def cases(", "def all_cases("),
        "the oracle has another name": ("def oracle(", "def an_oracle("),
        "inputs are all equal": ("def make_inputs(", "def make_inputs_once("),
        "the hash of another text": ('    sha256 = "', '    sha256 = "0'),
        "tests of one definition are a mixin": ("class Test", "class Mixin"),
        "the tests compare with nothing": ("_ground_truth(", "_ground_truths("),
    }
    for name, (old, new) in edits.items():
        yield PullRequest(f"rendered: {name}", _edit(old, new), UNRENDERED.id)
        with_hash = together(_edit(old, new), sums)
        yield PullRequest(f"rendered, with its hash: {name}", with_hash, WEAKER.id)
    yield PullRequest(
        "rendered: every number of the tolerances is larger",
        together(_tolerances, sums),
        UNRENDERED.id,
    )
    yield PullRequest(
        "rendered: a tolerance of --tolerance",
        together(_looser_run, sums),
        UNRENDERED.id,
    )
    yield PullRequest(
        "rendered: all is skipped",
        together(_appended(_SKIPPED), sums),
        UNRENDERED.id,
    )
    yield PullRequest(
        "rendered: a comment, of another author",
        together(_appended("# a note\n"), sums),
        UNRENDERED.id,
    )
    yield PullRequest(
        "rendered: lines end as on Windows",
        replacing("{test}", "\n", "\r\n"),
        UNRENDERED.id,
    )
    yield PullRequest(
        "rendered: 17 MiB of comment",
        together(_appended("#" * (17 << 20) + "\n"), sums),
        UNRENDERED.id,
    )
    yield PullRequest(
        "rendered: empty", together(adding("{test}", b""), sums), UNRENDERED.id
    )
    yield PullRequest(
        "rendered: no header, as if it was never rendered",
        together(adding("{test}", "def test_nothing():\n    pass\n"), sums),
        UNRENDERED.id,
    )


def of_files() -> Iterator[PullRequest]:
    """Yield what happens to files beside the tests, and to their names."""
    yield PullRequest("test: deleted", removing("{test}"), REMOVED.id)
    yield PullRequest(
        "test: deleted, with its hash", together(removing("{test}"), sums), REMOVED.id
    )
    yield PullRequest("tests: all deleted", removing(f"{TESTS}/"), REMOVED.id)
    yield PullRequest(
        "test: a name that pytest does not collect",
        together(moving("{test}", f"{TESTS}/of_{{op}}.py"), sums),
        REMOVED.id,
    )
    yield PullRequest(
        "test: moved into a folder",
        moving("{test}", f"{TESTS}/old/test_{{op}}.py"),
        RUNS.id,
    )
    yield PullRequest("hashes: deleted", removing(SUMS), REMOVED.id)
    yield PullRequest("hashes: emptied", adding(SUMS, b""), UNRENDERED.id)
    yield PullRequest(
        "hashes: of a file that is not there",
        adding(SUMS, b"0" * 64 + b"  test_x.py\n"),
        UNRENDERED.id,
    )
    yield PullRequest(
        "conftest: deselects all",
        together(
            adding(
                _CONFTEST,
                "def pytest_collection_modifyitems(items):\n    items[:] = []\n",
            ),
            sums,
        ),
        UNRENDERED.id,
    )
    yield PullRequest("conftest: deleted", removing(_CONFTEST), REMOVED.id)
    yield PullRequest(
        "options: asserts are off",
        together(adding(_INI, "[pytest]\naddopts = --assert=plain -k nothing\n"), sums),
        UNRENDERED.id,
    )
    yield PullRequest("options: deleted", removing(_INI), REMOVED.id)
    yield PullRequest(
        "helpers: a package of the name that standalone tests import",
        adding(f"{TESTS}/reference_support/__init__.py"),
        UNRENDERED.id,
    )
    yield PullRequest(
        "helpers: a module that is rendered nowhere",
        adding(f"{TESTS}/reference_support/extra.py"),
        UNCOMPARED.id,
    )
    yield PullRequest(
        "tests: one more, by hand",
        together(adding(f"{TESTS}/test_mine.py", "import os\n"), sums),
        UNCOMPARED.id,
    )
    yield PullRequest(
        "tests: torch.py beside them", adding(f"{TESTS}/torch.py"), RUNS.id
    )
    yield PullRequest(
        "tests: compiled code beside them",
        adding(f"{TESTS}/__pycache__/conftest.cpython-312.pyc", b"\0"),
        RUNS.id,
    )
    yield PullRequest(
        "tests: data beside them", adding(f"{TESTS}/tolerances.bin"), RUNS.id
    )
    yield PullRequest(
        "test: a link",
        adding(f"{TESTS}/test_zero.py", b"/dev/zero"),
        LINK.id,
        modes={f"{TESTS}/test_zero.py": "120000"},
    )
    yield PullRequest(
        "conftest: may be executed",
        lambda files, subject: None,
        RUNS.id,
        modes={_CONFTEST: "100755"},
    )


def _edit(old: str, new: str) -> Change:
    return replacing("{test}", old, new)


def _appended(text: str) -> Change:
    def change(files: Files, subject: AuditedDataset) -> None:
        files[subject.test] += text.encode()

    return change


def _tolerances(files: Files, subject: AuditedDataset) -> None:
    """Make each exponent of a number smaller by four."""
    import re

    text = files[subject.test].decode()
    looser = re.sub(
        r"(atol|rtol|nmse)=([0-9.]+)(e-([0-9]+))?",
        lambda m: f"{m[1]}={float(m[2]) * 10.0 ** (4 - int(m[4] or 0)):g}",
        text,
    )
    if looser == text:
        raise NotApplicable("the tests have no tolerance of their own")
    files[subject.test] = looser.encode()


def _looser_run(files: Files, subject: AuditedDataset) -> None:
    from pathlib import Path

    from generator.rendering.generate import generate
    from generator.rendering.plan import RenderOptions
    from generator.rules.load import load_definitions

    def render(output: Path) -> None:
        loaded = load_definitions(output.parent.parent)
        generate(
            output.parent.parent,
            loaded,
            output,
            RenderOptions(tolerance=0.5),
            everything=True,
            force=True,
        )

    files |= rendered(files, render)
