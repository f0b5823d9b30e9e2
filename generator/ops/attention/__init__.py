"""What the op_types of attention share: cases, oracle, relations, mutants, families."""
