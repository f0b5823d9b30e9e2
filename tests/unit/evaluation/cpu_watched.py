"""A watched process of a production kernel that needs no GPU: products by torch."""

from generator.evaluation.sanitizing import kernel
from tests.unit.evaluation.cpu_kernel import kernels

if __name__ == "__main__":
    kernel.kernels = kernels
    kernel.main()
