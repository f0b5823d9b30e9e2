"""Audit sizes of paged attention, and the ranges of its random cases."""

from __future__ import annotations

from generator.ops.attention.audit import fewer_heads, varied_sequences

tiny = fewer_heads
# pages, positions and sequences are limits, heads are none
for_limits = fewer_heads
varied = varied_sequences
