"""`trace-dataset card` as a black box, and what the Hub makes of its metadata."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.audits import AUDIT, audited
from tests.functional.hostile import LINES, SOLVED, TRACED, write
from tests.functional.reviewed import evidence
from tests.functional.test_validate import DEFINITION, FILE, WORKLOAD, run

NASTY = '"]}\n---\n# <script>alert(1)</script> | [x](javascript:1) `\x1b[31m`'
KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "int64": (int, type(None)),
    "float64": (float, int, type(None)),
    "bool": (bool,),
    "date32": (str, type(None)),
    "list": (list,),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a dataset with a definition, a workload and evidence on a GPU."""
    write(tmp_path, FILE, DEFINITION)
    write(tmp_path, LINES, json.dumps(WORKLOAD) + "\n")
    evidence(tmp_path)
    return tmp_path


def card(root: Path, *arguments: str, status: int = 0) -> str:
    done = run("card", "--dataset", str(root), *arguments)
    assert done.returncode == status, done.stderr
    assert done.stdout == ""
    if status == 2:
        assert len(done.stderr.splitlines()) <= 2, done.stderr
    return done.stderr


def metadata(root: Path) -> dict[str, Any]:
    text = (root / "README.md").read_text("utf-8")
    assert text.startswith("---\n")
    loaded: dict[str, Any] = yaml.safe_load(text.split("\n---\n", 1)[0])
    return loaded


def rows(root: Path, table: str) -> list[dict[str, Any]]:
    lines = (root / f"tables/{table}.jsonl").read_text("ascii").splitlines()
    return [json.loads(line) for line in lines]


def assert_consistent(root: Path) -> None:
    """Every configuration's file is there, and each row has the declared columns."""
    found = metadata(root)
    features = {c["config_name"]: c["features"] for c in found["dataset_info"]}
    for config in found["configs"]:
        [files] = config["data_files"]
        name = config["config_name"]
        assert files == {"split": "train", "path": f"tables/{name}.jsonl"}
        declared = features.pop(name)
        of_table = rows(root, name)
        assert of_table
        for row in of_table:
            assert list(row) == [f["name"] for f in declared]
            for feature in declared:
                kind = "list" if "list" in feature else feature["dtype"]
                assert isinstance(row[feature["name"]], KINDS[kind]), feature
    assert not features


def test_the_card_declares_the_tables_that_lie_beside_it(root: Path) -> None:
    card(root, "--repo", "me/mine", "--title", "Mine", "--license", "mit")
    found = metadata(root)
    assert [c["config_name"] for c in found["configs"] if c.get("default")] == [
        "definitions"
    ]
    assert (found["license"], found["pretty_name"]) == ("mit", "Mine")
    assert found["size_categories"] == ["n<1K"]
    assert "gemm" in found["tags"]
    assert_consistent(root)
    [definition] = rows(root, "definitions")
    assert definition["inputs"] == ["A: float16[M, K]", "B: float16[N, K]"]
    assert definition["const_axes"] == "N = 8, K = 4"
    assert definition["agrees_with"] == ["flashinfer/fa2"]
    assert definition["workloads"] == 1
    [workload] = rows(root, "workloads")
    assert json.loads(workload["axes"]) == {"M": 3}
    [line] = rows(root, "verification")
    assert line["gpu"] == "NVIDIA H200"
    assert line["date"] == "2026-11-21"
    text = (root / "README.md").read_text("utf-8")
    assert 'load_dataset("me/mine", "workloads", split="train")' in text
    assert "| <code>gemm&#95;n8&#95;k4</code> | <code>flashinfer/fa2</code> |" in text


def test_what_the_audit_found_is_in_the_card_while_it_is_true(root: Path) -> None:
    card(root)
    assert "planted in" not in (root / "README.md").read_text("utf-8")
    assert [row["planted_defects"] for row in rows(root, "definitions")] == [None]
    audited(root, FILE, "x")
    card(root)
    [row] = rows(root, "definitions")
    assert (row["caught_defects"], row["planted_defects"]) == (40, 42)
    text = (root / "README.md").read_text("utf-8")
    assert "planted in 1 of them, the tests caught 40" in text
    assert " | 40 / 42 |\n" in text
    assert_consistent(root)
    write(root, FILE, {**DEFINITION, "description": "other"})
    card(root)
    assert [row["caught_defects"] for row in rows(root, "definitions")] == [40]
    reference = DEFINITION["reference"] + "# other\n"
    write(root, FILE, {**DEFINITION, "reference": reference})
    card(root)
    assert [row["caught_defects"] for row in rows(root, "definitions")] == [None]
    assert "40 / 42" not in (root / "README.md").read_text("utf-8")
    write(root, AUDIT, "{")
    assert f"{AUDIT}: " in card(root, status=2)


def test_what_the_readers_load(root: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="datasets: not installed")
    card(root)
    assert datasets.get_dataset_config_names(str(root)) == [
        "definitions",
        "workloads",
        "verification",
    ]
    loaded = datasets.load_dataset(str(root), "workloads", split="train")
    assert loaded[0]["uuid"] == "one"


def test_the_same_dataset_gives_the_same_bytes_and_drift_is_found(root: Path) -> None:
    assert "README.md is out of date" in card(root, "--check", status=1)
    assert not (root / "README.md").exists()
    card(root)
    before = {p.name: p.read_bytes() for p in root.glob("*/*.jsonl")}
    card(root, "--check")
    assert "0 written, 4 up to date" in card(root)
    assert before == {p.name: p.read_bytes() for p in root.glob("*/*.jsonl")}
    write(root, FILE, {**DEFINITION, "description": "other"})
    said = card(root, "--check", status=1)
    assert "tables/definitions.jsonl is out of date" in said
    assert "tables/workloads.jsonl" not in said


def test_a_table_without_rows_is_not_declared(root: Path) -> None:
    card(root)
    (root / LINES).unlink()
    assert "tables/workloads.jsonl is out of date" in card(root, "--check", status=1)
    card(root)
    assert not (root / "tables/workloads.jsonl").exists()
    assert [c["config_name"] for c in metadata(root)["configs"]] == [
        "definitions",
        "verification",
    ]
    card(root, "--check")
    assert_consistent(root)


def test_a_readme_of_somebody_else_stays(root: Path) -> None:
    write(root, "README.md", "mine\n")
    assert "--force" in card(root, status=2)
    assert (root / "README.md").read_text() == "mine\n"
    assert not (root / "tables").exists()
    card(root, "--output", str(root / "elsewhere.md"))
    assert "# GPU kernel" in (root / "elsewhere.md").read_text()
    assert not (root / "tables").exists()
    card(root, "--force")
    assert "# GPU kernel" in (root / "README.md").read_text()


def _with_uuid(uuid: str) -> str:
    workload = {**WORKLOAD["workload"], "uuid": uuid}
    return json.dumps({**WORKLOAD, "workload": workload}) + "\n"


def test_text_of_the_dataset_is_inert(root: Path) -> None:
    nasty = {**DEFINITION, "description": NASTY, "tags": [f"model:{NASTY}"]}
    write(root, FILE, nasty)
    evidence(root)
    path = root / "verification/gpu.json"
    path.write_text(path.read_text().replace("flashinfer/fa2", "<b>|x"))
    card(root, "--title", "a\n---\n<b>: [x](y)")
    assert_consistent(root)
    text = (root / "README.md").read_text("utf-8")
    body = text.split("\n---\n", 1)[1]
    assert "<script" not in body
    assert "<b>" not in body
    assert "\x1b" not in text
    assert metadata(root)["pretty_name"] == "a\\n---\\n<b>: [x](y)"
    [row] = rows(root, "definitions")
    row["description"].encode("utf-8")


@pytest.mark.parametrize(
    ("path", "content", "said"),
    [
        (FILE, "{", FILE),
        (FILE, {**DEFINITION, "axes": 3}, "#/axes"),
        (FILE, {**DEFINITION, "op_type": "other"}, FILE),
        (FILE, json.dumps({**DEFINITION, "description": "\ud800"}), "surrogate"),
        (LINES, "{}\n", LINES),
        (LINES, "[\n", LINES),
        (LINES, _with_uuid(NASTY), f"{LINES}#/workload/uuid"),
        ("verification/gpu.json", "{}", "verification/gpu.json"),
    ],
)
def test_what_cannot_be_read_is_named(
    root: Path, path: str, content: Any, said: str
) -> None:
    write(root, path, content)
    assert said in card(root, status=2)
    assert not (root / "README.md").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("--repo", "../x"),
        ("--repo", "a/b/c"),
        ("--repo", "a/b\n"),
        ("--license", "a: b"),
    ],
)
def test_wrong_options(root: Path, arguments: tuple[str, str]) -> None:
    assert arguments[0] in card(root, *arguments, status=2)


def test_no_dataset_and_an_empty_one(tmp_path: Path) -> None:
    assert "no definitions/" in card(tmp_path, status=2)
    assert "no folder" in card(tmp_path / "nowhere", status=2)
    (tmp_path / "definitions").mkdir()
    assert "no definitions" in card(tmp_path, status=2)


def test_solutions_and_traces_are_not_in_the_way(root: Path) -> None:
    write(root, "solutions/baseline/gemm/gemm_n8_k4/fast.json", SOLVED)
    write(root, "traces/baseline/gemm/gemm_n8_k4.jsonl", json.dumps(TRACED) + "\n")
    assert "4 written" in card(root)


def test_the_example_is_this_dataset_s() -> None:
    # written by `trace-dataset card --output docs/generated/dataset-card.md`
    root = Path(__file__).parents[2]
    card(root, "--output", str(root / "docs/generated/dataset-card.md"), "--check")
