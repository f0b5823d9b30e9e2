"""Plan a push, say what it would do, and carry it out: uploads, a commit, the text.

Planning changes nothing. Uploads change nothing that anybody sees. The commit, which
also opens the pull request, is one request that happens or does not; what is lost is its
answer, so before it is sent again the Hub is asked whether it happened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from generator.hub.card import all_paths
from generator.hub.client import OPEN, Client
from generator.hub.failures import Changed, HubFailure, status_of
from generator.hub.package import Delta, LocalFile, Package, compare
from generator.hub.pr_description import describe, human
from generator.hub.preconditions import of_partial
from generator.hub.remote import TESTS, RemoteFile, files_at, is_blob, remote_files
from generator.problems import Failure
from generator.problems.messages import one_line, plural, quote, some

if TYPE_CHECKING:
    from huggingface_hub import CommitOperationAdd

_MAIN = "main"
_CONFLICTS = (409, 412)
_SHOWN = 5
_LARGE = 8 * 1024 * 1024


@dataclass(frozen=True)
class PushPlan:
    """The planned changes of a push.

    `revision` is what the files were compared with, at the commit `parent`; `pull` is
    the pull request that is gone on with, a `DiscussionWithDetails` of huggingface_hub,
    and `opens` says that one is to be opened. `owns_text` says that the pull request's
    text is this program's to write.
    """

    package: Package
    revision: str
    parent: str
    remote: Mapping[str, RemoteFile]
    delta: Delta
    text: str
    pull: Any | None
    opens: bool
    owns_text: bool

    @property
    def number(self) -> int | None:
        """Return the number of the pull request that is gone on with, or None."""
        return self.pull.num if self.pull else None

    def lines(self, repo: str) -> Iterator[str]:
        """Yield what changes in a repository, a line for each file."""
        where = f"pull request {self.number}" if self.pull else self.revision
        where = "a new pull request" if self.opens else where
        yield f"{repo}, {where}: {one_line(self.package.title, 200)}"
        steps = self.delta.steps
        width = max((len(one_line(file.path)) for _, file in steps), default=0)
        for what, file in steps:
            yield f"  {what:<6}  {one_line(file.path):<{width}}  {human(file.size):>10}"
        total = sum(file.size for file in self.delta.sent)
        counts = (f"{self.delta.count(s)} to {s}" for s in ("add", "change", "delete"))
        yield (
            f"  {', '.join(counts)}; {human(total)}; "
            f"{plural(self.delta.same, 'file')} unchanged"
        )
        if self.pull is not None and not self.owns_text:
            yield "  its text stays: this command did not write it"


@dataclass(frozen=True)
class PushResult:
    """The result of a push: a commit or none, and a pull request or none.

    `described` says that the pull request's text was written anew. `unfinished` says
    that the pull request is there without the files: plan again and go on.
    """

    commit: str = ""
    number: int | None = None
    described: bool = False
    unfinished: bool = False


@dataclass
class Pusher:
    """The pushes to a repository, planned and carried out; each text there is read once."""

    client: Client
    _read: dict[int, Any] = field(default_factory=dict)

    def plan(self, package: Package) -> PushPlan:
        """Look at the repository, and return what is to be done. Changes nothing.

        Raises HubFailure, and Failure for a file that can't be pushed.
        """
        client, options = self.client, package.options
        name, marker = client.name(), package.bundle.marker
        pull = None
        if options.number is not None:
            pull = client.pull_request(options.number)
            if pull.status not in OPEN:
                raise HubFailure(
                    f"Pull request {options.number} of {client.repo} is {pull.status}: "
                    "leave --pr out for a new one."
                )
        elif options.branch is None and name:
            pull = self._own(package)
        revision = options.branch or (pull.git_reference if pull else _MAIN)
        parent, remote, delta = self._compared(package, revision)
        package = self._whole(package, delta, parent)
        # what the pull request as a whole does, not this push of it
        seen = self._compared(package, _MAIN) if pull else (parent, remote, delta)
        folders = [e.path for e in client.tree(seen[0]) if not hasattr(e, "blob_id")]
        return PushPlan(
            package,
            revision,
            parent,
            remote,
            delta,
            describe(package, seen[2], seen[1], folders),
            pull,
            opens=pull is None and options.branch is None,
            owns_text=pull is not None
            and pull.author == name
            and _has_marker(pull, marker),
        )

    def carry_out(self, plan: PushPlan) -> PushResult:
        """Do what is planned. Raises HubFailure; Changed where somebody else committed."""
        result = PushResult(number=plan.number)
        if plan.delta.steps:
            result = self._commit(plan)
            if result.unfinished:
                return result
            if result.commit and not self._is_there(plan, result.commit):
                raise HubFailure(
                    f"Commit {result.commit[:12]} of {self.client.repo} has other bytes "
                    "than were judged: a file changed meanwhile, or the repository's "
                    ".gitignore leaves it out; run the same command again."
                )
        if plan.pull is None or not plan.owns_text:
            return result
        comment = _opening(plan.pull)
        # the Hub may change the white space
        if comment is None or comment.content.split() == plan.text.split():
            return result
        self.client.edit(plan.pull.num, comment.id, plan.text)
        self._read.pop(plan.pull.num, None)
        return replace(result, described=True)

    def _own(self, package: Package) -> Any | None:
        """Return the user's open pull request of a package, the newest, or None."""
        author, marker = self.client.name(), package.bundle.marker
        query = {"author": author, "discussion_type": "pull_request"}
        opened = [
            one
            for one in self.client.ask("get_repo_discussions", **query)
            if one.is_pull_request and one.status in OPEN and one.author == author
        ]
        # most often the first one asked for is it
        for one in sorted(
            opened, key=lambda one: (one.title != package.title, -one.num)
        ):
            if one.num not in self._read:
                self._read[one.num] = self.client.pull_request(one.num)
            if _has_marker(self._read[one.num], marker):
                return self._read[one.num]
        return None

    def _compared(
        self, package: Package, revision: str
    ) -> tuple[str, Mapping[str, RemoteFile], Delta]:
        """Return a revision's commit, its files of the package, and what is to be done."""
        parent = self.client.head(revision)
        remote = files_at(self.client, package.paths, parent)
        return parent, remote, compare(package.files, remote, package.options.delete)

    def _whole(self, package: Package, delta: Delta, parent: str) -> Package:
        """Return the package, with what it was allowed to leave out. Raises Failure.

        Tests and the card are made of the definitions that are here: from a part of a
        dataset they would replace those of the whole.
        """
        paths = [file.path for step, file in delta.steps if step == "change"]
        if not any(p.startswith(f"{TESTS}/") or p in all_paths() for p in paths):
            return package
        elsewhere = [
            file.path
            for file in remote_files(self.client.tree(parent, "definitions", deep=True))
            if file.path not in package.options.delete
            and not (package.root / file.path).is_file()
        ]
        if not elsewhere:
            return package
        objection = of_partial(elsewhere)
        if objection.rule not in package.options.reasons:
            raise Failure(str(objection))
        return replace(package, allowed=(*package.allowed, objection))

    def _commit(self, plan: PushPlan) -> PushResult:
        from huggingface_hub import CommitOperationDelete

        # an addition remembers that it was uploaded: no attempt uploads it again
        additions = list(map(_addition, plan.delta.sent))
        deletions = [
            CommitOperationDelete(file.path, is_folder=False)
            for step, file in plan.delta.steps
            if step == "delete"
        ]
        for attempt in count(1):
            try:
                info = self.client.api.create_commit(
                    self.client.repo,
                    [*additions, *deletions],
                    commit_message=plan.package.title,
                    commit_description=plan.text,
                    repo_type="dataset",
                    revision=plan.revision,
                    create_pr=plan.opens,
                    parent_commit=plan.parent,
                )
            except Exception as error:  # noqa: BLE001 - the client turns it into a line
                conflict = status_of(error) in _CONFLICTS
                if not conflict:
                    self.client.wait_after(error, attempt, plan.revision)
                result = self._happened(plan)
                if result is not None:
                    return result
                if conflict:
                    raise self._changed(plan) from None
            else:
                if str(info.oid) == plan.parent:
                    # somebody committed the same bytes: the library sent no commit
                    return PushResult(number=plan.number)
                return PushResult(str(info.oid), plan.number or info.pr_num)
        raise AssertionError("the client raises after its last attempt")

    def _happened(self, plan: PushPlan) -> PushResult | None:
        """Return the commit if the Hub has it although no answer came, or None."""
        revision, number = plan.revision, plan.number
        if plan.opens:
            mine = self._own(plan.package)
            if mine is None:
                return None
            revision, number = mine.git_reference, mine.num
        head = self.client.head(revision)
        if self._is_there(plan, head):
            return PushResult(head, number)
        return PushResult(number=number, unfinished=True) if plan.opens else None

    def _is_there(self, plan: PushPlan, revision: str) -> bool:
        package = plan.package
        remote = files_at(self.client, package.paths, revision)
        return not compare(package.files, remote, package.options.delete).steps

    def _changed(self, plan: PushPlan) -> Changed:
        """Return what somebody else did since the plan was made."""
        at = {"revision": plan.revision, "about": plan.revision}
        listed = self.client.ask("list_repo_commits", **at)
        commits = list(
            takewhile(lambda commit: commit.commit_id != plan.parent, listed)
        )
        titles = [
            f"{quote(commit.title)} by "
            f"{one_line(', '.join(map(str, commit.authors)), 60)} "
            f"({commit.commit_id[:12]})"
            for commit in commits[:_SHOWN]
        ]
        now = files_at(self.client, plan.package.paths, plan.revision)
        paths = [p for p in plan.package.paths if now.get(p) != plan.remote.get(p)]
        of = f"it changed {some([*map(one_line, paths)], _SHOWN) or 'nothing'}"
        return Changed(
            f"{plan.revision} of {self.client.repo} got "
            f"{plural(len(commits), 'commit')} meanwhile: "
            f"{', '.join(titles) or 'unknown'}. Of what is pushed {of}. Nothing was "
            "committed: look at it, then run the same command again."
        )


def _opening(pull: Any) -> Any | None:
    """Return the comment that a pull request opens with."""
    return next((event for event in pull.events if event.type == "comment"), None)


def _has_marker(pull: Any, marker: str) -> bool:
    """Return whether a pull request's text has the marker as a line of its own."""
    text = str(getattr(_opening(pull), "content", ""))
    return marker in (line.strip() for line in text.splitlines())


def _addition(file: LocalFile) -> CommitOperationAdd:
    """Return the operation that adds a file. Raises HubFailure where it changed.

    The Hub refuses an upload through LFS with other bytes than the hash in the operation.
    Nobody compares a file that the commit itself contains: it is read here, once.
    """
    from huggingface_hub import CommitOperationAdd

    content = file.source
    is_small = not is_blob(file.path) and file.size <= _LARGE
    try:
        if isinstance(content, Path) and is_small:
            content = content.read_bytes()
        operation = CommitOperationAdd(file.path, content)
    except (OSError, ValueError):
        operation = None
    if operation is None or operation.upload_info.sha256.hex() != file.sha256:
        raise HubFailure(
            f"{one_line(file.path)} changed after it was judged: nothing was committed; "
            "run the same command again."
        )
    return operation
