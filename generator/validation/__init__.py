"""Check all files of a dataset against all rules, in processes and with a cache."""
