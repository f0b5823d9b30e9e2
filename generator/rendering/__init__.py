"""Render definitions as test files: the plan of a file, and its text."""
