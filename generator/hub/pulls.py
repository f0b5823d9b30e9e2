"""Find and describe the pull request that a push goes into.

A pull request is the `DiscussionWithDetails` of huggingface_hub.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from generator.hub.client import Client

OPEN = ("open", "draft")


@dataclass
class PullRequests:
    """Know the pull requests of a repository; each text is read once."""

    client: Client
    _read: dict[int, Any] = field(default_factory=dict)

    def find_own(self, author: str, marker: str, title: str) -> Any | None:
        """Return the author's open pull request with a marker, the newest, or None."""
        options = {"author": author, "discussion_type": "pull_request"}
        own = [
            one
            for one in self.client.ask("get_repo_discussions", **options)
            if one.is_pull_request and one.status in OPEN and one.author == author
        ]
        # most often the first one asked for is it
        for one in sorted(own, key=lambda one: (one.title != title, -one.num)):
            if one.num not in self._read:
                self._read[one.num] = self.client.pull_request(one.num)
            if has_marker(text_of(self._read[one.num]), marker):
                return self._read[one.num]
        return None

    def describe(self, pull: Any, text: str) -> bool:
        """Make a pull request's text what it should be; return whether it was not."""
        comment = _opening(pull)
        # the Hub may change the white space
        if comment is None or comment.content.split() == text.split():
            return False
        self.client.edit(pull.num, comment.id, text)
        self._read.pop(pull.num, None)
        return True


def text_of(pull: Any) -> str:
    """Return the text that a pull request opens with."""
    return str(getattr(_opening(pull), "content", ""))


def has_marker(text: str, marker: str) -> bool:
    """Return whether a pull request's text has the marker as a line of its own."""
    return marker in (line.strip() for line in text.splitlines())


def _opening(pull: Any) -> Any | None:
    return next((event for event in pull.events if event.type == "comment"), None)
