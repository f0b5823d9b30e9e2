"""Keep one comment on a pull request of the Hub: post it, or bring it up to date."""

from __future__ import annotations

from itertools import count
from typing import Any

from generator.hub.client import Client
from generator.reports.markdown import LIMIT

MARKER = "<!-- gen-tests: review -->"
_CUT = "\n\n(cut: the whole report is longer than a comment can be)\n"
_CLOSE = "\n</details>"


def body(report: str) -> str:
    """Return a report as the text of a comment: with the marker, and not too long."""
    text = f"{MARKER}\n{report.strip()}\n"
    if len(text) <= LIMIT:
        return text
    folds = report.count("<details>")
    text = text[: LIMIT - len(_CUT) - folds * len(_CLOSE)]
    text = text[: text.rfind("\n")]
    unclosed = text.count("<details>") - text.count("</details>")
    return text + _CLOSE * unclosed + _CUT


def publish(
    client: Client, number: int, author: str, text: str, *, dry: bool = False
) -> str:
    """Post or update the author's comment; return `post`, `update` or `nothing`.

    With `dry` that is what would be done. Raises HubFailure, also where the number is no
    pull request. Before each attempt to post it is looked for: one of which the answer
    was lost is there, and is not posted twice.
    """
    for attempt in count(1):
        earlier = _newest(client, number, author)
        if earlier is not None and earlier.content.split() == text.split():
            return "post" if attempt > 1 else "nothing"
        if earlier is not None:
            if not dry:
                client.edit(number, earlier.id, text)
            return "update"
        if dry:
            return "post"
        try:
            client.api.comment_discussion(
                client.repo, number, text, repo_type="dataset"
            )
        except Exception as error:  # noqa: BLE001 - raised again where it stays
            client.wait_after(error, attempt, f"refs/pr/{number}")
        else:
            return "post"
    raise AssertionError("the last attempt raises")


def _newest(client: Client, number: int, author: str) -> Any | None:
    """Return the newest comment that an author left here before, None without one.

    What others wrote is never taken for it, whatever marker it has.
    """
    earlier = [
        event
        for event in client.pull_request(number).events
        if event.type == "comment"
        and event.author == author
        and not getattr(event, "hidden", False)
        and getattr(event, "content", "").startswith(MARKER)
    ]
    return earlier[-1] if author and earlier else None
