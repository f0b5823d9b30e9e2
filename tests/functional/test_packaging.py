"""A wheel in an empty virtual environment renders, away from the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from tests.functional.gen_tests_command import RMSNORM, ROOT, Dataset

pytest.importorskip("build", reason="the wheel is made by `build`")
pytest.importorskip("hatchling", reason="the wheel is made without a network")

# what the package needs to run, taken from the environment that runs this test
DEPENDENCIES = "click jinja2 markupsafe jsonschema_rs safetensors"
MORE = "rich pygments markdown_it mdurl typing_extensions.py"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a copy: the checkout gets no build folder."""
    source = tmp_path_factory.mktemp("source")
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("generator", "kernel_judge", "templates"):
        shutil.copytree(ROOT / name, source / name, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE", "gen_tests.py"):
        shutil.copy(ROOT / name, source)
    command = ("build", "--wheel", "--no-isolation", "--outdir", "dist", ".")
    done = subprocess.run(
        [sys.executable, "-m", *command],
        check=False,
        capture_output=True,
        text=True,
        cwd=source,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = (source / "dist").glob("*.whl")
    return made


@pytest.fixture(scope="module")
def scripts(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel alone; return the folder of the environment's scripts."""
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=False, symlinks=os.name != "nt")
    paths = {"base": str(home), "platbase": str(home)}
    folder = Path(sysconfig.get_path("scripts", "venv", paths))
    packages = sysconfig.get_path("purelib", "venv", paths)
    # no network: pip takes the file and asks nobody for its dependencies
    pip = (sys.executable, "-m", "pip", "--python", folder / "python", "install")
    installed = subprocess.run(
        [*pip, "--no-deps", "--no-index", "--quiet", wheel],
        check=False,
        capture_output=True,
        text=True,
    )
    assert installed.returncode == 0, installed.stderr
    here = Path(sysconfig.get_path("purelib"))
    for name in (*DEPENDENCIES.split(), *MORE.split()):
        # one link each: the editable install of this project stays out of sight
        if (here / name).exists():
            (Path(packages) / name).symlink_to(here / name)
    return folder


def run(
    command: Path, *arguments: str | Path, cwd: Path
) -> subprocess.CompletedProcess[str]:
    """Run a command of the environment with nothing of this one in sight."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    return subprocess.run(
        [command, *arguments],
        check=False,
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment,
    )


def files_below(folder: Path, name: str) -> set[str]:
    """Return the paths of the files below a folder, by which it is named in a wheel."""
    return {
        f"{name}/{path.relative_to(folder).as_posix()}"
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_everything_is_in_the_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        metadata = archive.read("gen_tests-0.1.0.dist-info/entry_points.txt").decode()
    assert names == {
        "gen_tests.py",
        *files_below(ROOT / "generator", "generator"),
        *files_below(ROOT / "kernel_judge", "kernel_judge"),
        *files_below(ROOT / "templates", "generator/templates"),
    }
    for needed in (
        "generator/templates/test_file.py.jinja",
        "generator/dataset/schemas/definition.schema.json",
        "generator/dataset/data/models.json",
        "generator/running/harness.py",
        "generator/ops/op_types/rmsnorm/op.py",
    ):
        assert needed in names
    assert "gen-tests = gen_tests:gen_tests" in metadata
    assert "trace-dataset = gen_tests:trace_dataset" in metadata


def test_the_installed_package_is_the_wheels(scripts: Path, tmp_path: Path) -> None:
    code = "import generator; print(generator.__file__)"
    done = run(scripts / "python", "-c", code, cwd=tmp_path)
    assert Path(done.stdout.strip()).is_relative_to(scripts.parent), done.stderr


def test_the_installed_commands_work(scripts: Path, tmp_path: Path) -> None:
    dataset = Dataset(tmp_path)
    dataset.add()
    dataset.add(RMSNORM)
    done = run(scripts / "gen-tests", "--all", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "class TestRmsnormH8(RmsnormTests):" in dataset.text("rmsnorm")
    assert "from generator.running.harness import" in dataset.text("rmsnorm")
    for form in ("--no-standalone", "--standalone"):
        done = run(scripts / "gen-tests", "--all", form, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        # what the checkout renders is the same
        assert dataset.run("--all", "--check").returncode == 0
    support = dataset.output / "reference_support"
    assert (support / "running" / "harness.py").exists()
    assert "generator" not in dataset.text("rmsnorm").replace("generator/", "")
    done = run(scripts / "gen-tests", "--all", "--list", cwd=tmp_path)
    assert done.stdout.startswith("rmsnorm_h8  rmsnorm  "), done.stderr
    done = run(scripts / "trace-dataset", "validate", cwd=tmp_path)
    assert "2 definitions, 0 workloads: " in done.stdout, done.stderr
    # a broken definition needs the schemas of the wheel
    dataset.add(name="broken", axes=7)
    done = run(scripts / "trace-dataset", "validate", cwd=tmp_path)
    assert done.returncode == 1
    assert "[schema-type]" in done.stdout
