"""The exception that ends a command: the one line that a person reads."""

from __future__ import annotations


class Failure(Exception):
    """Say in one line what can't be read or done, and what to do about it.

    A command that meets it prints the line and exits with status 2.
    """
