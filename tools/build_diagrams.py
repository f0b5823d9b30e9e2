"""Draw the diagrams of docs/ as SVG, so that the site shows them without a network.

    npm pack mermaid@11 && tar xzf mermaid-11.*.tgz package/dist/mermaid.min.js
    python tools/build_diagrams.py package/dist/mermaid.min.js

Needs Chromium and playwright. A drawing is docs/images/diagram-HASH.svg, by the hash of its
text: tools/build_site.py puts it where the text stands, and a test asks for each.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS, IMAGES = ROOT / "docs", ROOT / "docs" / "images"
_BLOCK = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# labels as text, not HTML: an SVG of text alone is read by all
_DRAW = """async ([name, text]) => {
    mermaid.initialize({startOnLoad: false, theme: "neutral", htmlLabels: false,
        flowchart: {htmlLabels: false, useMaxWidth: true}, deterministicIds: true});
    return (await mermaid.render(name, text)).svg;
}"""


def name_of(text: str) -> str:
    """Return the file's name of a diagram's text."""
    return f"diagram-{hashlib.sha256(text.encode()).hexdigest()[:12]}.svg"


def diagrams() -> Iterator[str]:
    """Yield the text of each diagram of docs/."""
    for page in sorted(DOCS.rglob("*.md")):
        yield from _BLOCK.findall(page.read_text("utf-8"))


def drawn(markdown: str) -> str:
    """Return a page with each diagram's drawing in place of its text.

    Raises FileNotFoundError, with the command that draws it, where one is not there.
    """

    def drawing(block: re.Match[str]) -> str:
        path = IMAGES / name_of(block[1])
        if not path.is_file():
            raise FileNotFoundError(f"{path}: python tools/build_diagrams.py draws it")
        svg = path.read_text("utf-8").strip()
        return f'<div class="diagram" role="img">{svg}</div>'

    return _BLOCK.sub(drawing, markdown)


def main() -> int:
    """Draw what is not there yet, and remove what no page has any more."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("script", type=Path, metavar="mermaid.min.js")
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    texts = {name_of(text): text for text in diagrams()}
    for path in IMAGES.glob("diagram-*.svg"):
        if path.name not in texts:
            path.unlink()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        page = browser.new_page()
        page.set_content("<body></body>")
        page.add_script_tag(path=options.script)
        for name, text in texts.items():
            svg = page.evaluate(_DRAW, [name.removesuffix(".svg"), text])
            (IMAGES / name).write_text(f"{svg}\n", "utf-8")
            print(IMAGES / name)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
