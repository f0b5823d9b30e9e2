"""Test results, evidence, and the table of verification."""
