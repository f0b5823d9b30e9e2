"""Definitions that no op serves are proven by a text of float64, or by a forward one."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from generator.rules.load import load_definitions
from generator.rules.proofs import Forward, Text, proof_of
from generator.rules.unproven import why_unproven
from tests.builders import resized_json, write_dataset

FORWARD = resized_json("rmsnorm_h128", "rmsnorm_h128")
RIGHT = """import torch

EPS = 1e-06


@torch.no_grad()
def run(hidden_states, weight, grad_output):
    x, w, g = hidden_states.float(), weight.float(), grad_output.float()
    inverse = torch.rsqrt(x.square().mean(-1, keepdim=True) + EPS)
    normal = x * inverse
    of_normal = g * w
    along = (of_normal * normal).mean(-1, keepdim=True)
    grad_x = inverse * (of_normal - normal * along)
    grad_w = (g * normal).sum(0)
    return grad_x.to(hidden_states.dtype), grad_w.to(weight.dtype)
"""
WRONG = RIGHT.replace(" - normal * along", "")
TEXT = """import torch


def run(hidden_states, weight, grad_output):
    root = (hidden_states.square().mean(1, keepdim=True) + 1e-6).sqrt()
    y = hidden_states / root
    scaled = grad_output * weight
    inner = (scaled * y).sum(1, keepdim=True) / y.shape[1]
    return (scaled - y * inner) / root, (grad_output * y).sum(0)
"""


def backward(reference, **changes):
    tensor = FORWARD["inputs"]["hidden_states"]
    return {
        **FORWARD,
        "name": "rmsnorm_backward_h128",
        "op_type": "rmsnorm_backward",
        "description": "Gradients of an RMS norm.",
        "tags": [],
        "inputs": {**FORWARD["inputs"], "grad_output": dict(tensor)},
        "outputs": {
            "grad_hidden_states": dict(tensor),
            "grad_weight": dict(FORWARD["inputs"]["weight"]),
        },
        "reference": reference,
        **changes,
    }


def dataset(tmp_path, *definitions, text=None):
    root = write_dataset(tmp_path, definitions)
    if text is not None:
        folder = root / "oracles" / "rmsnorm_backward"
        folder.mkdir(parents=True)
        (folder / "rmsnorm_backward_h128.py").write_text(text)
    return root


def of(root, name="rmsnorm_backward_h128"):
    (found,) = load_definitions(root, names=[name]).definitions
    return found


def command(module, *options):
    words = [sys.executable, "-m", f"generator.cli.{module}", *options]
    return subprocess.run(words, check=False, capture_output=True, text=True)


def outcome_of(root):
    done = command("gen_tests", "--all", "--dataset", str(root))
    assert done.returncode == 0, done.stderr
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--strict"]
    tests = root / "tests" / "references"
    return done, subprocess.run(
        [*words, "test_rmsnorm_backward.py"],
        check=False,
        cwd=tests,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("text", [None, TEXT])
def test_a_right_backward_definition_is_proven_and_green(tmp_path, text):
    others = [FORWARD] if text is None else []
    root = dataset(tmp_path, *others, backward(RIGHT), text=text)
    assert isinstance(proof_of(root, of(root)), Forward if text is None else Text)
    assert why_unproven(root, of(root)) is None
    rendered, done = outcome_of(root)
    assert "NOTHING COMPARED" not in rendered.stderr
    assert done.returncode == 0, done.stdout
    assert "1 of 1 definitions were compared" in done.stdout


@pytest.mark.parametrize("text", [None, TEXT])
def test_a_wrong_backward_definition_is_red(tmp_path, text):
    others = [FORWARD] if text is None else []
    _, done = outcome_of(dataset(tmp_path, *others, backward(WRONG), text=text))
    assert done.returncode == 1, done.stdout
    assert "'grad_hidden_states' against oracle" in done.stdout
    assert "'grad_weight' against oracle" not in done.stdout


def test_defects_of_a_backward_definition_are_caught(tmp_path):
    root = dataset(tmp_path, FORWARD, backward(RIGHT))
    words = ("--definition-name", "rmsnorm_backward_h128", "--json", "--fresh")
    done = command("trace_dataset", "audit", *words, "--dataset", str(root))
    (found,) = json.loads(done.stdout)["definitions"]
    # inputs are guessed, of deviation 1 and few rows: another eps and one rounding more
    # are within the bounds of bfloat16
    survivors = [m["name"] for m in found["mutants"] if m["status"] == "survived"]
    small = ("precision", "dropped", "constant 3:6", "operator 9:26", "sign", "domain")
    assert all(name.startswith(small) for name in survivors)
    assert found["counts"]["caught"] > 3 * len(survivors)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"outputs": {"dz": FORWARD["inputs"]["weight"]}}, "output dz is the gradient"),
        ({"op_type": "other_backward"}, "the dataset has no definition of other"),
    ],
)
def test_what_is_not_matched_says_why(tmp_path, changes, why):
    root = dataset(tmp_path, FORWARD, backward(RIGHT, **changes))
    assert why in (why_unproven(root, of(root)) or "")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x = 1\n", "it has 0 functions `run`"),
        (TEXT.replace("weight, grad_output):", "weight):"), "its `run` takes"),
        (TEXT.replace("import torch\n", "import os\n"), "line 1"),
        (RIGHT, "it is the reference itself"),
        ("def run(:\n", "invalid syntax"),
    ],
)
def test_an_unfit_text_is_a_problem_and_proves_nothing(tmp_path, text, why):
    root = dataset(tmp_path, backward(RIGHT), text=text)
    done = command("trace_dataset", "validate", "--json", "--dataset", str(root))
    assert done.returncode == 1
    (found,) = [
        p for p in json.loads(done.stdout)["problems"] if p["rule"] == "oracle-unfit"
    ]
    assert why in found["message"]
    assert why_unproven(root, of(root)) is not None
