"""The quality gate of trace datasets: render, run and prove reference tests."""

__version__ = "0.1.0"

PACKAGES = ("generator", "kernel_judge")
"""The import packages of this software."""
