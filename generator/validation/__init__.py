"""Check all files of a dataset against all rules, in one process or several."""
