"""Review a change of a dataset: what is new, what it breaks, what is still to be shown.

Both sides are read through git into a temporary folder; nothing of either is executed
here, and nothing is checked out into the user's tree.
"""
