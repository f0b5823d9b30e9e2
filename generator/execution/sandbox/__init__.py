"""A sandbox for the code of a dataset under review: hostile until shown otherwise."""

from generator.execution.sandbox.account import Account, account
from generator.execution.sandbox.cuda import LIMITS as CUDA_LIMITS
from generator.execution.sandbox.cuda import missing as no_cuda
from generator.execution.sandbox.layers import Layer, layers, refusal, warnings
from generator.execution.sandbox.plan import Limits
from generator.execution.sandbox.screen import Finding, screen
from generator.execution.sandbox.supervise import Outcome, read_result, run_confined

__all__ = [
    "CUDA_LIMITS",
    "Account",
    "Finding",
    "Layer",
    "Limits",
    "Outcome",
    "account",
    "layers",
    "no_cuda",
    "read_result",
    "refusal",
    "run_confined",
    "screen",
    "warnings",
]
