"""Inputs that solutions are asked for from one call alone, never in part from two.

The forward pass computed it from these: a solution may do so again.
"""

INPUTS_GO_TOGETHER = {"lse": ("hidden_states", "weight")}
