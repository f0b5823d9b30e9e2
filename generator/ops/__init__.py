"""Op families: one package an op_type under `op_types/`, and what several share."""
