"""`trace-dataset validate` and `rules`: selection, formats, processes."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from tests.audits import entry, write_audit
from tests.functional.test_validate import DEFINITION, FILE, ROOT, WORKLOAD, run

BROKEN = {**DEFINITION, "tags": ["decode"], "descriptoin": "x"}
FORMATS = ["text", "json", "sarif", "junit", "markdown", "github"]
CONFIG = {"num_attention_heads": 32, "hidden_size": 5120, "vocab_size": 1000}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a dataset with a warning: its tag has no key."""
    write(tmp_path, FILE, {**DEFINITION, "tags": ["decode"]})
    write(tmp_path, "workloads/gemm/gemm_n8_k4.jsonl", WORKLOAD)
    return tmp_path


def write(root: Path, path: str, value: Any) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(value if isinstance(value, str) else json.dumps(value))


def validate(root: Path, *arguments: str) -> Any:
    return run("validate", "--dataset", str(root), *arguments)


def rules_in(root: Path, *arguments: str) -> list[str]:
    done = validate(root, "--format", "json", *arguments)
    assert done.stderr == ""
    return [p["rule"] for p in json.loads(done.stdout)["problems"]]


def test_checks_choose_rules_and_groups(root: Path) -> None:
    (root / "workloads/gemm/gemm_n8_k4.jsonl").unlink()
    assert rules_in(root) == ["tag-form", "workload-missing"]
    assert rules_in(root, "--checks", "tags") == ["tag-form"]
    assert rules_in(root, "--checks", "tags,workload-missing") == rules_in(root)
    assert rules_in(root, "--checks", "layout", "--checks", "schema") == []
    assert validate(root, "--strict", "--checks", "layout").returncode == 0


@pytest.mark.parametrize(
    ("definitions", "rule", "strict"),
    [
        ({}, "audit-missing", 0),
        ({"gemm_n8_k4": entry()}, "audit-stale", 1),
        ({"gemm_n8_k4": {}}, "audit-file", 1),
    ],
)
def test_an_audit_matters_under_strict_alone(
    root: Path, definitions: Any, rule: str, strict: int
) -> None:
    write_audit(root, definitions)
    assert rules_in(root, "--checks", "audit") == [rule]
    assert validate(root, "--checks", "audit").returncode == 0
    assert validate(root, "--checks", "audit", "--strict").returncode == strict


def test_unknown_checks_are_wrong_usage(root: Path) -> None:
    done = validate(root, "--checks", "tag-from")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Did you mean 'tag-form'?" in done.stderr


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_says_the_same_by_its_status(root: Path, form: str) -> None:
    assert validate(root, "--format", form).returncode == 0
    assert validate(root, "--format", form, "--strict").returncode == 1
    write(root, FILE, BROKEN)
    done = validate(root, "--format", form)
    assert done.returncode == 1
    assert done.stderr == ""
    assert "schema-unknown-field" in done.stdout


def test_sarif_has_rules_and_places(root: Path) -> None:
    write(root, FILE, BROKEN)
    (log,) = json.loads(validate(root, "--format", "sarif").stdout)["runs"]
    rules = log["tool"]["driver"]["rules"]
    (result,) = log["results"]
    assert (
        rules[result["ruleIndex"]]["id"] == result["ruleId"] == "schema-unknown-field"
    )
    assert result["level"] == "error"
    (place,) = result["locations"]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == FILE
    assert place["logicalLocations"] == [{"fullyQualifiedName": "/descriptoin"}]


def test_junit_has_a_test_for_each_rule(root: Path) -> None:
    from generator.rules.catalogue import RULES

    for strict, failures in ((), 0), (("--strict",), 1):
        suite = ET.fromstring(validate(root, "--format", "junit", *strict).stdout)
        cases = list(suite.iter("testcase"))
        assert [case.get("name") for case in cases] == list(RULES)
        assert suite.get("failures") == str(failures)
        assert len(list(suite.iter("failure"))) == failures


def test_github_annotates_lines_of_json_lines(root: Path) -> None:
    line = {**WORKLOAD, "definition": "x"}
    write(root, "workloads/gemm/gemm_n8_k4.jsonl", line)
    lines = validate(root, "--format", "github").stdout.splitlines()
    assert lines[-2].startswith(
        "::error file=workloads/gemm/gemm_n8_k4.jsonl,line=1,title=workload-definition"
        "::/definition: The definition is 'x'"
    )
    assert lines[-1] == "1 definition, 1 workload: 1 error, 1 warning"


def test_github_annotates_the_line_of_a_pointer(root: Path) -> None:
    write(root, FILE, {**DEFINITION, "reference": 3})
    text = (root / FILE).read_text()
    line = text[: text.index('"reference"')].count("\n") + 1
    said = validate(root, "--format", "github").stdout
    assert f"::error file={FILE},line={line}," in said


def test_files_are_named_from_the_repository_s_root(tmp_path: Path) -> None:
    write(tmp_path, f"data/{FILE}", BROKEN)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "generator.cli.trace_dataset", "validate"),
            *("--dataset", "data", "--format", "github"),
        ],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "HOME": str(tmp_path)},
    )
    assert f"file=data/{FILE}," in done.stdout


def test_markdown_is_bounded_and_says_what_it_cut(root: Path) -> None:
    for number in range(400):
        name = f"definitions/gemm/many_{number}.json"
        write(root, name, {**BROKEN, "name": "wrong" * 20})
    text = validate(root, "--format", "markdown").stdout
    assert len(text) <= 60_000
    assert "more: run `trace-dataset validate`" in text
    assert "### Dataset validation: failed" in text


def test_notes_are_shown_when_asked_for(root: Path) -> None:
    write(root, FILE, {**DEFINITION, "tags": ["model:toy"]})
    done = validate(root, "--strict")
    assert done.returncode == 0
    assert done.stdout.endswith("0 errors, 0 warnings, 1 note (--notes shows them)\n")
    assert "[tag-model]" in validate(root, "--notes").stdout


def test_a_model_config_is_held_against_axes(root: Path) -> None:
    axes = {"vocab_size": {"type": "const", "value": 500}, "M": {"type": "var"}}
    tensor = {"x": {"shape": ["M", "vocab_size"], "dtype": "float32"}}
    definition = {
        "name": "top_v500",
        "op_type": "sampling",
        "axes": axes,
        "inputs": tensor,
        "outputs": {"y": tensor["x"]},
        "reference": "def run(x):\n    return x\n",
    }
    write(root, "definitions/sampling/top_v500.json", definition)
    write(root, "config.json", {"text_config": CONFIG})
    option = ("--model-config", str(root / "config.json"), "--op-type", "sampling")
    assert "model-config" not in rules_in(root, *option)
    definition["tags"] = ["tp:1"]
    write(root, "definitions/sampling/top_v500.json", definition)
    assert "model-config" in rules_in(root, *option)
    definition["tags"] = ["tp:2"]
    write(root, "definitions/sampling/top_v500.json", definition)
    assert "model-config" not in rules_in(root, *option)


@pytest.mark.parametrize(
    ("tags", "fits"),
    [
        ([], True),
        (["ep:8"], True),
        (["ep:4"], False),
        (["ep:4", "ep:8"], True),
        (["tp:8", "ep:4"], False),
        (["ep:0"], True),
        (["ep:nine"], True),
    ],
)
def test_experts_of_a_model_config_are_shared_by_ep(
    root: Path, tags: list[str], fits: bool
) -> None:
    const = {"type": "const", "value": 32}
    tensor = {"x": {"shape": ["M", "num_experts"], "dtype": "float32"}}
    definition = {
        "name": "moe_e32",
        "op_type": "moe",
        "tags": tags,
        "axes": {"num_experts": const, "M": {"type": "var"}},
        "inputs": tensor,
        "outputs": {"y": tensor["x"]},
        "reference": "def run(x):\n    return x\n",
    }
    write(root, "definitions/moe/moe_e32.json", definition)
    write(root, "config.json", {"n_routed_experts": 256})
    option = ("--model-config", str(root / "config.json"), "--op-type", "moe")
    assert ("model-config" not in rules_in(root, *option)) is fits


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": NaN}'])
def test_a_bad_model_config_is_one_line(root: Path, text: str) -> None:
    write(root, "config.json", text)
    done = validate(root, "--model-config", str(root / "config.json"))
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


def test_a_file_that_is_no_model_config_is_refused(root: Path) -> None:
    option = ("--model-config", str(root / FILE))
    done = validate(root, *option)
    assert done.returncode == 2
    assert "this is no config.json of a model" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_infinity_in_a_model_config_is_read(root: Path) -> None:
    text = '{"hidden_size": 64, "time_step_limit": [0.0, Infinity]}'
    (root / "config.json").write_text(text)
    done = validate(root, "--model-config", str(root / "config.json"))
    assert (done.returncode, done.stderr) == (0, "")


def test_processes_say_the_same_as_one(root: Path) -> None:
    for number in range(300):
        axes = {**DEFINITION["axes"], "N": {"type": "const", "value": 100 + number}}
        name = f"some_{number}"
        write(
            root,
            f"definitions/gemm/{name}.json",
            {**DEFINITION, "name": name, "axes": axes, "tags": ["x"] * (number % 2)},
        )
    one = validate(root, "--format", "json", "--jobs", "1").stdout
    two = validate(root, "--format", "json", "--jobs", "2").stdout
    assert json.loads(one)["counts"]["definitions"] == 301
    assert one == two


def test_a_process_that_dies_is_one_line(root: Path) -> None:
    for number in range(300):
        name = f"some_{number}"
        write(root, f"definitions/gemm/{name}.json", {**DEFINITION, "name": name})
    code = (
        "import os, generator.validation.parallel\n"
        "generator.validation.parallel.check_unit = lambda *a: os._exit(9)\n"
        "from generator.cli.trace_dataset import main\nmain()\n"
    )
    done = subprocess.run(
        [
            *(sys.executable, "-c", code, "validate", "--dataset", str(root)),
            *("--jobs", "2"),
        ],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=60,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("Error: a process ended before its work was done")
    assert len(done.stderr.splitlines()) == 1


def test_rules_are_listed_and_explained() -> None:
    from generator.rules.catalogue import RULES

    listed = run("rules").stdout
    assert all(f" {rule} " in listed for rule in RULES)
    explained = run("rules", "name-token").stdout
    assert RULES["name-token"].example in explained
    assert RULES["name-token"].fix in explained
    found = json.loads(run("rules", "--json").stdout)["rules"]
    assert [rule["id"] for rule in found] == list(RULES)
    assert json.loads(run("rules", "layout", "--json").stdout)["rules"][0]["example"]
    unknown = run("rules", "name-tokn")
    assert unknown.returncode == 2
    assert "Did you mean 'name-token'?" in unknown.stderr
    of_floors = run("rules", "tolerance-tight")
    assert of_floors.returncode == 2
    assert "`trace-dataset audit --tolerances` reports it" in of_floors.stderr


def test_the_page_of_rules_is_up_to_date() -> None:
    from tools import rules_page

    assert (ROOT / rules_page.PAGE).read_text("utf-8") == rules_page.page()
