"""Render the golden dataset and keep the result: python tests/golden/update.py

The kept files end in .txt, so that neither pytest nor a linter takes them for code of
this repository. The support files are not kept: they are copies, compared elsewhere.
The hash of the package's sources is masked, since it changes with every support file.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

GOLDEN = Path(__file__).resolve().parent
EXPECTED = GOLDEN / "expected"
MASK = "<hash of sources>"

sys.path.insert(0, str(GOLDEN.parents[1]))

from generator.generate import generate
from generator.load import load_definitions
from generator.plan import Options
from generator.render import sources_hash


def render() -> dict[str, str]:
    """Return the rendered files by the names that they are kept under."""
    dataset = GOLDEN / "dataset"
    loaded = load_definitions(dataset)
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder)
        generated = generate(dataset, loaded, output, Options(), everything=True)
        assert not generated.problems, [str(p) for p in generated.problems]
        return {
            f"{path.name}.txt": path.read_bytes().decode().replace(sources_hash(), MASK)
            for path in sorted(output.glob("*.py"))
        }


def main() -> None:
    """Replace what is kept and say which files changed."""
    EXPECTED.mkdir(exist_ok=True)
    rendered = render()
    for path in EXPECTED.iterdir():
        if path.name not in rendered:
            path.unlink()
            print(f"removed {path.name}")
    for name, text in rendered.items():
        path = EXPECTED / name
        content = text.encode()
        if not path.exists() or path.read_bytes() != content:
            path.write_bytes(content)
            print(f"updated {name}")


if __name__ == "__main__":
    main()
