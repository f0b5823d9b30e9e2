"""action.yml: its steps are run as a runner does, on a good and a bad change."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.functional.reviewed import (
    REFERENCE,
    changed,
    commit,
    evidence,
    git,
    make,
    render,
)
from tests.functional.test_validate import ROOT

ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
EXPRESSION = re.compile(r"\$\{\{\s*inputs\.([\w-]+)\s*\}\}")
GOOD = REFERENCE.replace("A @ B.T", "A.matmul(B.T)")
STUB = "#!/bin/sh\nexec '{python}' -P -c '{code}' \"$@\"\n"
MAIN = (
    f'import sys; sys.path.insert(0, "{ROOT}"); '
    "from generator.cli.trace_dataset import main; main()"
)


@dataclass
class Ran:
    """Hold how a step ended, and what it told the runner."""

    status: int
    log: str
    outputs: dict[str, str] = field(default_factory=dict)
    summary: str = ""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a checkout with a dataset."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    make(folder)
    return folder


@pytest.fixture
def step(root: Path, tmp_path: Path) -> Callable[..., Ran]:
    """Run a step in the checkout as a runner would."""
    program = tmp_path / "temp/trace-dataset/bin/trace-dataset"
    program.parent.mkdir(parents=True)
    # -P as an installed program: the current folder is not on its path
    python = "-I" if sys.version_info < (3, 11) else "-P"
    stub = STUB.replace("-P", python).format(python=sys.executable, code=MAIN)
    program.write_text(stub)
    program.chmod(0o755)

    def run(name: str, **inputs: str) -> Ran:
        given = {key: value["default"] for key, value in ACTION["inputs"].items()}
        given |= {key.replace("_", "-"): value for key, value in inputs.items()}
        told = {
            key: EXPRESSION.sub(lambda found: given[found[1]], value)
            for key, value in STEPS[name]["env"].items()
        }
        files = {
            key: tmp_path / key for key in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")
        }
        for file in files.values():
            file.write_text("")
        done = subprocess.run(
            [
                "bash",
                "--noprofile",
                "--norc",
                "-eo",
                "pipefail",
                "-c",
                STEPS[name]["run"],
            ],
            cwd=root,
            env={
                **os.environ,
                **told,
                **{key: str(file) for key, file in files.items()},
                "RUNNER_TEMP": str(tmp_path / "temp"),
                "GITHUB_ACTION_PATH": str(ROOT),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        lines = files["GITHUB_OUTPUT"].read_text().splitlines()
        outputs = dict(line.split("=", 1) for line in lines)
        summary = files["GITHUB_STEP_SUMMARY"].read_text()
        return Ran(done.returncode, done.stdout + done.stderr, outputs, summary)

    return run


def test_no_input_is_written_into_a_script() -> None:
    scripts = [step["run"] for step in STEPS.values() if "run" in step]
    assert len(scripts) == 2
    assert [s for s in scripts if "${{" in s or "eval" in s] == []
    named = {m for s in STEPS.values() for m in EXPRESSION.findall(str(s.get("env")))}
    named |= set(EXPRESSION.findall(str(STEPS["Set up Python"]["with"])))
    assert named == set(ACTION["inputs"])


def test_outputs_are_those_that_the_step_sets() -> None:
    for name, output in ACTION["outputs"].items():
        assert output["value"] == f"${{{{ steps.review.outputs.{name} }}}}"
        assert f'echo "{name}=' in STEPS["Review"]["run"]


def test_a_good_change_is_approved(root: Path, step: Callable[..., Ran]) -> None:
    git(root, "checkout", "-q", "-b", "$(touch${IFS}pwned)")
    changed(root, reference=GOOD)
    evidence(root)
    commit(root)
    ran = step("Review", base="main", head="HEAD", trust_evidence="true", fail_on="gpu")
    assert (ran.status, ran.outputs["verdict"]) == (0, "approve"), ran.log
    assert ran.outputs["exit-status"] == "0"
    for name in ("markdown", "json", "sarif", "junit"):
        assert Path(ran.outputs[name]).is_file()
    assert Path(ran.outputs["reports"], "tests/references/test_gemm.py").is_file()
    assert ran.summary == Path(ran.outputs["markdown"]).read_text()
    assert not list(root.rglob("pwned"))


@pytest.mark.parametrize(
    ("fail_on", "status"), [("changes", 1), ("gpu", 1), ("never", 0)]
)
def test_a_bad_change_fails(
    root: Path, step: Callable[..., Ran], fail_on: str, status: int
) -> None:
    changed(root, outputs={"C": {"shape": ["M", "X"], "dtype": "float16"}})
    ran = step("Review", fail_on=fail_on, summary="false")
    assert (ran.status, ran.outputs["verdict"]) == (status, "changes needed"), ran.log
    assert "::error file=definitions/gemm/gemm_n8_k4.json" in ran.log
    assert ran.summary == ""


@pytest.mark.parametrize(
    ("fail_on", "status"), [("changes", 0), ("person", 0), ("gpu", 1)]
)
def test_what_needs_a_gpu_fails_where_it_is_to(
    root: Path, step: Callable[..., Ran], fail_on: str, status: int
) -> None:
    changed(root, reference=GOOD)
    ran = step("Review", fail_on=fail_on, format="text")
    assert (ran.status, ran.outputs["exit-status"]) == (status, "3"), ran.log
    assert ran.outputs["verdict"] == "needs a GPU"


def _rendered_by_hand(root: Path) -> None:
    test = root / "tests/references/test_gemm.py"
    text = test.read_text()
    test.write_text(text.replace("def oracle(", "def an_oracle("))
    assert test.read_text() != text


def _evidence_gone(root: Path) -> None:
    (root / "verification/gpu.json").unlink()


def _a_conftest(root: Path) -> None:
    (root / "conftest.py").write_text("collect_ignore_glob = ['*']\n")


@pytest.mark.parametrize(
    ("change", "verdict", "file"),
    [
        (_rendered_by_hand, "changes needed", "tests/references/test_gemm.py"),
        (_evidence_gone, "changes needed", "verification/gpu.json"),
        (_a_conftest, "needs a person", "conftest.py"),
    ],
)
def test_what_switches_the_gate_off_fails_by_default(
    root: Path,
    step: Callable[..., Ran],
    change: Callable[[Path], None],
    verdict: str,
    file: str,
) -> None:
    evidence(root)
    render(root)
    commit(root)
    change(root)
    commit(root)
    ran = step("Review", base="HEAD~1", head="HEAD")
    assert (ran.status, ran.outputs["verdict"]) == (1, verdict), ran.log
    assert f" file={file}," in ran.log
    assert file in ran.summary.replace("&#46;", ".").replace("&#95;", "_")
    accepted = step("Review", base="HEAD~1", head="HEAD", accept=f"removal:{file}\n")
    assert accepted.status == (0 if change is _evidence_gone else 2), accepted.log


def test_a_description_alone_is_approved_by_default(
    root: Path, step: Callable[..., Ran]
) -> None:
    evidence(root)
    render(root)
    commit(root)
    changed(root, description="In other words.")
    render(root)
    commit(root)
    ran = step("Review", base="HEAD~1", head="HEAD")
    assert (ran.status, ran.outputs["verdict"]) == (0, "approve"), ran.log


HOSTILE = (
    "$(touch pwned) `touch pwned`",
    "x\ntouch pwned\nverdict=approve",
    "--version",
)


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize(
    "name", [n for n in ACTION["inputs"] if n not in ("python-version", "out")]
)
def test_a_hostile_input_is_inert(
    root: Path, step: Callable[..., Ran], name: str, text: str
) -> None:
    ran = step("Review", **{name: text})
    assert ran.status == 2, ran.log
    assert ran.outputs.get("verdict", "") == ""
    assert not list(root.rglob("pwned"))


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_folder_is_only_a_name(
    root: Path, tmp_path: Path, step: Callable[..., Ran], text: str
) -> None:
    ran = step("Review", out=text)
    assert not list(root.rglob("pwned"))
    if "\n" in text:
        assert (ran.status, ran.outputs) == (2, {})
    else:
        assert ran.outputs["reports"] == text
        assert (root / text / "review.md").is_file()


def test_nothing_of_the_checkout_is_imported(
    root: Path, tmp_path: Path, step: Callable[..., Ran]
) -> None:
    for name in ("venv", "pip", "click", "generator", "sitecustomize", "json"):
        (root / f"{name}.py").write_text("open('pwned', 'w')\n")
    tools = tmp_path / "tools"
    tools.mkdir()
    for path in (tools / "python", tmp_path / "temp/trace-dataset/bin/python"):
        path.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> {tmp_path}/asked\n')
        path.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
        ran = step("Install", execute="true")
    assert ran.status == 0, ran.log
    asked = (tmp_path / "asked").read_text().splitlines()
    venv, pip = asked[:4], asked[4:]
    assert "--require-hashes" in pip
    assert "--extra-index-url" not in pip
    assert venv == ["-I", "-m", "venv", str(tmp_path / "temp/trace-dataset")]
    assert pip[:4] == ["-I", "-m", "pip", "install"]
    assert pip[-1] == str(ROOT)
    step("Review")
    assert not list(root.rglob("pwned"))
