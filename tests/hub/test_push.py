"""`trace-dataset push` over real HTTP: what it sends, where, and what it leaves alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.hub import pushable
from tests.hub.commands import call
from tests.hub.fixtures import REPO
from tests.hub.pushable import (
    FILE,
    LINES,
    NAME,
    ONE,
    OTHER,
    RECORDING,
    Push,
    files_of,
    make,
    prove,
    put,
    render,
)
from tests.hub.server import Account, Hub
from tests.hub.store import Repository

# the client's own call of its HTTP library
root, repository, push = pushable.root, pushable.repository, pushable.push
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")
TABLES = ("definitions", "verification", "workloads")


def pulls(repository: Repository) -> list[int]:
    return [held["num"] for held in repository.discussions()]


# what is sent


def test_a_dry_run_is_the_default_and_sends_nothing(
    push: Push, repository: Repository, hub: Hub
) -> None:
    before = repository.refs()
    _, out, err = push(*ONE)
    assert repository.refs() == before
    assert hub.asked("preupload", "commit", "lfs-batch", "lfs-upload") == []
    lines = out.splitlines()
    assert f"{REPO}, a new pull request: Add {NAME}" in lines[0]
    (definition,) = [line for line in lines if FILE in line]
    assert definition.split()[0] == "add"
    (recording,) = [line for line in lines if RECORDING in line]
    assert recording.split()[-2:] == ["21", "bytes"]
    assert "Dry run: nothing was sent" in err
    assert push(*ONE, "--dry-run")[1] == out


def test_a_push_is_one_commit_in_one_pull_request(
    push: Push, repository: Repository, root: Path, hub: Hub
) -> None:
    main = repository.head().id
    _, out, _ = push(*ONE, "--yes")
    assert repository.contents("refs/pr/1") == files_of(root, NAME)
    assert len(repository.history("refs/pr/1")) == 2
    assert repository.head().id == main
    assert pulls(repository) == [1]
    assert repository.head("refs/pr/1").files[RECORDING].lfs
    assert f"pushed: {hub.url}/datasets/{REPO}/discussions/1, commit" in out


def test_nothing_new_makes_no_commit(
    push: Push, repository: Repository, hub: Hub
) -> None:
    push(*ONE, "--yes")
    before, asked = repository.refs(), len(hub.seen)
    _, out, _ = push(*ONE, "--yes")
    assert "nothing new: no commit was made" in out
    assert repository.refs() == before
    sent = {seen.route for seen in hub.seen[asked:]}
    assert not sent & {"commit", "edit", "lfs-batch", "preupload"}


def test_what_is_on_main_already_opens_no_pull_request(
    push: Push, repository: Repository, root: Path
) -> None:
    for path, content in files_of(root, NAME).items():
        repository.put(path, content)
    _, out, _ = push(*ONE, "--yes")
    assert "nothing new" in out
    assert pulls(repository) == []


def test_a_second_push_updates_the_same_pull_request(
    push: Push, repository: Repository, root: Path
) -> None:
    push(*ONE, "--yes")
    text = repository.description(1)
    put(root, RECORDING, "other outputs, more of them")
    prove(root, "flashinfer/fa2")
    _, out, _ = push(*ONE, "--yes")
    assert "change" in out
    assert pulls(repository) == [1]
    assert repository.contents("refs/pr/1") == files_of(root, NAME)
    assert len(repository.history("refs/pr/1")) == 3
    assert "flashinfer" in repository.description(1)
    assert repository.description(1) != text


def test_each_definition_gets_a_pull_request_unless_together(
    push: Push, repository: Repository, root: Path
) -> None:
    make(root, [NAME, OTHER])
    push("--op-type", "gemm", "--yes")
    assert pulls(repository) == [1, 2]
    assert repository.contents("refs/pr/1") == files_of(root, NAME)
    assert repository.contents("refs/pr/2") == files_of(root, OTHER)
    push("--all", "--together", "--yes")
    assert repository.contents("refs/pr/3") == files_of(root, NAME, OTHER)
    push("--op-type", "gemm", "--yes")
    push("--all", "--together", "--yes")
    assert pulls(repository) == [1, 2, 3]


def test_a_definition_more_goes_into_the_same_pull_request(
    push: Push, repository: Repository, root: Path
) -> None:
    push("--op-type", "gemm", "--together", "--yes")
    make(root, [NAME, OTHER])
    push(*ONE, "--definition-name", OTHER, "--together", "--yes")
    assert pulls(repository) == [1, 2]
    make(root, [NAME, OTHER, "gemm_n10_k4"])
    _, out, _ = push(*ONE, "--definition-name", OTHER, "--together", "--yes")
    assert "pull request 2" in out
    assert pulls(repository) == [1, 2]


@pytest.mark.parametrize("where", [("--pr", "1"), ("--branch", "main")])
def test_several_into_one_place_say_so(
    push: Push, repository: Repository, root: Path, where: tuple[str, str]
) -> None:
    make(root, [NAME, OTHER])
    _, _, err = push("--all", "--yes", *where, status=2)
    assert "--together" in err
    assert pulls(repository) == []


def test_a_branch_gets_a_commit(push: Push, repository: Repository, root: Path) -> None:
    push(*ONE, "--branch", "main", "--message", "By hand", "--yes")
    assert repository.contents() == files_of(root, NAME)
    assert repository.head().title == "By hand"
    assert pulls(repository) == []
    repository.branch("next")
    put(root, RECORDING, "other")
    push(*ONE, "--branch", "next", "--yes")
    assert repository.contents("next")[RECORDING] == b"other"
    assert repository.contents()[RECORDING] != b"other"


def test_somebody_s_pull_request_keeps_its_text(
    push: Push, repository: Repository, root: Path
) -> None:
    repository.open_discussion("Theirs", "By hand", "other", pull_request=True)
    _, out, _ = push(*ONE, "--pr", "1", "--yes")
    assert repository.contents("refs/pr/1") == files_of(root, NAME)
    assert repository.description(1) == "By hand"
    assert "its text stays" in out


def test_a_marker_in_somebody_else_s_text_catches_nothing(
    push: Push, repository: Repository
) -> None:
    marker = f"<!-- trace-dataset push: definition {NAME} -->"
    repository.open_discussion(f"Add {NAME}", marker, "other", pull_request=True)
    push(*ONE, "--yes")
    assert repository.contents("refs/pr/1") == {}
    assert pulls(repository) == [1, 2]


def test_a_closed_pull_request_is_left_alone(
    push: Push, repository: Repository, root: Path
) -> None:
    push(*ONE, "--yes")
    repository.change(1, status="closed")
    _, _, err = push(*ONE, "--pr", "1", "--yes", status=2)
    assert "is closed" in err
    push(*ONE, "--yes")
    assert pulls(repository) == [1, 2]


def test_one_among_many_pull_requests_is_found(
    push: Push, repository: Repository, root: Path
) -> None:
    push(*ONE, "--message", "Named otherwise", "--yes")
    for number in range(12):
        repository.open_discussion(
            f"Mine {number}", "x", "maintainer", pull_request=True
        )
    put(root, RECORDING, "other")
    push(*ONE, "--yes")
    assert len(pulls(repository)) == 13
    assert repository.contents("refs/pr/1")[RECORDING] == b"other"


# the card


def test_the_card_and_its_tables_go_into_the_same_pull_request(
    push: Push, repository: Repository, root: Path
) -> None:
    push(*ONE, "--card", "--yes")
    held = repository.contents("refs/pr/1")
    cards = {
        path: data for path, data in held.items() if path not in files_of(root, NAME)
    }
    assert sorted(cards) == ["README.md", *(f"tables/{name}.jsonl" for name in TABLES)]
    assert f'load_dataset("{REPO}", "definitions"'.encode() in cards["README.md"]
    (row,) = cards["tables/definitions.jsonl"].splitlines()
    assert json.loads(row)["name"] == NAME
    assert len(repository.history("refs/pr/1")) == 2
    assert "nothing new" in push(*ONE, "--card", "--yes")[1]
    assert not (root / "README.md").exists()


def test_the_card_keeps_its_title_and_licence(
    push: Push,
    repository: Repository,
    root: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    own = ("--title", "Kernels: mine", "--license", "mit")
    assert call(capsys, "card", "--dataset", root, *own)[0] == 0
    push(*ONE, "--card", "--yes")
    text = repository.contents("refs/pr/1")["README.md"].decode()
    assert "pretty_name: 'Kernels: mine'" in text
    assert "license: mit" in text


def test_somebody_s_readme_is_not_taken_for_the_card(
    push: Push, repository: Repository, root: Path
) -> None:
    put(root, "README.md", "# By hand")
    _, _, err = push(*ONE, "--card", "--yes", status=2)
    assert "README.md was not written by trace-dataset card" in err
    assert pulls(repository) == []


def test_a_card_of_a_part_does_not_replace_that_of_the_whole(
    push: Push, repository: Repository, root: Path
) -> None:
    for path, content in files_of(root, NAME).items():
        repository.put(path, content)
    repository.put(f"definitions/gemm/{OTHER}.json", b"{}")
    repository.put("tables/definitions.jsonl", b"two rows")
    assert "nothing new" in push(*ONE, "--yes")[1]
    _, _, err = push(*ONE, "--card", "--yes", status=2)
    assert "[rendering-partial]" in err
    assert pulls(repository) == []


# what is left alone


def test_only_what_is_named_is_deleted(push: Push, repository: Repository) -> None:
    for path in ("README.md", f"workloads/gemm/{OTHER}.jsonl", "old.txt"):
        repository.put(path, b"there")
    push(*ONE, "--branch", "main", "--yes")
    kept = {"README.md", f"workloads/gemm/{OTHER}.jsonl", "old.txt"}
    assert kept <= set(repository.contents())
    _, out, _ = push(*ONE, "--branch", "main", "--delete", "old.txt")
    assert "delete  old.txt" in out
    push(*ONE, "--branch", "main", "--delete", "old.txt", "--yes")
    assert kept & set(repository.contents()) == kept - {"old.txt"}
    commits = len(repository.history())
    _, _, err = push(*ONE, "--branch", "main", "--delete", "old.txt", "--yes")
    assert "old.txt is not in the repository" in err
    assert len(repository.history()) == commits


def test_what_is_pushed_is_not_deleted(push: Push, repository: Repository) -> None:
    _, _, err = push(*ONE, "--delete", FILE, "--yes", status=2)
    assert f"{FILE} is pushed" in err
    assert pulls(repository) == []


def test_a_pointer_stands_for_what_is_there(
    push: Push, repository: Repository, root: Path
) -> None:
    content = (root / RECORDING).read_bytes()
    sha256 = repository.keep_lfs(content)
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\n"
    put(root, RECORDING, f"{pointer}size {len(content)}\n")
    _, _, err = push(*ONE, "--yes", status=2)
    assert f"{RECORDING} is a Git LFS pointer here" in err
    assert pulls(repository) == []
    repository.put(RECORDING, content)
    push(*ONE, "--yes")
    assert repository.contents("refs/pr/1")[RECORDING] == content


@pytest.mark.parametrize("path", [RECORDING, "blob/ground_truth/gemm"])
def test_a_link_is_not_followed(
    push: Push, repository: Repository, root: Path, tmp_path: Path, path: str
) -> None:
    (root / path).rename(tmp_path / "elsewhere")
    (root / path).symlink_to(tmp_path / "elsewhere")
    _, _, err = push(*ONE, "--yes", status=2)
    assert f"{path} is a link" in err
    assert pulls(repository) == []


def test_unrecorded_goes_with_those_that_it_names(
    push: Push, repository: Repository, root: Path
) -> None:
    path = "blob/ground_truth/unrecorded.json"
    put(root, path, json.dumps({OTHER: "to be recorded"}))
    assert path not in push(*ONE)[1]
    put(root, path, json.dumps({NAME: "to be recorded"}))
    assert path in push(*ONE)[1]


# wrong usage


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Say what to push"),
        (("--all", "--op-type", "gemm"), "--all leaves nothing to choose"),
        (("--all", "--dry-run", "--yes"), "--dry-run"),
        (("--all", "--pr", "1", "--branch", "main"), "Choose one of"),
        (("--all", "--create-pr", "--pr", "1"), "Choose one of"),
        (("--all", "--branch", "refs/pr/1"), "name of a branch"),
        (("--all", "--pr", "0"), "--pr"),
        (("--definition-name", "gemm_n8_k5"), f"Did you mean '{NAME}'"),
        (("--op-type", "gem"), "Did you mean 'gemm'"),
        (("--all", "--repo", "kernels"), "OWNER/NAME"),
        (("--all", "--repo", "a/../b"), "OWNER/NAME"),
        (("--all", "--dataset", "/nowhere"), "no folder '/nowhere'"),
    ],
)
def test_wrong_usage_is_one_line(
    push: Push, hub: Hub, arguments: tuple[str, ...], said: str
) -> None:
    _, out, err = push(*arguments, status=2)
    assert out == ""
    assert said in err.splitlines()[-1]
    assert hub.seen == []


@pytest.mark.parametrize(
    ("where", "said"),
    [
        (("--pr", "7"), "404"),
        (("--pr", "1"), "is a discussion, not a pull request"),
        (("--branch", "none"), "has no revision 'none'"),
    ],
)
def test_a_place_that_is_not_there(
    push: Push, repository: Repository, where: tuple[str, str], said: str
) -> None:
    repository.open_discussion("Talk", "x", "other", pull_request=False)
    before = repository.refs()
    _, _, err = push(*ONE, "--yes", *where, status=2)
    assert said in err
    assert len(err.splitlines()) == 1
    assert repository.refs() == before


def test_a_guest_opens_a_pull_request_but_commits_to_no_branch(
    push: Push, repository: Repository, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.accounts["hf_guest"] = Account("guest")
    monkeypatch.setenv("HF_TOKEN", "hf_guest")
    _, _, err = push(*ONE, "--branch", "main", "--yes", status=2)
    assert "write access" in err
    push(*ONE, "--yes")
    assert repository.discussions()[0]["author"]["name"] == "guest"


def test_rendered_files_are_those_of_the_op_types(
    push: Push, repository: Repository, root: Path
) -> None:
    put(root, "tests/references/test_rope.py", "# of another op_type\n")
    put(root, "tests/references/__pycache__/x.py", "# rubbish\n")
    render(root)
    push(*ONE, "--yes")
    held = set(repository.contents("refs/pr/1"))
    assert "tests/references/test_gemm.py" in held
    assert "tests/references/reference_support/running/harness.py" in held
    assert not held & {
        "tests/references/test_rope.py",
        "tests/references/__pycache__/x.py",
    }
    assert LINES in held
