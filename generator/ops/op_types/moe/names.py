"""Names of cases that tolerances are for; imports no torch."""

BELOW = "scales-below-midpoints"
"""The case that tells scales which are rounded to bfloat16."""
