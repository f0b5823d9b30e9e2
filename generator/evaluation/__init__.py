"""Evaluate solutions: run them confined, compare and time what they return, say why.

`worker` is the only code of ours that a solution's process has; the judge never runs a
solution's code, and the solution's process never has an expected value.
"""
