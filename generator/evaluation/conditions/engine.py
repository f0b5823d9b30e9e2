"""Inside the sandbox: call a solution as engines do, and say what it left in torch.

The sandbox shows this file: it imports the standard library and torch alone. Nothing here
decides on a verdict: whoever replaces it can only be wrong.
"""

from __future__ import annotations

import gc
import hashlib
import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

STREAM, COMPILE, OPERATORS = "stream", "compile", "operators"
# 20 ms at 2 GHz: what runs on the legacy stream comes after the outputs were copied
_BUSY_CYCLES = 40_000_000
# of inference: without autograd's registration
_CHECKS = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")

torch: Any = importlib.import_module("torch")


class Engine:
    """Calls on a side stream, through torch.compile, and torch's global state beside them.

    It is made before a solution's code is loaded, and binds what it calls.
    """

    def __init__(self, device: str) -> None:
        self._cuda = device == "cuda"
        self._on, self._streams = torch.cuda.stream, torch.cuda.Stream
        self._sleep, self._default = torch.cuda._sleep, torch.cuda.default_stream
        self._side: Any = None
        self._reader: Any = None
        self._compile, self._stance = torch.compile, torch.compiler.set_stance
        self._compiled: Callable[..., Any] | None = None
        self._operators = frozenset(torch._C._dispatch_get_all_op_names())
        self._looked = _looks(self._cuda)
        self._before = self._seen()

    def side(self) -> AbstractContextManager[Any]:
        """Return the context of a stream that is not the default one."""
        if self._side is None:
            self._side, self._reader = self._streams(), self._streams()
        stream: AbstractContextManager[Any] = self._on(self._side)
        return stream

    def keep_legacy_busy(self) -> None:
        """Let the legacy stream work for longer than an ordinary call takes."""
        with self._on(self._default()):
            self._sleep(_BUSY_CYCLES)

    def reader(self, stream: Any) -> Any:
        """Return another stream that waits for what a stream was asked until now."""
        self._reader.wait_event(stream.record_event())
        return self._reader

    def compiled(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a call that is traced whole, with dynamic lengths."""
        if self._compiled is None:
            how = {"fullgraph": True, "dynamic": True, "backend": "aot_eager"}
            self._compiled = self._compile(call, **how)
        # its code may have told torch to call what is compiled as it is
        self._stance("default")
        return self._compiled

    def checked(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a call that has torch.library.opcheck look at what it registered.

        Each operator is called as it was first called. The call raises what opcheck does.
        """
        registered = set(torch._C._dispatch_get_all_op_names()) - self._operators
        modes: Any = importlib.import_module("torch.utils._python_dispatch")
        seen: dict[str, tuple[Any, ...]] = {}

        class Watch(modes.TorchDispatchMode):  # type: ignore[misc]
            """A mode that copies the first arguments of each registered operator."""

            def __torch_dispatch__(
                self, operator: Any, types: Any, args: Any = (), named: Any = None
            ) -> Any:
                name = operator.name()
                if name in registered and name not in seen:
                    seen[name] = (operator, *_copied((args, named or {})))
                return operator(*args, **(named or {}))

        def checking(*arguments: Any) -> Any:
            with Watch():
                returned = call(*arguments)
            for operator, args, named in seen.values():
                torch.library.opcheck(operator, args, named, test_utils=_CHECKS)
            return returned

        return checking if registered else call

    def state(self, seed: int) -> dict[str, Any]:
        """Return what was changed of torch's global state, and how much memory is used.

        `draws` is whether the generators moved on since they were seeded.
        """
        now = self._seen()
        changed = [
            f"{name} is {value}, was {self._before[name]}"
            for name, value in now.items()
            if value != self._before[name]
        ]
        state: dict[str, Any] = {"changed": changed, "draws": self._draws(seed)}
        if self._cuda:
            state["allocated"] = torch.cuda.memory_allocated()
        return state

    def memory(self) -> dict[str, int]:
        """Return the bytes that torch had at most of the GPU, and begin anew.

        `peak` is of tensors, `reserved` of what it took from the driver, of which `now` is
        what it still has without what is free.
        """
        memory = {
            "peak": torch.cuda.max_memory_allocated(),
            "reserved": torch.cuda.max_memory_reserved(),
        }
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        return {**memory, "now": torch.cuda.memory_reserved()}

    def _seen(self) -> dict[str, Any]:
        return {name: look() for name, look in self._looked.items()}

    def _draws(self, seed: int) -> bool:
        devices = ("cpu", "cuda") if self._cuda else ("cpu",)
        for device in devices:
            fresh = torch.Generator(device).manual_seed(seed).get_state()
            of = torch.cuda if device == "cuda" else torch
            if _digest(of.get_rng_state()) != _digest(fresh):
                return True
        return False


def _copied(values: Any) -> Any:
    """Return a tree of arguments with its tensors copied, before they are written to."""
    tree: Any = importlib.import_module("torch.utils._pytree")
    return tree.tree_map_only(torch.Tensor, torch.Tensor.clone, values)


def _digest(state: Any) -> str:
    return hashlib.sha256(bytes(state.cpu().numpy())).hexdigest()


def _looks(cuda: bool) -> dict[str, Callable[[], Any]]:
    """Return the functions that read torch's global state, by what they read."""
    backends = torch.backends
    looks: dict[str, Callable[[], Any]] = {
        "default dtype": torch.get_default_dtype,
        "number of threads": torch.get_num_threads,
        "grad mode": torch.is_grad_enabled,
        "inference mode": torch.is_inference_mode_enabled,
        "float32 matmul precision": torch.get_float32_matmul_precision,
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled,
        "autocast on the CPU": lambda: torch.is_autocast_enabled("cpu"),
        "cudnn.benchmark": lambda: backends.cudnn.benchmark,
        "cudnn.deterministic": lambda: backends.cudnn.deterministic,
        "default device": torch.get_default_device,
        "cudnn.allow_tf32": lambda: backends.cudnn.allow_tf32,
        "flash attention": backends.cuda.flash_sdp_enabled,
        "memory-efficient attention": backends.cuda.mem_efficient_sdp_enabled,
        "garbage collection": gc.isenabled,
        "flush of denormals": lambda: float(torch.tensor(1e-40) * 1.0) == 0.0,
    }
    if cuda:
        looks |= {
            "current stream": lambda: torch.cuda.current_stream().cuda_stream,
            "current device": torch.cuda.current_device,
            "reduced precision of bfloat16 sums": lambda: (
                backends.cuda.matmul.allow_bf16_reduced_precision_reduction
            ),
            "reduced precision of float16 sums": lambda: (
                backends.cuda.matmul.allow_fp16_reduced_precision_reduction
            ),
            "autocast on CUDA": lambda: torch.is_autocast_enabled("cuda"),
        }
    return looks
