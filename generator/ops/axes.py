"""Lengths of axes by name."""

from __future__ import annotations

from collections.abc import Mapping

Axes = Mapping[str, int]
