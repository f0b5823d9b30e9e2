"""Conditions under which engines call a kernel: graphs, streams, strides, compilers, batches."""
