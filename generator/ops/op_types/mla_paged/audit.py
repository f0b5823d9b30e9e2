"""How an audit makes latent attention smaller, and what varies in its random cases."""

from __future__ import annotations

from generator.ops.attention.audit import fewer_latent, varied_sequences

tiny = fewer_latent
varied = varied_sequences
