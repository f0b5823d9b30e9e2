"""Audit sizes of latent attention, and the ranges of its random cases."""

from __future__ import annotations

from generator.ops.attention.audit import fewer_latent, varied_sequences

tiny = fewer_latent
# pages, positions and sequences are limits, heads are none
for_limits = fewer_latent
varied = varied_sequences
