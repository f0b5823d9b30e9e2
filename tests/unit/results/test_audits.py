"""The recorded audit: read, merged, written, and refused where it is something else."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest

from generator.dataset.paths import AUDIT
from generator.mutation.mutants_result import DefinitionResult, MutantResult
from generator.mutation.recorder import merge, of_result
from generator.problems import Failure
from generator.results.audits import (
    LISTED,
    STATUSES,
    Audited,
    BrokenAudit,
    as_text,
    audits_in,
    read_audits,
)
from tests import audits
from tests.audits import entry, write_audit

NAME = "gemm_n8_k4"
COUNTS = {"caught": 40, "equivalent": 3, "survived": 1, "timed out": 1}
FOUND = Audited(
    "a" * 64,
    COUNTS,
    ({"name": "constant 3:6 2 → 3", "before": "x = 2", "after": "x = 3"},),
    {"num_experts": 8},
    "0.1.0",
    "2.13.0",
    "2026-11-20",
)


def put(root, text):
    path = root / AUDIT
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


def test_what_is_written_is_read_back_and_has_one_line_a_definition(tmp_path):
    found = {"b": FOUND, "a": replace(FOUND, survivors=(), reduced={})}
    text = as_text(found)
    json.loads(text, parse_constant=lambda name: pytest.fail(name))
    lines = text.splitlines()
    assert [line.split(":")[0].strip() for line in lines[1:3]] == ['"a"', '"b"']
    assert len(lines) == 4
    assert as_text(dict(reversed(found.items()))) == text
    put(tmp_path, text)
    assert read_audits(tmp_path) == found
    assert as_text(read_audits(tmp_path)) == text
    assert audits.AUDIT == AUDIT


def test_nothing_is_a_file_of_nothing(tmp_path):
    put(tmp_path, as_text({}))
    assert read_audits(tmp_path) == {}
    (tmp_path / AUDIT).unlink()
    assert read_audits(tmp_path) is None


def test_a_result_becomes_short_lines_and_its_counts_stay(tmp_path):
    mutant = MutantResult("x\n" * 300, "k", "survived", 1, "a\x1b[2J", "\ud800" * 999)
    mutants = (*[mutant] * (LISTED + 7), replace(mutant, status="caught"))
    result = DefinitionResult(NAME, "gemm", "key", mutants, {"E": 8}, seconds=1.5)
    found = of_result(result, "a" * 64, "2.13.0", "2026-11-21")
    assert found.counts == dict(zip(STATUSES, (1, 0, LISTED + 7, 0), strict=True))
    assert len(found.survivors) == LISTED
    assert (found.survived, found.defects) == (LISTED + 7, LISTED + 8)
    assert found.share == f"1 / {LISTED + 8}"
    texts = found.survivors[0].values()
    assert all(text.isprintable() and len(text) <= 300 for text in texts)
    assert found.named(2).endswith(f", and {LISTED + 5} more")
    put(tmp_path, as_text({NAME: found}))
    assert read_audits(tmp_path) == {NAME: found}


def test_who_was_not_audited_stays_and_who_did_not_change_keeps_the_day():
    old = {"a": FOUND, "b": FOUND, "c": FOUND, "d": FOUND}
    later = replace(FOUND, date="2026-11-21")
    other = replace(later, counts={**COUNTS, "caught": 41})
    new = merge(old, {"a": later, "b": other, "e": later}, gone=["c", "z"])
    assert new == {"a": FOUND, "b": other, "d": FOUND, "e": later}
    assert old["c"] == FOUND


def test_more_than_is_read_is_not_written(monkeypatch):
    monkeypatch.setattr("generator.results.audits.MAX_BYTES", 1000)
    with pytest.raises(Failure, match=r"audit\.json would have more than"):
        as_text({f"d{n}": FOUND for n in range(9)})


ONE = f"/definitions/{NAME}"
NAMELESS = {"name": None, "before": "", "after": ""}
BROKEN = {
    "no object": ([], "", "must be an object, is an array"),
    "no format": ({"definitions": {}}, "", "The field 'format' is missing."),
    "another format": ({"format": 2}, "/format", "must be at most 1, is 2"),
    "a true format": ({"format": True}, "/format", "must be an integer, is true"),
    "no definitions": ({"format": 1}, "", "The field 'definitions' is missing."),
    "a list of them": ({"format": 1, "definitions": []}, "/definitions", "an object"),
    "a number": ({NAME: 1}, ONE, "must be an object, is 1"),
    "no counts": ({NAME: {}}, ONE, "The field 'counts' is missing"),
    "no hash": ({NAME: entry("0")}, f"{ONE}/sha256", "does not have the right form"),
    "a long hash": (
        {NAME: entry("0" * 65)},
        f"{ONE}/sha256",
        "does not have the right form",
    ),
    "a count less": (
        {NAME: entry(counts={"caught": 1, "equivalent": 1, "survived": 0})},
        f"{ONE}/counts",
        "The field 'timed out' is missing in 'counts'.",
    ),
    "a fraction": (
        {NAME: entry(counts={**COUNTS, "caught": 1.5})},
        f"{ONE}/counts/caught",
        "must be an integer, is 1.5",
    ),
    "a true count": (
        {NAME: entry(counts={**COUNTS, "caught": True})},
        f"{ONE}/counts/caught",
        "must be an integer, is true",
    ),
    "below zero": (
        {NAME: entry(counts={**COUNTS, "survived": -1})},
        f"{ONE}/counts/survived",
        "must be at least 0, is -1",
    ),
    "beyond counting": (
        {NAME: entry(counts={**COUNTS, "caught": 10**20})},
        f"{ONE}/counts/caught",
        "must be at most 1000000000",
    ),
    "hidden survivors": (
        {NAME: {**entry("0" * 64, "x"), "counts": {**COUNTS, "survived": 0}}},
        f"{ONE}/survivors",
        "There are 1, but 0 survived.",
    ),
    "a survivor of one text": (
        {NAME: {**entry("0" * 64, "x"), "survivors": ["x"]}},
        f"{ONE}/survivors/0",
        "must be an object, is 'x'",
    ),
    "a survivor with no name": (
        {NAME: {**entry("0" * 64, "x"), "survivors": [NAMELESS]}},
        f"{ONE}/survivors/0/name",
        "must be a string, is null",
    ),
    "axes of texts": (
        {NAME: entry(reduced={"a/b": "8"})},
        f"{ONE}/reduced/a~1b",
        "must be an integer",
    ),
    "no day": (
        {NAME: entry(date="today")},
        f"{ONE}/date",
        "is 'today', which does not have",
    ),
    "a version of 3": ({NAME: entry(torch=3)}, f"{ONE}/torch", "must be a string"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_audit_is_one_line_with_its_place(tmp_path, name):
    value, where, said = BROKEN[name]
    if isinstance(value, dict) and NAME in value:
        write_audit(tmp_path, value)
    else:
        put(tmp_path, json.dumps(value))
    with pytest.raises(BrokenAudit) as caught:
        read_audits(tmp_path)
    assert caught.value.pointer == where
    assert said in caught.value.message
    told = str(caught.value)
    assert told.startswith(f"{AUDIT}#{where}: " if where else f"{AUDIT}: ")
    assert told.isprintable()
    assert "trace-dataset audit --all --record" in told
    assert audits_in(tmp_path) is None


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", ""),
        ("{", ""),
        ("<<<<<<< HEAD\n{}", ""),
        ("[" * 100_000, ""),
        ('{"format": 1, "definitions": {"a": NaN}}', "/definitions/a"),
        ('{"format": 1, "format": 1, "definitions": {}}', "/format"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", ""),
    ],
)
def test_what_is_no_json_is_one_line(tmp_path, text, where):
    put(tmp_path, text)
    with pytest.raises(BrokenAudit) as caught:
        read_audits(tmp_path)
    assert caught.value.pointer == where
    assert str(caught.value).isprintable()


def _folder(root):
    (root / AUDIT).mkdir(parents=True)


def _pipe(root):
    (root / AUDIT).parent.mkdir()
    os.mkfifo(root / AUDIT)


def _sparse(root):
    put(root, "{")
    os.truncate(root / AUDIT, 1 << 33)


def _circle(root):
    (root / AUDIT).parent.mkdir()
    (root / AUDIT).symlink_to("audit.json")


def _link_out(root):
    (root / AUDIT).parent.mkdir()
    (root / AUDIT).symlink_to("/etc/hostname")


def _folder_out(root):
    other = root.parent / f"{root.name}-other"
    write_audit(other, {})
    (root / "verification").symlink_to(other / "verification")


@pytest.mark.parametrize(
    "make", [_folder, _pipe, _sparse, _circle, _link_out, _folder_out]
)
def test_what_is_no_file_of_the_dataset_is_not_read(tmp_path, make):
    make(tmp_path)
    with pytest.raises(BrokenAudit) as caught:
        read_audits(tmp_path)
    assert str(caught.value).startswith(f"{AUDIT}: ")
    assert audits_in(tmp_path) is None


def test_a_link_inside_of_the_dataset_is_not_followed_either(tmp_path):
    write_audit(tmp_path, {NAME: entry()})
    (tmp_path / AUDIT).rename(tmp_path / "kept.json")
    (tmp_path / AUDIT).symlink_to(tmp_path / "kept.json")
    with pytest.raises(BrokenAudit, match="symbolic link"):
        read_audits(tmp_path)


def test_a_folder_that_is_none_has_no_audit(tmp_path):
    (tmp_path / "verification").write_text("")
    assert read_audits(tmp_path) is None


def test_texts_of_a_foreign_file_are_put_on_one_line(tmp_path):
    nasty = "\x1b[31m\n::error::" + "x" * 9000
    found = entry("0" * 64, nasty, reduced={nasty: 8}, torch=nasty, gen_tests=nasty)
    write_audit(tmp_path, {NAME: found})
    read = read_audits(tmp_path)[NAME]
    texts = (*read.survivors[0].values(), *read.reduced, read.torch)
    assert all(text.isprintable() and len(text) <= 300 for text in texts)
