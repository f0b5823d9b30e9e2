"""Rules whose checks lie in other packages: audits, `--execute`, rendered files."""

from __future__ import annotations

from collections.abc import Iterable

from generator.problems import Problem, error, note, warning
from generator.problems.messages import some

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

EXECUTE_RAISED = error("""execute-raised: `run` raises an exception on valid inputs.
    Fix: Correct the reference at that line.
    Finds: `A @ B` where the shapes need `A @ B.T`""")
EXECUTE_GUESSED = note("""execute-guessed: `run` raises an exception on inputs that were
    guessed: the op is not known.
    Fix: Look whether real inputs would do better; constraints make guesses better.
    Finds: an index that means something to this op alone""")
EXECUTE_OUTPUTS = error("""execute-outputs: `run` does not return one value for each
    output, tensors for tensors.
    Fix: Return a tensor, or a tuple in the order of `outputs`.
    Finds: a tuple of 2 where 3 outputs are declared, or a list of numbers""")
EXECUTE_SHAPE = error("""execute-shape: An output has another shape than the definition
    declares.
    Fix: Correct the reference or the declared shape.
    Finds: `out` is [1, 8], declared [M, N] with M 1 and N 4""")
EXECUTE_DTYPE = error("""execute-dtype: An output has another dtype than the definition
    declares.
    Fix: Convert the output, or correct the declared dtype.
    Finds: `out` is torch.float32, declared float16""")
EXECUTE_DEVICE = error("""execute-device: An output is on another device than the
    inputs.
    Fix: Make new tensors with `device=` of an input.
    Finds: `torch.zeros(..., device='meta')`""")
EXECUTE_WRITES = warning("""execute-writes: `run` wrote to an input, which callers don't
    expect.
    Fix: Clone the input and return what changes; or name a buffer that callers pass to
    be filled with _buffer at its end.
    Finds: a view of the input that is filled""")
EXECUTE_WORKLOAD = error("""execute-workload: At a workload of the dataset `run` raises an
    exception, or does not return what the op's oracle does.
    Fix: Run pytest tests/references --workloads all on the definition, and correct the
    reference at these sizes.
    Finds: a reference that is right for the first 100 rows, and a workload of 512""")
EXECUTE_TIME = error("""execute-time: `run` does not return in time on the smallest
    inputs.
    Fix: Find the endless loop, or compute many elements at a time.
    Finds: `while True: pass`""")
EXECUTE_KILLED = error("""execute-killed: The process that called `run` was ended, by
    itself or at a limit.
    Fix: Let `run` return its outputs and touch nothing else of the process.
    Finds: `os._exit(0)`, or memory that is filled until the limit""")
EXECUTE_NOT_RUN = note("""execute-not-run: `run` was not called: no inputs could be made
    that are small enough.
    Fix: Run the reference tests on a machine with more memory.
    Finds: weights of 40 GiB""")

RENDERED_FILE_EDITED = error("""rendered-file-edited: A rendered file is not what
    gen-tests wrote last: somebody edited it.
    Fix: Move the change to the definition or the op's module and render with --force,
    or keep the file under another name.
    Finds: a tolerance changed in tests/references/test_gemm.py""")

RENDERED_FILE_KEPT = error("""rendered-file-kept: A rendered file has the tests of a
    definition that has errors now: it stays as it was, so that no test is lost unseen.
    Fix: Correct the definition, or remove its file where it is to go.
    Finds: a comma too many in a definition whose tests were rendered before""")

CUSTOM_INPUTS_UNFIT = error("""custom-inputs-unfit: A file of custom inputs can't be
    used for its definition.
    Fix: Import the definition again, or correct the file's constants.
    Finds: custom_inputs/... whose ARGUMENTS lack an input""")


def edited(path: str, *, has_crlf: bool = False) -> Problem:
    """Return the Problem of a rendered file that was edited, or has other line ends."""
    if has_crlf:
        message = "The lines end in CRLF, which git made of LF: the hash is another."
        fix = "Put `* -text` into .gitattributes, and check the files out again."
        return RENDERED_FILE_EDITED.problem(path, message, fix=fix)
    message = "The file is not what gen-tests wrote last: somebody edited it."
    return RENDERED_FILE_EDITED.problem(path, message)


def kept(path: str, names: Iterable[str]) -> Problem:
    """Return the Problem of a rendered file that stays for broken definitions."""
    named = some(sorted(names), 3)
    message = f"The file stays as it is: it tests {named}, which can't be rendered now."
    return RENDERED_FILE_KEPT.problem(path, message)
