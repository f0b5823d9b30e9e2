"""Judge whether what a GPU kernel returns is right: subjects, checks, comparisons.

Needs torch and numpy; recordings and workloads need safetensors. Imports no pytest.
"""
