"""What `gen-tests` renders: clean, the same bytes everywhere, and up to date here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.functional.gen_tests_command import (
    NAMES,
    OP_TYPES,
    ROOT,
    gen_tests,
    wrong_sums,
)

ruff = pytest.importorskip("ruff.__main__")


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with everything rendered from the repository's definitions."""
    output = tmp_path_factory.mktemp("rendered")
    done = gen_tests("--all", "--dataset", ROOT, "--output", output)
    assert done.returncode == 0, done.stderr
    counts = f"{len(NAMES)} definitions in {len(OP_TYPES)} test files; "
    assert done.stderr.startswith(counts)
    return output


def contents(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def test_the_repositorys_rendering_is_up_to_date() -> None:
    done = gen_tests("--all", "--check", cwd=ROOT)
    assert done.returncode == 0, (
        f"{done.stdout}{done.stderr}Run `gen-tests --all` and look at the difference."
    )


@pytest.mark.parametrize("seed", ["0", "12345"])
def test_the_same_bytes_again(rendered: Path, tmp_path: Path, seed: str) -> None:
    other = tmp_path / "again"
    # a relative path to the dataset, another directory, another order of sets
    dataset = os.path.relpath(ROOT, tmp_path)
    environment = {"PYTHONHASHSEED": seed}
    done = gen_tests(
        *("--all", "--dataset", dataset, "--output", "again"),
        cwd=tmp_path,
        env=environment,
    )
    assert done.returncode == 0
    assert contents(other) == contents(rendered)


def test_a_file_rendered_by_parts_is_the_same(rendered: Path, tmp_path: Path) -> None:
    """The order in which definitions are asked for changes nothing."""
    names = [path.stem for path in (ROOT / "definitions/rmsnorm").glob("*.json")]
    for chosen in (names[:3], names[3:]):
        arguments = [text for name in chosen for text in ("--definition-name", name)]
        gen_tests(*arguments, "--dataset", ROOT, "--output", tmp_path)
    expected = (rendered / "test_rmsnorm.py").read_bytes()
    assert (tmp_path / "test_rmsnorm.py").read_bytes() == expected


def test_no_path_of_this_machine_is_in_a_file(rendered: Path) -> None:
    for path, content in contents(rendered).items():
        for place in (ROOT, rendered, Path(sys.prefix)):
            assert str(place).encode() + b"/" not in content, path


def test_sums_are_those_of_the_files(rendered: Path) -> None:
    assert wrong_sums(rendered) == []
    assert wrong_sums(ROOT / "tests" / "references") == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("format", "--check", "--isolated"),
        ("format", "--check", "--config", str(ROOT / "pyproject.toml")),
        ("check", "--isolated"),
        ("check", "--config", str(ROOT / "pyproject.toml")),
    ],
    ids=" ".join,
)
def test_ruff_has_nothing_to_say(rendered: Path, arguments: tuple[str, ...]) -> None:
    done = subprocess.run(
        [ruff.find_ruff_bin(), *arguments, "--no-cache", str(rendered)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning" not in done.stderr.lower()


def test_every_definition_has_a_class(rendered: Path) -> None:
    assert len(NAMES) >= 90
    texts = [path.read_text() for path in rendered.glob("test_*.py")]
    for name in NAMES:
        said = f'    name = "{name}"'
        assert sum(text.count(said) for text in texts) == 1, name


@pytest.mark.parametrize(
    "command",
    [
        ("gen_tests", "--all", "--output", "{tmp}"),
        ("gen_tests", "--all", "--check"),
        ("gen_tests", "--all", "--list"),
        ("trace_dataset", "validate"),
    ],
    ids=" ".join,
)
def test_torch_is_not_imported(tmp_path: Path, command: tuple[str, ...]) -> None:
    module, *arguments = (part.format(tmp=tmp_path) for part in command)
    code = f"""
import json, sys
from generator.cli.{module} import main
try:
    main()
except SystemExit as end:
    heavy = ("torch", "numpy", "flashinfer", "sglang", "rich")
    found = [name for name in heavy if name in sys.modules]
    print(json.dumps([end.code, found]), file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments, "--dataset", str(ROOT)],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert json.loads(done.stderr.splitlines()[-1]) == [0, []]
