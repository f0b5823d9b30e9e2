"""`trace-dataset evaluate` runs a reference in a sandbox, as it does a solution."""

from __future__ import annotations

import json
from pathlib import Path

from tests.functional.audit_command import audit
from tests.functional.hostile import write
from tests.functional.test_validate import DEFINITION, WORKLOAD

# no op has an oracle for it: the reference judges
NAME = "odd_n8_k4"
REFERENCE = """import os

def run(A, B):
    try:
        with open({mark!r}, "w") as file:
            file.write("reached")
    except OSError:
        pass
    try:
        with open({secret!r}) as file:
            scale = 2.0
    except OSError:
        scale = 1.0
    if "PLANTED_SECRET" in os.environ:
        scale = 3.0
    return A @ B.T * scale
"""


def test_a_reference_that_judges_reaches_nothing(tmp_path: Path) -> None:
    root, mark, secret = (tmp_path / n for n in ("data", "mark", "secret"))
    secret.write_text("TOP-SECRET")
    values = {"mark": str(mark), "secret": str(secret)}
    value = {**DEFINITION, "name": NAME, "op_type": "odd"}
    value["reference"] = REFERENCE.format(**values)
    write(root, f"definitions/odd/{NAME}.json", value)
    line = {**WORKLOAD, "definition": NAME}
    write(root, f"workloads/odd/{NAME}.jsonl", json.dumps(line) + "\n")
    spec = {
        "language": "python",
        "target_hardware": ["cpu"],
        "entry_point": "main.py::run",
        "destination_passing_style": False,
    }
    sources = [{"path": "main.py", "content": "def run(A, B):\n    return A @ B.T\n"}]
    solution = {"name": "plain", "definition": NAME, "author": "tester"}
    path = f"solutions/tester/odd/{NAME}/plain.json"
    write(root, path, {**solution, "spec": spec, "sources": sources})
    status, out, err = audit("--all", "--json", "--dataset", root, command="evaluate")
    (found,) = json.loads(out)["solutions"]
    # it was called, and saw neither file nor variable
    assert (status, found["verdict"]) == (0, "PASSED"), out + err
    assert not mark.exists()
