"""The work of a product of float8 matrices: all is read, M·N·K products are added up."""

from generator.ops.work import product_work as work

__all__ = ["work"]
