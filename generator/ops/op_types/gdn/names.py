"""Names that the bounds need as well; imports no torch."""

FADES = "state-only-fades"
"""The case in which keys are zero."""
BUFFER = "intermediate_states_buffer"
"""The input that multi-token prediction fills with the states of its drafts."""
