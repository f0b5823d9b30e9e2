"""A sandbox for the code of a dataset under review: hostile until shown otherwise."""

from generator.execution.sandbox.account import Account, account
from generator.execution.sandbox.cuda import missing as no_cuda
from generator.execution.sandbox.machine import refusal, run_confined, warnings
from generator.execution.sandbox.screen import Finding, screen
from generator.execution.sandbox.supervise import (
    CUDA_LIMITS,
    Limits,
    Outcome,
    read_result,
)

__all__ = [
    "CUDA_LIMITS",
    "Account",
    "Finding",
    "Limits",
    "Outcome",
    "account",
    "no_cuda",
    "read_result",
    "refusal",
    "run_confined",
    "screen",
    "warnings",
]
