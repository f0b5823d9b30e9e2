"""A process that calls one production kernel, as the sandbox calls a solution.

`python -m generator.evaluation.certification.kernel CHANNEL DEVICE` answers on a
socket. It is trusted as the judge is: what it runs are the adapters of this software.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from generator.dataset.paths import DatasetFile
from generator.evaluation.clock.rival import kernels
from generator.evaluation.lengths import sizes_of
from generator.rules.load import load_file
from generator.rules.subjects import subject_of
from kernel_judge.inputs.memory import dtype_of, shape_of
from kernel_judge.inputs.trial import as_tuple, same_bits
from kernel_judge.skipping import Skip

_FOLDER = Path(__file__).parents[1]
# last: what the sandbox shows in one folder must not hide a package
sys.path += [str(_FOLDER / name) for name in ("", "clock", "conditions")]

from generator.evaluation.calling import BuiltSolution

# an output that the kernel does not give is None
_ANSWERS = (torch.Tensor, int, float, type(None))


class KernelProcess(BuiltSolution):
    """A process that answers as a solution's does; what is built is a kernel's adapter."""

    def _build(self, how: Mapping[str, Any]) -> dict[str, Any]:
        calls = kernels(how["root"], how["file"], [how["provider"]], self._device)
        file, root = DatasetFile(**how["file"]), Path(how["root"])
        call = calls[how["kernel"]]
        compiled(root, file, call, torch.device(self._device))
        self._call = adapted(root, file, call)
        return {"built": True}


def compiled(
    root: Path, file: DatasetFile, call: Callable[..., Any], device: torch.device
) -> None:
    """Call a kernel once with a small case, as long as a build may take: it may compile.

    Exceptions are ignored here: the judged calls raise them again and report them.
    """
    definition, _ = load_file(root, file)
    assert definition is not None
    subject = subject_of(definition)
    for case in subject.cases(("small",))[:1]:
        with suppress(Exception, Skip):
            call(*subject.trial(case, device).fresh_inputs().values())


def adapted(
    root: Path, file: DatasetFile, call: Callable[..., Any]
) -> Callable[..., Any]:
    """Return a kernel that returns the outputs alone, and fills inputs in place.

    An output that the kernel writes into an input, as a fused addition and norm does, is
    copied and the input restored, since the definition has both as separate tensors.
    Other inputs that the kernel writes to are restored as well. An output that the kernel
    does not return is filled with zeros and not compared.
    """
    definition, _ = load_file(root, file)
    assert definition is not None
    subject = subject_of(definition)
    names = list(subject.interface.input_specs)
    specs = list(subject.interface.output_specs.values())
    count = len(specs)
    # the inputs in which outputs lie: known once it was called
    known: list[str] | None = None

    def run(*arguments: Any) -> Any:
        nonlocal known
        inputs = dict(zip(names, arguments, strict=True))
        filled = subject.filled(inputs)
        tensors = [n for n in names if _is_tensor(inputs[n]) and n not in filled]
        before = {n: inputs[n].clone() for n in (tensors if known is None else known)}
        returned = as_tuple(call(*arguments))
        if strange := [v for v in returned if not isinstance(v, _ANSWERS)]:
            # of a sampler: what many draws of one seed came to
            name = type(strange[0]).__name__
            raise TypeError(
                f"its adapter answers with {name}, not as a call of an engine"
            )
        for name, value in zip(filled, returned[count:], strict=True):
            if value is not inputs[name]:
                inputs[name].copy_(value)
        # a view of one row may be what a copy of several is not; no compiler traces addresses
        asked = list(before) if torch.compiler.is_compiling() else tensors
        overlaps = [
            {n for n in asked if _overlap(inputs[n], value)}
            for value in returned[:count]
        ]
        outputs = tuple(
            value.clone() if inside else value
            for value, inside in zip(returned[:count], overlaps, strict=True)
        )
        earlier = known or []
        written = [] if known is not None else _changed(inputs, before)
        known = [
            n
            for n in tensors
            if n in (*earlier, *written) or any(n in inside for inside in overlaps)
        ]
        for name in known:
            if name in before:
                inputs[name].copy_(before[name])
        if any(value is None for value in outputs):
            sizes = sizes_of(subject.interface, subject.definition.axes, inputs)
            outputs = tuple(
                _zeros(spec, sizes, arguments) if value is None else value
                for value, spec in zip(outputs, specs, strict=True)
            )
        return outputs[0] if count == 1 else outputs

    return run


def _changed(inputs: Mapping[str, Any], before: Mapping[str, Any]) -> list[str]:
    return [n for n, value in before.items() if not same_bits(inputs[n], value)]


def _zeros(
    spec: Any, sizes: Mapping[str, int], arguments: Sequence[Any]
) -> torch.Tensor:
    """Return zeros of an output's shape where the arguments are."""
    device = next(value.device for value in arguments if _is_tensor(value))
    return torch.zeros(shape_of(spec, sizes), dtype=dtype_of(spec.dtype), device=device)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _overlap(first: torch.Tensor, second: Any) -> bool:
    """Return whether two tensors reach the same memory; all arguments lie in one buffer."""
    if not _is_tensor(second) or not first.numel() or not second.numel():
        return False
    spans = [(t.data_ptr(), t.data_ptr() + _extent(t)) for t in (first, second)]
    return spans[0][0] < spans[1][1] and spans[1][0] < spans[0][1]


def _extent(tensor: torch.Tensor) -> int:
    """Return the bytes from a tensor's first element to the end of its last."""
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    last = sum((length - 1) * step for length, step in steps)
    return (last + 1) * tensor.element_size()


def main() -> None:
    """Answer the judge until it closes the channel."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    try:
        KernelProcess(channel, sys.argv[2]).serve()
    except (EOFError, OSError):
        pass
    finally:
        # exit handlers of half-imported packages may hang
        os._exit(0)


if __name__ == "__main__":
    main()
