"""The names of the checkers whose rules are implemented here; imports no torch."""

FLASHINFER_BENCH, SOL_EXECBENCH = "flashinfer-bench", "sol-execbench"
KERNELBENCH, GPU_MODE = "kernelbench", "gpu-mode"
NAMES = (FLASHINFER_BENCH, SOL_EXECBENCH, KERNELBENCH, GPU_MODE)
