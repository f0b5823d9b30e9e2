"""A process that calls one production kernel, as the sandbox calls a solution.

`python -m generator.evaluation.certification.kernel CHANNEL DEVICE` answers on a socket. It is
trusted as the judge is: what it runs are the adapters of this software.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from generator.dataset.paths import DatasetFile
from generator.evaluation.clock.rival import kernels
from generator.rules.load import load_file
from generator.rules.subjects import subject_of
from kernel_judge.inputs.trial import as_tuple

_FOLDER = Path(__file__).parents[1]
# last: what the sandbox shows in one folder must not hide a package
sys.path += [str(_FOLDER / name) for name in ("", "clock", "conditions")]

from generator.evaluation.calling import Solution


class Kernel(Solution):
    """Answer as a solution's process does; what is built is a kernel's adapter."""

    def _build(self, how: Mapping[str, Any]) -> dict[str, Any]:
        calls = kernels(how["root"], how["file"], [how["provider"]], self._device)
        file = DatasetFile(**how["file"])
        self._call = adapted(Path(how["root"]), file, calls[how["kernel"]])
        return {"built": True}


def adapted(
    root: Path, file: DatasetFile, call: Callable[..., Any]
) -> Callable[..., Any]:
    """Return a kernel that returns the outputs alone, and fills inputs in place."""
    definition, _ = load_file(root, file)
    assert definition is not None
    subject = subject_of(definition)
    names = list(subject.interface.input_specs)
    count = len(subject.interface.output_specs)

    def run(*given: Any) -> Any:
        inputs = dict(zip(names, given, strict=True))
        filled = subject.filled(inputs)
        returned = as_tuple(call(*given))
        for name, value in zip(filled, returned[count:], strict=True):
            if value is not inputs[name]:
                inputs[name].copy_(value)
        return returned[0] if count == 1 else returned[:count]

    return run


def main() -> None:
    """Answer the judge until it closes the channel."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    try:
        Kernel(channel, sys.argv[2]).serve()
    except (EOFError, OSError):
        pass
    finally:
        # exit handlers of half-imported packages may hang
        os._exit(0)


if __name__ == "__main__":
    main()
