"""The rules that `validate --execute` checks by calling each reference."""

from __future__ import annotations

from generator.problems.rule import error, note, warning

EXECUTE_BLOCKED = error(
    "execute-blocked",
    "The screen of the sources found what no reference needs: it is not called.",
    "Write the computation in plain PyTorch; --trust calls it all the same.",
    "`os.system(...)`, `eval(...)`, `x.__class__`",
)
EXECUTE_RAISED = error(
    "execute-raised",
    "`run` raises an exception on valid inputs.",
    "Correct the reference at that line.",
    "`A @ B` where the shapes need `A @ B.T`",
)
EXECUTE_GUESSED = note(
    "execute-guessed",
    "`run` raises an exception on inputs that were guessed: the op is not known.",
    "Look whether real inputs would do better; constraints make guesses better.",
    "an index that means something to this op alone",
)
EXECUTE_OUTPUTS = error(
    "execute-outputs",
    "`run` does not return one value for each output, tensors for tensors.",
    "Return a tensor, or a tuple in the order of `outputs`.",
    "a tuple of 2 where 3 outputs are declared, or a list of numbers",
)
EXECUTE_SHAPE = error(
    "execute-shape",
    "An output has another shape than the definition declares.",
    "Correct the reference or the declared shape.",
    "`out` is [1, 8], declared [M, N] with M 1 and N 4",
)
EXECUTE_DTYPE = error(
    "execute-dtype",
    "An output has another dtype than the definition declares.",
    "Convert the output, or correct the declared dtype.",
    "`out` is torch.float32, declared float16",
)
EXECUTE_DEVICE = error(
    "execute-device",
    "An output is on another device than the inputs.",
    "Make new tensors with `device=` of an input.",
    "`torch.zeros(..., device='meta')`",
)
EXECUTE_WRITES = warning(
    "execute-writes",
    "`run` wrote to an input, which callers don't expect.",
    "Clone the input and return what changes; or name a buffer that callers pass to be "
    "filled with _buffer at its end.",
    "a view of the input that is filled",
)
EXECUTE_TIME = error(
    "execute-time",
    "`run` does not return in time on the smallest inputs.",
    "Find the endless loop, or compute many elements at a time.",
    "`while True: pass`",
)
EXECUTE_KILLED = error(
    "execute-killed",
    "The process that called `run` was ended, by itself or at a limit.",
    "Let `run` return its outputs and touch nothing else of the process.",
    "`os._exit(0)`, or memory that is filled until the limit",
)
EXECUTE_NOT_RUN = note(
    "execute-not-run",
    "`run` was not called: no inputs could be made that are small enough.",
    "Run the reference tests on a machine with more memory.",
    "weights of 40 GiB",
)
