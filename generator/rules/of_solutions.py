"""The rules on solutions and on the traces of their runs."""

from __future__ import annotations

from generator.rules.rule import error, note, warning

SOLUTIONS = (
    error(
        "solution-orphan",
        "A solution's path names a definition that the dataset does not have.",
        "Correct the folder, or add the definition.",
        "solutions/baseline/gemm/gone/x.json without definitions/gemm/gone.json",
    ),
    error(
        "solution-path",
        "A solution's author, definition or name is not what its path says.",
        "Make the two the same: solutions/<author>/<op_type>/<definition>/<name>.json.",
        '`"author": "alice"` in solutions/bob/',
    ),
    error(
        "solution-duplicate",
        "Two solutions of a definition have the same name.",
        "Rename one of them.",
        "baseline/.../fast.json and alice/.../fast.json",
    ),
    error(
        "solution-source-path",
        "A source file's path leads out of the solution, or two files have the same.",
        "Use distinct relative paths with forward slashes.",
        '`"path": "../../run.py"`',
    ),
    error(
        "solution-syntax",
        "A Python source of a solution does not parse.",
        "Correct the source at that line.",
        "`def run(:` in main.py",
    ),
    error(
        "solution-entry-point",
        "The entry point names a file or a function that the sources do not have.",
        "Write entry_point as file::function, of one of the sources.",
        '`"entry_point": "main.py::run"` where main.py defines only kernel',
    ),
    error(
        "solution-parameters",
        "The entry point can't be called with the definition's inputs.",
        "Take the inputs in order, then the outputs if destination_passing_style.",
        "`def run(A):` where the inputs are A, B",
    ),
    error(
        "baseline-repeats-reference",
        "A baseline solution is the reference again, so it measures nothing.",
        "Call the production kernel.",
        "solutions/baseline/... with the text of `reference`",
    ),
    warning(
        "baseline-no-kernel",
        "A baseline solution calls neither FlashInfer nor SGLang nor a kernel of its own.",
        "Call the production kernel that the fi_api: tag names.",
        "a baseline in Python that imports only torch",
    ),
)

TRACES = (
    warning(
        "trace-place",
        "Traces lie at traces/<op_type>/, without the author's folder.",
        "Move them to traces/<author>/<op_type>/<definition>.jsonl.",
        "traces/gemm/gemm_n8_k4.jsonl",
    ),
    error(
        "trace-orphan",
        "A trace file's path names a definition that the dataset does not have.",
        "Correct the path, or add the definition.",
        "traces/baseline/gemm/gone.jsonl without definitions/gemm/gone.json",
    ),
    error(
        "trace-definition",
        "A trace names another definition than its file does.",
        "Move the line to its definition's file.",
        '`"definition": "gemm_n8_k5"` in gemm_n8_k4.jsonl',
    ),
    error(
        "trace-incomplete",
        "A trace has no solution or no evaluation: it is a workload, not a trace.",
        "Move the line to workloads/, or run the solution.",
        '`"evaluation": null`',
    ),
    error(
        "trace-workload",
        "A trace is of a workload that the definition does not have, or has otherwise.",
        "Run the solution on the dataset's workloads.",
        "a uuid that is not in workloads/",
    ),
    error(
        "trace-solution",
        "A trace is of a solution that the dataset does not have.",
        "Add the solution, or remove its traces.",
        '`"solution": "gone"`',
    ),
    error(
        "trace-author",
        "A trace lies in another author's folder than its solution.",
        "Move it to the folder of the solution's author.",
        "a solution of alice in traces/bob/",
    ),
    warning(
        "trace-duplicate",
        "A solution has two traces of one workload.",
        "Keep the newer one.",
        "the same solution and uuid in lines 3 and 9",
    ),
    warning(
        "trace-coverage",
        "A solution was not run on all workloads of its definition.",
        "Run it on the others as well.",
        "5 of 8 workloads have a trace of it",
    ),
    error(
        "trace-baseline-failed",
        "A baseline's trace is not PASSED: reference and kernel disagree.",
        "Find out which side is wrong before anything is built on the reference.",
        '`"status": "INCORRECT_NUMERICAL"` in traces/baseline/',
    ),
    error(
        "trace-numbers",
        "A trace's numbers can't be true, or contradict each other.",
        "Measure again.",
        '`"latency_ms": -1`, or a speedup that is not the ratio of the latencies',
    ),
    note(
        "trace-no-measurement",
        "A PASSED trace lacks its errors or its latencies.",
        "Run the benchmark again with correctness and performance recorded.",
        '`"status": "PASSED"` with `"performance": null`',
    ),
)
