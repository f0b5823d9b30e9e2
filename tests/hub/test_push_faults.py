"""A push that is hit by a fault ends before or after, and a second one completes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.hub import pushable
from tests.hub.commands import call, point_to
from tests.hub.faults import Does, Fault, refuse, too_many
from tests.hub.fixtures import REPO
from tests.hub.pushable import FILE, NAME, RECORDING, Push, files_of, put
from tests.hub.server import Account, Hub
from tests.hub.store import Repository

pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")
CANARY = "hf_CanaryTokenThatNobodyMayEverSee"
root = pushable.root
_READS = ("whoami", "discussions", "info", "paths", "tree", "preupload")
_CUTS = (Does.CUT_UPLOAD, Does.CUT_ANSWER, Does.DROP_ANSWER)


@pytest.fixture
def repository(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> Repository:
    point_to(hub, monkeypatch)
    hub.accounts[CANARY] = hub.accounts["hf_maintainer"]
    monkeypatch.setenv("HF_TOKEN", CANARY)
    return hub.repositories[REPO]


@pytest.fixture
def push(
    repository: Repository, root: Path, hub: Hub, capsys: pytest.CaptureFixture[str]
) -> Push:
    """Push; whatever happens, no token is shown and nothing is half-written."""

    def call_it(*arguments: str, status: int = 0) -> tuple[int, str, str]:
        chosen = ("--definition-name", NAME, "--yes", *arguments)
        done = call(capsys, "push", "--repo", REPO, "--dataset", root, *chosen)
        assert done[0] == status, done
        assert repository.damage() == []
        assert CANARY not in done[1] + done[2]
        assert "thrown while requesting" not in done[2]
        for held in repository.discussions():
            assert CANARY not in str(held)
        for seen in hub.seen:
            assert CANARY not in seen.target
            assert not seen.headers.get("authorization") or seen.route != "lfs-upload"
        return done

    return call_it


def assert_pushed(repository: Repository, root: Path) -> None:
    """One pull request, one commit in it, all of the bytes."""
    assert [held["num"] for held in repository.discussions()] == [1]
    assert len(repository.history("refs/pr/1")) == 2
    assert repository.contents("refs/pr/1") == files_of(root, NAME)
    assert repository.contents() == {}


def assert_before(repository: Repository) -> None:
    """Nothing that anybody sees has happened."""
    assert repository.discussions() == []
    assert list(repository.refs()) == ["refs/heads/main"]
    assert repository.contents() == {}


def once(*kinds: Does) -> list[Fault]:
    """Return faults of all reads and, as given, of all writes."""
    found = [Fault(route, Does.DROP_ANSWER) for route in _READS]
    found += [Fault(route, Does.STATUS, status=503) for route in _READS]
    for route in ("commit", "lfs-upload"):
        found += [Fault(route, does) for does in _CUTS]
        found += [Fault(route, Does.STATUS, status=s) for s in (500, 503)]
        found += [too_many(route), Fault(route, Does.SLOW)]
    found += [Fault("lfs-batch", does) for does in _CUTS]
    found += [Fault("lfs-verify", Does.DROP_ANSWER), too_many("lfs-verify")]
    return found


def told(fault: Fault) -> str:
    does = fault.does.name if fault.does else "meddle"
    return f"{fault.route}-{does}-{fault.status}"


@pytest.mark.parametrize("fault", once(), ids=told)
def test_one_fault_is_got_over(
    push: Push, repository: Repository, root: Path, hub: Hub, fault: Fault
) -> None:
    hub.faults.use(fault)
    push()
    assert hub.faults.struck == {fault.route: 1}
    assert_pushed(repository, root)
    hub.faults.use()
    commits = repository.refs()
    assert "nothing new" in push()[1]
    assert repository.refs() == commits


@pytest.mark.parametrize(
    "fault",
    [
        *(Fault("commit", does, times=None) for does in _CUTS[:1]),
        Fault("commit", Does.STATUS, times=None, status=500),
        Fault("lfs-upload", Does.CUT_UPLOAD, times=None),
        Fault("lfs-batch", Does.STATUS, times=None, status=503),
        Fault("paths", Does.STATUS, times=None, status=500),
        Fault("info", Does.CUT_ANSWER, times=None),
        too_many("preupload"),
    ],
    ids=told,
)
def test_a_fault_that_stays_changes_nothing_and_the_next_push_completes(
    push: Push, repository: Repository, root: Path, hub: Hub, fault: Fault
) -> None:
    hub.faults.use(Fault(**{**vars(fault), "times": None}))
    _, _, err = push(status=2)
    last = err.splitlines()[-1]
    assert last.startswith("Error: ")
    assert "run the same command again" in last
    assert_before(repository)
    hub.faults.use()
    push()
    assert_pushed(repository, root)


def test_a_push_that_ends_after_its_commit_is_gone_on_with(
    push: Push, repository: Repository, root: Path, hub: Hub
) -> None:
    hub.faults.use(
        Fault("commit", Does.DROP_ANSWER),
        Fault("discussions", Does.STATUS, nth=2, times=None, status=500),
    )
    push(status=2)
    assert len(repository.discussions()) == 1
    hub.faults.use()
    assert "nothing new" in push()[1]
    assert_pushed(repository, root)


def test_a_lost_answer_to_a_second_push_makes_one_commit(
    push: Push, repository: Repository, root: Path, hub: Hub
) -> None:
    push()
    put(root, RECORDING, "other outputs")
    hub.faults.use(
        Fault("commit", Does.DROP_ANSWER), Fault("edit", Does.STATUS, times=None)
    )
    push(status=2)
    assert repository.contents("refs/pr/1") == files_of(root, NAME)
    text = repository.description(1)
    hub.faults.use()
    assert "its text only" in push()[1]
    assert repository.description(1) != text
    assert len(repository.history("refs/pr/1")) == 3
    assert "nothing new" in push()[1]


def test_a_pull_request_without_its_files_is_gone_on_with(
    push: Push, repository: Repository, root: Path, hub: Hub
) -> None:
    """The Hub may open one and then fail: no second one is opened."""

    def open_one() -> None:
        marker = f"<!-- trace-dataset push: definition {NAME} -->"
        repository.open_discussion(
            f"Add {NAME}", marker, "maintainer", pull_request=True
        )

    hub.faults.use(Fault("commit", Does.STATUS, status=500, meddle=open_one))
    push()
    assert_pushed(repository, root)
    assert "### Comparisons" in repository.description(1)


# somebody else


def test_a_commit_in_between_is_not_overwritten(
    push: Push, repository: Repository, root: Path, hub: Hub
) -> None:
    hub.faults.use(
        Fault("commit", None, meddle=lambda: repository.put(FILE, b"theirs"))
    )
    _, _, err = push(status=1)
    assert f"'Add {FILE}' by other" in err
    assert f"it changed {FILE}" in err
    assert repository.contents() == {FILE: b"theirs"}
    assert repository.discussions() == []
    _, out, _ = push()
    assert f"change  {FILE}" in out
    assert repository.contents("refs/pr/1") == files_of(root, NAME)
    assert repository.contents() == {FILE: b"theirs"}


def test_a_commit_in_between_to_a_branch_or_to_the_pull_request(
    push: Push, repository: Repository, root: Path, hub: Hub
) -> None:
    hub.faults.use(
        Fault("commit", None, meddle=lambda: repository.put("x.txt", b"theirs"))
    )
    _, _, err = push("--branch", "main", status=1)
    assert "it changed nothing" in err
    assert set(repository.contents()) == {"x.txt"}
    push()
    put(root, RECORDING, "other outputs")
    hub.faults.use(
        Fault(
            "commit",
            None,
            meddle=lambda: repository.put(FILE, b"theirs", revision="refs/pr/1"),
        )
    )
    _, _, err = push(status=1)
    assert "refs/pr/1" in err
    assert repository.contents("refs/pr/1")[FILE] == b"theirs"


@pytest.mark.parametrize("route", ["preupload", "lfs-batch"])
def test_bytes_that_arrive_wrong_are_refused(
    push: Push, repository: Repository, root: Path, hub: Hub, route: str
) -> None:
    """A file that changes between being judged and being sent is not committed."""
    hub.faults.use(Fault(route, None, meddle=lambda: put(root, RECORDING, "later on")))
    push(status=2)
    assert_before(repository)


def test_a_file_that_changes_after_it_was_judged_is_not_committed(
    push: Push, repository: Repository, root: Path, hub: Hub
) -> None:
    hub.faults.use(Fault("paths", None, meddle=lambda: put(root, FILE, "later")))
    _, _, err = push(status=2)
    assert f"{FILE} changed after it was judged" in err
    assert_before(repository)


# uploads through Xet


def test_a_hub_that_gives_no_access_to_xet_is_one_line(
    push: Push, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client's default: without asking, it uploads through Xet."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", False)
    _, _, err = push(status=2)
    last = err.splitlines()[-1]
    assert "set HF_HUB_DISABLE_XET=1" in last
    assert len(err.splitlines()) == 1
    assert_before(repository)


# waiting


def test_it_waits_as_long_as_it_is_asked_to(
    push: Push, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    hub.faults.use(too_many("paths", after=7))
    _, _, err = push()
    assert slept == [7.0]
    assert "429" in err
    assert "trying again in 7 s" in err


def test_it_does_not_wait_for_an_hour(
    push: Push, repository: Repository, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    hub.faults.use(too_many("paths", after=3600))
    _, _, err = push(status=2)
    assert slept == []
    assert "3600 s" in err
    assert_before(repository)


def test_waits_are_bounded(
    push: Push, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    hub.faults.use(Fault("info", Does.STATUS, times=None, status=503))
    push(status=2)
    assert len(slept) == 7
    assert sum(slept) < 120
    assert slept == sorted(slept)


# who may not


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (refuse("whoami", 401, "Invalid credentials in Authorization header"), "401"),
        (
            refuse("paths", 401, "Invalid credentials in Authorization header"),
            "expired",
        ),
        (refuse("info", 404, "no", "RepoNotFound"), "There is no dataset repository"),
        (refuse("info", 403, "no", "GatedRepo"), "is gated: ask for access"),
        (refuse("commit", 403, "Forbidden for you"), "write access"),
        (refuse("commit", 403, "Private storage limit reached"), "storage"),
        (refuse("lfs-batch", 413, "You exceeded your quota"), "takes no more"),
        (refuse("lfs-batch", 402, "Payment required"), "takes no more"),
        (refuse("commit", 400, "Bad content"), "refused (400: Bad content"),
        (refuse("discussions", 403, "Discussions are disabled"), "403"),
    ],
    ids=lambda value: told(value) if isinstance(value, Fault) else "",
)
def test_a_refusal_is_one_line_with_the_next_step(
    push: Push, repository: Repository, root: Path, hub: Hub, fault: Fault, said: str
) -> None:
    hub.faults.use(fault)
    _, _, err = push(status=2)
    assert len(err.splitlines()) == 1
    assert said in err
    assert hub.faults.struck == {fault.route: 1}
    assert_before(repository)
    hub.faults.use()
    push()
    assert_pushed(repository, root)


def test_tokens_that_may_not(
    push: Push, repository: Repository, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.accounts["hf_read"] = Account("maintainer", "read")
    for token, said in (
        ("hf_read", "The token has read access only"),
        ("hf_expired", "The Hub does not know the token (401)"),
        ("", "There is no token: run `hf auth login`, or set HF_TOKEN."),
    ):
        monkeypatch.setenv("HF_TOKEN", token)
        _, _, err = push(status=2)
        assert said in err
        assert len(err.splitlines()) == 1
    assert_before(repository)


def test_a_dry_run_needs_no_token(
    repository: Repository,
    root: Path,
    hub: Hub,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HF_TOKEN", "")
    chosen = ("--repo", REPO, "--dataset", root, "--definition-name", NAME)
    status, out, err = call(capsys, "push", *chosen)
    assert status == 0, err
    assert f"add     {FILE}" in out
    repository.private = True
    status, _, err = call(capsys, "push", *chosen)
    assert status == 2
    assert "There is no dataset repository" in err


def test_a_token_in_a_file_is_found(
    push: Push, repository: Repository, root: Path
) -> None:
    put(root, RECORDING, f"outputs {CANARY} and more")
    _, _, err = push(status=2)
    assert f"{RECORDING} has your Hugging Face token in it" in err
    assert_before(repository)


def test_a_server_that_repeats_the_token_is_not_quoted(push: Push, hub: Hub) -> None:
    said = f"no access for Bearer {CANARY} see https://x.example/up?signature=abc"
    hub.faults.use(refuse("commit", 403, said))
    _, _, err = push(status=2)
    assert "signature" not in err


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")


def test_an_address_that_answers_nothing(push: Push, hub: Hub, nobody: None) -> None:
    _, _, err = push(status=2)
    assert "The connection to" in err.splitlines()[-1]


def test_a_dry_run_without_the_hub_lists_what_is_here(
    repository: Repository, root: Path, nobody: None, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = ("--repo", REPO, "--dataset", root, "--definition-name", NAME)
    status, out, err = call(capsys, "push", *chosen)
    assert status == 0, err
    assert FILE in out
    assert "The connection to" in err
    assert err.splitlines()[-1].startswith("Dry run without the Hub")
