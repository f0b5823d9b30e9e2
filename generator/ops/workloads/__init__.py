"""The workloads of the definitions: axes, structural tensors, files."""
