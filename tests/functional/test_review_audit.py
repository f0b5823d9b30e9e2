"""What `trace-dataset review` says of the audit that is on record."""

from __future__ import annotations

from pathlib import Path

from generator.review.audit.subject import a_recording
from tests.audits import AUDIT, audited, entry, write_audit
from tests.functional.hostile import write
from tests.functional.reviewed import changed, commit, evidence, reviewed
from tests.functional.test_validate import DEFINITION, FILE, run

APPROVE = 0
AUDITED = "planted defects are caught by the tests"


def audit_point(root: Path, *arguments: str) -> tuple[str, str]:
    """Return the answer and what was seen, of the changed definition."""
    (found,) = [
        (a["answer"], a["seen"])
        for a in reviewed(root, *arguments)["checklist"]
        if a["point"] == AUDITED
    ]
    return found


def test_an_audit_is_known_stale_or_absent(root: Path) -> None:
    changed(root, description="x")
    assert audit_point(root) == ("unknown", "absent: no audit is on record")
    write_audit(root, {})
    assert audit_point(root)[1] == "absent: trace-dataset audit was never run on it"
    write_audit(root, {"gemm_n8_k4": entry()})
    stale = "stale: the audit of 2026-11-20 is of another text"
    assert audit_point(root) == ("unknown", stale)
    audited(root, FILE)
    known = "known: 40 / 41 caught, 2026-11-20"
    claimed = ("unknown", f"only the change itself says so: {known}")
    assert audit_point(root) == claimed
    assert audit_point(root, "--trust-evidence") == ("yes", known)
    audited(root, FILE, *"abcd")
    answer, seen = audit_point(root, "--trust-evidence")
    assert (answer, seen) == (
        "unknown",
        "known: 40 / 45 caught, 2026-11-20; 4 survivors: a, b, c, and 1 more",
    )
    # a defect that survives is a question to the tests, not to the definition
    evidence(root)
    reviewed(root, "--trust-evidence", status=APPROVE)


def test_an_audit_that_was_there_counts(root: Path) -> None:
    audited(root, FILE)
    commit(root)
    write(root, "blob/ground_truth/gemm/gemm_n8_k4.safetensors", a_recording("x"))
    assert audit_point(root)[0] == "yes"


def test_an_edit_makes_the_audit_stale_and_that_is_a_new_warning(root: Path) -> None:
    audited(root, FILE)
    commit(root)
    changed(root, reference=DEFINITION["reference"] + "# x\n")
    found = reviewed(root)
    new = [p["rule"] for p in found["problems"]["new"]]
    assert "audit-stale" in new
    assert audit_point(root)[1].startswith("stale: ")


def test_an_audit_that_can_t_be_read_is_a_problem_and_none(root: Path) -> None:
    changed(root, description="x")
    write(root, AUDIT, "<<<<<<< HEAD\n")
    found = reviewed(root)
    assert "audit-file" in [p["rule"] for p in found["problems"]["new"]]
    assert audit_point(root) == ("unknown", "absent: no audit is on record")


def test_reviews_are_audited_on_a_part_of_a_dataset(root: Path) -> None:
    done = run("audit", "--review", "--all")
    assert done.returncode == 2
    assert "drop --all" in done.stderr
    few = run("audit", "--review", "--dataset", str(root))
    assert few.returncode == 2
    assert "three definitions" in few.stderr
