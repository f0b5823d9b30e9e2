"""What was compared with what: test results, evidence, the table of verification."""
