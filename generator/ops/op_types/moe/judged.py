"""Inputs that solutions are asked for from one call alone, never in part from two.

No two that decide are nearly equal, which those of two calls mixed may be.
"""

INPUTS_GO_TOGETHER = {"routing_logits": ("routing_bias",)}
