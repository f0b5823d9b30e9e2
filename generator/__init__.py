"""The quality gate of trace datasets: render, run and prove reference tests."""

from importlib import import_module

from kernel_judge.provider import add_providers

__version__ = "0.1.0"

PACKAGES = ("generator", "kernel_judge")
"""The import packages of this software."""

# whoever imports this package judges with the providers of other distributions too;
# by name, for no package imports what lies above it
add_providers(import_module("generator.dataset.libraries").other_providers())
