"""The rules on the recorded audit of a definition, which `validation` reads."""

from __future__ import annotations

from generator.problems.rule import note, warning

AUDIT_FILE = warning("""audit-file: The dataset's verification/audit.json is not what an
    audit records.
    Fix: Take the file from git, or delete it and run trace-dataset audit --all
    --record.
    Finds: a merge conflict in it, or a count that is no number""")
AUDIT_MISSING = note("""audit-missing: Others were audited, this definition was not: its
    tests may catch nothing.
    Fix: Run trace-dataset audit --record on the definition.
    Finds: a new definition beside audited ones""")
AUDIT_STALE = warning("""audit-stale: The recorded audit is of another text of the
    definition.
    Fix: Run trace-dataset audit --record on the definition again.
    Finds: a reference that was edited after the audit""")
AUDIT_SURVIVORS = warning("""audit-survivors: Planted defects of the reference were
    caught by no test.
    Fix: Add a case to the op in which they show, or tighten the bound that lets them
    pass; trace-dataset audit --survivors lists them.
    Finds: `logits / 8` as `logits / 7` passes every test""")
