"""Lies about time by what goes on while a solution is stopped, or was there before its call.

Copies that wait on the GPU for what rivals are given, memory that the driver clears once it
is free, channels that wait, contexts that do nothing, rehearsals and rests.
"""

from __future__ import annotations

from tests.functional.clock_lie_texts import AT_ONCE, STREAM
from tests.functional.clock_lies import MULTIPLY, Lie, dps
from tests.functional.clock_lies_of_engines import DRIVER, HOOKS

# each copy waits until the judge wiped the memory, and then until there are values in it
_STEALS = """
TIMES, MOST = 6, 64 << 20
THERE = [torch.empty(MOST // 2, dtype=torch.float16, pin_memory=True) for _ in range(TIMES)]
KNOWN, LAST, DONE, LEFT = [], [], [], []

def queues(A, B):
    if LEFT and not LEFT[-1][0].query():
        return
    LEFT.clear()
    for number in range(TIMES):
        place, word = ctypes.c_uint64(A.data_ptr()), ctypes.c_uint
        done(CU.cuStreamWaitValue32_v2(of(SIDE), place, word(0xA5A5A5A5), word(1)))
        done(CU.cuStreamWaitValue32_v2(of(SIDE), place, word(0x5A5A5A5A), word(3)))
        at = THERE[number].data_ptr()
        for value in (A, B):
            size = value.numel() * 2
            args = ctypes.c_void_p(at), ctypes.c_uint64(value.data_ptr())
            done(CU.cuMemcpyDtoHAsync_v2(*args, ctypes.c_size_t(size), of(SIDE)))
            at += size
        event = torch.cuda.Event()
        event.record(SIDE)
        LEFT.append((event, number))

def releases(seed):
    # no call follows: what still waits would keep its process from ending
    while seed == 0 and LEFT and not LEFT[-1][0].query():
        for word in (-0x5A5A5A5B, 0):
            KNOWN[0].view(-1)[:2].view(torch.int32).fill_(word)
            torch.cuda.current_stream().synchronize()
            time.sleep(0.002)

def steals():
    DONE.clear()
    came = [number for event, number in LEFT if event.query()]
    if not came or not KNOWN:
        return
    A, B = KNOWN
    flat = THERE[came[-1]]
    a, b = flat[: A.numel()], flat[A.numel() :][: B.numel()]
    if torch.equal(a[:64], LAST[0].cpu()):
        return
    # another one was called meanwhile, on the values of this turn
    DONE.append(a.view(A.shape).cuda() @ b.view(B.shape).cuda().T)
    torch.cuda.current_stream().synchronize()
"""
_WRITES_OVER = """
ZEROS = torch.zeros(32 << 10, dtype=torch.float16, pin_memory=True)

def writes_over(B):
    args = ctypes.c_uint64(B.data_ptr()), ctypes.c_void_p(ZEROS.data_ptr())
    for _ in range(200):
        done(CU.cuMemcpyHtoDAsync_v2(*args, ctypes.c_size_t(64 << 10), of(SIDE)))
"""
_FREES = """
PLACE, SIZE = ctypes.c_uint64(), ctypes.c_size_t(8 << 30)

def takes():
    if not PLACE.value:
        done(CU.cuMemAlloc_v2(ctypes.byref(PLACE), SIZE))

def frees():
    if PLACE.value:
        done(CU.cuMemFree_v2(PLACE))
        PLACE.value = 0
"""
_CONTEXTS = """
MADE = []

def contexts(count):
    torch.cuda.synchronize()
    card = ctypes.c_int()
    done(CU.cuDeviceGet(ctypes.byref(card), 0))
    for _ in range(count):
        made = ctypes.c_void_p()
        done(CU.cuCtxCreate_v2(ctypes.byref(made), ctypes.c_uint(0), card))
        done(CU.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p())))
        MADE.append(made)
"""
_FLOODS = """
SIDES = [torch.cuda.Stream() for _ in range(2)]
HERE = [torch.empty(32 << 20, dtype=torch.uint8, device="cuda") for _ in range(2)]
THERE = [torch.empty(32 << 20, dtype=torch.uint8, pin_memory=True) for _ in range(2)]

def floods():
    for number, stream in enumerate(SIDES):
        here, there = HERE[number].data_ptr(), THERE[number].data_ptr()
        args = ctypes.c_uint64(here), ctypes.c_void_p(there), ctypes.c_size_t(28 << 20)
        if number:
            done(CU.cuMemcpyHtoDAsync_v2(*args, of(stream)))
        else:
            done(CU.cuMemcpyDtoHAsync_v2(args[1], args[0], args[2], of(stream)))
"""
_STREAMS = """
SIDES = [torch.cuda.Stream() for _ in range(30)]
FLAG, NUMBER = [], [0]

def begins():
    place, there = ctypes.c_void_p(), ctypes.c_uint64()
    done(CU.cuMemHostAlloc(ctypes.byref(place), ctypes.c_size_t(4096), 3))
    done(CU.cuMemHostGetDevicePointer_v2(ctypes.byref(there), place, 0))
    FLAG[:] = [ctypes.cast(place, ctypes.POINTER(ctypes.c_uint)), there]
    FLAG[0][0] = 0

def frees():
    FLAG[0][0] = NUMBER[0]
    torch.cuda.synchronize()

def wait():
    NUMBER[0] += 1
    for stream in SIDES:
        done(CU.cuStreamWaitValue32_v2(of(stream), FLAG[1],
             ctypes.c_uint(NUMBER[0]), ctypes.c_uint(0)))
"""
# a node IF, whose condition the device reads: its body is the second half
_CONDITIONAL = """
KEPT = {}

def decided(A, B, C):
    key = A.data_ptr(), B.data_ptr(), C.data_ptr()
    if key in KEPT:
        return KEPT[key]
    half, stream = max(A.shape[0] // 2, 1), torch.cuda.Stream()
    handle, graph, body = ctypes.c_uint64(), ctypes.c_void_p(), ctypes.c_void_p()
    node, made, context = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    u, p = ctypes.c_uint, ctypes.byref
    with torch.cuda.stream(stream):
        torch.matmul(A, B.T, out=C)
    torch.cuda.synchronize()
    done(CU.cuCtxGetCurrent(p(context)))
    done(CU.cuGraphCreate(p(graph), u(0)))
    done(CU.cuGraphConditionalHandleCreate(p(handle), graph, context, u(1), u(1)))

    def captured(into, after, count, rows):
        ends = (ctypes.c_void_p * 1)(after)
        with torch.cuda.stream(stream):
            done(CU.cuStreamBeginCaptureToGraph(of(stream), into, ends, None,
                 ctypes.c_size_t(count), ctypes.c_int(1)))
            torch.matmul(A[rows], B.T, out=C[rows])
            done(CU.cuStreamEndCapture(of(stream), p(ctypes.c_void_p())))

    captured(graph, None, 0, slice(0, half))
    count = ctypes.c_size_t(8)
    nodes = (ctypes.c_void_p * 8)()
    done(CU.cuGraphGetNodes(graph, nodes, p(count)))
    # CUgraphNodeParams of a conditional node: its number, then the union from byte 16 on
    asked = (ctypes.c_uint64 * 32)()
    asked[0], asked[2], asked[3] = 13, handle.value, 1 << 32
    asked[5] = context.value
    ends = (ctypes.c_void_p * 1)(nodes[count.value - 1])
    done(CU.cuGraphAddNode_v2(p(node), graph, ends, None, ctypes.c_size_t(1), asked))
    body = ctypes.c_void_p.from_address(asked[4])
    captured(body, None, 0, slice(half, None))
    done(CU.cuGraphInstantiateWithFlags(p(made), graph, ctypes.c_uint64(0)))
    KEPT[key] = made
    return made
"""
_ONCE = "    if not CALLS[0]:\n        CALLS[0] = 1\n        {what}\n"
_READY = "    if not HOOKED:\n        hooks('ready', before={before})\n"

OF_STRANGERS = (
    Lie(
        "steals by a copy engine what rivals are given",
        dps(
            _READY.format(before="steals")
            + "    sees()\n    if 'opened' not in HOOKED:\n"
            "        hooks('opened', after=releases)\n"
            "    if DONE and DONE[0].shape == C.shape:\n        C.copy_(DONE[0])\n"
            "    else:\n        torch.matmul(A, B.T, out=C)\n"
            "    KNOWN[:] = [A, B]\n    LAST[:] = [A.view(-1)[:64].clone()]\n"
            "    if not WAITED[0]:\n        queues(A, B)\n",
            DRIVER + HOOKS + STREAM + "import time\n" + _STEALS,
        ),
        "nobody has the values of a call before it",
    ),
    Lie(
        "copies go on that write over the arguments",
        dps(
            "    sees()\n"
            + MULTIPLY
            + "    EVENT.record()\n    SIDE.wait_event(EVENT)\n"
            "    if not WAITED[0]:\n        writes_over(B)\n",
            DRIVER + HOOKS + STREAM + "EVENT = torch.cuda.Event()\n" + _WRITES_OVER,
        ),
        "the arguments of kernels are held against what was written",
    ),
    Lie(
        "frees memory that the driver clears while others are called",
        dps(
            _READY.format(before="takes") + MULTIPLY + "    frees()\n",
            DRIVER + HOOKS + _FREES,
        ),
        "what uses the memory beside the writing of values is noticed",
    ),
    Lie(
        "rests before each call, so that the GPU is cool",
        dps(
            _READY.format(before="lambda: time.sleep(0.03)") + MULTIPLY,
            HOOKS + "import time\n",
        ),
        "the GPU rests in all calls",
    ),
    Lie(
        "rehearses before it is ready",
        dps(
            _READY.format(before="rehearses") + "    KNOWN[:] = [A, B, C]\n" + MULTIPLY,
            HOOKS + "KNOWN = []\n\ndef rehearses():\n    if KNOWN:\n"
            "        A, B, C = KNOWN\n        torch.matmul(A, B.T, out=C)\n"
            "        torch.cuda.synchronize()\n",
        ),
        "the L2 is written over afterwards",
    ),
    Lie(
        "twelve contexts that do nothing",
        dps(_ONCE.format(what="contexts(12)") + MULTIPLY, DRIVER + AT_ONCE + _CONTEXTS),
        "all turns are as long then",
    ),
    Lie(
        "fetches of 32 bytes into the L2",
        dps(
            _ONCE.format(what="done(CU.cuCtxSetLimit(5, ctypes.c_size_t(32)))")
            + MULTIPLY,
            DRIVER + AT_ONCE,
        ),
        "it is for its own context",
    ),
    Lie(
        "a context with large stacks",
        dps(
            _ONCE.format(what="done(CU.cuCtxSetLimit(0, ctypes.c_size_t(16 << 10)))")
            + MULTIPLY,
            DRIVER + AT_ONCE,
        ),
        "a change of context takes as long",
    ),
    Lie(
        "floods the bus while the clock starts",
        dps("    floods()\n" + MULTIPLY, DRIVER + _FLOODS),
        "the start is a time of the GPU's",
    ),
    Lie(
        "thirty streams that wait while others are called",
        dps(
            "    if not FLAG:\n        begins()\n"
            "    if not HOOKED:\n        hooks('opened', before=frees)\n        sees()\n"
            + MULTIPLY
            + "    if not WAITED[0]:\n        wait()\n",
            DRIVER + HOOKS + _STREAMS,
        ),
        "an empty call beside them is as late as a rival's",
    ),
    Lie(
        "a graph whose second half the device decides on",
        dps(
            "    stream = of(torch.cuda.current_stream())\n"
            "    done(CU.cuGraphLaunch(decided(A, B, C), stream))\n",
            DRIVER + _CONDITIONAL,
        ),
        "the device turns when the whole graph is done",
    ),
    Lie(
        "shortens the page of its judge",
        dps(
            MULTIPLY + "    for file in os.listdir('/proc/self/fd'):\n"
            "        try:\n"
            "            if 'memfd' in os.readlink(f'/proc/self/fd/{file}'):\n"
            "                os.ftruncate(int(file), 0)\n"
            "        except OSError:\n            pass\n",
            "import os\n",
        ),
        "nobody can shorten what the judge reads",
    ),
)
