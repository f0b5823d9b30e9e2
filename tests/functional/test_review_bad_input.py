"""`trace-dataset review` where the checkout, the change or the user's wish is bad."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pygit2
import pytest

from generator.problems import Failure
from generator.review.git import one_line_errors
from generator.review.revisions import open_sources
from tests.functional.hostile import LINES, write
from tests.functional.reviewed import (
    REFERENCE,
    axes,
    changed,
    commit,
    evidence,
    git,
    review,
    reviewed,
)
from tests.functional.test_validate import DEFINITION, FILE

APPROVE, CHANGES, USAGE, GPU = 0, 1, 2, 3
FORMATS = ["text", "markdown", "json", "junit", "sarif", "github", "html"]
HOSTILE = (
    "\x1b[31mred\x1b[0m <script>alert(1)</script> ](javascript:x) @everyone "
    "`${x}` {{ 7*7 }} ::error::x | </details> \u202e ]]>"
)


def refused(root: Path, *arguments: str) -> str:
    """Return the one line of a review that can't be made."""
    done = review(root, *arguments)
    assert (done.returncode, done.stdout) == (USAGE, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("Error: ")
    return str(line)


def test_what_is_no_git_repository(tmp_path: Path) -> None:
    write(tmp_path, FILE, DEFINITION)
    ceiling = {"GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
    from tests.functional.test_validate import run

    done = run("review", "--dataset", str(tmp_path), env=ceiling)
    assert (done.returncode, done.stdout) == (USAGE, "")
    assert "is not in a git checkout" in done.stderr


def test_a_checkout_of_another_user_says_how_to_trust_it() -> None:
    said = "repository path '/x' is not owned by current user"
    with pytest.raises(Failure) as raised, one_line_errors():
        raise pygit2.GitError(said)
    advice = "git config --global --add safe.directory DIR lets it be read."
    assert str(raised.value) == f"git: {said}. {advice}"


def test_what_is_no_folder(tmp_path: Path) -> None:
    assert "There is no folder" in refused(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "revision",
    ["nothing", "HEAD~99", "", "--help", "-x", "HEAD:definitions", "a\nb", "\x1b[31m"],
)
@pytest.mark.parametrize("side", ["--base", "--head"])
def test_an_unknown_revision(root: Path, side: str, revision: str) -> None:
    assert "There is no revision" in refused(root, f"{side}={revision}")


def test_a_shallow_clone_says_so(root: Path, tmp_path: Path) -> None:
    commit(root)
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{root}", str(clone))
    assert "shallow" in refused(clone)
    assert "shallow" in refused(clone, "--base", "HEAD~1")
    assert reviewed(clone, "--base", "HEAD", status=APPROVE)["changes"] == []


def test_a_repository_without_a_commit(tmp_path: Path) -> None:
    write(tmp_path, FILE, DEFINITION)
    git(tmp_path, "init", "-q")
    found = reviewed(tmp_path)
    assert [c["kind"] for c in found["changes"]] == ["new"]


def test_histories_that_share_nothing(root: Path) -> None:
    git(root, "checkout", "-q", "--orphan", "other")
    changed(root, axes=axes(16))
    commit(root)
    found = reviewed(root, "--base", "main", status=CHANGES)
    assert "shares no history" in found["base_is"]


def test_a_dataset_that_head_has_not(root: Path) -> None:
    git(root, "rm", "-rq", "definitions", "workloads")
    write(root, "README.md", "gone")
    commit(root)
    found = reviewed(root, "--base", "HEAD~1", "--head", "HEAD", status=CHANGES)
    assert {c["kind"] for c in found["changes"]} == {"removed"}


@pytest.mark.parametrize("kept", [True, False])
def test_links_out_of_the_tree_are_not_followed(root: Path, kept: bool) -> None:
    secret = root.parent / "secret.json"
    write(root.parent, "secret.json", {**DEFINITION, "description": "SECRET"})
    (root / FILE).unlink()
    (root / FILE).symlink_to(secret)
    head = ("--head", commit(root)) if kept else ()
    for form in FORMATS:
        done = review(
            root, "--base", "HEAD~1" if kept else "HEAD", *head, "--format", form
        )
        assert done.returncode == CHANGES
        assert "SECRET" not in done.stdout
    found = reviewed(root, "--base", "HEAD~1" if kept else "HEAD", *head)
    assert "path-link" in [p["rule"] for p in found["problems"]["new"]]


def test_a_folder_that_is_a_link(root: Path) -> None:
    (root.parent / "elsewhere").mkdir()
    write(root.parent, "elsewhere/gemm_n7_k4.json", DEFINITION)
    (root / "definitions/other").symlink_to(root.parent / "elsewhere")
    for head in ((), ("--head", commit(root))):
        found = reviewed(root, "--base", "HEAD~1", *head, status=CHANGES)
        assert any("no ordinary file" in reason for reason in found["reasons"])


def test_a_submodule_is_not_entered(root: Path) -> None:
    tip = git(root, "rev-parse", "HEAD")
    git(root, "update-index", "--add", "--cacheinfo", f"160000,{tip},solutions/x")
    git(root, "commit", "-q", "-m", "submodule")
    found = reviewed(root, "--base", "HEAD~1", "--head", "HEAD", status=CHANGES)
    assert any("no ordinary file" in reason for reason in found["reasons"])


def forged(root: Path, *path: str) -> str:
    """Return a commit whose tree has a file at a path that git itself would not add."""
    oid = bytes.fromhex(git(root, "rev-parse", f"HEAD:{FILE}"))
    name, mode = path[-1], b"100644"
    for part in reversed(path):
        raw = mode + b" " + part.encode() + b"\0" + oid
        made = subprocess.run(
            [
                "git",
                "-C",
                str(root),
                "hash-object",
                "-t",
                "tree",
                "-w",
                "--literally",
                "--stdin",
            ],
            input=raw,
            capture_output=True,
            check=True,
        )
        oid, mode = bytes.fromhex(made.stdout.decode().strip()), b"40000"
    assert name
    return git(root, "commit-tree", oid.hex(), "-p", "HEAD", "-m", "forged")


@pytest.mark.parametrize(
    "path",
    [
        ("definitions", "..", "..", "..", "escaped.json"),
        ("definitions", "gemm", "..", "up.json"),
        ("definitions", ".git", "config"),
        ("definitions", "gemm", ".", "dot.json"),
    ],
)
def test_trees_that_lead_upwards_write_nothing(
    root: Path, path: tuple[str, ...]
) -> None:
    head = forged(root, *path)
    found = reviewed(root, "--base", "HEAD", "--head", head, status=CHANGES)
    assert any("No checkout would have" in reason for reason in found["reasons"])
    assert not list(root.parent.rglob("escaped.json"))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kept", [True, False])
def test_hostile_names_and_texts_are_inert(root: Path, form: str, kept: bool) -> None:
    name = f"a\n::error::x\x1b[31m{HOSTILE.replace('/', '')}"[:120]
    write(root, f"definitions/gemm/{name}.json", {**DEFINITION, "name": name})
    write(root, f"definitions/{name[:60]}/x.json", DEFINITION)
    write(root, f"{name[:60]}.txt", "other")
    changed(
        root,
        tags=[HOSTILE],
        description=HOSTILE,
        constraints=[HOSTILE],
        axes={**DEFINITION["axes"], HOSTILE: {"type": "var", "description": HOSTILE}},
        reference=f"X = {HOSTILE!r}\n{REFERENCE}",
    )
    if kept:
        commit(root)
        arguments: tuple[str, ...] = ("--base", "HEAD~1", "--head", "HEAD")
    else:
        arguments = ()
    done = review(root, *arguments, "--format", form)
    assert (done.returncode, done.stderr) == (CHANGES, "")
    text = done.stdout
    assert "\x1b" not in text
    assert "\u202e" not in text
    if form == "markdown":
        assert "<script" not in text
        assert "](javascript" not in text
        assert "@everyone" not in text
        assert text.count("<details") == text.count("</details>")
    if form == "github":
        starts = ("::error ", "::warning ", "::notice ")
        assert all(line.startswith(starts) for line in text.splitlines())
    if form in ("json", "sarif"):
        json.loads(text)


def test_names_that_are_not_utf8(root: Path) -> None:
    folder = os.fsencode(root / "definitions/gemm")
    with open(os.path.join(folder, b"x\xff\xfe.json"), "w") as stream:
        json.dump(DEFINITION, stream)
    for head in ((), ("--head", commit(root))):
        for form in FORMATS:
            done = review(root, "--base", "HEAD~1", *head, "--format", form)
            assert done.returncode == CHANGES


@pytest.mark.parametrize(
    "content",
    [
        b"\x00\xff" * 5000,
        b"",
        b"[" * 100_000,
        b'{"name": ' + b'"' + b"x" * 10_000,
        b"null",
        b'{"axes": 1, "inputs": [], "reference": 3}',
    ],
)
@pytest.mark.parametrize("path", [FILE, LINES, "verification/x.json"])
def test_garbage_is_no_traceback(root: Path, path: str, content: bytes) -> None:
    write(root, path, content)
    for head in ((), ("--head", commit(root))):
        done = review(root, "--base", "HEAD~1", *head)
        assert done.stderr == ""
        # nothing of it makes the verdict better
        assert done.returncode in (CHANGES, GPU) or path.startswith("verification")


def test_forged_evidence_is_the_authors_word(root: Path) -> None:
    changed(root, reference=REFERENCE.replace("A @ B.T", "A @ B.T * 0"))
    evidence(root)
    assert review(root).returncode == GPU


@pytest.mark.parametrize(
    "reference",
    [
        "def run(A, B:\n",
        "def run(A, B):\n    return " + "(" * 5000 + "A" + ")" * 5000 + "\n",
        "X = " + "-" * 50_000 + "1\n" + REFERENCE,
        REFERENCE + "\x00",
        "",
    ],
)
def test_references_that_are_no_python(root: Path, reference: str) -> None:
    changed(root, reference=reference)
    done = review(root)
    assert (done.returncode, done.stderr) == (CHANGES, "")
    commit(root)
    changed(root)
    assert review(root).stderr == ""


def test_filters_and_hooks_of_the_checkout_do_not_run(root: Path) -> None:
    mark = root.parent / "ran"
    script = root.parent / "run.sh"
    script.write_text(f"#!/bin/sh\ntouch {mark}\ncat\n")
    script.chmod(0o755)
    write(root, ".gitattributes", "*.json filter=bad diff=bad export-ignore\n")
    commit(root)
    for name in ("filter.bad.clean", "filter.bad.smudge", "diff.bad.textconv"):
        git(root, "config", name, str(script))
    git(root, "config", "diff.bad.command", str(script))
    git(root, "config", "core.fsmonitor", str(script))
    write(root, ".git/hooks/post-index-change", script.read_text())
    (root / ".git/hooks/post-index-change").chmod(0o755)
    changed(root, axes=axes(16))
    assert review(root, "--base", "HEAD").returncode == CHANGES
    commit_free = reviewed(root, "--base", "HEAD~1", "--head", "HEAD")
    assert commit_free["changes"] == []
    assert not mark.exists()


def test_a_missing_object_is_one_line(root: Path) -> None:
    oid = git(root, "rev-parse", f"HEAD:{FILE}")
    (root / ".git/objects" / oid[:2] / oid[2:]).unlink()
    changed(root, axes=axes(16))
    assert "missing or damaged" in refused(root, "--base", "HEAD")


def test_objects_that_replace_others_are_not_read(root: Path) -> None:
    tip = git(root, "rev-parse", "HEAD")
    changed(root, axes=axes(16))
    bad = commit(root)
    git(root, "reset", "-q", "--hard", tip)
    git(root, "replace", tip, bad)
    found = reviewed(root, "--base", tip, "--head", bad, status=CHANGES)
    assert [c["path"] for c in found["changes"]] == [FILE]


def test_a_few_trees_that_stand_for_billions_of_files(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("generator.review.git.MAX_FILES", 10_000)
    oid, kind = git(root, "rev-parse", f"HEAD:{FILE}"), "100644 blob"
    for _ in range(10):
        lines = "".join(f"{kind} {oid}\tf{n}\n" for n in range(10))
        command = ["git", "-C", str(root), "mktree"]
        made = subprocess.run(
            command, input=lines.encode(), capture_output=True, check=True
        )
        oid, kind = made.stdout.decode().strip(), "040000 tree"
    head = git(root, "commit-tree", oid, "-p", "HEAD", "-m", "many")
    with (
        pytest.raises(Failure, match="over 10000 entries"),
        open_sources(root, "HEAD", head),
    ):
        pass


def test_objects_named_by_sha256_are_one_line(tmp_path: Path) -> None:
    write(tmp_path, FILE, DEFINITION)
    git(tmp_path, "init", "-q", "--object-format=sha256")
    assert "sha256" in refused(tmp_path)


def test_without_pygit2_it_is_named(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pygit2", None)
    monkeypatch.delitem(sys.modules, "generator.review.git", raising=False)
    with (
        pytest.raises(Failure, match=r"pip install 'gen-tests\[review\]'"),
        open_sources(root, None, None),
    ):
        pass


def test_the_checkout_is_left_alone(root: Path) -> None:
    changed(root, axes=axes(16))
    status = git(root, "status", "--porcelain")
    before = {p: p.stat().st_mtime_ns for p in root.rglob("*")}
    before_index = (root / ".git/index").read_bytes()
    review(root, "--base", "HEAD")
    review(root, "--base", "HEAD", "--head", "HEAD")
    assert (root / ".git/index").read_bytes() == before_index
    assert {p: p.stat().st_mtime_ns for p in root.rglob("*") if p in before} == before
    assert git(root, "status", "--porcelain") == status


def test_large_files_beside_a_pointer_of_lfs(root: Path) -> None:
    blob = "blob/workloads/gemm/gemm_n8_k4/a.safetensors"
    from hashlib import sha256

    data = b"x" * 5000
    pointer = (
        "version https://git-lfs.github.com/spec/v1\n"
        f"oid sha256:{sha256(data).hexdigest()}\nsize {len(data)}\n"
    )
    write(root, blob, pointer)
    commit(root)
    # what git lfs pull leaves: the data, where the commit has a pointer
    write(root, blob, data)
    assert reviewed(root, "--base", "HEAD")["changes"] == []
    write(root, blob, data + b"y")
    assert len(reviewed(root, "--base", "HEAD")["changes"]) == 1


def test_trust_goes_with_execute(root: Path) -> None:
    done = review(root, "--trust")
    assert done.returncode == USAGE
    assert "--trust goes with --execute" in done.stderr


def test_a_wish_that_is_none(root: Path) -> None:
    assert review(root, "--format", "pdf").returncode == USAGE
    assert re.search("Invalid value", review(root, "--device", "tpu").stderr)
