"""Shared parts of attention op_types: cases, oracle, relations, mutants, families."""
