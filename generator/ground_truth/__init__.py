"""Sources of a definition's ground truth, and their availability on this machine."""
