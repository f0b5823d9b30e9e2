"""What a machine or a device lacks for a solution is said, and nothing else is skipped."""

from __future__ import annotations

import pytest

from generator.evaluation.missing import missing
from generator.evaluation.solution import Solution


def needs(language: str, hardware: list[str], device: str) -> str | None:
    spec = {
        "language": language,
        "entry_point": "main::run",
        "binding": "torch",
        "target_hardware": hardware,
    }
    return missing(Solution({"spec": spec, "sources": []}, "one.json"), device)


@pytest.mark.parametrize("language", ["triton", "cuda", "tilelang"])
def test_a_language_of_gpus_is_not_asked_on_a_cpu(language: str) -> None:
    assert needs(language, ["cpu"], "cpu") == f"{language} needs --device cuda"


def test_cpp_for_the_cpu_alone_gets_no_pointer_of_a_gpu() -> None:
    assert "--device cpu" in (needs("cpp", ["cpu"], "cuda") or "")
    # others may launch on a GPU; a Python solution runs on both, whatever it says
    assert "--device" not in (needs("cpp", ["cpu", "NVIDIA_H100"], "cuda") or "")
    assert needs("python", ["cpu"], "cuda") is None
