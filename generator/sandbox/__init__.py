"""A sandbox for the code of a dataset under review: hostile until shown otherwise."""

from generator.sandbox.account import Account, account
from generator.sandbox.cuda import LIMITS as CUDA_LIMITS
from generator.sandbox.cuda import missing as no_cuda
from generator.sandbox.layers import Layer, layers, refusal, warnings
from generator.sandbox.plan import Limits
from generator.sandbox.screen import Finding, screen
from generator.sandbox.supervise import Outcome, read_result, run_confined

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
