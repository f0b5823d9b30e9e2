"""What rendered tests import: harness, comparing, tolerances, inputs, replay, plug-in.

A rendered folder made by `gen-tests --standalone` has a copy of these modules.
"""
