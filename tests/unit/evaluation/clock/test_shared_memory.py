"""The judge's memory is the same bytes in another process, which cannot take it away."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from generator.evaluation.clock import shared_memory
from generator.evaluation.clock.shared_memory import DriverError, NoRoom

FOLDER = Path(shared_memory.__file__).parent
CHILD = """
import os, sys
sys.path.insert(0, sys.argv[1])
import shared_memory
memory = shared_memory.attach(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
memory.bytes[7] = memory.bytes[3] + 1
if sys.argv[2] == "cuda":
    import torch
    torch.cuda.synchronize()
try:
    os.ftruncate(int(sys.argv[3]), 1)
except OSError:
    print("kept")
"""


@pytest.mark.parametrize(
    "device",
    [
        "cpu",
        pytest.param(
            "cuda",
            marks=pytest.mark.skipif(
                not torch.cuda.is_available(), reason="needs a GPU"
            ),
        ),
    ],
)
def test_another_process_maps_the_same_bytes(device: str) -> None:
    memory = shared_memory.create(device, 1000)
    memory.bytes.zero_()
    memory.bytes[3] = 41
    if device == "cuda":
        torch.cuda.synchronize()
    given = [str(FOLDER), device, str(memory.file), str(memory.size)]
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *given],
        pass_fds=[memory.file],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.strip() == "kept", done.stderr
    assert int(memory.bytes[7]) == 42
    assert memory.size >= 1000
    memory.close()
    assert memory.file == -1
    memory.close()


def test_descriptor_is_given_back() -> None:
    memory = shared_memory.create("cpu", 10)
    file = memory.file
    memory.close()
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(file)


@pytest.mark.parametrize(("status", "kind"), [(2, NoRoom), (1, DriverError)])
def test_device_without_memory_is_told_from_what_fails(
    status: int, kind: type[DriverError], monkeypatch: pytest.MonkeyPatch
) -> None:
    fails = SimpleNamespace(cuMemCreate=lambda *_: status)
    monkeypatch.setattr(shared_memory, "_driver", lambda: fails)
    with pytest.raises(DriverError, match="cuMemCreate") as raised:
        shared_memory._call("cuMemCreate")
    assert type(raised.value) is kind
