"""Carry out a planned push: uploads, then one commit, then the text.

Uploads change nothing that anybody sees. The commit, which also opens the pull request,
is one request that happens or does not; what is lost is its answer, so before it is sent
again the Hub is asked whether it happened.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from generator.hub.delta import compare
from generator.hub.failures import Changed, HubFailure, status_of
from generator.hub.plan import Plan
from generator.wording import one_line, plural, quote

if TYPE_CHECKING:
    from huggingface_hub import CommitOperationAdd

    from generator.hub.client import Client
    from generator.hub.pulls import PullRequests

_CONFLICTS = (409, 412)
_SHOWN = 5
# files that are tried together: the more, the likelier that one of them fails again
_UPLOADS = 64


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


def carry_out(client: Client, pulls: PullRequests, plan: Plan) -> Pushed:
    """Do what is planned. Raises HubFailure; Changed where somebody else committed."""
    made = Pushed(number=plan.pull.number if plan.pull else None)
    if not plan.delta.is_empty:
        additions = _additions(plan)
        _upload(client, plan, [a for a in additions if a.path_in_repo in plan.lfs])
        made = _commit(client, pulls, plan, additions)
        if made.unfinished:
            return made
        if made.commit:
            _check(client, plan, made)
    if plan.pull is None or not plan.owns_text:
        return made
    described = pulls.describe(plan.pull, plan.text)
    return Pushed(made.commit, made.number, described)


def _additions(plan: Plan) -> list[CommitOperationAdd]:
    from huggingface_hub import CommitOperationAdd

    made = []
    for file in plan.delta.sent:
        path = plan.package.root / file.path
        if file.path in plan.lfs:
            addition = CommitOperationAdd(file.path, path)
            # the bytes that were judged: the Hub refuses an upload of others
            addition.upload_info.sha256 = bytes.fromhex(file.sha256)
        else:
            content = path.read_bytes() if path.is_file() else b""
            if hashlib.sha256(content).hexdigest() != file.sha256:
                raise HubFailure(
                    f"{one_line(file.path)} changed after it was judged: nothing was "
                    "committed; run the same command again."
                )
            addition = CommitOperationAdd(file.path, content)
        made.append(addition)
    return made


def _upload(client: Client, plan: Plan, additions: list[CommitOperationAdd]) -> None:
    """Upload what goes through LFS; a bad line is tried anew for each share."""
    for at in range(0, len(additions), _UPLOADS):
        _upload_share(client, plan, additions[at : at + _UPLOADS])


def _upload_share(
    client: Client, plan: Plan, additions: list[CommitOperationAdd]
) -> None:
    client.call(
        lambda: client.api.preupload_lfs_files(
            client.repo,
            additions,
            repo_type="dataset",
            revision=plan.revision,
            create_pr=plan.opens,
        ),
        plan.revision,
    )


def _commit(
    client: Client,
    pulls: PullRequests,
    plan: Plan,
    additions: list[CommitOperationAdd],
) -> Pushed:
    from huggingface_hub import CommitOperationDelete

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
        except Exception as error:  # noqa: BLE001 - told by the client, in one line
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
                return Pushed(number=plan.pull.number if plan.pull else None)
            number = info.pr_num if plan.opens else None
            number = plan.pull.number if plan.pull else number
            pulls.forget()
            return Pushed(str(info.oid), number)
    raise AssertionError("the client raises after its last attempt")


def _happened(client: Client, pulls: PullRequests, plan: Plan) -> Pushed | None:
    """Return the commit if the Hub has it although no answer came, or None."""
    revision, number = plan.revision, plan.pull.number if plan.pull else None
    if plan.opens:
        pulls.forget()
        account = client.account()
        name = str(account["name"]) if account else ""
        found = pulls.find_own(name, plan.package.bundle.marker, plan.package.title)
        if found is None:
            return None
        revision, number = found.revision, found.number
    head = client.head(revision)
    if _is_there(client, plan, head):
        return Pushed(head, number)
    return Pushed(number=number, unfinished=True) if plan.opens else None


def _is_there(client: Client, plan: Plan, revision: str) -> bool:
    remote = client.files(plan.package.paths, revision)
    return compare(plan.package.files, remote, plan.package.delete).is_empty


def _check(client: Client, plan: Plan, made: Pushed) -> None:
    """Ask what arrived. Raises HubFailure where it is not what was judged."""
    if not _is_there(client, plan, made.commit):
        raise HubFailure(
            f"Commit {made.commit[:12]} of {client.repo} has other bytes than were "
            "judged: a file changed meanwhile; run the same command again."
        )


def _changed(client: Client, plan: Plan) -> Changed:
    """Return what somebody else did since the plan was made."""
    commits = client.commits_between(plan.parent, plan.revision)
    titles = [_of_commit(commit) for commit in commits[:_SHOWN]]
    now = client.files(plan.package.paths, plan.revision)
    paths = [p for p in plan.package.paths if now.get(p) != plan.remote.get(p)]
    shown = ", ".join(one_line(path) for path in paths[:_SHOWN])
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    of = f"it changed {shown}{more}" if paths else "it changed nothing"
    return Changed(
        f"{plan.revision} of {client.repo} got {plural(len(commits), 'commit')} "
        f"meanwhile: {', '.join(titles) or 'unknown'}. Of what is pushed {of}. Nothing "
        "was committed: look at it, then run the same command again."
    )


def _of_commit(commit: Any) -> str:
    authors = one_line(", ".join(map(str, commit.authors)), 60)
    return f"{quote(commit.title)} by {authors} ({commit.commit_id[:12]})"
