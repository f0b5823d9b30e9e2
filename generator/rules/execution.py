"""The rules that `validate --execute` checks by calling each reference."""

from __future__ import annotations

from generator.problems.rule import error, note, warning

EXECUTE_BLOCKED = error("""execute-blocked: The screen of the sources found what no
    reference needs: it is not called.
    Fix: Write the computation in plain PyTorch; --trust calls it all the same.
    Finds: `os.system(...)`, `eval(...)`, `x.__class__`""")
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
