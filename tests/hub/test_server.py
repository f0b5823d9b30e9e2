"""The loopback Hub does what the real client expects of the Hub."""

from __future__ import annotations

import hashlib
import time
import urllib.request
from pathlib import Path

import pytest
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from tests.hub.faults import Does, Fault, too_many
from tests.hub.fixtures import REPO
from tests.hub.server import Account, Hub

_LARGE = bytes(range(256)) * 40
# the client's own call of its HTTP library
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, hub: Hub) -> None:
    """Let the client wait for nothing, and upload through LFS."""
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)


@pytest.fixture
def api(hub: Hub) -> HfApi:
    """Return a client of the maintainer."""
    return HfApi(endpoint=hub.url, token="hf_maintainer")


def _add(api: HfApi, files: dict[str, bytes], **more: object) -> object:
    operations = [CommitOperationAdd(path, data) for path, data in files.items()]
    return api.create_commit(
        REPO, operations, commit_message="Add", repo_type="dataset", **more
    )


def test_a_commit_holds_regular_and_lfs_files(hub: Hub, api: HfApi) -> None:
    _add(api, {"a/b.json": b"{}", "blob/x.safetensors": _LARGE})
    repository = hub.repositories[REPO]
    held = repository.contents()
    assert held == {"a/b.json": b"{}", "blob/x.safetensors": _LARGE}
    assert repository.head().files["blob/x.safetensors"].lfs
    assert not repository.head().files["a/b.json"].lfs
    assert len(repository.history()) == 2
    assert repository.damage() == []


def test_tree_pages_and_paths_tell_hashes(hub: Hub, api: HfApi) -> None:
    hub.page = 3
    files = {f"d/{n}.json": str(n).encode() for n in range(8)} | {"x.bin": _LARGE}
    _add(api, files)
    listed = list(api.list_repo_tree(REPO, recursive=True, repo_type="dataset"))
    assert len(listed) == 10
    assert len(hub.asked("tree")) == 4
    info = api.get_paths_info(REPO, ["x.bin", "d/0.json", "no"], repo_type="dataset")
    assert [one.path for one in info] == ["x.bin", "d/0.json"]
    assert info[0].lfs.sha256 == hashlib.sha256(_LARGE).hexdigest()
    assert info[1].blob_id == hashlib.sha1(b"blob 1\x000").hexdigest()


def test_a_pull_request_is_a_ref_of_its_own(hub: Hub, api: HfApi) -> None:
    made = _add(api, {"a.json": b"1"}, create_pr=True, commit_description="Why")
    assert made.pr_revision == "refs/pr/1"
    assert hub.repositories[REPO].contents() == {}
    _add(api, {"b.json": b"2"}, revision="refs/pr/1")
    assert set(hub.repositories[REPO].contents("refs/pr/1")) == {"a.json", "b.json"}
    details = api.get_discussion_details(REPO, 1, repo_type="dataset")
    assert details.status == "open"
    assert [event.type for event in details.events] == ["comment", "commit", "commit"]
    comment = details.events[0].id
    api.edit_discussion_comment(REPO, 1, comment, "New", repo_type="dataset")
    assert hub.repositories[REPO].description(1) == "New"
    listed = list(api.get_repo_discussions(REPO, repo_type="dataset"))
    assert [one.num for one in listed] == [1]


def test_a_stale_parent_is_refused_and_changes_nothing(hub: Hub, api: HfApi) -> None:
    repository = hub.repositories[REPO]
    before = repository.head().id
    after = repository.put("other.json", b"{}").id
    with pytest.raises(HfHubHTTPError, match="412"):
        _add(api, {"a.json": b"1"}, parent_commit=before)
    assert repository.head().id == after


def test_files_download_whole_or_in_part(hub: Hub, api: HfApi, tmp_path: Path) -> None:
    hub.repositories[REPO].put("x.safetensors", _LARGE)
    hub.faults.use(Fault("resolve", Does.CUT_ANSWER))
    path = api.hf_hub_download(
        REPO, "x.safetensors", repo_type="dataset", local_dir=tmp_path / "here"
    )
    assert Path(path).read_bytes() == _LARGE
    assert len(hub.asked("resolve")) == 2
    url = f"{hub.url}/datasets/{REPO}/resolve/main/x.safetensors"
    asked = urllib.request.Request(url, headers={"Range": "bytes=256-"})
    with urllib.request.urlopen(asked) as answer:
        assert answer.status == 206
        assert answer.headers["Content-Range"] == "bytes 256-10239/10240"
        assert answer.read() == _LARGE[256:]


def test_files_can_be_deleted(hub: Hub, api: HfApi) -> None:
    hub.repositories[REPO].put("a.json", b"1")
    gone = [CommitOperationDelete("a.json")]
    api.create_commit(REPO, gone, commit_message="Drop", repo_type="dataset")
    assert hub.repositories[REPO].contents() == {}


def test_accounts_may_do_what_they_may(hub: Hub, tmp_path: Path) -> None:
    hub.accounts |= {"hf_guest": Account("guest"), "hf_read": Account("reader", "read")}
    guest, reader = (HfApi(endpoint=hub.url, token=t) for t in ("hf_guest", "hf_read"))
    assert guest.whoami()["name"] == "guest"
    with pytest.raises(HfHubHTTPError, match="403"):
        _add(guest, {"a.json": b"1"})
    _add(guest, {"a.json": b"1"}, create_pr=True)
    with pytest.raises(HfHubHTTPError, match="403"):
        _add(reader, {"a.json": b"1"}, create_pr=True)
    with pytest.raises(HfHubHTTPError, match="Invalid user token"):
        HfApi(endpoint=hub.url, token="hf_old").whoami()
    with pytest.raises(RepositoryNotFoundError):
        guest.dataset_info("lab/none")
    with pytest.raises(RevisionNotFoundError):
        guest.dataset_info(REPO, revision="none")
    hub.repositories[REPO].put("a.json", b"1")
    hub.repositories[REPO].gated = True
    with pytest.raises(GatedRepoError):
        guest.hf_hub_download(REPO, "a.json", repo_type="dataset", cache_dir=tmp_path)


@pytest.mark.parametrize("does", [Does.CUT_UPLOAD, Does.CUT_ANSWER, Does.DROP_ANSWER])
def test_the_client_tries_again_after_a_cut(hub: Hub, api: HfApi, does: Does) -> None:
    hub.faults.use(Fault("lfs-upload", does), too_many("lfs-batch"))
    _add(api, {"x.safetensors": _LARGE})
    assert hub.repositories[REPO].contents() == {"x.safetensors": _LARGE}
    assert hub.faults.struck == {"lfs-upload": 1, "lfs-batch": 1}


def test_a_cut_commit_happened_or_did_not(hub: Hub, api: HfApi) -> None:
    repository = hub.repositories[REPO]
    for does, commits in ((Does.CUT_UPLOAD, 1), (Does.DROP_ANSWER, 2)):
        hub.faults.use(Fault("commit", does))
        with pytest.raises(Exception, match=r"disconnect|reset|closed"):
            _add(api, {"a.json": b"1" * 5000})
        assert len(repository.history()) == commits
        assert repository.damage() == []


def test_wrong_bytes_and_slow_ones(hub: Hub, api: HfApi, tmp_path: Path) -> None:
    hub.repositories[REPO].put("a.json", b"12345678")
    hub.faults.use(Fault("resolve", Does.WRONG_BYTES), Fault("info", Does.SLOW))
    path = api.hf_hub_download(REPO, "a.json", repo_type="dataset", cache_dir=tmp_path)
    with open(path, "rb") as stream:
        assert stream.read() == b"02345678"
    assert api.dataset_info(REPO).sha == hub.repositories[REPO].head().id
