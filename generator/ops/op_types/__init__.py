"""The op_types of this distribution: one package each, named after its op_type."""
