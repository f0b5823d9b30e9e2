"""`trace-dataset verify` from results to a table: status, stdout, stderr."""

from __future__ import annotations

import hashlib
import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from generator.cli.output import run
from generator.cli.trace_dataset import cli
from tests.audits import AUDIT, entry, write_audit
from tests.results import CPU, H200, comparison, result, write_results

NAME, OTHER = "gemm_n8_k4", "gemm_n9_k4"
SM100 = ("skipped", "flashinfer: x needs SM100, device is SM90")
NO_CUDA = ("skipped", "flashinfer: needs CUDA, device is cpu")
FAILED = ("failed", "AssertionError: far off")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a dataset of two definitions; what is in them does not matter here."""
    for name in (NAME, OTHER):
        path = tmp_path / "definitions/gemm" / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'{{"name": "{name}"}}')
    return tmp_path


def digest(root: Path, name: str = NAME) -> str:
    return hashlib.sha256(
        (root / f"definitions/gemm/{name}.json").read_bytes()
    ).hexdigest()


@dataclass(frozen=True)
class Done:
    """Hold how a command ended, and what it wrote."""

    status: int
    stdout: str
    stderr: str


def verify(root: Path, *arguments: str | Path) -> Done:
    """Run the command in this process, as `main` does."""
    argv = ["trace-dataset", "verify", "--dataset", str(root), *map(str, arguments)]
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", argv)
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        ended = run(cli, "trace-dataset")
    return Done(ended, out.getvalue(), err.getvalue())


def status(done: Done) -> int:
    return done.status


def rows(done: Done) -> list[list[str]]:
    """Return the cells of the lines on definitions."""
    return cells(done.stdout, "gemm_")


def cells(text: str, start: str) -> list[list[str]]:
    """Return the cells of the rows whose first cell starts so."""
    lines = [line for line in text.splitlines() if line.startswith(f"| {start}")]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]


def record(root: Path, *tests: str, **options: object) -> Done:
    return verify(root, "--record", write_results(root / "r.jsonl", *tests, **options))


def test_results_become_evidence_and_a_table_that_is_checked(root):
    sha = digest(root)
    done = record(
        root,
        result("oracle", comparison(), sha256=sha),
        result("flashinfer/x", sha256=sha, ending=SM100, skip_kind="needs-sm"),
        result("flashinfer/fa2", comparison("flashinfer/fa2", nmse=3e-6), sha256=sha),
        machine=H200,
    )
    assert status(done) == 0
    assert "verification/2026-11-21_nvidia-h200.json: 1 definition" in done.stderr
    table = root / "docs/generated/verification.md"
    assert status(verify(root, "--check")) == 1
    assert status(verify(root, "--table", "--output", table)) == 0
    assert status(verify(root, "--check")) == 0
    everything = table.with_suffix(".html")
    for cell in cells(verify(root).stdout, "gemm_")[0]:
        assert f'"{cell}"' in everything.read_text()
    needs = "flashinfer: x needs SM100, device is SM90"
    assert rows(verify(root)) == [
        [NAME, "flashinfer/fa2", "PASSED", "1", "3.0e-06", "", "", "", "R1", "1.5"],
        [NAME, "flashinfer/x", "never run here", "", "", "", needs, "", "R1", ""],
        [NAME, "oracle", "PASSED", "1", "1.0e-09", "", "", "", "R1", "1.5"],
        [OTHER, "-", "not compared", "", "", "", "no run has it", "", "", ""],
    ]
    # SM80, SM89, SM90, SM100, SM120, ROCm
    assert cells(verify(root).stdout, "gemm ") == [
        ["gemm", "2", "", "", "1", "", "", ""]
    ]
    assert "| R1 | 2026-11-21 | NVIDIA H200 | 90 |" in table.read_text()
    assert (
        "2 definitions: 1 agree with a kernel of FlashInfer, SGLang or PyTorch, 0 more "
        "with SGLang's PyTorch layers (an implementation, no kernel), 0 with"
        in table.read_text()
    )
    for page in (table, everything):
        text = page.read_text()
        page.write_text(f"{text}edited")
        drift = verify(root, "--check")
        assert status(drift) == 1
        assert "is not what the evidence gives" in drift.stderr
        page.write_text(text)
    assert status(verify(root, "--check")) == 0


def test_one_definition_is_shown_alone(root):
    record(root, result("oracle", comparison(), sha256=digest(root)), machine=H200)
    assert [row[0] for row in rows(verify(root))] == [NAME, OTHER]
    assert [row[0] for row in rows(verify(root, "--definition-name", NAME))] == [NAME]
    done = verify(root, "--definition-name", OTHER)
    assert [row[0] for row in rows(done)] == [OTHER]
    # a run that is about other definitions is not listed
    assert "| R1 |" not in done.stdout
    wrong = verify(root, "--definition-name", f"{NAME}x")
    assert (status(wrong), "Did you mean" in wrong.stderr) == (2, True)
    page = verify(root, "--definition-name", NAME, "--check")
    assert status(page) == 2
    assert "of the whole dataset: drop --definition-name" in page.stderr


def test_a_definition_that_changed_is_stale(root):
    record(root, result("oracle", comparison(), sha256=digest(root)), machine=H200)
    (root / f"definitions/gemm/{NAME}.json").write_text("{}")
    done = verify(root)
    assert rows(done)[0][2] == "stale: PASSED"
    assert "stale: 1 definition changed after the run" in done.stderr
    assert "1 stale" in done.stdout
    # a new run, on the CPU even, counts for more than one of another text
    record(root, result("oracle", comparison(), sha256=digest(root)), machine=CPU)
    assert rows(verify(root))[0][2] == "PASSED"
    assert "stale" not in verify(root).stderr


def test_a_reason_of_the_text_as_it_is_counts_before_a_gpu_s_of_another(root):
    record(root, result("pytorch", sha256=digest(root), ending=SM100), machine=H200)
    (root / f"definitions/gemm/{NAME}.json").write_text("{}")
    assert "stale: 1 definition changed after the run" in verify(root).stderr
    record(root, result("pytorch", sha256=digest(root), ending=NO_CUDA), machine=CPU)
    assert "stale" not in verify(root).stderr
    assert rows(verify(root))[0][6] == NO_CUDA[1]


def test_the_gpu_is_shown_before_the_cpu_and_a_failure_anywhere(root):
    sha = digest(root)
    passed = result("oracle", comparison(), sha256=sha)
    record(root, passed, machine=H200, date="2026-11-01")
    record(root, passed, machine=CPU, date="2026-11-02")
    assert [row[8] for row in rows(verify(root))] == ["R1", ""]
    assert "2026-11-02" not in verify(root).stdout
    failed = result("oracle", comparison(verdict="FAILED"), sha256=sha, ending=FAILED)
    done = record(root, failed, machine=CPU, date="2026-11-03")
    assert status(done) == 1
    found = verify(root)
    assert status(found) == 1
    assert sorted(row[2] for row in rows(found)[:2]) == ["FAILED", "PASSED"]
    assert f"{NAME} against oracle: FAILED" in found.stderr
    # a newer run on the same kind of machine settles it
    record(root, passed, machine=CPU, date="2026-11-04")
    assert status(verify(root)) == 0


@pytest.mark.parametrize("bad", [False, True])
def test_of_two_runs_of_a_day_the_one_that_compared_more_counts(root, bad):
    sha = digest(root)
    both = [result("oracle", comparison(case=case), sha256=sha) for case in "ab"]
    record(root, *both, machine={**H200, "torch": "2.11.0"})
    ending, verdict = (FAILED, "FAILED") if bad else (("passed", ""), "PASSED")
    one = result("oracle", comparison(verdict=verdict), sha256=sha, ending=ending)
    for torch in ("2.10.0", "2.12.0"):
        done = record(root, one, machine={**H200, "torch": torch})
        shown = rows(verify(root))[0]
        # a failure counts, however few cases there were
        assert shown[2:4] == ([verdict, "1"] if bad else ["PASSED", "2"])
        assert status(done) == (1 if bad else 0)


def test_where_nothing_was_compared_the_reason_is_there(root):
    sha = digest(root)
    broken = result(None, sha256=sha, function="test_determinism", ending=FAILED)
    record(root, result("flashinfer/fa2", sha256=sha, ending=NO_CUDA), broken)
    shown = [row[1:3] + row[6:7] for row in rows(verify(root))]
    reason = "flashinfer: needs CUDA, device is cpu"
    assert shown[:2] == [
        ["flashinfer/fa2", "not compared", reason],
        ["its own tests", "FAILED", "test_determinism"],
    ]
    assert status(verify(root)) == 1


def test_figures_of_policies_are_notes_and_markup_stays_text(root):
    figures = {"p_value": 0.25, "hit_ratio": 0.875, "not_independent": ["eps"]}
    figures["not_given"] = ["lse"]
    ending = ("error", "a | b <script> `c`")
    sha = digest(root)
    record(
        root,
        result("oracle", comparison(**figures), sha256=sha),
        result("sglang", sha256=sha, ending=ending),
    )
    shown = verify(root).stdout
    note = (
        "hit ratio 0.875; p_value 0.25; eps taken from the reference: not independent; "
        "gives no lse: not compared"
    )
    assert note in shown
    assert r"a \| b &lt;script> \`c\`" in shown


def test_results_are_shown_without_keeping_them(root):
    folder = root / "results"
    folder.mkdir()
    write_results(folder / "a.jsonl", result("oracle", comparison()))
    write_results(folder / "b.jsonl", result("oracle", comparison(case="b")))
    done = verify(root, "--results", folder, "--json")
    assert not (root / "verification").exists()
    lines = json.loads(done.stdout)["lines"]
    assert (lines[0]["cases"], lines[0]["stale"]) == (2, True)
    assert {"nmse", "verdict", "run", "source"} <= lines[0].keys()


OLD = """<testsuites><testsuite name="pytest" timestamp="2026-11-20T10:00:00+00:00">
<properties><property name="device" value="cuda"/><property name="gpu" value="NVIDIA H200"/>
</properties><testcase classname="x.TestD" name="test_matches_oracle[a]" time="1.5">
<properties><property name="definition" value="gemm_n8_k4"/>
<property name="sha256" value="SHA"/><property name="source" value="oracle"/>
<property name="comparison" value='RECORD'/></properties></testcase></testsuite></testsuites>
"""


def test_the_junit_file_of_an_old_run_is_recorded(root):
    path = root / "results.xml"
    text = OLD.replace("SHA", digest(root)).replace("RECORD", json.dumps(comparison()))
    path.write_text(text)
    done = verify(root, "--record", path)
    assert "verification/2026-11-20_nvidia-h200.json: 1 definition" in done.stderr
    shown = rows(verify(root))[0]
    assert shown == [NAME, "oracle", "PASSED", "1", "1.0e-09", "", "", "", "R1", "1.5"]


def test_evidence_of_a_name_that_is_gone_is_told(root):
    record(root, result("oracle", comparison(), definition="gone"))
    done = verify(root)
    assert status(done) == 0
    assert (
        "not in the dataset: 1 definition of the evidence, gone for one" in done.stderr
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--record", "missing.jsonl"], "missing.jsonl: No such file or directory"),
        (
            ["--results", "definitions"],
            "There is no *.jsonl and no *.xml in definitions",
        ),
        (["--record", "foreign.xml"], "is not JUnit XML: its root is 'html'"),
        (["--record", "foreign.jsonl"], "foreign.jsonl is not a results file of"),
        (["--check", "--json"], "--check goes with neither"),
        (["--record", "a.jsonl", "--results", "b.jsonl"], "--record keeps results"),
    ],
)
def test_wrong_use_and_foreign_files_are_one_line(
    root, monkeypatch, arguments, message
):
    monkeypatch.chdir(root)
    for name in ("foreign.xml", "foreign.jsonl"):
        (root / name).write_text("<html/>\n")
    done = verify(root, *arguments)
    assert status(done) == 2
    assert message in done.stderr
    assert not (root / "verification").exists()


def test_damaged_evidence_and_a_folder_that_is_no_dataset_are_one_line(root, tmp_path):
    (root / "verification").mkdir()
    (root / "verification/x.json").write_text("[]")
    done = verify(root)
    assert status(done) == 2
    assert "verification/x.json is no evidence of" in done.stderr
    results = write_results(root / "r.jsonl", result())
    empty = tmp_path / "empty"
    empty.mkdir()
    done = verify(empty, "--record", results)
    assert status(done) == 2
    assert not (empty / "verification").exists()


def test_without_evidence_the_table_says_so(root):
    done = verify(root)
    assert status(done) == 0
    assert "There is no evidence yet" in done.stderr
    assert [row[2] for row in rows(done)] == ["not compared"] * 2


# what the audit found


def audit_rows(done: Done) -> list[list[str]]:
    """Return the cells of the audit's table."""
    section = done.stdout.partition("## Audit")[2].partition("###")[0]
    lines = [line for line in section.splitlines() if line.startswith("| gemm")]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]


def test_the_audit_is_in_the_table(root):
    write_audit(root, {NAME: entry(digest(root), reduced={"K": 2}), "gone": entry()})
    done = verify(root)
    assert status(done) == 0
    assert audit_rows(done) == [
        [NAME, "40 / 41", "0", "1", "3", "K=2", "0.1.0", "2.13.0", "2026-11-20"],
        [OTHER, "never audited", *[""] * 7],
    ]
    assert (
        "Of 41 defects that `trace-dataset audit` planted in 1 of them, the tests "
        "caught 40, 1 timed out, 0 survived; 0 definitions changed since, 1 never "
        "audited."
    ) in done.stdout
    assert "### Survivors" not in done.stdout
    assert "1 definition of the evidence, gone for one" in done.stderr


def test_an_audit_of_another_text_is_stale(root):
    write_audit(root, {NAME: entry(digest(root), "x"), OTHER: entry()})
    (root / f"definitions/gemm/{NAME}.json").write_text("{}")
    done = verify(root)
    assert [row[1] for row in audit_rows(done)] == ["stale: 40 / 42", "stale: 40 / 41"]
    assert "2 definitions changed since" in done.stdout
    assert f"stale: 2 definitions changed after the audit, {NAME} for" in done.stderr
    # what survived then says nothing of the text as it is
    assert "### Survivors" not in done.stdout


def test_survivors_are_listed_with_their_lines_and_as_json(root):
    write_audit(root, {NAME: entry(digest(root), *(f"m{n}" for n in range(12)))})
    done = verify(root)
    assert status(done) == 0
    listed = done.stdout.partition("### Survivors")[2].splitlines()
    assert sum("<code>gemm" in line for line in listed) == 11
    row = "<code>m0</code> | <code>x = m0</code> | <code>x = 1</code> |"
    assert row in listed[4]
    assert "<code>and 2 more</code> |  |  |" in listed[-1]
    first, second = json.loads(verify(root, "--json").stdout)["audits"]
    assert (first["state"], second) == (
        "known",
        {"op_type": "gemm", "definition": OTHER, "state": "absent"},
    )
    assert (first["defects"], first["counts"]["survived"]) == (53, 12)
    assert len(first["survivors"]) == 12


def test_a_new_audit_makes_the_table_s_file_out_of_date(root):
    table = root / "docs/generated/verification.md"
    assert status(verify(root, "--output", table)) == 0
    assert cells(table.read_text(), "gemm ")[0][7:10] == ["0", "0", "0"]
    write_audit(root, {NAME: entry(digest(root))})
    assert status(verify(root, "--check")) == 1
    verify(root, "--output", table)
    assert status(verify(root, "--check")) == 0
    assert cells(table.read_text(), "gemm ")[0][7:10] == ["41", "1", "0"]


def test_other_results_are_shown_without_the_audit(root):
    write_audit(root, {NAME: entry(digest(root))})
    results = write_results(root / "r.jsonl", result("oracle", comparison()))
    assert audit_rows(verify(root, "--results", results)) == []


def test_a_broken_audit_is_one_line(root):
    write_audit(root, {NAME: entry("x")})
    done = verify(root)
    assert status(done) == 2
    said = done.stderr
    place = f"{AUDIT}#/definitions/{NAME}/sha256"
    assert said.startswith(f"Error: {place}: 'sha256' is 'x'")
    assert said.count("\n") == 1
    assert done.stdout == ""
