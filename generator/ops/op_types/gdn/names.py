"""Names that the bounds need as well; imports no torch."""

FADES = "state-only-fades"
"""The case in which keys are zero."""
