"""The rules for a dataset's files beyond their schemas, one module for each subject.

Each module declares its rules beside the functions that check them; a check takes
values and returns Problems. `catalogue` lists all rules. Nothing here executes or
imports a definition's code.
"""
