"""An op_type of another distribution: rendered, run, audited, and copied standalone.

The distribution is installed where only these commands see it, as `pip install` would
beside this package.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.builders import replaced
from tests.forking import COMMANDS, PYTEST, run_module
from tests.functional.gen_tests_command import ROOT, Dataset

pytest.importorskip("hatchling", reason="the distribution is made without a network")

PYPROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "acme-ops"
version = "1.0"

[project.entry-points."gen_tests.op_types"]
hinge = "acme_ops.hinge"

[tool.hatch.build.targets.wheel]
packages = ["acme_ops"]
"""
SPEC = '''\
"""Acme's hinge: max(0, 1 - x)."""

from generator.ops.spec import OpSpec

SPEC = OpSpec("hinge", name_tokens={"n": "N"}, constants={"margin": 1.0})
'''
OP = '''\
"""hinge: max(0, margin - x), elementwise."""

from __future__ import annotations

from typing import Any

import torch

from acme_ops.hinge.relations import hinge_relations
from kernel_judge.definition import Case, Definition
from kernel_judge.relation import Relation
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Op


def cases(definition: Definition) -> list[Case]:
    """Return a batch of each size."""
    return [
        Case("rows", "small", {"M": 5}),
        Case("batch", "medium", {"M": 33}),
        Case("large-batch", "large", {"M": 999}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return values on both sides of the margin."""
    shape = (case.axes["M"], definition.axes["N"])
    return {"x": stream.child("x").values(shape, 2.0)}


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the distance to the margin in float64, where it is positive."""
    distance: torch.Tensor = definition.constants["margin"] - inputs["x"].double()
    return distance * (distance > 0)


def relations(definition: Definition) -> list[Relation]:
    """Return what holds between calls."""
    return hinge_relations()


OP = Op(cases=cases, make_inputs=make_inputs, oracle=oracle, relations=relations)
'''
RELATIONS = '''\
"""Relations of the hinge."""

from generator.ops.row_relations import reordered
from kernel_judge.relation import Bound, RelatedCase, Relation
from kernel_judge.comparison.tolerance import EXACT


def hinge_relations() -> list[Relation]:
    """Return that rows are independent."""
    alike = {"y": Bound(EXACT, "the same float32 operations on the same values")}
    cases = [RelatedCase("three-rows", "small", {"M": 3})]
    return [reordered("rows-reversed", ["M"], alike, cases)]
'''
MUTANTS = '''\
"""The defects of the hinge."""

from generator.ops.mutants import MutantGroup, on_inputs


def mutants(definition):
    """Return the defects."""
    return (on_inputs(definition, "sign of x lost", lambda i: {"x": -i["x"]}),)


MUTANTS = (MutantGroup(mutants, "x y N"),)
'''
MODULES = {"__init__": SPEC, "op": OP, "relations": RELATIONS, "mutants": MUTANTS}
REFERENCE = (
    "import torch\n\n\n"
    "def run(x: torch.Tensor) -> torch.Tensor:\n    return (1.0 - x).clamp(min=0.0)\n"
)
DEFINITION: Mapping[str, Any] = {
    "name": "hinge_n8",
    "op_type": "hinge",
    "axes": {"M": {"type": "var"}, "N": {"type": "const", "value": 8}},
    "inputs": {"x": {"shape": ["M", "N"], "dtype": "float32"}},
    "outputs": {"y": {"shape": ["M", "N"], "dtype": "float32"}},
    "reference": REFERENCE,
}


def write(project: Path, pyproject: str = PYPROJECT, **modules: str) -> Path:
    """Write the distribution's project."""
    package = project / "acme_ops" / "hinge"
    package.mkdir(parents=True)
    (project / "pyproject.toml").write_text(pyproject)
    (project / "acme_ops" / "__init__.py").touch()
    for name, text in {**MODULES, **modules}.items():
        (package / f"{name}.py").write_text(text)
    return project


def install(project: Path, target: Path) -> Path:
    """Install the project into a folder of its own, without a network."""
    how = ("--no-deps", "--no-build-isolation", "--no-index", "--quiet")
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", *how, "--target", target, project],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return target


def command(
    module: str, *arguments: str | Path, path: Path | None, cwd: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """Run a Python module with the distribution in sight, if `path` is where it is."""
    folders = [str(folder) for folder in (path, ROOT) if folder is not None]
    return run_module(
        *(module, *arguments),
        imports=PYTEST if module == "pytest" else COMMANDS,
        cwd=cwd,
        env={"PYTHONPATH": os.pathsep.join(folders)},
        timeout=300,
    )


def gen_tests(
    dataset: Dataset, *arguments: str, path: Path | None
) -> subprocess.CompletedProcess[str]:
    return command(
        "generator.cli.gen_tests", "--dataset", dataset.root, *arguments, path=path
    )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that the distribution is installed in."""
    folder = tmp_path_factory.mktemp("acme")
    return install(write(folder / "project"), folder / "site")


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    """Return a dataset with Acme's definition."""
    made = Dataset(tmp_path / "dataset")
    made.add(DEFINITION)
    return made


def test_its_tests_are_rendered_and_green_and_a_defect_turns_them_red(
    dataset: Dataset, installed: Path
) -> None:
    done = gen_tests(dataset, "--all", path=installed)
    assert done.returncode == 0, done.stderr
    text = dataset.text("hinge")
    assert "MARGIN = 1.0" in text
    assert "from acme_ops.hinge.relations import hinge_relations" in text
    ran = command("pytest", "-q", dataset.output, path=installed)
    assert ran.returncode == 0, ran.stdout
    assert "1 of 1 definitions were compared" in ran.stdout
    wrong = replaced(REFERENCE, "1.0 - x", "1.1 - x")
    dataset.add(DEFINITION, reference=wrong)
    assert gen_tests(dataset, "--all", path=installed).returncode == 0
    ran = command("pytest", "-q", dataset.output, path=installed)
    assert ran.returncode == 1
    assert "test_matches_oracle" in ran.stdout


def test_without_the_distribution_the_definition_is_of_an_unknown_op_type(
    dataset: Dataset,
) -> None:
    assert gen_tests(dataset, "--all", path=None).returncode == 0
    assert "load_reference" not in dataset.text("hinge")
    assert "acme_ops" not in dataset.text("hinge")


def audit(dataset: Dataset, path: Path | None) -> subprocess.CompletedProcess[str]:
    arguments = ("audit", "--dataset", dataset.root, "--all", "--json")
    return command("generator.cli.trace_dataset", *arguments, path=path)


def test_it_is_audited_with_its_own_defects(dataset: Dataset, installed: Path) -> None:
    # what an audit without the distribution kept is not taken for this one's result
    assert "sign of x lost" not in audit(dataset, None).stdout
    done = audit(dataset, installed)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["definitions"]
    assert "sign of x lost" in json.dumps(found)


def test_standalone_it_runs_without_the_distribution(
    dataset: Dataset, installed: Path, tmp_path: Path
) -> None:
    done = gen_tests(dataset, "--all", "--standalone", path=installed)
    assert done.returncode == 0, done.stderr
    for path in dataset.output.rglob("*.py"):
        assert "acme_ops" not in path.read_text("utf-8"), path
    ran = command("pytest", "-q", dataset.output, path=None, cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout
    assert "1 of 1 definitions were compared" in ran.stdout


BROKEN = {
    "an import that fails": (
        {"__init__": "import nothing_of_this_name\n"},
        "ModuleNotFoundError: No module named 'nothing_of_this_name'",
    ),
    "no SPEC": ({"__init__": "\n"}, "acme_ops.hinge has no SPEC"),
    "the SPEC of another op_type": (
        {"__init__": SPEC.replace('OpSpec("hinge"', 'OpSpec("hinges"')},
        "acme_ops.hinge has no SPEC, an OpSpec of the op_type 'hinge'",
    ),
    "the name of an op_type that is there": (
        {"pyproject": PYPROJECT.replace("hinge =", "rmsnorm =")},
        "The op_type 'rmsnorm' is claimed by generator.ops.op_types.rmsnorm",
    ),
    "a package that is not there": (
        {"pyproject": PYPROJECT.replace('"acme_ops.hinge"', '"acme_ops.door"')},
        "acme_ops.door",
    ),
    "no op.py": ({}, "acme_ops.hinge has no module op.py."),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_distribution_is_one_line_and_exit_status_2(
    what: str, dataset: Dataset, tmp_path: Path
) -> None:
    changes, said = BROKEN[what]
    site = install(write(tmp_path / "project", **changes), tmp_path / "site")
    if what == "no op.py":
        (site / "acme_ops" / "hinge" / "op.py").unlink()
    for done in (
        gen_tests(dataset, "--all", path=site),
        command(
            "generator.cli.trace_dataset",
            *("validate", "--dataset", dataset.root),
            path=site,
        ),
        command(
            "generator.cli.trace_dataset",
            *("audit", "--dataset", dataset.root, "--all"),
            path=site,
        ),
    ):
        assert done.returncode == 2, (done.args, done.stdout, done.stderr)
        assert done.stdout == ""
        (line,) = done.stderr.splitlines()
        assert line.startswith("Error: ")
        assert said in line


BAD_MODULES = {
    "no Python": ("def cases(:\n", "op.py: SyntaxError"),
    "no OP": (OP.replace("OP = Op(", "OPS = Op("), "op.py: has no `OP = Op(…)`"),
    "an OP that is no call": (OP.replace("OP = Op(", "OP = dict("), "`OP = Op(…)`"),
    "a package of an earlier version": (
        OP.replace("kernel_judge.definition", "generator.testing.definition"),
        "generator.testing.definition is gone: import from kernel_judge",
    ),
    "bounds that raise": (
        OP.replace("OP = Op(", "OP = Op(tolerances=1 / 0, "),
        "op.py: tolerances of OP: ZeroDivisionError",
    ),
    "bounds that are none": (
        OP.replace("OP = Op(", "OP = Op(tolerances=(1e-3,), "),
        "op.py: tolerances of OP: write a tuple of Override(output, tolerance, reason).",
    ),
    "a field that no OP has": (
        OP.replace("relations=relations", "relation=relations"),
        "op.py: OP = Op(…) has no field 'relation'. Did you mean 'relations'?",
    ),
    "a field like no other": (
        OP.replace("relations=relations", "x=relations"),
        "op.py: OP = Op(…) has no field 'x'. It has cases, make_inputs, oracle,",
    ),
    "no oracle": (
        OP.replace("oracle=oracle, ", ""),
        "op.py: OP = Op(…) needs the field oracle as well.",
    ),
    "fields without names": (
        OP.replace("cases=cases", "cases"),
        "op.py: OP = Op(…): name each field, as in Op(cases=cases, …).",
    ),
    "nothing": ("", "op.py: imports nothing: begin with imports, and end in `OP = Op("),
}


@pytest.mark.parametrize("what", BAD_MODULES)
def test_a_bad_op_module_is_one_line_and_exit_status_2(
    what: str, dataset: Dataset, tmp_path: Path
) -> None:
    op, said = BAD_MODULES[what]
    site = install(write(tmp_path / "project", op=op), tmp_path / "site")
    done = gen_tests(dataset, "--all", path=site)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("Error: The op_type 'hinge': ")
    assert said in line
