"""Lies about time with what is beside the compute engine: copies, waits, contexts, priorities.

They are of the same product as those of `clock_lies`, and called through the driver, since
torch has no call for most of it.
"""

from __future__ import annotations

from tests.functional.clock_lie_texts import GRAPH, STREAM, THREAD
from tests.functional.clock_lies import MULTIPLY, Lie, dps

DRIVER = """
import ctypes
CU = ctypes.CDLL("libcuda.so.1")

def done(status):
    if status:
        raise RuntimeError(f"driver: {status}")

def of(stream):
    return ctypes.c_void_p(stream.cuda_stream)
"""
# two dimensions, of which no row is next to the other, are for a copy engine alone
_STRIDED = """
Z, U, P, Q = ctypes.c_size_t, ctypes.c_uint, ctypes.c_void_p, ctypes.c_uint64

class Copy2D(ctypes.Structure):
    _fields_ = [("sx", Z), ("sy", Z), ("st", U), ("sh", P), ("sd", Q), ("sa", P),
                ("sp", Z), ("dx", Z), ("dy", Z), ("dt", U), ("dh", P), ("dd", Q),
                ("da", P), ("dp", Z), ("w", Z), ("h", Z)]

def copy(target, source, pitch, rows, stream):
    how = Copy2D(st=2, sd=source, sp=pitch, dt=2, dd=target, dp=pitch,
                 w=pitch - 32, h=rows)
    done(CU.cuMemcpy2DAsync_v2(ctypes.byref(how), of(stream)))
"""
# copies begin when the product is done, and take some milliseconds; none where the call waits
_AFTERWARDS = (
    "    sees()\n"
    "    torch.matmul(A, B.T, out=C)\n"
    "    EVENT.record()\n"
    "    for stream in SIDES[2 * WAITED[0] :]:\n"
    "        stream.wait_event(EVENT)\n"
    "        moves(stream)\n"
)
_SIDES = """
SIDES = [torch.cuda.Stream() for _ in range(2)]
EVENT = torch.cuda.Event()
"""
_OVER_PCIE = """
HERE = [torch.empty(32 << 20, dtype=torch.uint8, device="cuda") for _ in range(2)]
THERE = [torch.empty(32 << 20, dtype=torch.uint8, pin_memory=True) for _ in range(2)]

def moves(stream):
    number = SIDES.index(stream)
    here, there = HERE[number].data_ptr(), THERE[number].data_ptr()
    args = ctypes.c_uint64(here), ctypes.c_void_p(there), ctypes.c_size_t(32 << 20)
    for _ in range(5):
        if number:
            done(CU.cuMemcpyHtoDAsync_v2(*args, of(stream)))
        else:
            done(CU.cuMemcpyDtoHAsync_v2(args[1], args[0], args[2], of(stream)))
"""
_WITHIN = """
HERE = [torch.empty(512 << 20, dtype=torch.uint8, device="cuda") for _ in range(2)]

def moves(stream):
    here = HERE[SIDES.index(stream)].data_ptr()
    for _ in range(4):
        copy(here + (256 << 20), here, 8192, 32768, stream)
"""
# a MiB after the other to one place: in the L2 there is room for what is read
_BRINGS = """
PLACE = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")

def brings(B, stream):
    for at in range(0, B.numel() * 2, 1 << 20):
        copy(PLACE.data_ptr(), B.data_ptr() + at, 8192, 128, stream)
"""
# ends when the device turns: what is read last is in the L2 then
_TO_THE_HOST = """
THERE = torch.empty(64 << 20, dtype=torch.uint8, pin_memory=True)

def to_the_host(B, size):
    size = min(size, B.numel() * 2)
    at = B.data_ptr() + B.numel() * 2 - size
    done(CU.cuMemcpyDtoHAsync_v2(ctypes.c_void_p(THERE.data_ptr()), ctypes.c_uint64(at),
                                 ctypes.c_size_t(size), of(SIDE)))
"""
_ROUNDS = """
KEPT = {}

def rounds(B):
    if B.data_ptr() not in KEPT:
        with torch.cuda.stream(SIDE):
            brings(B, SIDE)
            torch.cuda.synchronize()
            made = torch.cuda.CUDAGraph()
            with torch.cuda.graph(made, stream=SIDE):
                for _ in range(12):
                    brings(B, SIDE)
        KEPT[B.data_ptr()] = made
    with torch.cuda.stream(SIDE):
        KEPT[B.data_ptr()].replay()
"""
# the page is there in timed calls alone
HOOKS = """
import gc
HOOKED, WAITED = [], [True]

def hooks(name, before=None, after=None):
    pages = {type(o) for o in gc.get_objects() if type(o).__name__ == "Page"}
    for kind in pages:
        usual = getattr(kind, name)

        def other(page, number):
            if before is not None:
                before()
            value = usual(page, number)
            if after is not None:
                after(value)
            return value

        setattr(kind, name, other)
        HOOKED.append(name)

def waited(which):
    WAITED[0] = which >= 256

def sees():
    if "revealed" not in HOOKED:
        hooks("revealed", after=waited)
"""
# its kernel is on the device before the judge holds it, and goes on when there are values
WAITS_THERE = (
    HOOKS
    + """
import time
KNOWN = []
TEXT = '''
extern "C" __global__ void waits(volatile unsigned* at) {
    while (*at == 0xA5A5A5A5u) {}
}
'''
KERNEL = torch.cuda._compile_kernel(TEXT, "waits")

def waits_there():
    KERNEL(grid=(1, 1, 1), block=(1, 1, 1), args=[KNOWN[0]])
    time.sleep(0.0018)
"""
)
# as the caller waits for the device in some calls, it waits for nothing there
_ENDS_WAITING = """
FLAG, NUMBER = [], [0]

def begins():
    place, there = ctypes.c_void_p(), ctypes.c_uint64()
    done(CU.cuMemHostAlloc(ctypes.byref(place), ctypes.c_size_t(4096), 3))
    done(CU.cuMemHostGetDevicePointer_v2(ctypes.byref(there), place, 0))
    FLAG[:] = [ctypes.cast(place, ctypes.POINTER(ctypes.c_uint)), there]
    FLAG[0][0] = 0

def frees(_):
    FLAG[0][0] = NUMBER[0]
    torch.cuda.synchronize()
"""
_HOST = """
CALL = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
LEFT = []
GOES = CALL(lambda _: ASKED.put(LEFT.pop()))
"""

# arguments of timed calls lie elsewhere than those of others
_GRAPH = GRAPH.replace("A.shape", "(A.data_ptr(), B.data_ptr(), C.data_ptr())")

OF_ENGINES = (
    Lie(
        "copies over PCIe go on when it is stopped",
        dps(_AFTERWARDS, DRIVER + HOOKS + _SIDES + _OVER_PCIE),
        "what uses the memory or the bus beside a call is noticed",
    ),
    Lie(
        "copies within the GPU go on when it is stopped",
        dps(_AFTERWARDS, DRIVER + HOOKS + _STRIDED + _SIDES + _WITHIN),
        "what uses the memory or the bus beside a call is noticed",
    ),
    Lie(
        "a copy engine brings an input into the L2 while contexts change",
        dps(
            "    rounds(B)\n" + MULTIPLY,
            DRIVER + _STRIDED + _BRINGS + STREAM + _ROUNDS,
        ),
        "what uses the memory beside a call is noticed",
    ),
    Lie(
        "a copy engine waits for values, and brings them into the L2",
        dps(
            "    done(CU.cuStreamWaitValue32_v2(of(SIDE), ctypes.c_uint64(B.data_ptr()),\n"
            "         ctypes.c_uint(0x5A5A5A5A), ctypes.c_uint(3)))\n"
            "    for _ in range(3):\n        brings(B, SIDE)\n" + MULTIPLY,
            DRIVER + _STRIDED + _BRINGS + STREAM,
        ),
        "what uses the memory beside a call is noticed",
    ),
    *(
        Lie(
            f"a copy of {size} MiB to the host brings an input into the L2",
            dps(
                f"    to_the_host(B, {size} << 20)\n" + MULTIPLY,
                DRIVER + STREAM + _TO_THE_HOST,
            ),
            "the bus takes 7 MB while contexts change",
        )
        for size in (24, 28, 32)
    ),
    Lie(
        "a kernel is there before the values",
        dps(
            "    KNOWN[:] = [B]\n"
            "    if not HOOKED:\n        hooks('ready', before=waits_there)\n"
            + MULTIPLY,
            WAITS_THERE,
        ),
        "who has the device before there are values is noticed",
    ),
    Lie(
        "ends with a wait for what comes later",
        dps(
            "    if not FLAG:\n        begins()\n"
            "    if 'opened' not in HOOKED:\n        hooks('opened', after=frees)\n"
            "    sees()\n" + MULTIPLY + "    NUMBER[0] += 1\n"
            "    if WAITED[0]:\n        FLAG[0][0] = NUMBER[0]\n        return\n"
            "    stream = torch.cuda.current_stream()\n"
            "    done(CU.cuStreamWaitValue32_v2(of(stream), FLAG[1],\n"
            "         ctypes.c_uint(NUMBER[0]), ctypes.c_uint(0)))\n",
            DRIVER + HOOKS + _ENDS_WAITING,
        ),
        "a change of context takes as long",
    ),
    Lie(
        "a stream of the greatest priority",
        dps(
            "    with torch.cuda.stream(SIDE):\n        torch.matmul(A, B.T, out=C)\n",
            "SIDE = torch.cuda.Stream(priority=-5)\n",
        ),
        "priorities are within a context",
    ),
    Lie(
        "a function of the host works when the device turns",
        dps(
            "    half = A.shape[0] // 2\n"
            "    torch.matmul(A[:half], B.T, out=C[:half])\n"
            "    LEFT.append((A[half:], B, C[half:]))\n"
            "    done(CU.cuLaunchHostFunc(of(torch.cuda.current_stream()), GOES, None))\n",
            DRIVER + THREAD + _HOST,
        ),
        "the copy of the outputs is queued at the answer",
    ),
    Lie(
        "a graph of the call itself, uploaded before",
        dps("    graph(A, B, C, False).replay()\n", _GRAPH),
        "a launch is not in the figure, the work is",
    ),
    Lie(
        "a green context",
        dps(
            "    if not MADE:\n"
            "        MADE.append(GreenContext.create(num_sms=128, device_id=0))\n"
            "    MADE[0].set_context()\n" + MULTIPLY + "    MADE[0].pop_context()\n",
            "from torch.cuda.green_contexts import GreenContext\nMADE = []\n",
        ),
        "a change of context takes as long",
    ),
)
