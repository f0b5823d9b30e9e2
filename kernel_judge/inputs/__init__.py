"""Make the inputs of a case: from a seed, from a workload, by the name of a function."""
