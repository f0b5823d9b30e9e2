"""The work of grouped-query attention over ragged sequences."""

from generator.ops.attention.ragged_work import work

__all__ = ["work"]
