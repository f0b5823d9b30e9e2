"""Hash the inputs of every small case anew: python tests/unit/ops/update_input_hashes.py

A hash that changes makes every recording of that op_type stale, so look at what did it
before keeping it. `--check` writes nothing and exits 1 where one is another: on any
machine, with any versions.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
from pathlib import Path

FILE = Path(__file__).with_name("input_hashes.json")
ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from generator.support.fingerprint import input_hashes
from generator.support.stream import Stream
from tests.builders import sized
from tests.unit.ops.test_inputs import INTERFACES


def hashes_of(name: str) -> dict[str, str]:
    """Return one hash for all inputs of each small case of a definition."""
    definition = sized(name, **INTERFACES[name])
    op = importlib.import_module(f"generator.ops.{definition.op_type}")
    found = {}
    for case in op.cases(definition):
        if case.size == "small":
            inputs = op.make_inputs(definition, case, Stream(name, case.name))
            text = json.dumps(input_hashes(inputs))
            found[case.name] = hashlib.sha256(text.encode()).hexdigest()
    return found


def main(arguments: list[str]) -> int:
    """Write the hashes of all interfaces, or check them."""
    found = {name: hashes_of(name) for name in sorted(INTERFACES)}
    if arguments == ["--check"]:
        kept = json.loads(FILE.read_text("utf-8"))
        changed = [name for name in found if kept.get(name) != found[name]]
        print("\n".join(changed) or f"all {len(found)} are the same")
        return int(bool(changed))
    FILE.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
