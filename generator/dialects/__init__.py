"""Definitions of other projects as values of ours, and the way back."""
