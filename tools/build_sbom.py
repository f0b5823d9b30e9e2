"""Print a CycloneDX 1.5 bill of materials of what a release installs, as JSON.

`python tools/build_sbom.py > sbom.json`. It lists the packages of requirements/execute.txt
with their hashes, and torch, whose version is constraints.txt's.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from generator import __version__

ROOT = Path(__file__).parents[1]
_ENTRY = re.compile(
    r"^([\w.-]+)(?:\[[\w,-]+\])?==([^\s;]+)([^\n]*)\n((?: {4}--hash=[^\n]+\n)+)",
    re.MULTILINE,
)
_HASH = re.compile(r"sha256:([0-9a-f]{64})")


def bill() -> dict[str, Any]:
    """Return the bill as JSON values; the same files give the same bill."""
    text = (ROOT / "requirements/execute.txt").read_text()
    torch = re.search(
        r"^torch==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE
    )
    if torch is None:
        raise ValueError("constraints.txt pins no torch")
    listed = [
        (name, version, hashes) for name, version, _, hashes in _ENTRY.findall(text)
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "name": "gen-tests",
                "version": __version__,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": [
            {
                "type": "library",
                "name": name,
                "version": version,
                "purl": f"pkg:pypi/{name.lower()}@{version}",
                "properties": [
                    {"name": "sha256", "value": digest}
                    for digest in _HASH.findall(hashes)
                ],
            }
            for name, version, hashes in (*listed, ("torch", torch[1], ""))
        ],
    }


if __name__ == "__main__":
    json.dump(bill(), sys.stdout, indent=1)
    sys.stdout.write("\n")
