"""Carry out a planned push: uploads, then one commit, then the text.

Uploads change nothing that anybody sees. The commit, which also opens the pull request,
is one request that happens or does not; what is lost is its answer, so before it is sent
again the Hub is asked whether it happened.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count, takewhile
from typing import TYPE_CHECKING

from generator.hub.choose import is_blob
from generator.hub.client import Client
from generator.hub.failures import Changed, HubFailure, status_of
from generator.hub.local import LocalFile, compare
from generator.hub.plan import PullRequests, PushPlan
from generator.hub.remote import files_at
from generator.problems.messages import one_line, plural, quote

if TYPE_CHECKING:
    from huggingface_hub import CommitOperationAdd

_CONFLICTS = (409, 412)
_SHOWN = 5
_LARGE = 8 * 1024 * 1024


@dataclass(frozen=True)
class Pushed:
    """Hold what was done: the commit, or none, and the pull request, or none.

    `described` says that the pull request's text was written anew. `unfinished` says
    that the pull request is there without the files: plan again and go on.
    """

    commit: str = ""
    number: int | None = None
    described: bool = False
    unfinished: bool = False


def carry_out(client: Client, pulls: PullRequests, plan: PushPlan) -> Pushed:
    """Do what is planned. Raises HubFailure; Changed where somebody else committed."""
    made = Pushed(number=plan.number)
    if not plan.delta.is_empty:
        made = _commit(client, pulls, plan)
        if made.unfinished:
            return made
        if made.commit and not _is_there(client, plan, made.commit):
            raise HubFailure(
                f"Commit {made.commit[:12]} of {client.repo} has other bytes than were "
                "judged: a file changed meanwhile, or the repository's .gitignore leaves "
                "it out; run the same command again."
            )
    if plan.pull is None or not plan.owns_text:
        return made
    return replace(made, described=pulls.describe(plan.pull, plan.text))


def _commit(client: Client, pulls: PullRequests, plan: PushPlan) -> Pushed:
    from huggingface_hub import CommitOperationDelete

    # an addition remembers that it was uploaded, so that no attempt uploads it again
    additions = list(map(_addition, plan.delta.sent))
    deletions = [
        CommitOperationDelete(file.path, is_folder=False) for file in plan.delta.deleted
    ]
    for attempt in count(1):
        try:
            info = client.api.create_commit(
                client.repo,
                [*additions, *deletions],
                commit_message=plan.package.title,
                commit_description=plan.text,
                repo_type="dataset",
                revision=plan.revision,
                create_pr=plan.opens,
                parent_commit=plan.parent,
            )
        except Exception as error:  # noqa: BLE001 - the client turns it into one line
            conflict = status_of(error) in _CONFLICTS
            if not conflict:
                client.wait_after(error, attempt, plan.revision)
            made = _happened(client, pulls, plan)
            if made is not None:
                return made
            if conflict:
                raise _changed(client, plan) from None
        else:
            if str(info.oid) == plan.parent:
                # somebody committed the same bytes: the library sent no commit
                return Pushed(number=plan.number)
            return Pushed(str(info.oid), plan.number or info.pr_num)
    raise AssertionError("the client raises after its last attempt")


def _addition(file: LocalFile) -> CommitOperationAdd:
    """Return the operation that adds a file. Raises HubFailure where it changed.

    The Hub refuses an upload through LFS with other bytes than the hash in the operation.
    Nobody compares a file that the commit itself contains: it is read here, once.
    """
    from huggingface_hub import CommitOperationAdd

    is_large = is_blob(file.path) or file.size > _LARGE
    try:
        content = file.source if is_large else file.source.read_bytes()
        made = CommitOperationAdd(file.path, content)
    except (OSError, ValueError):
        made = None
    if made is None or made.upload_info.sha256.hex() != file.sha256:
        raise HubFailure(
            f"{one_line(file.path)} changed after it was judged: nothing was committed; "
            "run the same command again."
        )
    return made


def _happened(client: Client, pulls: PullRequests, plan: PushPlan) -> Pushed | None:
    """Return the commit if the Hub has it although no answer came, or None."""
    revision, number = plan.revision, plan.number
    if plan.opens:
        marker, title = plan.package.bundle.marker, plan.package.title
        found = pulls.find_own(client.name(), marker, title)
        if found is None:
            return None
        revision, number = found.git_reference, found.num
    head = client.head(revision)
    if _is_there(client, plan, head):
        return Pushed(head, number)
    return Pushed(number=number, unfinished=True) if plan.opens else None


def _is_there(client: Client, plan: PushPlan, revision: str) -> bool:
    remote = files_at(client, plan.package.paths, revision)
    return compare(plan.package.files, remote, plan.package.wishes.delete).is_empty


def _changed(client: Client, plan: PushPlan) -> Changed:
    """Return what somebody else did since the plan was made."""
    at = {"revision": plan.revision, "about": plan.revision}
    listed = client.ask("list_repo_commits", **at)
    commits = list(takewhile(lambda commit: commit.commit_id != plan.parent, listed))
    titles = [
        f"{quote(commit.title)} by {one_line(', '.join(map(str, commit.authors)), 60)} "
        f"({commit.commit_id[:12]})"
        for commit in commits[:_SHOWN]
    ]
    now = files_at(client, plan.package.paths, plan.revision)
    paths = [p for p in plan.package.paths if now.get(p) != plan.remote.get(p)]
    shown = ", ".join(one_line(path) for path in paths[:_SHOWN])
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    of = f"it changed {shown}{more}" if paths else "it changed nothing"
    return Changed(
        f"{plan.revision} of {client.repo} got {plural(len(commits), 'commit')} "
        f"meanwhile: {', '.join(titles) or 'unknown'}. Of what is pushed {of}. Nothing "
        "was committed: look at it, then run the same command again."
    )
