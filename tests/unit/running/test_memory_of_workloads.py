"""Large weights and tables are said to need what they take: they are made once."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from generator.rules.subjects import subject_of
from generator.running.free_memory import needed_bytes
from generator.running.parametrize import SLOW_BYTES
from generator.running.workload_case import WorkloadCase
from generator.running.workloads import workload_cases
from kernel_judge.inputs.memory import COPIES, tensor_bytes
from tests.builders import ROOT, loaded

SMALL = "moe_fp8_block_scale_renorm_topk10_e128_h2048_i512"
# of Llama 4's experts in float32, which are 60 GiB, and 30 more as kernels take them
LARGE = "trtllm_fp4_block_scale_moe_topk1_e128_h5120_i8192"
_PEAK = """
import json, re, sys
from tests.unit.running.test_memory_of_workloads import workload
from generator.rules.subjects import subject_of
from kernel_judge.checks import CHECKS
from tests.builders import CPU, loaded

subject, case = subject_of(loaded(sys.argv[1])), workload(*sys.argv[1:])
def peak():
    # of this program alone: getrusage has the most of its parent as well
    status = open("/proc/self/status", encoding="ascii").read()
    return 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", status).group(1))
before, trial = peak(), subject.trial(case, CPU)
for name in ("test_contract", "test_matches_oracle", "test_determinism"):
    checked = CHECKS[name](subject, trial)
    assert checked.skipped is None and checked.defect is None, checked
print(json.dumps(peak() - before))
"""


def workload(name: str, tokens: str) -> WorkloadCase:
    """Return the workload of so many tokens."""
    subject = subject_of(loaded(name))
    known, op = subject.definition, subject.op
    cases, wrong = workload_cases(ROOT, known, op.cases(known), op.make_inputs)
    assert not wrong
    return next(case for case in cases if case.axes["seq_len"] == int(tokens))


def needed(name: str, tokens: str) -> int:
    subject = subject_of(loaded(name))
    return needed_bytes(
        subject.definition, workload(name, tokens), subject.op.peak_bytes
    )


@pytest.mark.parametrize("tokens", ["1", "80"])
def test_tests_take_less_and_not_much(tokens: str) -> None:
    command = [sys.executable, "-c", _PEAK, SMALL, tokens]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    taken, case = json.loads(done.stdout), workload(SMALL, tokens)
    known = subject_of(loaded(SMALL)).definition
    assert tensor_bytes(known, case) < taken <= needed(SMALL, tokens)
    assert needed(SMALL, tokens) < COPIES * tensor_bytes(known, case) / 2


@pytest.mark.parametrize("tokens", ["1", "62"])
def test_few_tokens_of_many_large_experts_fit_an_h100(tokens: str) -> None:
    assert 60 << 30 < needed(LARGE, tokens) < 79 << 30


def test_all_of_them_as_kernels_take_them_do_not() -> None:
    assert needed(LARGE, "14107") > 90 << 30


def test_the_table_of_a_large_vocabulary_is_no_slow_test() -> None:
    subject = subject_of(loaded("gemma_embedding_v256000_h3584"))
    known, count = subject.definition, subject.op.peak_bytes
    for case in subject.cases(("small",)):
        table = 2 * 256_000 * 3_584
        assert 2 * table < needed_bytes(known, case, count) < SLOW_BYTES


def test_a_workload_that_the_op_does_not_count_is_counted_by_copies() -> None:
    subject, case = subject_of(loaded(SMALL)), workload(SMALL, "1")
    known = subject.definition
    assert needed_bytes(known, case) == COPIES * tensor_bytes(known, case)
