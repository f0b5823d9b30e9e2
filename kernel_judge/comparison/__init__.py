"""Compare two outputs: metrics, tolerances, policies, laws of samples, error maps."""
