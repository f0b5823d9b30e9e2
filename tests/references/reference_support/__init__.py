"""Support of the rendered reference tests, copied beside them as `reference_support`.

Nothing in here imports the generator: the rendered folder must run in any clone of a
dataset that has pytest, torch, numpy and safetensors.
"""
