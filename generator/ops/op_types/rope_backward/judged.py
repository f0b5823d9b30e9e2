"""Inputs that solutions are asked for from one call alone, never in part from two.

They are the cosine and the sine of one angle.
"""

INPUTS_GO_TOGETHER = {"sin": ("cos",)}
