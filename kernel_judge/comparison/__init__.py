"""Compare two outputs: metrics, tolerances, bounds, policies, error maps."""
