"""Judge the names of repositories before anything is asked of the Hub."""

from __future__ import annotations

import re

_PART = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?"
_REPO = re.compile(rf"{_PART}/{_PART}", re.ASCII)


def bad_repo(repo: str) -> str:
    """Return in one line why a text names no repository, nothing where it does."""
    if not _REPO.fullmatch(repo) or ".." in repo or "--" in repo:
        return "a dataset's repository is named OWNER/NAME."
    return ""
