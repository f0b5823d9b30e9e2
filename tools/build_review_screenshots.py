"""Take the pictures of docs/images/ of a review's HTML page, in Chromium.

python tools/build_review_screenshots.py [--chromium PROGRAM]

The change is the example's, with one more fault, and its tests are executed: figures
and times are those of the machine, so that nothing checks the pictures.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.review_example import BAD, prepare

FOLDER = ROOT / "docs/images"
NAMES = ("chromium", "chromium-browser", "google-chrome")
MOST = 200 * 1024
"""Bytes of a picture."""

_WIDE = {"viewport": {"width": 1180, "height": 1000}}
_PHONE = {"viewport": {"width": 380, "height": 1000}}
# name → what the browser pretends, and what is scrolled to; the start if that is empty
PICTURES: dict[str, tuple[dict[str, Any], str]] = {
    "review-light": (_WIDE, ""),
    "review-dark": ({**_WIDE, "color_scheme": "dark"}, "#run"),
    "review-phone": (_PHONE, "#run article"),
}
_RIGHT = "    return (x * inverse_rms * weight.float()).to(hidden_states.dtype)\n"
_WRONG = """\
    x = x * inverse_rms
    x[..., :4096] *= weight[:4096].float()
    return x.to(hidden_states.dtype)
"""


def main() -> int:
    """Take the pictures; exit status 1 where one is too large."""
    parser = argparse.ArgumentParser(description=__doc__)
    found = next(filter(None, map(shutil.which, NAMES)), None)
    parser.add_argument("--chromium", default=found, metavar="PROGRAM")
    options = parser.parse_args()
    if options.chromium is None:
        print(f"There is no {', '.join(NAMES)} on PATH: name one by --chromium.")
        return 2
    with tempfile.TemporaryDirectory() as name:
        dataset, page = Path(name, "dataset"), Path(name, "review.html")
        prepare(dataset)
        plant(dataset)
        page.write_text(review(dataset), "utf-8")
        take(page, options.chromium)
    sizes = {name: (FOLDER / f"{name}.png").stat().st_size for name in PICTURES}
    for name, size in sizes.items():
        print(f"{name}.png: {size >> 10} KiB")
    return int(max(sizes.values()) >= MOST)


def plant(dataset: Path) -> None:
    """Make the bad definition scale the columns of its smaller sister alone."""
    path = dataset / f"definitions/rmsnorm/{BAD}.json"
    definition = json.loads(path.read_text("utf-8"))
    text = definition["reference"]
    if _RIGHT not in text:
        raise ValueError(f"the reference of {BAD} is another than this tool knows")
    definition["reference"] = text.replace(_RIGHT, _WRONG)
    definition["outputs"]["output"]["dtype"] = "bfloat16"
    path.write_text(json.dumps(definition, indent=2), "utf-8")


def review(dataset: Path) -> str:
    """Return the page of a review of the working tree, executed."""
    command = [sys.executable, "-m", "generator.cli.trace_dataset", "review"]
    command += ["--dataset", str(dataset), "--base", "HEAD~1", "--execute"]
    done = subprocess.run(
        [*command, "--format", "html"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 1:
        raise RuntimeError(f"the review ended with {done.returncode}: {done.stderr}")
    return done.stdout


def take(page: Path, chromium: str) -> None:
    """Take each picture of a page."""
    from playwright.sync_api import sync_playwright

    FOLDER.mkdir(exist_ok=True)
    # Chromium's own sandbox refuses to work for root
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        for name, (options, place) in PICTURES.items():
            tab = browser.new_page(reduced_motion="reduce", **options)
            tab.goto(page.as_uri())
            if place:
                tab.locator(place).first.evaluate("(e) => e.scrollIntoView()")
            tab.screenshot(path=FOLDER / f"{name}.png")
            tab.close()
        browser.close()


if __name__ == "__main__":
    sys.exit(main())
