"""How far a right answer may be off, measured: what a tolerance has to allow.

Nothing of this is rendered into test files, and no other command imports it.
"""
