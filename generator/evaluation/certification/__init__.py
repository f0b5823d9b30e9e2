"""The kernels that are ground truth, under the conditions in which engines call them."""
