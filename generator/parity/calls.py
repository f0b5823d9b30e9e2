"""Callables of a definition in a chain: its reference, a kernel, or a solution."""

from __future__ import annotations

import importlib
import inspect
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from generator.ops.op_values import op_of
from generator.problems import Failure
from kernel_judge.checks.available import source_name
from kernel_judge.definition import Definition, Interface
from kernel_judge.inputs.memory import dtype_of, shape_of
from kernel_judge.inputs.trial import PROVIDER_SEED
from kernel_judge.providers import backend_obstacle, provider_obstacle
from kernel_judge.reference import load_run
from kernel_judge.subject import Kernel, brought

Tensor = torch.Tensor
# whose kernels are asked beside one's: cuBLAS multiplies in serving, where an op_type
# names it
_BESIDE = {"flashinfer": ("pytorch", "flashinfer", "sglang")}
_CLONED = 1 << 26
"""Elements up to which a kernel gets a copy: larger ones are weights."""


class StageCall:
    """A definition's reference, called on tensors of a chain's dtype.

    In float32 nothing is rounded: a reference's 16-bit dtypes are float32 as well. In
    bfloat16 inputs and outputs have the definition's dtypes.
    """

    source = "reference"

    def __init__(self, bound: Mapping[str, Any], dtype: torch.dtype) -> None:
        self.name: str = bound["name"]
        self.op_type: str = bound["op_type"]
        self.constants: Mapping[str, Any] = bound["constants"]
        self.axes: Mapping[str, int] = bound["axes"]
        self.interface = Interface(bound["inputs"], bound["outputs"])
        self.dtype = dtype
        text = bound["text"]
        if dtype == torch.float32:
            for narrow in ("bfloat16", "float16"):
                text = text.replace(f"torch.{narrow}", "torch.float32")
        try:
            # without the no_grad around it, so that gradients pass
            run = inspect.unwrap(load_run(text, f"<{self.name}>"))
            self.run: Callable[..., Any] = run
        except Exception as error:
            raise Failure(
                f"{self.name}: the reference can't be loaded: {error}"
            ) from error

    def __call__(self, **offered: Any) -> dict[str, Tensor]:
        """Return the outputs by name. Raises Failure where what is called raises."""
        specs = self.interface.input_specs
        lacks = [name for name in specs if name not in offered]
        if lacks:
            raise Failure(f"{self.name}: the recipe has no input {lacks[0]}.")
        inputs = {name: self._given(offered[name], specs[name].dtype) for name in specs}
        try:
            returned = self.compute(inputs)
        except Failure:
            raise
        except Exception as error:
            what = " ".join(f"{type(error).__name__}: {error}".split())
            raise Failure(
                f"{self.name}: {self.source} raised {what[:400]}{self._advice(inputs)}"
            ) from error
        outputs = self.interface.output_specs
        if len(returned) < len(outputs):
            raise Failure(
                f"{self.name}: {self.source} returned {len(returned)} of "
                f"{len(outputs)} outputs."
            )
        # a kernel's adapter may return the inputs that it fills behind the outputs
        return dict(zip(outputs, returned, strict=False))

    def _advice(self, inputs: Mapping[str, Any]) -> str:
        """Return what to do where inputs have other sizes than the definition."""
        lengths = self.lengths(inputs)
        apart = [axis for axis, size in self.axes.items() if lengths.get(axis) != size]
        if not apart:
            return ""
        axis = apart[0]
        return (
            f" ({axis} is {lengths[axis]} in this model, {self.axes[axis]} in the "
            "definition, whose sizes may be fixed: choose --geometry real.)"
        )

    def compute(self, inputs: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the outputs in order."""
        return _as_tuple(self.run(*inputs.values()))

    def _given(self, value: Any, declared: str) -> Any:
        if not isinstance(value, Tensor) or not value.is_floating_point():
            return value
        return (
            value.float()
            if self.dtype == torch.float32
            else value.to(dtype_of(declared))
        )

    def lengths(self, inputs: Mapping[str, Any]) -> dict[str, int]:
        """Return the axes as the inputs have them: those of a tiny model are short."""
        lengths = dict(self.axes)
        for name, spec in self.interface.input_specs.items():
            if spec.shape is not None and inputs[name] is not None:
                lengths |= dict(zip(spec.shape, inputs[name].shape, strict=True))
        return lengths


class _Exact(StageCall):
    """A callable that takes the declared dtypes alone, and may write to its inputs."""

    def _given(self, value: Any, declared: str) -> Any:
        if not isinstance(value, Tensor):
            return value
        value = value.to(dtype_of(declared))
        if value.numel() > _CLONED:
            return value.contiguous()
        return value.clone(memory_format=torch.contiguous_format)


class KernelCall(_Exact):
    """A provider's kernel, called by the adapter that tests have for it."""

    def __init__(
        self, bound: Mapping[str, Any], dtype: torch.dtype, provider: str, backend: str
    ) -> None:
        super().__init__(bound, dtype)
        self.provider, self.backend = provider, backend
        self.source = f"{provider}/{backend}" if backend else provider
        self._adapter = _kernels(self.op_type)[provider].call

    def compute(self, inputs: Mapping[str, Any]) -> tuple[Any, ...]:
        definition = Definition(
            *(self.name, self.op_type, self.interface),
            *(self.lengths(inputs), self.constants),
        )
        arguments = (definition, dict(inputs), self.backend)
        try:
            # tests call adapters without a default device
            with torch.device("cpu"):
                if self.provider == "sglang":
                    from generator.running import sglang

                    asked = sglang.ask(self._adapter, *arguments, PROVIDER_SEED)
                    return _as_tuple(asked)
                return _as_tuple(self._adapter(*arguments))
        except Exception as error:  # noqa: BLE001
            # a kernel for some lengths alone: what ran instead is said
            what = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            self.source = f"reference ({self.source} raised {what})"
            self.compute = super().compute  # type: ignore[method-assign]
            return self.compute(inputs)


class SolutionCall(_Exact):
    """A solution that was built, called as a stage."""

    def __init__(
        self,
        bound: Mapping[str, Any],
        dtype: torch.dtype,
        entry: Callable[..., Any],
        solution: Mapping[str, Any],
    ) -> None:
        super().__init__(bound, dtype)
        self.entry = entry
        self.source = solution["name"]
        self.fills = solution["fills"]

    def compute(self, inputs: Mapping[str, Any]) -> tuple[Any, ...]:
        outputs: tuple[Tensor, ...] = ()
        if self.fills:
            axes = self.lengths(inputs)
            outputs = tuple(
                torch.empty(shape_of(spec, axes), dtype=dtype_of(spec.dtype))
                for spec in self.interface.output_specs.values()
            )
        with torch.device("cpu"):
            returned = self.entry(*inputs.values(), *outputs)
        return outputs or _as_tuple(returned)


def _as_tuple(returned: Any) -> tuple[Any, ...]:
    return tuple(returned) if isinstance(returned, (tuple, list)) else (returned,)


def _kernels(op_type: str) -> dict[str, Kernel]:
    return {**op_of(op_type).kernels, **brought(op_type)}


Maker = Callable[[Mapping[str, Any], torch.dtype], StageCall]


def kernels_of(provider: str) -> Maker:
    """Return what makes calls of a provider's kernels, of the reference without one.

    Raises Failure where the provider can't be used on the default device.
    """
    device = torch.empty(0).device
    obstacle = provider_obstacle(provider, device)
    if obstacle is not None:
        raise Failure(f"{provider}'s kernels can't be called here: {obstacle}.")

    def made(bound: Mapping[str, Any], dtype: torch.dtype) -> StageCall:
        plain = StageCall(bound, dtype)
        definition = Definition(
            plain.name, plain.op_type, plain.interface, plain.axes, plain.constants
        )
        kernels = _kernels(plain.op_type)
        why = "no adapter"
        for asked in _BESIDE.get(provider, (provider,)):
            kernel = kernels.get(asked)
            for backend in () if kernel is None else kernel.backends(definition):
                obstacle = backend_obstacle(asked, backend, device)
                if obstacle is None:
                    return KernelCall(bound, dtype, asked, backend.name)
                why = f"{source_name(asked, backend)}: {obstacle}"
        plain.source = f"reference ({why})"
        return plain

    return made


def solution_of(solution: Mapping[str, Any]) -> Maker:
    """Return what makes calls of a solution, of the reference for other definitions.

    `solution` has its name, definition, sources, entry point, and whether it fills
    outputs that it is given. Raises Failure where it can't be loaded. Its code runs in
    this process.
    """
    # a package of its own: one process may load several
    folder = Path(tempfile.mkdtemp(prefix="solution_"))
    package = f"in_{folder.name}"
    for source in solution["sources"]:
        path = folder / package / source["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source["content"])
    path, symbol = solution["entry_point"].split("::")
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    parts = [package, *path.removesuffix(".py").split("/")]
    try:
        entry = getattr(importlib.import_module(".".join(parts)), symbol)
    except Exception as error:
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise Failure(f"{solution['name']}: it can't be loaded: {what}") from error

    def made(bound: Mapping[str, Any], dtype: torch.dtype) -> StageCall:
        if bound["name"] != solution["definition"]:
            return StageCall(bound, dtype)
        return SolutionCall(bound, dtype, entry, solution)

    return made


class Sharded:
    """A definition of one GPU's share, called on every share of whole tensors.

    What a share is follows from the lengths: an axis of 32 where the definition has 8
    is cut in four. Fewer cuts than shares are repeated, as KV heads are.
    """

    def __init__(self, call: StageCall, shares: int) -> None:
        self.call, self.shares = call, shares
        self.name, self.source, self.interface = call.name, call.source, call.interface

    def __call__(self, **offered: Any) -> dict[str, Tensor]:
        """Return the outputs of all shares as one."""
        shares = [self.call(**self._share(offered, at)) for at in range(self.shares)]
        joined = {}
        for name, spec in self.call.interface.output_specs.items():
            parts = [of[name] for of in shares]
            cut = [
                at
                for at, axis in enumerate(spec.shape or ())
                if self._cuts(axis, offered) > 1
            ]
            joined[name] = torch.cat(parts, dim=cut[0]) if cut else parts[0]
        return joined

    def _cuts(self, axis: str, offered: Mapping[str, Any]) -> int:
        """Return in how many parts whole tensors have an axis."""
        of_share = self.call.axes.get(axis)
        if of_share is None:
            return 1
        for name, spec in self.call.interface.input_specs.items():
            if axis in (spec.shape or ()):
                whole = int(offered[name].shape[(spec.shape or ()).index(axis)])
                return whole // of_share
        return 1

    def _share(self, offered: Mapping[str, Any], at: int) -> dict[str, Any]:
        cut = dict(offered)
        for name, spec in self.call.interface.input_specs.items():
            for dim, axis in enumerate(spec.shape or ()):
                cuts = self._cuts(axis, offered)
                if cuts > 1:
                    parts = cut[name].chunk(cuts, dim=dim)
                    cut[name] = parts[at * cuts // self.shares].contiguous()
        return cut
