"""The work of latent attention over ragged sequences, before compression."""

from generator.ops.attention.ragged_work import work

__all__ = ["work"]
