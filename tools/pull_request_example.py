"""The page docs/generated/pull-request-example.md: the text of a push's pull request.

A small dataset is made out of this one's norms; one of them is published already, the
other one is pushed. No repository is asked: what it has is worked out from the files.
"""

from __future__ import annotations

from pathlib import Path

from generator.dataset.atomic_write import write_atomically
from generator.dataset.paths import AUDIT, discover_definitions, evidence_files, select
from generator.hub.package import (
    LocalFile,
    Package,
    PushOptions,
    compare,
    make_bundles,
    paths_of,
    read_file,
    take_inventory,
)
from generator.hub.pr_description import describe
from generator.hub.preconditions import judge
from generator.hub.remote import RemoteFile
from generator.results.audits import as_text as audit_text
from generator.results.audits import read_audits
from generator.results.evidence import Run, as_text, read_evidence
from tools.review_example import ROOT, render, take

PAGE = "docs/generated/pull-request-example.md"
PUSHED = "rmsnorm_h4096"
THERE = "fused_add_rmsnorm_h4096"
_HEAD = """\
# An example of a pull request

The dataset has {there} already; this is the text that
`trace-dataset push --definition-name {pushed} --yes` opens a pull request with. It is
escaped so that nothing of a dataset is taken for markup. `docs/publish.md` says how it
comes about; `python tools/build_pages.py` writes this page.

---

"""


def page(folder: Path) -> str:
    """Return the page, of a dataset that is made in a folder."""
    folder.mkdir()
    add(folder, THERE)
    remote = {
        file.path: RemoteFile(file.path, file.size, file.sha1, None)
        for file in files(folder, THERE)
    }
    add(folder, PUSHED)
    local = files(folder, PUSHED)
    found = discover_definitions(folder)
    chosen = select(found, (), (PUSHED,))
    (bundle,) = make_bundles(chosen, op_types=(), names=(PUSHED,), together=False)
    judged = judge(folder, chosen, found)
    package = Package(folder, bundle, tuple(local), judged, (), PushOptions({}))
    folders = sorted({path.split("/")[0] for path in remote})
    text = describe(package, compare(local, remote), remote, folders)
    return _HEAD.format(there=THERE, pushed=PUSHED) + text


def add(folder: Path, name: str) -> None:
    """Add a definition of this dataset with its test and its evidence."""
    take(folder, name)
    render(folder, standalone=True)
    held = {file.name for file in discover_definitions(folder).files}
    for path in evidence_files(ROOT):
        runs = []
        for run in read_evidence(ROOT, path):
            mine = {n: entry for n, entry in run.definitions.items() if n in held}
            runs.append(Run(run.date, run.machine, mine))
        write_atomically(folder / path, as_text(runs).encode("utf-8"))
    audits = read_audits(ROOT) or {}
    known = {name: found for name, found in audits.items() if name in held}
    if known:
        write_atomically(folder / AUDIT, audit_text(known).encode("utf-8"))


def files(folder: Path, name: str) -> list[LocalFile]:
    """Return the files that belong to a definition of the folder."""
    paths = paths_of(take_inventory(folder), [("rmsnorm", name)], ())
    return [read_file(folder, path) for path in sorted(paths)]
