"""A sandbox for the code of a dataset under review: hostile until shown otherwise."""

from generator.execution.sandbox.cuda import missing as no_cuda
from generator.execution.sandbox.machine import refusal, run_confined, warnings
from generator.execution.sandbox.supervise import (
    CUDA_LIMITS,
    CommandOutcome,
    Limits,
    read_result,
)
from generator.execution.sandbox.system_calls import call_filter

__all__ = [
    "CUDA_LIMITS",
    "CommandOutcome",
    "Limits",
    "call_filter",
    "no_cuda",
    "read_result",
    "refusal",
    "run_confined",
    "warnings",
]
