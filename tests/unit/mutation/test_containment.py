"""Mutants that hang, grow, die or lie: each is told for what it is, the next one runs."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial, update_wrapper
from typing import Any

import pytest
import torch

from generator.mutation import mutant_workers
from generator.mutation.audit_job import AuditJob, Planned, prepare
from generator.mutation.mutant_workers import objection, run_all
from generator.mutation.mutants_result import MutantResult
from generator.results.audits import CAUGHT, SURVIVED, TIMED_OUT
from kernel_judge.reference import load_run
from tests.builders import loaded as definition_of

# seconds of a clock after which a mutant that says nothing is ended
WAITING = 4.0
RIGHT = definition_of("rmsnorm_h128").reference


def mutant(first_line: str, imports: str = "") -> str:
    """Return the reference with a line at the start of `run()`."""
    lines = RIGHT.splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith("def run"))
    lines.insert(place + 1, f"    {first_line}")
    return "\n".join([f"import {imports}" if imports else "", *lines])


@pytest.fixture(scope="module")
def job() -> AuditJob:
    """Return the runner of a norm."""
    return prepare(definition_of("rmsnorm_h128"), None, None)


def results(
    job: AuditJob, *texts: str, waiting: float = WAITING, lanes: int = 1
) -> list[MutantResult]:
    """Run mutants of these texts as the worker does; return what became of each."""
    job.planned = [
        Planned(
            MutantResult(f"mutant {number}", "planted", SURVIVED),
            partial(load_run, text),
        )
        for number, text in enumerate(texts)
    ]
    found = list(run_all(job, lanes, waiting))
    assert sorted(place for place, _ in found) == list(range(len(texts)))
    return [result for _, result in sorted(found, key=lambda pair: pair[0])]


GOOD_NEIGHBOUR = RIGHT.replace("* weight.float()", "")


def of_one(job: AuditJob, text: str, **more: Any) -> MutantResult:
    """Return what becomes of a mutant; the one behind it must be judged as ever."""
    first, second = results(job, text, GOOD_NEIGHBOUR, **more)
    assert (second.status, second.test) == (CAUGHT, "test_matches_oracle")
    return first


@pytest.mark.parametrize(
    ("line", "imports"),
    [
        ("while True: pass", ""),
        # nothing that Python runs can interrupt it: the process is ended
        ("sum(iter(int, 1))", ""),
        ("signal.pause()", "signal"),
    ],
)
def test_one_that_does_not_end_is_timed_out(job, line, imports):
    assert of_one(job, mutant(line, imports)).status == TIMED_OUT


def test_one_that_catches_the_alarm_is_timed_out(job):
    text = mutant("spin()") + (
        "\ndef spin():\n    while True:\n        try:\n            while True: pass\n"
        "        except BaseException: pass\n"
    )
    assert of_one(job, text).status == TIMED_OUT


@pytest.mark.parametrize(
    ("line", "imports", "why"),
    [
        ("raise ValueError('planted')", "", "raised ValueError: planted"),
        ("raise ValueError('two\\nlines')", "", "raised ValueError: two"),
        ("raise SystemExit(0)", "", "raised SystemExit: 0"),
        ("sys.exit('bye')", "sys", "raised SystemExit: bye"),
        ("raise KeyboardInterrupt", "", "raised KeyboardInterrupt"),
        ("raise BaseException('base')", "", "raised BaseException: base"),
        ("raise GeneratorExit", "", "raised GeneratorExit"),
        ("assert False, 'its own'", "", "raised AssertionError: its own"),
        ("run(hidden_states, weight)", "", "raised RecursionError: maximum recursion"),
        ("raise type('E', (Exception,), {'__str__': lambda s: 1})()", "", "raised E"),
        (
            "import pytest; pytest.skip('none of your business')",
            "",
            "raised Skipped: none of your business",
        ),
    ],
)
def test_one_that_raises_is_caught_as_raised(job, line, imports, why):
    result = of_one(job, mutant(line, imports))
    assert result.status == CAUGHT
    assert result.why.startswith(why)


@pytest.mark.parametrize(
    ("line", "imports", "why"),
    [
        ("os._exit(3)", "os", "ended its process with status 3"),
        ("os._exit(0)", "os", "ended its process with status 0"),
        ("os.kill(os.getpid(), 9)", "os", "ended its process by SIGKILL"),
        ("os.abort()", "os", "ended its process by SIGABRT"),
        ("os.closerange(3, 256)", "os", "ended its process with status 1"),
    ],
)
def test_one_that_ends_its_process_is_caught(job, line, imports, why):
    result = of_one(job, mutant(line, imports))
    assert (result.status, result.test, result.why) == (CAUGHT, "run", why)


@pytest.mark.parametrize("lanes", [1, 2])
def test_one_that_writes_to_every_connection_does_not_speak_for_the_audit(job, lanes):
    line = "[say(n) for n in range(3, 256)]"
    text = mutant(line, "os, stat") + (
        "\ndef say(n):\n    try:\n"
        "        if stat.S_ISSOCK(os.fstat(n).st_mode): os.write(n, b'{}\\n')\n"
        "    except OSError: pass\n"
    )
    found = results(job, text, GOOD_NEIGHBOUR, GOOD_NEIGHBOUR, lanes=lanes)
    assert [result.status for result in found] == [CAUGHT] * 3
    assert found[0].test == "run"
    assert [result.test for result in found[1:]] == ["test_matches_oracle"] * 2


@pytest.mark.parametrize(
    "line",
    [
        "torch.zeros(2 ** 50)",
        "kept = [torch.empty(2 ** 26) for _ in range(2 ** 20)]",
        "bytearray(2 ** 44)",
    ],
)
def test_one_that_takes_all_memory_is_caught(job, line):
    result = of_one(job, mutant(line))
    assert result.status == CAUGHT
    assert "raised" in result.why
    assert "emory" in result.why or "allocate" in result.why


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("None", "output is (), declared (1, 128)"),
        ("'text'", "output is (), declared (1, 128)"),
        ("[]", "run() returned 0 values, the definition declares 1"),
        ("(weight, weight)", "run() returned 2 values, the definition declares 1"),
        ("(x for x in [weight])", "output is (), declared (1, 128)"),
        ("hidden_states.float()", "output is torch.float32, declared torch.bfloat16"),
        ("hidden_states[:0]", "output is (0, 128), declared (1, 128)"),
        ("hidden_states * float('nan')", "actual has NaN in 128 of 128 elements"),
    ],
)
def test_one_that_returns_something_else_is_caught(job, value, why):
    runner = job.runner
    first = min(
        runner.prepared_cases, key=lambda prepared: prepared.case.axes["batch_size"]
    )
    for prepared in runner.prepared_cases:
        prepared.catches = 10**6 if prepared is first else 0
    result = of_one(job, mutant(f"return {value}"))
    assert (result.status, result.why, result.case) == (CAUGHT, why, "one-row")


def test_one_whose_text_does_not_load_is_caught(job):
    result = of_one(job, "raise RuntimeError('at the top')")
    assert (result.test, result.why) == ("load", "raised RuntimeError: at the top")
    assert of_one(job, "import torch").why == "raised KeyError: 'run'"


def test_one_that_prints_and_one_that_changes_settings_disturb_nobody(job, capfd):
    noisy = of_one(job, mutant("print('planted' * 1000)"))
    assert noisy.status == "equivalent"
    assert "planted" not in capfd.readouterr().err
    assert of_one(job, mutant("torch.set_default_dtype(torch.float64)")).status in (
        "equivalent",
        CAUGHT,
    )


def test_one_that_writes_to_inputs_is_caught_by_the_test_that_looks(job):
    changed = RIGHT.replace("return (", "result = (") + (
        "    hidden_states.fill_(1.5)\n    return result\n"
    )
    assert of_one(job, changed).test == "test_inputs_unmodified"


def test_one_that_differs_between_calls_is_caught(job):
    changed = "CALLS = []\n" + mutant("CALLS.append(0)").replace(
        "* weight.float()", "* (weight.float() + (len(CALLS) > 5))"
    )
    assert of_one(job, changed).test == "test_determinism"


def test_the_reference_s_own_bits_are_not_compared_again(job):
    asked = []

    def counting(*given: Any) -> Any:
        asked.append(given)
        return right(*given)

    right = job.runner.prepared_cases[0].oracle
    prepared = [
        replace(prepared, oracle=counting) for prepared in job.runner.prepared_cases[:1]
    ]
    runner = replace(job.runner, prepared_cases=prepared)
    assert runner.judge(partial(load_run, mutant("pass"))) is None
    assert not asked
    bad = runner.judge(partial(load_run, RIGHT.replace("* weight.float()", "")))
    assert bad is not None
    assert (bad.test, len(asked)) == ("test_matches_oracle", 1)


def test_one_with_the_reference_s_bits_is_called_once_a_case(job):
    calls = []

    def load() -> Any:
        right = load_run(RIGHT)
        return update_wrapper(lambda *given: calls.append(1) or right(*given), right)

    assert job.runner.judge(load, repeats=False) is None
    assert len(calls) == len(job.runner.prepared_cases)
    assert job.runner.judge(load) is None
    assert len(calls) == 3 * len(job.runner.prepared_cases)


def test_one_that_forks_at_every_call_is_judged_once(job, tmp_path):
    said = tmp_path / "said"
    forks = mutant(f"os.fork(); open({str(said)!r}, 'a').write('x')", "os")
    assert of_one(job, forks).status == "equivalent"
    # by what runs it, at most a few times in each case; by no copy of that
    assert len(said.read_text()) < 1000


def test_mutants_of_all_lanes_are_told_once_each_by_their_places(job):
    texts = [mutant(f"raise ValueError('number {place}')") for place in range(9)]
    breaking = {2: "os._exit(7)", 3: "signal.pause()", 8: "os._exit(8)"}
    for place, line in breaking.items():
        texts[place] = mutant(line, "os, signal")
    found = results(job, *texts, lanes=3)
    assert [result.name for result in found] == [f"mutant {n}" for n in range(9)]
    for place, result in enumerate(found):
        if place not in breaking:
            assert result.why == f"raised ValueError: number {place}"
    assert found[2].why == "ended its process with status 7"
    assert found[3].status == TIMED_OUT
    assert found[8].why == "ended its process with status 8"


def test_lanes_work_side_by_side(job, tmp_path):
    # each waits for the file of the other
    texts = [
        mutant(
            f"pathlib.Path({str(tmp_path)!r}, '{own}').touch(); "
            f"wait(pathlib.Path({str(tmp_path)!r}, '{other}'))",
            "pathlib",
        )
        + "\ndef wait(path):\n    import time\n"
        "    while not path.exists(): time.sleep(0.01)\n"
        "    raise ValueError('met')\n"
        for own, other in (("a", "b"), ("b", "a"))
    ]
    assert [r.why for r in results(job, *texts, lanes=2)] == [
        "raised ValueError: met"
    ] * 2


def test_what_one_left_behind_is_no_fault_of_the_next(job, tmp_path):
    mark = str(tmp_path / "began")
    leaves = mutant(
        "threading.Thread(target=leave, daemon=True).start()", "threading, time, os"
    ) + (
        f"\ndef leave():\n    while not os.path.exists({mark!r}): time.sleep(0.01)\n"
        "    os._exit(3)\n"
    )
    leaves = leaves.replace("* weight.float()", "")
    # under way when it happens, until the end of the process
    waits = GOOD_NEIGHBOUR.replace(
        "    x = ",
        "    import pathlib, signal\n"
        f"    mark = pathlib.Path({mark!r})\n"
        "    if not mark.exists():\n        mark.touch()\n        signal.pause()\n"
        "    x = ",
    )
    first, second = results(job, leaves, waits)
    assert (first.status, first.test) == (CAUGHT, "test_matches_oracle")
    assert (second.status, second.test) == (CAUGHT, "test_matches_oracle")


def test_what_one_kept_takes_none_of_the_next_one_s_memory(job):
    # 3/8 GiB each of the two times that it is loaded, of the 2 GiB that it may have
    keeps = "KEPT = []\n" + mutant(
        "len(KEPT) < 6 and KEPT.append(torch.empty(2 ** 24))"
    )
    found = results(job, *[keeps] * 6)
    assert [result.status for result in found] == ["equivalent"] * 6


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("raise ValueError('another process')", "raised ValueError: another process"),
        ("os._exit(5)", "ended its process with status 5"),
    ],
)
def test_a_reference_that_fails_where_mutants_run_is_told(job, line, why):
    here = f"if os.getpid() != {os.getpid()}: {line}"
    definition = replace(job.definition, reference=mutant(here, "os"))
    said = objection(replace(job, definition=definition), WAITING)
    assert said is not None
    assert said.startswith("the reference itself does not pass ")
    assert said.endswith(f" where mutants run: {why}")
    assert objection(job, WAITING) is None


def test_mutants_may_take_what_the_reference_took_in_passing(monkeypatch, job):
    # half a GiB that is no input and no output, as attention's scores
    torch.ones(2**27)
    monkeypatch.setattr(mutant_workers, "MORE_BYTES", 2**27)
    assert of_one(job, mutant("torch.empty(2 ** 27)")).status == "equivalent"


def test_more_lanes_than_mutants_are_no_trouble(job):
    assert [r.status for r in results(job, GOOD_NEIGHBOUR, lanes=4)] == [CAUGHT]
    assert results(job, lanes=4) == []
