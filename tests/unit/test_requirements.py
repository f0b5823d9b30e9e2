"""What is installed is pinned by hash, and agrees with pyproject.toml and constraints.txt."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from tools import build_sbom
from tools.build_requirements import FILES, OF_TORCH

ROOT = Path(__file__).parents[2]
ENTRY = re.compile(
    r"^([A-Za-z0-9._-]+)(?:\[[a-z,]+\])?==(\S+)( ; [^\\\n]+)? \\\n((?: {4}--hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)",
    re.MULTILINE,
)


def name_of(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pinned(name: str) -> dict[str, set[str]]:
    """Return the packages of a file with their versions; every line belongs to one."""
    text = (ROOT / f"requirements/{name}.txt").read_text()
    assert ENTRY.sub("", text) == "", "a line without a version or without hashes"
    found: dict[str, set[str]] = {}
    for package, version, _, _ in ENTRY.findall(text):
        found.setdefault(name_of(package), set()).add(version)
    return found


def wanted(extras: tuple[str, ...]) -> set[str]:
    """Return the names of what some extras of pyproject.toml need, torch's left out."""
    try:
        import tomllib
    except ImportError:  # Python 3.10
        import tomli as tomllib  # type: ignore[no-redef]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    waiting, found, seen = [*project["dependencies"]], set(), set()
    waiting += [f"gen-tests[{extra}]" for extra in extras]
    while waiting:
        requirement = Requirement(waiting.pop())
        if name_of(requirement.name) == "gen-tests":
            for extra in requirement.extras - seen:
                seen.add(extra)
                waiting += project["optional-dependencies"][extra]
        else:
            found.add(name_of(requirement.name))
    return found - {*OF_TORCH}


@pytest.mark.parametrize("name", FILES)
def test_a_file_has_all_that_its_extras_need(name: str) -> None:
    assert wanted(FILES[name]) | {"hatchling", "editables"} <= pinned(name).keys()


def test_what_is_asked_for_with_an_extra_is_pinned_with_it() -> None:
    """Else pip looks for its newest version, of which no hash is here."""
    text = (ROOT / "requirements/test.txt").read_text()
    pins = [
        Requirement(line.rstrip(" \\")) for line in text.splitlines() if "==" in line
    ]
    present = {name_of(pin.name): pin.extras for pin in pins}
    asked = [
        (dependency.name, extra)
        for name in present
        for line in requires(name)
        if not (dependency := Requirement(line)).marker or dependency.marker.evaluate()
        for extra in dependency.extras
    ]
    assert ("coverage", "toml") in asked
    assert [(n, e) for n, e in asked if e not in present[name_of(n)]] == []


def requires(name: str) -> list[str]:
    """Return what an installed distribution requires; others are of other machines."""
    try:
        return metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return []


@pytest.mark.parametrize("name", FILES)
def test_versions_are_those_of_the_constraints(name: str) -> None:
    constraints: dict[str, set[str]] = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            requirement = Requirement(line)
            (pin,) = requirement.specifier
            assert pin.operator == "==", line
            constraints.setdefault(name_of(requirement.name), set()).add(pin.version)
    for package, versions in pinned(name).items():
        assert versions <= constraints.get(package, versions), package


def test_actions_are_pinned_by_commit() -> None:
    used = []
    for path in (ROOT / "action.yml", *sorted((ROOT / "docs").glob("*.md"))):
        used += re.findall(r"uses: +(\S+)", path.read_text())
    foreign = [name for name in used if not name.startswith(("OWNER/", "./"))]
    assert len(foreign) >= 3
    assert [n for n in foreign if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", n)] == []
    assert yaml.safe_load((ROOT / "action.yml").read_text())["runs"]


def test_the_bill_of_materials_has_every_package() -> None:
    made = build_sbom.bill()
    found = {name_of(part["name"]) for part in made["components"]}
    assert found == {*pinned("execute"), "torch"}
    assert all(part["version"] for part in made["components"])
    assert sum(len(part["properties"]) for part in made["components"]) > 100


def test_hooks_of_pre_commit_install_pinned_packages() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    known = pinned("action")
    for hook in hooks:
        pins = dict(one.split("==") for one in hook["additional_dependencies"])
        assert wanted(()) <= {name_of(name) for name in pins}
        for name, version in pins.items():
            assert version in known[name_of(name)], name
