"""A provider of another distribution: installed beside this one, listed, and compared."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.builders import resized_json
from tests.functional.gen_tests_command import Dataset
from tests.functional.test_third_party_op_type import command, gen_tests, install
from tests.functional.test_third_party_rules import trace_dataset as by_path

pytest.importorskip("hatchling", reason="the distribution is made without a network")

PYPROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "acme-kernels"
version = "1.2"

[project.entry-points."gen_tests.providers"]
acme = "acme_kernels.provider"

[tool.hatch.build.targets.wheel]
packages = ["acme_kernels"]
"""
PROVIDER = '''\
"""Acme's kernels as ground truth of RMS norms."""

from kernel_judge.provider import Provider

PROVIDER = Provider(
    *("acme", "Acme", "acme-kernels", "acme_kernels"),
    "Acme's kernels, live, on any device",
    oldest=(1,),
    on_cpu=True,
    adapters={"rmsnorm": "acme_kernels.rmsnorm"},
)
'''
ADAPTER = '''\
"""How tests call Acme's norm."""

from kernel_judge.definition import Backend
from kernel_judge.subject import Kernel


def backends(definition):
    """Return the one way that Acme has, which also runs on a CPU."""
    return (Backend("fast", needs_cuda=False),)


def call(definition, inputs, backend):
    """Call acme_kernels.norm."""
    import acme_kernels

    eps = definition.constants["eps"]
    return acme_kernels.norm(inputs["hidden_states"], inputs["weight"], eps)


KERNEL = Kernel(backends, call)
'''
KERNELS = '''\
"""Acme's kernels."""

def norm(x, weight, eps):
    """Return x over its root mean square, times the weight."""
    import torch

    return torch.nn.functional.rms_norm(
        x.double(), x.shape[-1:], weight.double(), eps
    ).to(x.dtype)
'''
NORM = "rmsnorm_h128"
MODULES = {"__init__": KERNELS, "provider": PROVIDER, "rmsnorm": ADAPTER}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that the distribution is installed in."""
    return install(
        written(tmp_path_factory.mktemp("acme")), tmp_path_factory.mktemp("site")
    )


def written(project: Path) -> Path:
    """Write the distribution's project."""
    package = project / "acme_kernels"
    package.mkdir()
    (project / "pyproject.toml").write_text(PYPROJECT)
    for name, text in MODULES.items():
        (package / f"{name}.py").write_text(text)
    return project


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    """Return a dataset of one norm."""
    made = Dataset(tmp_path / "dataset")
    made.add(resized_json(NORM, NORM))
    return made


def trace_dataset(dataset: Dataset, *words: str | Path, path: Path | None) -> str:
    """Return what a command prints that ends with status 0."""
    done = command("generator.cli.trace_dataset", *words, path=path, cwd=dataset.root)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_its_kernels_are_compared_and_a_defect_turns_the_tests_red(
    dataset: Dataset, installed: Path
) -> None:
    assert gen_tests(dataset, "--all", path=installed).returncode == 0
    text = dataset.text("rmsnorm")
    assert '"flashinfer", "sglang", "acme"' in text
    assert "- Acme's kernels, live, on any device\n" in text
    results = dataset.root / "results.jsonl"
    words = ("-q", dataset.output, "--device", "cpu", "--results", results)
    ran = command("pytest", *words, path=installed)
    assert ran.returncode == 0, ran.stdout
    assert "acme/fast" in ran.stdout
    # of the same float64 arithmetic as the oracle
    found = [json.loads(line) for line in results.read_text().splitlines()]
    matched = [one for one in found if one.get("source") == "acme/fast"]
    # a workload of 128 MiB is for a GPU
    assert Counter(one["status"] for one in matched)["failed"] == 0
    assert Counter(one["status"] for one in matched)["passed"] >= 3

    trace_dataset(dataset, "verify", "--record", results, path=installed)
    shown = trace_dataset(dataset, "verify", "--table", path=installed)
    assert "acme/fast" in shown
    (record,) = (dataset.root / "verification").glob("*.json")
    assert '"acme_kernels": "1.2"' in record.read_text()

    wrong = resized_json(NORM, NORM)
    wrong["reference"] = wrong["reference"].replace("+ EPS", "+ 2 * EPS")
    dataset.add(wrong)
    assert gen_tests(dataset, "--all", path=installed).returncode == 0
    ran = command("pytest", *words, "-k", "test_matches_acme", path=installed)
    assert ran.returncode == 1
    assert f"{NORM} 'output' against acme/fast, tiny-variance: FAILED" in ran.stdout


def test_it_is_listed_and_asked_by_name(dataset: Dataset, installed: Path) -> None:
    listed = gen_tests(dataset, "--all", "--list", "--json", path=installed).stdout
    (one,) = json.loads(listed)["definitions"]
    assert (one["provider"], one["version"]) == ("acme", "1.2")
    doctor = trace_dataset(dataset, "doctor", "--json", path=installed)
    assert '"ground truth: acme"' in doctor
    assert gen_tests(dataset, "--all", path=installed).returncode == 0
    words = ("record", "--all", "--provider", "acme", "--device", "cpu")
    status, _, err = by_path(installed, *words, "--dataset", dataset.root)
    assert status == 0, err
    assert list(dataset.root.glob("blob/ground_truth/rmsnorm/*.safetensors"))


def test_without_the_distribution_its_tests_are_skipped(
    dataset: Dataset, installed: Path
) -> None:
    assert gen_tests(dataset, "--all", path=installed).returncode == 0
    ran = command("pytest", "-q", dataset.output, path=None)
    assert ran.returncode == 0, ran.stdout
    assert "acme" in ran.stdout
    assert gen_tests(dataset, "--all", path=None).returncode == 0
    assert "acme" not in dataset.text("rmsnorm")


@pytest.mark.parametrize(
    ("modules", "said"),
    [
        ({"provider": "import no_such\n"}, "No module named 'no_such'"),
        ({"provider": "PROVIDER = 1\n"}, "has no PROVIDER of that name"),
        ({"__init__": "raise OSError('no device')\n"}, "OSError: no device"),
        ({"rmsnorm": "import no_such\n"}, "acme_kernels.rmsnorm: ModuleNotFoundError"),
        ({"rmsnorm": "KERNEL = 1\n"}, "has no KERNEL, a kernel_judge.Kernel"),
    ],
)
def test_a_broken_provider_is_a_reason_and_stops_nothing(
    dataset: Dataset,
    installed: Path,
    tmp_path: Path,
    modules: dict[str, str],
    said: str,
) -> None:
    assert gen_tests(dataset, "--all", path=installed).returncode == 0
    site = shutil.copytree(installed, tmp_path / "site")
    for name, text in modules.items():
        (site / "acme_kernels" / f"{name}.py").write_text(text)

    ran = command("pytest", "-q", "-rs", dataset.output, path=site)

    assert ran.returncode == 0, ran.stdout
    assert said in ran.stdout
    assert "1 of 1 definitions were compared" in ran.stdout
