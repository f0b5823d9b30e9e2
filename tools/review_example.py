"""The pages docs/generated/review-example.md and .html: a change, good and bad.

A small dataset is made out of this one's norms; the change adds a good definition and
changes another one badly.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from generator.rendering.generate import generate
from generator.rendering.plan import RenderOptions
from generator.review import shown
from generator.review.review import make_review
from generator.review.revisions import open_sources
from generator.rules.load import load_definitions

ROOT = Path(__file__).resolve().parent.parent

PAGES = {
    "markdown": "docs/generated/review-example.md",
    "html": "docs/generated/review-example.html",
}
"""Format → the file that shows it; of both nothing was executed."""

GOOD = "rmsnorm_h4096"
BAD = "rmsnorm_h5120"
BESIDE = "fused_add_rmsnorm_h4096"
_HEAD = """\
# An example of a review

The change adds {good}, as it is in this dataset, and in {bad}
makes eps ten times larger, declares another dtype, and forgets to render the test anew.
This is what `trace-dataset review --format markdown` says; review-example.html beside
it is `--format html`.

`python tools/build_pages.py` writes this page; with `--keep FOLDER` it leaves the
repository, to try the command on.

"""
_FILES = (
    "definitions/rmsnorm/{}.json",
    "workloads/rmsnorm/{}.jsonl",
    "blob/ground_truth/rmsnorm/{}.safetensors",
)


def prepare(folder: Path) -> None:
    """Make the repository: one commit before the change, one with it."""
    folder.mkdir(parents=True)
    for name in (BESIDE, BAD):
        take(folder, name)
    render(folder)
    git(folder, "init", "-q", "-b", "main")
    commit(folder, "Two norms")
    take(folder, GOOD)
    render(folder)
    path = folder / _FILES[0].format(BAD)
    definition = json.loads(path.read_text("utf-8"))
    definition["reference"] = re.sub(
        r"EPS = \S+", "EPS = 1e-5", definition["reference"], count=1
    )
    definition["outputs"]["output"]["dtype"] = "float32"
    path.write_text(json.dumps(definition, indent=2), "utf-8")
    commit(folder, "A good and a bad change")


def take(folder: Path, name: str) -> None:
    """Copy a definition of this dataset with what belongs to it."""
    for pattern in _FILES:
        source = ROOT / pattern.format(name)
        if source.is_file():
            target = folder / pattern.format(name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)


def render(folder: Path, *, standalone: bool = False) -> None:
    """Render the tests of the dataset as it is."""
    loaded = load_definitions(folder)
    options = RenderOptions(standalone=standalone)
    generate(folder, loaded, folder / "tests/references", options, everything=True)


def git(folder: Path, *arguments: str) -> None:
    """Run git without the user's settings; raises CalledProcessError."""
    settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    who = ["-c", "user.name=example", "-c", "user.email=example@example.com"]
    subprocess.run(
        ["git", "-C", str(folder), *who, *arguments],
        env={**os.environ, **settings},
        check=True,
    )


def commit(folder: Path, message: str) -> None:
    """Commit everything."""
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message)


def pages(folder: Path) -> dict[str, str]:
    """Return file → text; commits have the same name in every run.

    The repository is made in `folder`, which must not exist.
    """
    prepare(folder)
    with open_sources(folder, None, "HEAD") as sources:
        review = make_review(sources, 1)
    heads = {"markdown": _HEAD.format(good=GOOD, bad=BAD)}
    contents = {}
    for form, file in PAGES.items():
        text = "".join(shown(review, form))
        for commit_id, name in (
            (review.revisions.head, "head"),
            (review.revisions.base, "base"),
        ):
            text = text.replace(commit_id[:12], name)
        contents[file] = heads.get(form, "") + text
    return contents
