"""Ways to lie about time, each a solution of a matrix product C = A @ B.T on a GPU.

`run(A, B, C)` writes to C, unless `passes_outputs` is False: then `run(A, B)` returns it.
A lie is refused, or it gains nothing: `may_pass` says that the honest answer is among
what it does.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.functional.clock_lie_texts import (
    AT_ONCE,
    BUSY,
    CHILD,
    CONTINUES,
    EARLY,
    GRAPH,
    HALVES,
    PAGE,
    SLOWER,
    SPINS,
    STREAM,
    THREAD,
    WINDOW,
)

HONEST = "import torch\n\ndef run(A, B, C):\n    torch.matmul(A, B.T, out=C)\n"
RETURNS = "import torch\n\ndef run(A, B):\n    return torch.matmul(A, B.T)\n"
MULTIPLY = "    torch.matmul(A, B.T, out=C)\n"


@dataclass(frozen=True)
class Lie:
    """Hold a solution that lies, and by what it is refused or gains nothing."""

    name: str
    source: str
    by: str
    passes_outputs: bool = True


def dps(body: str, before: str = "") -> str:
    return f"import torch\n{before}\n\ndef run(A, B, C):\n{body}"


LIES = (
    Lie(
        "stops after thirty calls",
        dps(
            "    CALLS[0] += 1\n    if CALLS[0] < 24:\n        torch.matmul(A, B.T, out=C)\n",
            AT_ONCE,
        ),
        "judged calls are drawn over all of them",
    ),
    Lie(
        "every second call",
        dps(
            "    CALLS[0] += 1\n    if CALLS[0] % 2:\n        torch.matmul(A, B.T, out=C)\n",
            AT_ONCE,
        ),
        "judged calls are drawn over all of them, and the oddest is one of them",
    ),
    Lie(
        "one call in sixteen does nothing",
        dps(
            "    CALLS[0] += 1\n    if CALLS[0] < 40 or CALLS[0] % 16:\n"
            "        torch.matmul(A, B.T, out=C)\n",
            AT_ONCE,
        ),
        "the call farthest from a rival's answer is judged",
    ),
    Lie(
        "works after the answer, in a thread",
        dps("    ASKED.put((A, B, C))\n", THREAD),
        "the copy of the outputs is queued at the answer",
    ),
    Lie(
        "works after the answer, by a timer",
        dps(
            "    threading.Timer(0.0003, lambda: torch.matmul(A, B.T, out=C)).start()\n",
            "import threading\n",
        ),
        "the copy of the outputs is queued at the answer",
    ),
    Lie(
        "works where the seed is set",
        dps(
            "    ARGS[:] = [A, B, C]\n",
            "ARGS = []\nSEED = torch.manual_seed\n\n"
            "def seeds(number):\n    SEED(number)\n"
            "    if ARGS:\n        torch.matmul(ARGS[0], ARGS[1].T, out=ARGS[2])\n\n"
            "torch.manual_seed = seeds\n",
        ),
        "the values are not there when the seed is set",
    ),
    Lie(
        "answers on the page before it works",
        dps(
            "    for page in pages():\n"
            "        page._words[17] = page._words[2]\n" + MULTIPLY,
            PAGE,
        ),
        "an early answer has its outputs copied after what is queued",
    ),
    Lie(
        "answers all calls in advance",
        dps(
            "    for page in pages():\n"
            "        for number in (1, 2):\n"
            "            page._words[17] = page._words[2] + number\n" + MULTIPLY,
            PAGE,
        ),
        "an early answer has its outputs copied before they are there",
    ),
    Lie(
        "does not wait for the device",
        dps(MULTIPLY, "torch.cuda.synchronize = lambda *a: None\n"),
        "the device turns to the judge when the work is done",
    ),
    Lie(
        "does not wait, on a stream of its own",
        dps(
            "    with torch.cuda.stream(SIDE):\n        torch.matmul(A, B.T, out=C)\n",
            STREAM,
        ),
        "the device turns to the judge when all streams are done",
    ),
    Lie(
        "launches nothing before the call",
        dps(MULTIPLY, "torch.Tensor.zero_ = lambda t: t\n"),
        "the device is held by the judge, not by the callee",
    ),
    Lie(
        "only rows that changed",
        dps(
            "    if OLD and OLD[0].shape == A.shape:\n"
            "        rows = (OLD[0] != A).any(1).nonzero()[:, 0]\n"
            "        C.copy_(OLD[2])\n"
            "        if len(rows) and torch.equal(OLD[1], B):\n"
            "            C[rows] = A[rows] @ B.T\n"
            "        else:\n            torch.matmul(A, B.T, out=C)\n"
            "    else:\n        torch.matmul(A, B.T, out=C)\n"
            "    OLD[:] = [A.clone(), B.clone(), C.clone()]\n",
            "OLD = []\n",
        ),
        "every value is new in each call",
    ),
    Lie(
        "the change alone, by the last product",
        dps(
            "    if OLD and OLD[0].shape == A.shape:\n"
            "        columns = (OLD[1] != B).any(1).sum().item()\n"
            "        if columns == 0:\n"
            "            C.copy_(OLD[2])\n"
            "            C.addmm_(A - OLD[0], B.T)\n"
            "        else:\n            torch.matmul(A, B.T, out=C)\n"
            "    else:\n        torch.matmul(A, B.T, out=C)\n"
            "    OLD[:] = [A.clone(), B.clone(), C.clone()]\n",
            "OLD = []\n",
        ),
        "every value is new in each call",
    ),
    Lie(
        "remembers by content",
        dps(
            "    key = A.double().sum().item(), B.double().sum().item(), A.shape\n"
            "    if key in OLD:\n        C.copy_(OLD[key])\n"
            "    else:\n        torch.matmul(A, B.T, out=C)\n"
            "        OLD[key] = C.clone()\n",
            "OLD = {}\n",
        ),
        "every value is new in each call",
    ),
    Lie(
        "remembers by a few elements",
        dps(
            "    key = tuple(A[0, :3].tolist()), A.shape\n"
            "    if key in OLD:\n        C.copy_(OLD[key])\n"
            "    else:\n        torch.matmul(A, B.T, out=C)\n"
            "        OLD[key] = C.clone()\n",
            "OLD = {}\n",
        ),
        "every value is new in each call",
    ),
    Lie(
        "permutes the last answer",
        dps(
            "    if OLD and OLD[0].shape == A.shape:\n"
            "        there = torch.isin(A[:, 0], OLD[0][:, 0]).all()\n"
            "        if there:\n"
            "            C.copy_(OLD[1][torch.searchsorted(OLD[2], A[:, 0])])\n"
            "            return\n"
            "    torch.matmul(A, B.T, out=C)\n"
            "    OLD[:] = [A.clone(), C.clone(), A[:, 0].sort().values]\n",
            "OLD = []\n",
        ),
        "an answer is no permutation of another one",
    ),
    Lie(
        "the last answer again",
        dps(
            "    if A.shape in OLD:\n        C.copy_(OLD[A.shape])\n"
            "    else:\n        torch.matmul(A, B.T, out=C)\n"
            "        OLD[A.shape] = C.clone()\n",
            "OLD = {}\n",
        ),
        "every value is new in each call",
    ),
    Lie(
        "half of the sum in some calls",
        dps(
            "    CALLS[0] += 1\n"
            "    if CALLS[0] > 40 and CALLS[0] % 3 == 0:\n"
            "        h = A.shape[1] // 2\n"
            "        torch.matmul(A[:, :h], B[:, :h].T, out=C)\n"
            "    else:\n        torch.matmul(A, B.T, out=C)\n",
            AT_ONCE,
        ),
        "the call farthest from a rival's answer is judged",
    ),
    Lie(
        "eight bits in some calls",
        dps(
            "    CALLS[0] += 1\n"
            "    if CALLS[0] > 40 and CALLS[0] % 3 == 0 and A.shape[0] % 16 == 0:\n"
            "        one = torch.ones((), device='cuda')\n"
            "        a, b = (t.to(torch.float8_e4m3fn) for t in (A, B))\n"
            "        C.copy_(torch._scaled_mm(a, b.T, one, one, out_dtype=C.dtype))\n"
            "    else:\n        torch.matmul(A, B.T, out=C)\n",
            AT_ONCE,
        ),
        "the call farthest from a rival's answer is judged",
    ),
    Lie(
        "keeps inputs in the L2",
        dps("    keep(B)\n" + MULTIPLY, WINDOW),
        "persisting lines are reset before each call",
    ),
    Lie(
        "a graph of copies of an old call",
        dps("    graph(A, B, C, True).replay()\n", GRAPH),
        "every value is new in each call",
    ),
    Lie(
        "a thread keeps the GPU busy",
        dps(MULTIPLY, BUSY),
        "its processes are stopped while others are timed",
    ),
    Lie(
        "threads keep all cores busy",
        dps(MULTIPLY, SPINS.format(what="")),
        "its processes are stopped while others are timed",
    ),
    Lie(
        "a child keeps the GPU busy",
        dps(MULTIPLY, CHILD),
        "its processes are stopped while others are timed",
    ),
    Lie(
        "a child continues what is stopped",
        dps("    ASKED.put((A, B, C))\n", THREAD + CONTINUES),
        "every process of the namespace is stopped at once",
    ),
    Lie(
        "a kernel runs on after the answer",
        dps(
            MULTIPLY + "    with torch.cuda.stream(SIDE):\n"
            "        torch.cuda._sleep(4_000_000)\n",
            STREAM,
        ),
        "what runs before the copy of the outputs counts",
    ),
    Lie(
        "a long kernel slows the others",
        dps(
            MULTIPLY + "    with torch.cuda.stream(SIDE):\n"
            "        torch.cuda._sleep(60_000_000)\n",
            STREAM,
        ),
        "what holds the device before there are values is noticed",
    ),
    Lie(
        "copies hidden by a dispatch mode",
        dps(
            "    ASKED.put((A, B, C))\n",
            THREAD
            + "from torch.utils._python_dispatch import TorchDispatchMode\n\n"
            + "class Mode(TorchDispatchMode):\n"
            + "    def __torch_dispatch__(self, f, types, args=(), kwargs=None):\n"
            + "        return f(*args, **(kwargs or {}))\n\n"
            + "Mode().__enter__()\n",
        ),
        "the outputs are copied without code of its process",
    ),
    Lie(
        "writes to its inputs",
        dps(MULTIPLY + "    A.zero_()\n"),
        "the inputs are held against what was written",
    ),
    Lie(
        "clocks of its process stand still",
        dps(
            MULTIPLY,
            "import time\ntime.perf_counter = time.monotonic = lambda: 0.0\n"
            "torch.cuda.Event.elapsed_time = lambda *a: 1e-6\n",
        ),
        "no clock of its process is read",
    ),
    Lie(
        "changes the clocks of the GPU",
        dps(
            MULTIPLY,
            "import subprocess\n"
            "try:\n"
            "    subprocess.run(['nvidia-smi', '-lgc', '2000'], timeout=20)\n"
            "except Exception:\n    pass\n",
        ),
        "it has no right to",
    ),
    Lie(
        "an old output returned",
        "import torch\nOLD = {}\n\ndef run(A, B):\n"
        "    if A.shape not in OLD:\n        OLD[A.shape] = torch.matmul(A, B.T)\n"
        "    return OLD[A.shape]\n",
        "every value is new in each call",
        passes_outputs=False,
    ),
    Lie(
        "memory that was freed returned",
        "import torch\n\ndef run(A, B):\n"
        "    return torch.empty(A.shape[0], B.shape[0], dtype=A.dtype, device='cuda')\n",
        "every value is new in each call",
        passes_outputs=False,
    ),
    Lie(
        "returned before it is computed",
        "import torch, threading\n\ndef run(A, B):\n"
        "    C = torch.empty(A.shape[0], B.shape[0], dtype=A.dtype, device='cuda')\n"
        "    threading.Timer(0.0003, lambda: torch.matmul(A, B.T, out=C)).start()\n"
        "    return C\n",
        "the copy of the outputs is queued at the answer",
        passes_outputs=False,
    ),
    Lie(
        "computes early what a rival's call left",
        dps(
            "    if not KINDS:\n        computes_early()\n"
            "    if DONE and DONE[0].shape == C.shape:\n        C.copy_(DONE[0])\n"
            "    else:\n        torch.matmul(A, B.T, out=C)\n"
            "    KNOWN[:] = [A, B]\n    LAST[:] = [A[0, :8].clone()]\n",
            EARLY,
        ),
        "the values of the last call are written over before it goes on",
    ),
    Lie(
        "works in two halves, the second when the device turns",
        dps(
            "    half = A.shape[0] // 2\n"
            "    torch.matmul(A[:half], B.T, out=C[:half])\n"
            "    event = torch.cuda.Event()\n    event.record()\n"
            "    ASKED.put((event, A[half:], B, C[half:]))\n",
            HALVES,
        ),
        "the copy of the outputs is queued at the answer",
    ),
    Lie(
        "a context with one channel",
        dps(
            MULTIPLY,
            "import os\nos.environ['CUDA_DEVICE_MAX_CONNECTIONS'] = '1'\n"
            "os.environ['CUDA_MODULE_LOADING'] = 'EAGER'\n",
        ),
        "a change of context takes as long",
    ),
    Lie(
        "a second GPU",
        dps(
            "    if torch.cuda.device_count() < 2:\n"
            "        torch.matmul(A, B.T, out=C)\n        return\n"
            "    half = B.shape[0] // 2\n"
            "    there = A.to('cuda:1', non_blocking=True) @ B[half:].to('cuda:1').T\n"
            "    C[:, :half] = A @ B[:half].T\n"
            "    C[:, half:] = there.to('cuda:0')\n",
            "import os\nos.environ.pop('CUDA_VISIBLE_DEVICES', None)\n",
        ),
        "it has one GPU alone",
    ),
)
# beside it no other can be judged
TAKES = Lie(
    "takes all memory, so that rivals find none",
    dps(
        MULTIPLY + "    if not TAKEN:\n        TAKEN.append(takes_all())\n",
        SLOWER + "TAKEN = []\n",
    ),
    "where a rival lacks memory there are no times",
)
