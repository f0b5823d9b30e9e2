"""What each option of `gen-tests` does, what it prints where, and its exit status."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import generator
from generator.ground_truth.interface import Availability
from generator.ground_truth.resolver import Resolution, listed
from generator.rules.load import load_definitions
from kernel_judge.obstacle import Kind, Obstacle
from tests.functional.gen_tests_command import (
    NAMES,
    RMSNORM,
    ROOT,
    Dataset,
    gen_tests,
    statuses,
)


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    """Return a dataset of two op_types, one of them with two definitions."""
    made = Dataset(tmp_path)
    made.add()
    made.add(name="twice_n8", axes={"M": {"type": "var"}, "N": _const(8)})
    made.add(RMSNORM)
    return made


def _const(value: int) -> dict[str, object]:
    return {"type": "const", "value": value}


def rendered(dataset: Dataset) -> set[str]:
    return {path.name for path in dataset.output.glob("test_*.py")}


def test_all_renders_every_op_type(dataset: Dataset) -> None:
    done = dataset.run("--all")
    assert done.returncode == 0
    found = statuses(done)
    assert set(found.values()) == {"written"}
    assert {"conftest.py", "pytest.ini", "test_rmsnorm.py"} < set(found)
    assert rendered(dataset) == {"test_rmsnorm.py", "test_twice.py"}
    last = done.stderr.splitlines()[-1]
    assert last == (f"3 definitions in 2 test files; files: {len(found)} written")


def test_op_type_renders_that_file_alone(dataset: Dataset) -> None:
    assert dataset.run("--op-type", "twice").returncode == 0
    assert rendered(dataset) == {"test_twice.py"}
    assert "class TestTwiceN4(" in dataset.text()
    assert "class TestTwiceN8(" in dataset.text()
    assert (dataset.output / "conftest.py").exists()


def test_options_that_repeat(dataset: Dataset) -> None:
    dataset.add(name="third_n4", op_type="third")
    dataset.run("--op-type", "twice", "--op-type", "rmsnorm")
    assert rendered(dataset) == {"test_rmsnorm.py", "test_twice.py"}
    names = ("--definition-name", "third_n4", "--definition-name", "twice_n8")
    other = dataset.root / "other"
    dataset.run(*names, "--output", other)
    assert {p.name for p in other.glob("test_*")} == {"test_third.py", "test_twice.py"}
    assert "class TestTwiceN4(" not in (other / "test_twice.py").read_text()


def test_a_name_into_an_empty_folder_is_alone(dataset: Dataset) -> None:
    assert dataset.run("--definition-name", "twice_n8").returncode == 0
    assert "class TestTwiceN8(" in dataset.text()
    assert "twice_n4" not in dataset.text()
    assert rendered(dataset) == {"test_twice.py"}


def test_a_name_keeps_the_others_of_its_file(dataset: Dataset) -> None:
    dataset.render()
    dataset.add(description="New words.")
    dataset.run("--definition-name", "twice_n4")
    assert "# New words." in dataset.text()
    assert "class TestTwiceN8(" in dataset.text()
    assert dataset.run("--all", "--check").returncode == 0


def test_a_kept_definition_that_broke_is_reported(dataset: Dataset) -> None:
    dataset.render()
    dataset.add(name="twice_n8", reference="def run(:\n")
    done = dataset.run("--definition-name", "twice_n4")
    assert done.returncode == 1
    assert "twice_n8.json#/reference" in done.stderr
    assert "class TestTwiceN8(" not in dataset.text()


def test_a_removed_definition_leaves_the_file(dataset: Dataset) -> None:
    dataset.render()
    (dataset.root / "definitions/twice/twice_n8.json").unlink()
    assert statuses(dataset.render()) == {"test_twice.py": "written"}
    assert "twice_n8" not in dataset.text()


def test_the_current_directory_is_the_dataset(dataset: Dataset) -> None:
    assert gen_tests("--all", cwd=dataset.root).returncode == 0
    assert rendered(dataset) == {"test_rmsnorm.py", "test_twice.py"}


def test_output_takes_another_folder(dataset: Dataset, tmp_path: Path) -> None:
    other = tmp_path / "a" / "b c"
    assert dataset.run("--all", "--output", other).returncode == 0
    assert (other / "test_twice.py").exists()
    assert not dataset.output.exists()


def test_sizes_are_written_in_their_order(dataset: Dataset) -> None:
    dataset.render("--sizes", "large,small,large")
    assert '    sizes = ("small", "large")\n' in dataset.text()
    dataset.render("--sizes", "medium")
    assert '    sizes = ("medium",)\n' in dataset.text()
    dataset.render()
    assert '    sizes = ("small", "medium")\n' in dataset.text()


@pytest.mark.parametrize(("given", "written"), [("1e-4", "0.0001"), ("0", "0.0")])
def test_tolerance_stands_in_header_and_class(
    dataset: Dataset, given: str, written: str
) -> None:
    done = dataset.render("--tolerance", given)
    warned = f"--tolerance {float(given):g} stands in place of every derived bound"
    assert warned in done.stderr
    header = dataset.text("rmsnorm").split('"""')[1]
    said = f"This rendering sets every atol and rtol to {written} (--tolerance)."
    assert said in header.splitlines()
    assert f"    run_tolerance = {written}\n" in dataset.text("rmsnorm")
    assert "--tolerance" not in dataset.render().stderr
    assert "run_tolerance" not in dataset.text("rmsnorm")
    assert "--tolerance" not in dataset.text("rmsnorm")


def test_json_has_files_and_problems_and_no_talk(dataset: Dataset) -> None:
    (dataset.root / "definitions/twice/twice_n8.json").write_text("{")
    done = dataset.run("--all", "--json")
    assert (done.returncode, done.stderr) == (1, "")
    found = json.loads(done.stdout)
    assert found["definitions"] == 2
    assert statuses(done)["test_twice.py"] == "written"
    (problem,) = found["problems"]
    assert problem["rule"] == "json-syntax"
    assert problem["file"] == "definitions/twice/twice_n8.json"


def test_list_says_provider_and_reasons(dataset: Dataset) -> None:
    done = dataset.run("--all", "--list", env={"CUDA_VISIBLE_DEVICES": ""})
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("rmsnorm_h8  rmsnorm  ")
    assert lines[1].startswith("    not flashinfer: ")
    # it needs no GPU: usable where it is installed
    refused = any(line.startswith("    not sglang: ") for line in lines)
    assert refused is not ("rmsnorm_h8  rmsnorm  sglang" in lines[0])
    assert "    not pytorch: no PyTorch adapter for rmsnorm" in lines
    assert "twice_n4  twice  UNRESOLVED: no op module for twice" in lines
    assert not dataset.output.exists()


def test_list_as_json(dataset: Dataset) -> None:
    dataset.add(RMSNORM, name="rmsnorm_unknown", tags=[], reference=_NO_EPS)
    (dataset.root / "definitions/twice/twice_n8.json").write_text("{")
    done = dataset.run("--all", "--list", "--json")
    assert (done.returncode, done.stderr) == (1, "")
    found = json.loads(done.stdout)
    rows = {row["definition"]: row for row in found["definitions"]}
    assert list(rows) == ["rmsnorm_h8", "rmsnorm_unknown", "twice_n4"]
    assert rows["rmsnorm_h8"]["status"] == "RESOLVED"
    assert set(rows["rmsnorm_h8"]["rejected"]) >= {"sglang", "pytorch"}
    assert rows["twice_n4"]["status"] == "UNRESOLVED"
    assert rows["twice_n4"]["reason"] == "no op module for twice"
    # the rendered class says the same
    assert rows["rmsnorm_unknown"]["reason"] == "no source knows eps"
    assert [p["rule"] for p in found["problems"]] == ["json-syntax"]


_NO_EPS = "def run(hidden_states, weight):\n    return hidden_states\n"


def test_an_unknown_constant_is_unresolved_in_the_class_too(dataset: Dataset) -> None:
    dataset.add(RMSNORM, name="rmsnorm_unknown", tags=[], reference=_NO_EPS)
    infinite = "EPS = 1e999\n" + _NO_EPS
    dataset.add(RMSNORM, name="rmsnorm_infinite", tags=[], reference=infinite)
    assert "no source knows it" in dataset.render().stderr
    text = dataset.text("rmsnorm")
    assert text.count('    unresolved = "no source knows eps"\n') == 2
    assert text.count("    EPS = None  # no source knows it\n") == 2


def test_definitions_of_the_repository_are_listed(tmp_path: Path) -> None:
    done = gen_tests("--all", "--list", "--json")
    rows = json.loads(done.stdout)["definitions"]
    assert done.returncode == 0, done.stderr
    assert {row["definition"] for row in rows} == NAMES
    assert {row["status"] for row in rows} == {"RESOLVED"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Say what to render: --op-type, --definition-name, --all."),
        (("--all", "--op-type", "twice"), "--all leaves nothing to choose"),
        (("--all", "--definition-name", "twice_n4"), "--all leaves nothing to choose"),
        (("--all", "--check", "--force"), "--check writes nothing"),
        (("--all", "--list", "--check"), "--list renders nothing"),
        (("--all", "--list", "--force"), "--list renders nothing"),
        (
            ("--op-type", "twise"),
            "No op_type of the dataset is named 'twise'. Did you mean 'twice'?",
        ),
        (("--op-type", "zzz"), "No op_type of the dataset is named 'zzz'."),
        (
            ("--definition-name", "twice_n5"),
            "No definition is named 'twice_n5'. Did you mean ",
        ),
        (
            ("--definition-name", "TWICE_N4"),
            "No definition is named 'TWICE_N4'. Did you mean 'twice_n4'?",
        ),
        (("--definition-name", "a\nb"), r"No definition is named 'a\nb'."),
        (("--definition-name", "../twice_n4"), "No definition is named"),
        (("--all", "--sizes", "tiny"), "'tiny' is not a size"),
        (("--all", "--sizes", ""), "'' is not a size"),
        (("--all", "--tolerance", "-1"), "--tolerance -1.0: choose a number"),
        (("--all", "--tolerance", "nan"), "--tolerance nan: choose a number"),
        (("--all", "--tolerance", "inf"), "--tolerance inf: choose a number"),
        (("--all", "--tolerance", "much"), "'much' is not a valid float"),
        (("--bogus",), "--bogus"),
        (("everything",), "everything"),
    ],
)
def test_wrong_usage_is_two(
    dataset: Dataset, arguments: tuple[str, ...], said: str
) -> None:
    done = dataset.run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) <= 2
    assert not dataset.output.exists()


def test_version_and_help() -> None:
    assert gen_tests("--version").stdout == f"gen-tests {generator.__version__}\n"
    text = gen_tests("--help").stdout
    options = "op-type definition-name all dataset output sizes tolerance force check"
    for option in [*options.split(), "list", "json"]:
        assert f"--{option}" in text


@pytest.mark.parametrize("arguments", [["--all"], ["--all", "--list", "--json"]])
def test_a_reader_that_goes_away(dataset: Dataset, arguments: list[str]) -> None:
    for number in range(300):
        dataset.add(name=f"more_{number}")
    where = ("--dataset", str(dataset.root))
    with subprocess.Popen(
        [sys.executable, "-m", "generator.cli.gen_tests", *arguments, *where],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        talk = process.stderr.read()
        assert process.wait(timeout=30) == 0
    assert "Traceback" not in talk
    assert "BrokenPipe" not in talk


def test_a_terminal_without_unicode(dataset: Dataset) -> None:
    dataset.add(name="twice_n8", reference="def é(:\n")
    done = dataset.run("--all", env={"PYTHONIOENCODING": "ascii:strict"})
    assert done.returncode == 1
    assert done.stderr.isascii()


def test_list_alone_lists_all() -> None:
    alone, of_all = (gen_tests("--list", *chosen) for chosen in ((), ("--all",)))
    assert (alone.returncode, alone.stdout) == (0, of_all.stdout)
    lines = alone.stdout.splitlines()
    first = {line.split()[0] for line in lines if line[0] != " "}
    # a reason that many share, at the end
    assert first - {"not"} == NAMES


def test_a_reason_that_many_definitions_share_is_listed_once() -> None:
    definition = load_definitions(ROOT, names=["rmsnorm_h128"]).definitions[0]
    absent = Availability("sglang", Obstacle(Kind.NOT_INSTALLED, "not installed"))
    few, many = ([Resolution(definition, (absent,))] * n for n in (9, 10))

    assert sum("not sglang: not installed" in line for line in listed(few)) == 9
    lines = list(listed(many))
    assert lines[-1] == "not sglang, of 10 definitions: not installed"
    assert sum("sglang" in line for line in lines) == 1
