"""What production kernels returned, as a file, and how it is compared again."""
