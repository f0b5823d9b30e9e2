"""Outputs of production kernels as files, and their comparison later."""
