"""The options of the rendered tests, and runs that compare nothing."""

from __future__ import annotations

import shutil

import pytest
import torch

from tests.harness.datasets import DECODE, NORM, class_name, decode, norm
from tests.harness.runs import Run, by_status, render, run_pytest, table_of

USAGE_ERROR = 4
NO_CUDA = pytest.mark.skipif(
    torch.cuda.is_available(), reason="cuda: this machine has a usable device"
)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--sizes", "huge"], "--sizes 'huge': choose out of small, medium, large"),
        (["--sizes", ""], "--sizes '': choose out of small, medium, large"),
        (["--workload-seconds", "nan"], "seconds: 'nan' is no number of seconds"),
        (["--test-timeout", "-1"], "--test-timeout: '-1' is no number of seconds"),
        (["--recordings", "nowhere"], "--recordings: there is no folder 'nowhere'"),
        (["--device", "tpu"], "--device 'tpu': choose cpu, cuda or cuda:N"),
        pytest.param(
            ["--device", "cuda"],
            "--device cuda: no usable CUDA device here",
            marks=NO_CUDA,
        ),
        (
            ["--definition", "rmsnorm_h182", "--device", "cpu"],
            "--definition rmsnorm_h182: not among the tests; did you mean rmsnorm_h128?",
        ),
    ],
)
def test_wrong_usage_is_one_line_and_exit_status_4(right, arguments, text):
    run = run_pytest(right, *arguments)
    assert run.status == USAGE_ERROR
    said = [line for line in (run.stdout + run.stderr).splitlines() if text in line]
    assert len(said) == 1
    assert said[0].startswith(("ERROR: ", "python -m pytest: error: "))
    assert "Traceback" not in run.stdout + run.stderr


def test_where_the_error_sits_is_recorded_of_passes_only_when_asked(right, green):
    usual = [c for outcome in green.outcomes for c in outcome.comparisons]
    assert usual
    assert not [c for c in usual if "where" in c]
    chosen = ["--definition", NORM, "--sizes", "small", "-k", "test_matches_oracle"]
    run = run_pytest(right, *chosen, "--device", "cpu", "--error-maps")
    compared = [c for outcome in run.outcomes for c in outcome.comparisons]
    assert len(compared) >= 4
    for record in compared:
        assert record["verdict"] == "PASSED"
        where = record["where"]
        assert sum(where["histogram"]) == where["rows"] * where["columns"]
        assert all(0 <= ratio <= 1 for row in where["grid"] for ratio in row)


def test_a_seed_makes_other_inputs_and_the_same_ones_again(right, green):
    def of(run: Run) -> dict[str, float]:
        return {
            record["case"]: record["max_abs"]
            for outcome in run.outcomes
            for record in outcome.comparisons
            if (record["definition"], record["source"]) == (NORM, "oracle")
        }

    chosen = ["--definition", NORM, "--sizes", "small", "-k", "test_matches_oracle"]
    seven, again = (
        run_pytest(right, *chosen, "--device", "cpu", "--seed", "7") for _ in range(2)
    )
    assert seven.status == 0, seven.stdout + seven.stderr
    assert len(of(seven)) >= 4
    assert of(seven) == of(again)
    assert of(seven) != {case: of(green)[case] for case in of(seven)}


def test_strict_is_content_with_comparisons_of_the_definitions_named(right):
    names = ["--definition", NORM, "--definition", DECODE]
    chosen = ["--sizes", "small", "-k", "test_matches_oracle"]
    run = run_pytest(right, *names, *chosen, "--device", "cpu", "--strict")
    assert run.status == 0, run.stdout + run.stderr
    assert {o.test_class for o in run.outcomes} == set(map(class_name, (NORM, DECODE)))
    assert {o.function for o in run.outcomes} == {"test_matches_oracle"}
    cases = {o.case for o in run.outcomes if o.test_class == class_name(NORM)}
    assert cases == {"one-row", "tiny-variance", "large-values", "zero-rows"}
    assert "\n2 of 2 definitions were compared\n" in run.stdout
    assert table_of(run)["gqa_paged", "oracle"][0] == "1/1"


def test_large_cases_are_slow_and_run_only_when_asked_for(right, green):
    usual = {o.case for o in green.outcomes}
    assert {"one-row", "batch", "single-token", "ragged"} <= usual
    assert not usual & {"long-batch", "long"}
    chosen = ["--sizes", "large", "-m", "slow", "-k", "test_contract"]
    run = run_pytest(right, *chosen, "--collect-only", "-q", "--device", "cpu")
    collected = [line for line in run.stdout.splitlines() if "::" in line]
    assert [line.partition("[")[2] for line in collected] == [
        "long]",
        "long]",
        "long-batch]",
    ]


def test_a_case_that_does_not_fit_is_skipped_with_both_numbers(right, tmp_path):
    plugin = (
        "import sys\n"
        "sys.modules['generator'] = None\n"
        "def pytest_collection_modifyitems():\n"
        "    from reference_support.running import free_memory\n"
        "    free_memory.available_bytes = lambda device: 2**29\n"
        "    free_memory.tensor_bytes = lambda *a: int(8.05 * 2**30)\n"
    )
    copy = shutil.copytree(right, tmp_path / "references")
    (tmp_path / "absent.py").write_text(plugin)
    run = run_pytest(copy, "--device", "cpu", "--definition", NORM, "--strict")
    assert set(by_status(run)) == {"skipped"}
    reasons = {
        (o.case == "far-past-limits", o.detail.partition("\n")[0])
        for o in run.outcomes
        if not o.case.startswith(("unavailable", "missing"))
    }
    # one that a CPU is not asked needs no memory there
    assert reasons == {
        (False, "needs 64.4 GiB, device has 0.5"),
        (True, "128 MiB are for a GPU"),
    }
    assert run.status == 1, "nothing was compared, which --strict does not forgive"


@pytest.mark.parametrize(("strict", "status"), [([], 0), (["--strict"], 1)])
def test_an_op_type_without_a_module_compares_nothing(unknown, strict, status):
    run = run_pytest(unknown, "--device", "cpu", *strict)
    assert run.status == status, run.stdout + run.stderr
    assert "\n0 of 1 definitions were compared\n" in run.stdout
    grouped = by_status(run)
    assert {o.function for o in grouped["passed"]} == {
        "test_contract",
        "test_output_shape",
        "test_output_dtype",
        "test_determinism",
        "test_inputs_unmodified",
        "test_strided_inputs",
    }
    skipped, cpu = grouped["skipped"]
    assert cpu.function == "test_matches_cpu"
    assert skipped.function == "test_matches_oracle"
    assert skipped.detail.startswith("oracle: UNRESOLVED: no op module for twice")
    assert set(grouped) == {"passed", "skipped"}


def test_strict_is_not_content_with_no_tests_at_all(right):
    run = run_pytest(right, "--device", "cpu", "--strict", "-k", "nothing_at_all")
    assert run.outcomes == ()
    assert run.status == 1


def test_a_size_that_no_case_has_is_a_skip_with_the_reason(unknown):
    run = run_pytest(unknown, "--device", "cpu", "--sizes", "large")
    assert {o.status for o in run.outcomes} == {"skipped"}
    assert {o.detail.partition("\n")[0] for o in run.outcomes} == {"no case is large"}


def test_it_runs_without_xdist(right):
    chosen = ["--definition", NORM, "--sizes", "small", "--device", "cpu"]
    run = run_pytest(right, *chosen, "-p", "no:xdist")
    assert run.status == 0, run.stdout + run.stderr
    assert table_of(run)["rmsnorm", "oracle"][0] == "1/1"


@pytest.mark.parametrize("processes", [(), ("-n", "2")])
def test_the_table_is_printed_once_in_a_quiet_run(right, processes):
    chosen = ["--definition", NORM, "--sizes", "small", "--device", "cpu"]
    run = run_pytest(right, *chosen, "-qq", *processes)
    assert run.stdout.count("what was compared") == 1
    assert table_of(run)["rmsnorm", "oracle"] == ["1/1", "4", "4", "NMSE", "3.5e-06"]


def test_each_reference_leaves_out_a_definition_that_shares_its_text(tmp_path):
    larger = norm()
    larger["name"], larger["axes"]["hidden_size"]["value"] = "rmsnorm_h256", 256
    larger["reference"] = norm()["reference"].replace("128", "256")
    folder = render(tmp_path, [norm(), larger, decode()])
    chosen = ["--each-reference", "-k", "contract", "--sizes", "small"]
    run = run_pytest(folder, *chosen, "--device", "cpu")
    assert {o.test_class for o in run.outcomes} == set(map(class_name, (NORM, DECODE)))
