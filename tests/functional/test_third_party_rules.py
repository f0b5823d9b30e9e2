"""Rules and a dialect of another distribution: installed beside this one, and used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders import ROOT, resized_json, write_dataset
from tests.functional.test_third_party_op_type import install

pytest.importorskip("hatchling", reason="the distribution is made without a network")

PYPROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "acme-checks"
version = "1.0"

[project.entry-points."gen_tests.rules"]
acme = "acme_checks.rules"

[project.entry-points."gen_tests.dialects"]
acme-lines = "acme_checks.lines"

[tool.hatch.build.targets.wheel]
packages = ["acme_checks"]
"""
RULES = '''\
"""Acme's rules: what its definitions have beside the format's."""

from generator.problems import warning

DESCRIBED = warning("""acme-described: A definition says in a sentence what it computes.
    Fix: Write a description that ends with a full stop.
    Finds: "description": "norm\\"""")


def check(definition):
    """Yield what Acme finds in a definition."""
    if not (definition.description or "").endswith("."):
        yield DESCRIBED.problem(definition.path, "There is no sentence.", pointer="/description")
'''
LINES = '''\
"""Acme's dialect: a file of definitions, one a line."""

import json

from generator.dialects.imported import Import


def read(source):
    """Yield what each line becomes."""
    for path in sorted(source.glob("*.acme")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            yield Import(f"{path.name}:{number}", json.loads(line))


def export(definition, workloads):
    """Return the files of a definition, and what is lost."""
    lost = [f"{len(workloads)} workloads"] if workloads else []
    return {f"{definition.name}.acme": json.dumps({"name": definition.name})}, lost
'''
NORM = "rmsnorm_h128"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that the distribution is installed into."""
    root = tmp_path_factory.mktemp("acme")
    package = root / "project" / "acme_checks"
    package.mkdir(parents=True)
    (root / "project" / "pyproject.toml").write_text(PYPROJECT)
    for name, text in {"__init__": "", "rules": RULES, "lines": LINES}.items():
        (package / f"{name}.py").write_text(text)
    return install(root / "project", root / "installed")


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """Return a dataset of one norm, whose description is no sentence."""
    value = {**resized_json(NORM, NORM), "description": "a norm"}
    return write_dataset(tmp_path / "dataset", [value])


def trace_dataset(path: Path | None, *words: str | Path) -> tuple[int, str, str]:
    """Return exit status, stdout and stderr of a command that sees the distribution."""
    folders = [str(folder) for folder in (path, ROOT) if folder is not None]
    done = subprocess.run(
        [sys.executable, "-m", "generator.cli.trace_dataset", *map(str, words)],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
    )
    return done.returncode, done.stdout, done.stderr


def test_its_rules_are_asked_listed_and_chosen(installed: Path, dataset: Path) -> None:
    words = ("validate", "--dataset", dataset, "--json")
    status, out, err = trace_dataset(installed, *words, "--checks", "acme")
    assert status == 0, err
    (problem,) = json.loads(out)["problems"]
    assert (problem["rule"], problem["pointer"]) == ("acme-described", "/description")
    _, out, _ = trace_dataset(installed, *words)
    assert "acme-described" in {p["rule"] for p in json.loads(out)["problems"]}
    _, out, _ = trace_dataset(installed, "rules", "acme-described")
    assert "says in a sentence" in out
    # and without the distribution there is no such rule
    status, _, err = trace_dataset(None, *words, "--checks", "acme")
    assert status == 2
    assert "No rule or group is named 'acme'" in err


def test_its_dialect_is_read_and_written(
    installed: Path, dataset: Path, tmp_path: Path
) -> None:
    source, output = tmp_path / "source", tmp_path / "output"
    source.mkdir()
    (source / "all.acme").write_text(json.dumps(resized_json(NORM, NORM)) + "\n")
    words = ("--dialect", "acme-lines", "--output", output)
    status, out, err = trace_dataset(installed, "import", source, *words)
    assert status == 0, err
    assert f"imported all.acme:1: rmsnorm/{NORM}" in out
    status, out, _ = trace_dataset(
        installed, "export", "--all", "--dataset", dataset, *words
    )
    assert status == 0
    assert json.loads((output / f"{NORM}.acme").read_text()) == {"name": NORM}
    status, _, err = trace_dataset(None, "import", source, *words)
    assert status == 2
    assert "'acme-lines' is not one of" in err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import no_such_module\n", "No module named 'no_such_module'"),
        ("def check(d):\n    return ()\n", "has no Rule"),
        (RULES.replace("def check", "def asked"), "has no check()"),
        (RULES.replace("acme-described", "described"), "does not begin with 'acme-'"),
    ],
)
def test_rules_that_are_broken_are_one_line(
    installed: Path, dataset: Path, tmp_path: Path, text: str, said: str
) -> None:
    package = tmp_path / "broken" / "acme_checks"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "rules.py").write_text(text)
    about = tmp_path / "broken" / "acme_checks-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Name: acme-checks\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[gen_tests.rules]\nacme = acme_checks.rules\n"
    )

    status, out, err = trace_dataset(
        tmp_path / "broken", "validate", "--dataset", dataset
    )

    assert (status, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1
