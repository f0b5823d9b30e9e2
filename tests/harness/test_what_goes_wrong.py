"""A library, a CUDA context or memory that fails in the middle of a run."""

from __future__ import annotations

import pytest

from generator.results.run_results import read_results
from tests.builders import replaced
from tests.harness.datasets import (
    DECODE,
    NORM,
    TWICE,
    class_name,
    decode,
    norm,
)
from tests.harness.pretended import CONTEXT, EVERY_BACKEND, MEMORY, pretend
from tests.harness.runs import by_status, render, run_pytest, table_of

BREAKS, LATE = f"{NORM}_breaks", f"{NORM}_late"
_BREAK = """if hidden_states.shape[0] == 8:
        raise RuntimeError('CUDA error: an illegal memory access was encountered')
    """
KINDS = ("cuda-cores", "fa2", "fa3", "xqa")
FLASHINFER = ("flashinfer", *(f"flashinfer/{kind}" for kind in KINDS))
CPU = ("--device", "cpu", "--sizes", "small")
# one test of the definition that breaks the context calls run() with so many rows
CHOSEN = ("-k", "test_contract or test_determinism")


@pytest.fixture(scope="module")
def breaking(tmp_path_factory):
    """Return the rendered tests of a norm that breaks the context, among right ones."""
    definition = norm(BREAKS)
    run = "x = hidden_states.float()\n"
    text = replaced(definition["reference"], run, f"{_BREAK}{run}")
    root = tmp_path_factory.mktemp("breaking")
    late = norm(LATE)
    # a text of its own: definitions of one text lie together, before those of later ones
    late["reference"] += "\n# late"
    definitions = [decode(), norm(), {**definition, "reference": text}, late]
    return render(root, definitions)


def ids(outcomes):
    """Return what tells the tests apart."""
    return sorted((o.test_class, o.function, o.case) for o in outcomes)


@pytest.mark.parametrize("spread", [(), ("-n", "1", "--dist", "loadscope")])
def test_in_one_process_what_comes_after_is_an_error_that_names_the_test(
    breaking, spread
):
    options = pretend(breaking.parent, CONTEXT)
    run = run_pytest(breaking, *options, *CPU, *CHOSEN, *spread)
    assert run.status == 1, run.stdout + run.stderr
    grouped = by_status(run)
    broke = (class_name(BREAKS), "test_determinism", "tiny-variance")
    assert ids(grouped["failed"]) == [broke]
    lost = f"::{broke[0]}::{broke[1]}[{broke[2]}]"
    for outcome in grouped["error"]:
        assert "CUDA context lost after " in outcome.detail
        assert lost in outcome.detail
    # tests that share a case run together: what came before is judged, what is after not
    assert run.functions(class_name(LATE), "error") >= {"test_determinism"}
    assert run.functions(class_name(LATE), "passed") == set()
    assert run.functions(class_name(DECODE), "error") == set()
    assert run.functions(class_name(NORM), "error") == set()
    assert f"{lost}; the tests after it were not run" in run.stdout


@pytest.mark.slow
@pytest.mark.parametrize("dist", ["load", "worksteal"])
def test_under_xdist_a_fresh_worker_goes_on_with_the_rest(breaking, dist):
    options = pretend(breaking.parent, CONTEXT)
    spread = ("-n", "1", "--dist", dist, "--max-worker-restart", "2")
    run = run_pytest(breaking, *options, *CPU, *CHOSEN, *spread)
    assert run.status == 1, run.stdout + run.stderr
    assert run.stdout.count("replacing crashed worker") == 1
    grouped = by_status(run)
    # the test is one failure, with its own message, and there is no other
    broke = (class_name(BREAKS), "test_determinism", "tiny-variance")
    assert ids(grouped["failed"]) == [broke]
    assert "illegal memory access" in grouped["failed"][0].detail
    assert "error" not in grouped
    assert "; a fresh worker went on" in run.stdout
    # nobody is reported twice, and nobody is missing
    assert ids(run.outcomes) == ids(run_pytest(breaking, *CPU, *CHOSEN).outcomes)


def test_after_xdists_last_worker_it_is_said_that_tests_were_not_run(breaking):
    options = pretend(breaking.parent, CONTEXT)
    spread = ("-n", "1", "--dist", "load", "--max-worker-restart", "1")
    # two tests break a context: the second finds no worker to take its place
    chosen = ("-k", "test_determinism or test_output_shape")
    run = run_pytest(breaking, *options, *CPU, *chosen, *spread)
    assert run.status == 1
    assert run.stdout.count("; a fresh worker went on") == 1
    assert "; it was the last of 2 workers, and the tests after it were" in run.stdout
    assert "--max-worker-restart 100 runs them" in run.stdout


def test_what_runs_out_of_memory_is_a_skip_with_numbers(tmp_path):
    folder = render(tmp_path, [norm()])
    options = pretend(tmp_path, MEMORY)
    run = run_pytest(folder, *options, *CPU, "-k", "oracle", "-rs")
    assert run.status == 0, run.stdout + run.stderr
    grouped = by_status(run)
    assert {o.case for o in grouped["skipped"]} == {"tiny-variance", "large-values"}
    assert {o.case for o in grouped["passed"]} == {"one-row", "zero-rows"}
    for outcome in grouped["skipped"]:
        kind = {"tiny-variance": "OutOfMemoryError"}.get(outcome.case, "RuntimeError")
        assert f"out of memory ({kind}): needs 0.0 GiB by estimate, " in outcome.detail
        assert "GiB free of" in outcome.detail
        assert outcome.comparisons == ()


def test_a_library_that_ends_the_process_on_import_is_a_skip(tmp_path):
    folder = render(tmp_path, [norm()])
    options = pretend(tmp_path, EVERY_BACKEND, "raise SystemExit(0)\n")
    run = run_pytest(folder, *options, *CPU, "-k", "flashinfer", "--strict")
    (outcome,) = run.outcomes
    assert outcome.status == "skipped"
    assert "flashinfer: import failed: SystemExit: 0" in outcome.detail
    # nothing was compared: under --strict that is no success
    assert run.status == 1


def test_an_unknown_op_type_is_compared_with_the_function_that_its_tag_names(tmp_path):
    tagged = {**TWICE, "tags": ["fi_api:flashinfer.twice"]}
    wrong = {**tagged, "name": "twice_n4_b", "reference": "def run(x):\n    return x\n"}
    plain = {**TWICE, "name": "twice_n4_c"}
    folder = render(tmp_path, [tagged, wrong, plain])
    text = (folder / "test_twice.py").read_text()
    assert "called live where their parameters" in " ".join(text.split())
    assert text.count("# matched by the names of parameters and inputs") == 2
    library = "def twice(input, out=None):\n    return input * 2\n"
    options = pretend(tmp_path, EVERY_BACKEND, library)
    run = run_pytest(folder, *options, *CPU, "-k", "flashinfer")
    found = {o.test_class: (o.status, o.case, o.detail) for o in run.outcomes}
    assert found["TestTwiceN4"][:2] == ("passed", "generic-twice")
    assert found["TestTwiceN4B"][0] == "failed"
    assert found["TestTwiceN4C"][0] == "skipped"
    assert "UNRESOLVED: the definition has no fi_api tag" in found["TestTwiceN4C"][2]
    row = table_of(run)["twice", "flashinfer/twice"]
    assert row[0] == "2/2"
    assert "FAILED;" in row


def test_results_arrive_line_by_line_and_a_killed_run_keeps_them(tmp_path):
    definition = norm()
    run = "x = hidden_states.float()\n"
    dies = f"import os\n    hidden_states.shape[0] == 8 and os._exit(9)\n    {run}"
    text = replaced(definition["reference"], run, dies)
    folder = render(tmp_path, [{**definition, "reference": text}])
    results = tmp_path / "results.jsonl"
    chosen = ("-k", "oracle", "--results", str(results))
    assert run_pytest(folder, *CPU, *chosen).status == 9
    tests = read_results(results).tests
    assert {(test.source, test.status) for test in tests} == {("oracle", "passed")}
    # in a process of its own the end of one test is an error of that test alone
    assert run_pytest(folder, *CPU, *chosen, "-n", "1").status == 1
    found = {test.test: test for test in read_results(results).tests}
    assert len(found) > len(tests)
    crashed = [test for test in found.values() if test.status != "passed"]
    assert crashed
    assert all("crashed" in test.message for test in crashed)
    assert {test.definition for test in found.values()} == {NORM}


def test_results_say_which_machine_and_whom_each_test_is_about(right):
    results = right.parent / "results.jsonl"
    chosen = ("-k", "oracle or flashinfer or contract", "--results", str(results))
    run = run_pytest(right, *CPU, "-n", "2", *chosen)
    found = read_results(results)
    assert found.machine["device"] == "cpu"
    assert set(found.machine) >= {"python", "torch", "cuda", "flashinfer", "sglang"}
    assert len(found.tests) == len({test.test for test in found.tests})
    assert sorted((test.function, test.status) for test in found.tests) == sorted(
        (outcome.function, outcome.status) for outcome in run.outcomes
    )
    for test in found.tests:
        assert len(test.sha256) == 64
        for record in test.comparisons:
            assert (record["definition"], record["source"]) == (
                test.definition,
                test.source,
            )
    assert {test.source for test in found.tests} == {None, "oracle", *FLASHINFER}
    skipped = [test for test in found.tests if test.source in FLASHINFER]
    assert {t.skip_kind for t in skipped} <= {"not-installed", "broken", "needs-cuda"}
    assert all(test.message.startswith("flashinfer: ") for test in skipped)
    assert not any(test.skip_kind and test.comparisons for test in found.tests)
    # where a run of pytest is asked for a JUnit file it says the same
    old = read_results(right.parent / "junit.xml")
    assert old.machine == found.machine
    assert {without_time(test) for test in old.tests} == {
        without_time(test) for test in found.tests
    }


def without_time(test):
    return (test.test, test.definition, test.source, test.status, test.skip_kind)
