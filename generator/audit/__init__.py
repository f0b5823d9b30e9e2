"""Audit the tests: plant one defect at a time in a reference, and see who catches it."""
