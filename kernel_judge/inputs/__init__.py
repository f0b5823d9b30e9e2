"""Make the inputs of a case from a seed; estimate their memory; keep them for a trial."""
