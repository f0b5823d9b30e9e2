"""Write what is kept anew: python tests/golden/update.py

That is the golden dataset, rendered, in expected/ (the files end in .txt, so that neither
pytest nor a linter takes them for code of this repository), and a file for each op_type.
A hash of inputs that changes makes every recording of that op_type stale, so look at
what did it before keeping it. `--check` writes nothing and exits 1 where a file would be
another: on any machine, with any versions.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

GOLDEN = Path(__file__).resolve().parent
EXPECTED = GOLDEN / "expected"

sys.path.insert(0, str(GOLDEN.parents[1]))

from generator.rendering.generate import generate
from generator.rendering.plan import RenderOptions
from generator.rules.load import load_definitions
from tests.golden.op_types import made


def render() -> dict[str, str]:
    """Return the rendered files by the names that they are kept under."""
    dataset = GOLDEN / "dataset"
    loaded = load_definitions(dataset)
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder)
        generated = generate(dataset, loaded, output, RenderOptions(), everything=True)
        assert not generated.problems, [str(p) for p in generated.problems]
        return {
            f"{path.name}.txt": path.read_bytes().decode()
            for path in sorted(output.glob("*.py"))
        }


def main(arguments: list[str]) -> int:
    """Replace what is kept and say which files changed; return the exit status."""
    texts = {EXPECTED / name: text for name, text in render().items()}
    texts |= {GOLDEN / name: text for name, text in made().items()}
    files = [*EXPECTED.iterdir(), *GOLDEN.glob("*.json")]
    stale = [path for path in files if path not in texts]
    stale += [
        path
        for path, text in texts.items()
        if not path.exists() or path.read_bytes() != text.encode()
    ]
    check = arguments == ["--check"]
    for path in stale:
        if not check and path in texts:
            path.write_bytes(texts[path].encode())
        elif not check:
            path.unlink()
        state = "updated" if path in texts else "removed"
        print(f"{'out of date' if check else state}: {path.relative_to(GOLDEN)}")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
