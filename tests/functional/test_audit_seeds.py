"""`trace-dataset audit --seeds` as a black box: references as they are, other inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from generator.rules.load import load_definitions
from generator.rules.subjects import subject_of
from kernel_judge.definition import LIMITS
from tests.builders import resized_json
from tests.functional.audit_command import (
    NORM,
    audit,
    dataset,
    interrupt_after_first,
    of_definition,
    with_text,
)

SAMPLER = "top_k_sampling_from_probs_v128256"
LINE = "    x = hidden_states.float()\n"


def norm_with(name: str, *lines: str, imports: str = "") -> dict[str, object]:
    """Return a norm with more lines in `run()`, which may change x."""
    more = "".join(f"    {line}\n" for line in lines)
    return with_text(
        ("import torch\n", f"{imports}import torch\n"),
        (LINE, LINE + more),
        name=f"{NORM}_{name}",
    )


def seeds(root: Path, *arguments: str | Path) -> tuple[int, str, str]:
    return audit("--all", "--dataset", root, "--resume", root / "state", *arguments)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--seeds", "0"], "--seeds '0': choose a number from 1 to 1000000, or"),
        (["--seeds", "-1"], "--seeds '-1': choose a number"),
        (["--seeds", "9-3"], "--seeds '9-3': choose a number"),
        (["--seeds", "0-3"], "--seeds '0-3': choose a number"),
        (["--seeds", "\x1b[2J"], "--seeds '\\x1b[2J': choose a number"),
        (["--seeds", "99999999"], "--seeds '99999999': choose a number"),
        (["--seeds", "2", "--tolerance", "0.1"], "--seeds plants nothing: drop"),
        (["--seeds", "2", "--survivors"], "--seeds plants nothing: drop"),
        (["--whole"], "--whole goes with --seeds"),
    ],
)
def test_wrong_usage_is_one_line_and_exits_2(tmp_path, arguments, said):
    status, out, err = seeds(dataset(tmp_path), *arguments)
    assert (status, out) == (2, "")
    assert said in err.splitlines()[-1]


# four of the bits of an input choose who is wrong: some seeds, not all
UNLUCKY = (
    "if hidden_states.view(torch.int16).flatten()[0] % 4 == 0:",
    "    x = x.abs()",
)
WRONG = [
    ("unlucky", norm_with("unlucky", *UNLUCKY)),
    (
        "flaky",
        norm_with("flaky", "x = x + random.random()", imports="import random\n"),
    ),
    (
        "dying",
        norm_with(
            "dying",
            "if hidden_states.view(torch.int16).flatten()[0] % 2 == 0:",
            "    os._exit(3)",
            imports="import os\n",
        ),
    ),
    ("broken", with_text(("EPS = 1e-06", "EPS = int('x')"), name=f"{NORM}_broken")),
]


@dataclass(frozen=True)
class Asked:
    """Hold what was said of a right reference and of the wrong ones, both ways."""

    root: Path
    status: int
    out: str
    err: str
    json: str


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    right = resized_json(NORM, NORM)
    values = [right, *(value for _, value in WRONG)]
    root = dataset(tmp_path_factory.mktemp("asked"), *values)
    first = seeds(root, "--seeds", "12")
    _, as_json, err = seeds(root, "--seeds", "12", "--json")
    assert "from the last audit" in err
    return Asked(root, *first, as_json)


def alarms(asked: Asked, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = of_definition(asked.json, f"{NORM}_{name}")["alarms"]
    return found


def told(asked: Asked, name: str) -> list[str]:
    lines = asked.out.splitlines()
    return [line for line in lines if line.startswith(f"{NORM}_{name}: ")]


def test_a_right_reference_raises_no_alarm(asked):
    (row,) = [r for r in asked.out.splitlines() if r.startswith(f" {NORM} ")]
    name, count, tests, oracle, metamorphic, statistical, skipped, red, _ = row.split()
    assert (name, count, red) == (NORM, "12", "0")
    assert (int(oracle) % 12, int(metamorphic) % 12) == (0, 0)
    # cases past limits are compared with the oracle alone
    (definition,) = load_definitions(asked.root, names=[NORM]).definitions
    past = 12 * len(subject_of(definition).cases((LIMITS,)))
    assert past == 24
    # contract, shape, dtype, oracle, determinism, unmodified inputs, strided inputs
    assert int(tests) == 7 * (int(oracle) - past) + past + int(metamorphic)
    assert int(metamorphic) >= 12
    assert (statistical, skipped) == ("0", "0")
    assert not [r for r in asked.out.splitlines() if r.startswith(f"{NORM}:")]
    assert of_definition(asked.json)["is_fine"]


def test_one_that_is_wrong_at_some_seeds_is_told_with_how_to_see_it_again(asked):
    assert asked.status == 1
    assert "alarms in 4 definitions" in asked.err
    found = alarms(asked, "unlucky")
    by_oracle = [a for a in found if a["test"] == "test_matches_oracle"]
    # what the bits do not choose is right
    assert 0 < len({a["seed"] for a in by_oracle if a["case"] == "one-row"}) < 12
    # the same inputs choose the same
    assert not [a for a in found if a["test"] == "test_determinism"]

    lines = asked.out.splitlines()
    seed, case = found[0]["seed"], found[0]["case"]
    assert found[0]["test"] == "test_matches_oracle"
    first = f"{NORM}_unlucky: seed {seed}, case {case}, matches_oracle: "
    (place,) = [i for i, line in enumerate(lines) if line.startswith(first)]
    command = lines[place + 1].removeprefix("  again: trace-dataset audit ").split()
    status, out, _ = audit(
        *(*command, "--dataset", asked.root, "--resume", asked.root / "state"), "--json"
    )
    assert status == 1
    again = of_definition(out, f"{NORM}_unlucky")
    assert again["seeds"] == [seed, seed]
    assert again["alarms"] == [a for a in found if a["seed"] == seed]


def test_one_that_is_flaky_is_told(asked):
    found = alarms(asked, "flaky")
    flaky = {a["seed"] for a in found if a["test"] == "test_determinism"}
    assert flaky == set(range(1, 13))


def test_one_that_ends_its_process_is_told_with_where_it_was(asked):
    (line,) = told(asked, "dying")
    assert "not asked to the end: ended its process with status 3 in case " in line
    assert " with seed " in line
    (line,) = told(asked, "broken")
    assert "not asked to the end: ValueError: invalid literal for int()" in line


def test_interrupted_it_goes_on_where_it_was(tmp_path):
    names = ("rmsnorm_h128", "rmsnorm_h128_again")
    root = dataset(tmp_path, *(with_text(name=name) for name in names))
    options: Sequence[str | Path] = (
        *("--all", "--dataset", root, "--resume", root / "state", "--jobs", "1"),
    )
    interrupt_after_first(*options, "--seeds", "4")

    status, _, err = audit(*options, "--seeds", "4")
    assert status == 0
    lines = err.splitlines()[:2]
    assert [line.endswith("from the last audit") for line in lines] == [True, False]


def sampler(name: str, first_line: str = "pass") -> dict[str, object]:
    """Return a sampler of 8192 tokens with a line at the start of `run()`."""
    value = resized_json(SAMPLER, name, vocab_size=8192)
    text = value["reference"]
    place = text.index("\n", text.index("def run")) + 1
    value["reference"] = f"{text[:place]}    {first_line}\n{text[place:]}"
    return value


def test_samplers_are_told_with_their_significance_and_shorter_axes(tmp_path):
    # a reference may insist on the length that it declares
    strict = sampler("sampler_strict", "assert probs.shape[1] == 8192")
    root = dataset(tmp_path, sampler("sampler_right"), strict)
    status, out, err = seeds(root, "--seeds", "1")
    assert status == 0, err
    lines = out.splitlines()
    assert "sampling: vocab_size=1100 in 1 definition: asked on shorter axes" in lines
    (line,) = [line for line in lines if "comparisons are statistical" in line]
    assert line.startswith(
        "22 comparisons are statistical, at a significance of 1e-06 each: chance alone "
        "turns one red in 0.0022 % of such audits, so none may be; "
    )


def test_one_that_speaks_for_the_worker_ends_nothing_else(tmp_path):
    # it writes to every connection that it finds: it has its own alone
    liar = norm_with(
        "a_liar",
        '[os.write(n, b\'{"event": "done"}\\n\') for n in range(3, 256) if is_open(n)]',
        imports=(
            "import os, stat\n"
            "def is_open(n):\n"
            "    try: mode = os.fstat(n).st_mode\n"
            "    except OSError: return False\n"
            "    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)\n"
        ),
    )
    root = dataset(tmp_path, liar, with_text(name=f"{NORM}_b"))
    status, out, _ = seeds(root, "--seeds", "1", "--jobs", "1", "--json")
    assert status == 1
    error = of_definition(out, f"{NORM}_a_liar")["error"]
    assert (
        error
        == "code of the definition reported the end of the work in case one-row with seed 1"
    )
    assert of_definition(out, f"{NORM}_b")["is_fine"]
