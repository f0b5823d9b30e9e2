"""`trace-dataset audit` as a black box: what it plants, catches, keeps and refuses."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.builders import resized_json
from tests.functional.audit_command import (
    NORM,
    audit,
    dataset,
    interrupt_after_first,
    of_definition,
    with_text,
)
from tests.harness.datasets import TWICE


def test_a_dataset_in_which_nothing_may_be_read_is_not_fine(tmp_path):
    folder = tmp_path / "definitions" / "gemm"
    folder.mkdir(parents=True)
    (folder / "b.txt").write_text("{}")
    (folder / "a.json").symlink_to(tmp_path.parent)
    status, out, err = audit("--dataset", tmp_path, "--all")
    assert (status, out) == (2, "")
    (line,) = err.splitlines()
    assert "definitions/gemm/a.json: This is a symbolic link, which is not" in line


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Say what to audit: --op-type, --definition-name, --all."),
        (["--all", "--op-type", "rmsnorm"], "--all leaves nothing to choose"),
        (["--definition-name", "rmsnorm_h12"], "Did you mean 'rmsnorm_h128'?"),
        (["--op-type", "norm"], "No op_type of the dataset is named 'norm'."),
        (["--all", "--tolerance", "nan"], "--tolerance nan: choose a number"),
        (["--all", "--tolerance", "-1"], "--tolerance -1.0: choose a number"),
        (["--all", "--jobs", "0"], "0 is not in the range"),
    ],
)
def test_wrong_usage_is_one_line_and_exits_2(tmp_path, arguments, said):
    status, out, err = audit("--dataset", dataset(tmp_path), *arguments)
    assert (status, out) == (2, "")
    assert said in err.splitlines()[-1]


def test_a_folder_without_definitions_exits_2(tmp_path):
    status, out, err = audit("--all", "--dataset", tmp_path)
    assert (status, out) == (2, "")
    assert len(err.splitlines()) == 1


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, str, str]:
    root = dataset(tmp_path_factory.mktemp("right"))
    return (root, *audit("--all", "--dataset", root, "--resume", root / "state"))


def test_every_defect_of_a_norm_is_caught(audited):
    _, status, out, err = audited
    assert status == 0, err
    row = next(line for line in out.splitlines() if line.startswith(f" {NORM} "))
    name, mutants, caught, equivalent, survived, timed_out, *_ = row.split()
    assert (name, survived, timed_out) == (NORM, "0", "0")
    assert int(mutants) == int(caught) + int(equivalent)
    assert int(caught) >= 35
    assert "matches_oracle" in row
    assert "0 survived" in err


def test_what_is_known_is_not_audited_again_until_something_changes(audited):
    root, *_ = audited
    again = ("--all", "--dataset", root, "--resume", root / "state", "--json")
    status, out, err = audit(*again)
    assert status == 0
    assert "from the last audit" in err
    mutants = {m["name"]: m for m in of_definition(out)["mutants"]}
    eps = mutants["constant 3:6 1e-06 → 1e-05"]
    assert (eps["status"], eps["test"]) == ("caught", "test_matches_oracle")
    assert (eps["case"], eps["before"]) == ("tiny-variance", "EPS = 1e-06")
    assert sum(json.loads(out)["totals"].values()) == 1 + len(mutants)
    same = mutants[
        "precision 8:8 hidden_states.float() → hidden_states.bfloat16().float()"
    ]
    assert same["status"] == "equivalent"
    assert same["why"] == "no other value in any case, nor in 200 random cases"

    _, _, err = audit(*again, "--tolerance", "0.1")
    assert "from the last audit" not in err


def test_a_wide_tolerance_makes_survivors(tmp_path):
    root = dataset(tmp_path)
    status, out, err = audit(
        *("--all", "--dataset", root, "--resume", root / "state"),
        *("--tolerance", "0.1", "--survivors"),
    )
    assert status == 1
    assert " 0 survived" not in err
    lines = out.splitlines()
    heading = f"{NORM}: precision 9:30 x.square().mean(dim=-1, keepdim=True) → "
    place = next(i for i, line in enumerate(lines) if line.startswith(heading))
    mean = "x.square().mean(dim=-1, keepdim=True)"
    assert lines[place + 1 : place + 3] == [
        f"  - 9: inverse_rms = torch.rsqrt({mean} + EPS)",
        f"  + 9: inverse_rms = torch.rsqrt({mean}.bfloat16().float() + EPS)",
    ]
    assert lines[place + 3].startswith("  differs in random case ")


WRONG = [
    ("EPS = 1e-06", "EPS = 1e-05", "does not pass test_matches_oracle in case tiny"),
    ("EPS = 1e-06", "EPS = int('x')", "not audited: ValueError: invalid literal"),
    ("EPS = 1e-06", "import os; os._exit(0)", "not audited: ended its process"),
    ("EPS = 1e-06", "raise SystemExit(0)", "not audited: SystemExit: 0"),
    (
        "x = hidden_states.float()",
        "raise OSError('\\x1b[2J')",
        "does not pass test_output_shape in case one-row: raised OSError: \\x1b[2J",
    ),
    (
        # the connection of a mutant's child lies where those were
        "x = hidden_states.float()",
        "x = hidden_states.float(); import os; os.closerange(0, 3)",
        "not audited: the reference itself does not pass run where mutants run: ",
    ),
]


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, str, str]:
    values = [
        with_text((old, new), name=f"{NORM}_v{number}")
        for number, (old, new, _) in enumerate(WRONG)
    ]
    root = dataset(tmp_path_factory.mktemp("wrong"), *values)
    return audit("--all", "--dataset", root, "--resume", root / "state")


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_a_reference_that_is_wrong_itself_is_told(wrong, number):
    status, out, err = wrong
    assert status == 1
    (told,) = [
        line
        for line in out.splitlines()
        if line.startswith(f"{NORM}_v{number}: ") and WRONG[number][2] in line
    ]
    assert told.isprintable()
    assert "\x1b" not in out + err


def test_what_a_mutant_does_to_its_process_ends_nothing_else(tmp_path):
    steps = "STEPS, ANSWER = 3, 42\n\ndef walk():\n    n = 0\n" + (
        "    while n < STEPS:\n        n = n + 1\n"
        "    if ANSWER != 42:\n        os._exit(7)\n"
        "    print('walked', os.environ.get('PLANTED_SECRET'))\n\n"
    )
    value = with_text(
        ("import torch\n", "import os\n\nimport torch\n"),
        ("EPS = 1e-06\n", f"EPS = 1e-06\n{steps}"),
        ("    x = hidden", "    walk()\n    x = hidden"),
    )
    root = dataset(tmp_path, value)
    status, out, err = audit(
        "--all", "--dataset", root, "--json", "--resume", root / "state"
    )
    found = of_definition(out)
    by_name = {m["name"].split(" ", 2)[2]: m for m in found["mutants"] if m["line"]}
    assert by_name["n + 1 → (n - 1)"]["status"] == "timed out"
    assert by_name["42 → 43"]["why"] == "ended its process with status 7"
    assert by_name["1e-06 → 1e-05"]["test"] == "test_matches_oracle"
    assert status == int(found["counts"]["survived"] > 0)
    # neither what it prints nor the caller's environment gets anywhere
    assert "walked None" not in out + err


def test_interrupted_it_goes_on_where_it_was(tmp_path):
    # the second takes several times as long as the first: it is under way by then
    sampler = "top_k_top_p_sampling_from_probs_v"
    longer = resized_json(f"{sampler}128256", f"{sampler}8192", vocab_size=8192)
    root = dataset(tmp_path, with_text(name=NORM), longer)
    options: Sequence[str | Path] = (
        *("--all", "--dataset", root, "--resume", root / "state", "--jobs", "1"),
    )
    interrupt_after_first(*options)
    assert [p.suffix for p in (root / "state").iterdir()] == [".json"]

    status, _, err = audit(*options)
    assert status == 0
    assert [line.endswith("from the last audit") for line in err.splitlines()[:2]] == [
        True,
        False,
    ]


def test_a_file_that_can_t_be_read_is_told_in_its_own_words(tmp_path):
    root = dataset(tmp_path)
    path = root / "definitions" / "rmsnorm" / f"{NORM}.json"
    path.write_text("{")
    for more in ((), ("--seeds", "1")):
        status, out, _ = audit(
            *("--all", "--dataset", root, "--resume", root / "state", *more)
        )
        assert status == 1
        (line,) = [x for x in out.splitlines() if x.startswith(f"{NORM}: ")]
        assert f": definitions/rmsnorm/{NORM}.json line 1: error: The text ends" in line
        assert "ValueError" not in line


@pytest.mark.parametrize("command", ["audit", "audit --seeds 1"])
def test_where_results_can_t_be_kept_nothing_is_begun(tmp_path, command):
    root = dataset(tmp_path)
    (root / "state").write_text("no folder")
    status, out, err = audit(
        *command.split()[1:], "--all", "--dataset", root, "--resume", root / "state"
    )
    assert (status, out) == (2, "")
    why = "results can't be kept there: it is no folder. --resume DIR keeps them elsewhere."
    assert err == f"Error: {root / 'state'}: {why}\n"


def test_a_result_that_is_damaged_is_made_anew(audited, tmp_path):
    root, *_ = audited
    for kept in (root / "state").iterdir():
        (tmp_path / kept.name).write_text("[{")
    status, _, err = audit("--all", "--dataset", root, "--resume", tmp_path)
    assert status == 0
    assert "from the last audit" not in err


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ((), "not audited"),
        (("--limits",), "not audited"),
        (("--seeds", "2"), "not asked to the end"),
        (("--tolerances",), "not measured"),
    ],
)
def test_without_an_op_module_nothing_is_compared_and_that_is_no_audit(
    tmp_path, options, what
):
    root = dataset(tmp_path, TWICE)
    kept = () if "--tolerances" in options else ("--resume", root / "state")
    status, out, err = audit("--all", "--dataset", root, *kept, *options)
    assert status == 1
    line = next(x for x in out.splitlines() if x.startswith("twice_n4: "))
    assert f": {what}: nothing was compared: " in line
    assert "UNRESOLVED" in line
    assert "survived" not in line
    if what == "not audited":
        assert "1 definition not audited" in err
