"""Production kernels under conditions: asked in a process of their own."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch

from generator.dataset.paths import discover_definitions
from generator.evaluation.certification import process, task
from generator.evaluation.certification.judging import KernelJudge
from generator.evaluation.certification.kernel import adapted
from generator.evaluation.conditions.asking import Asking
from generator.evaluation.conditions.batch import _related, relations_of
from generator.evaluation.judge import Judge
from generator.evaluation.rounds import rounds_of
from generator.evaluation.verdict import Refused
from generator.rules.load import load_file
from generator.rules.subjects import subject_of
from kernel_judge.definition import Backend
from kernel_judge.inputs.trial import as_tuple, same_bits
from kernel_judge.obstacle import Kind, Obstacle
from kernel_judge.skipping import Skip
from tests.builders import ROOT, loaded, resized_json, write_dataset

GEMM = "gemm_n128_k128"


class Quiet:
    def at(self, *given: Any, **named: Any) -> None:
        pass


@pytest.fixture
def root(tmp_path: Path) -> Path:
    value = resized_json("gemm_n4096_k4096", GEMM, N=128, K=128)
    return write_dataset(tmp_path / "dataset", (value,))


def asked(
    root: Path,
    conditions: list[str],
    monkeypatch,
    name: str,
    sanitizers: tuple[str, ...] = (),
    timeout: float = 60.0,
) -> dict[str, Any]:
    (file,) = discover_definitions(root).files
    monkeypatch.setattr(process, "_MODULE", "tests.unit.evaluation.cpu_kernel")
    monkeypatch.setattr(
        task, "callable_kernels", lambda *given: [("pytorch", Backend(name))]
    )
    found = task.certify(
        {
            "file": asdict(file),
            "root": str(root),
            "device": "cpu",
            "gpus": [],
            "providers": ["pytorch"],
            "conditions": conditions,
            "sanitizers": sanitizers,
            "soak": 2.0,
            "timeout": timeout,
            "secret": 4,
        },
        Quiet(),
    )
    return found["kernels"][f"pytorch/{name}"]


@pytest.mark.parametrize(
    ("kernel", "verdicts"),
    [
        ("right", {"strided": "holds", "batch": "holds", "graph": "skipped"}),
        ("by batch", {"batch": "broken"}),
        ("of few rows", {"strided": "holds"}),
        ("by torch", {"compile": "holds"}),
        ("wrong", {"strided": "skipped"}),
        ("fails", {"strided": "skipped"}),
    ],
)
def test_kernel_is_asked_in_a_process(root, monkeypatch, kernel, verdicts):
    found = asked(root, list(verdicts), monkeypatch, kernel)["conditions"]
    assert {name: one["verdict"] for name, one in found.items()} == verdicts
    if kernel == "fails":
        assert "no kernel image" in found["strided"]["reason"]


def test_first_call_may_take_as_long_as_a_build(root, monkeypatch):
    # 3.3 s
    found = asked(root, ["strided"], monkeypatch, "compiles", timeout=3.0)
    assert found["conditions"]["strided"]["verdict"] == "holds", found


@pytest.mark.parametrize(("timeout", "builds"), [(3.0, 300.0), (400.0, 400.0)])
def test_a_longer_limit_holds_for_the_first_call_too(timeout, builds):
    allowed = task._allowed(timeout)
    assert (allowed.call_seconds, allowed.build_seconds) == (timeout, builds)


def test_tools_of_compute_sanitizer_are_conditions(root, monkeypatch):
    tools = ("memcheck", "racecheck")
    found = asked(root, ["strided"], monkeypatch, "right", tools)["conditions"]
    assert list(found) == ["strided", *tools]
    skipped = {"verdict": "skipped", "reason": "needs CUDA", "details": {}}
    assert found["memcheck"] == found["racecheck"] == skipped


def test_a_record_does_not_say_where_this_software_is(root, monkeypatch):
    found = asked(root, ["compile"], monkeypatch, "breaks the graph")["conditions"]
    assert found["compile"]["verdict"] == "unsupported"
    assert "certification/kernel.py" in found["compile"]["reason"]
    assert str(ROOT) not in found["compile"]["reason"]


def test_soak_counts_what_the_process_has(root, monkeypatch):
    found = asked(root, ["soak"], monkeypatch, "right")["conditions"]["soak"]
    assert found["verdict"] == "holds", found
    assert found["details"]["calls"] > 20


def test_outputs_that_a_kernel_fills_are_filled_and_left_out():
    file = next(f for f in discover_definitions(ROOT).files if f.op_type == "kda")
    subject = subject_of(load_file(ROOT, file)[0])
    case = next(c for c in subject.cases(("small",)) if all(c.axes.values()))
    inputs = subject.trial(case).inputs
    filled = subject.filled(inputs)
    count = len(subject.interface.output_specs)
    values = [torch.full_like(inputs[name], 2.0) for name in filled]
    run = adapted(ROOT, file, lambda *given: (*range(count), *values))
    returned = run(*inputs.values())
    assert returned == (0 if count == 1 else tuple(range(count)))
    assert all((inputs[name] == 2.0).all() for name in filled)


@pytest.mark.parametrize("calls", [1, 2])
def test_output_that_is_an_input_is_a_copy_and_the_input_is_as_it_was(calls):
    name = "fused_add_rmsnorm_h4096"
    file = next(f for f in discover_definitions(ROOT).files if f.name == name)
    subject = subject_of(load_file(ROOT, file)[0])
    case = next(c for c in subject.cases(("small",)) if c.axes["batch_size"] > 1)
    inputs = subject.trial(case).inputs
    expected = as_tuple(subject.run(*inputs.values()))

    def in_place(x, residual, weight):
        # as FlashInfer's: both are written to, and both are returned
        outputs = as_tuple(subject.run(x.clone(), residual.clone(), weight))
        for place, value in zip((x, residual), outputs, strict=False):
            place.copy_(value)
        return (x, residual)[: len(outputs)]

    run = adapted(ROOT, file, in_place)
    for _ in range(calls):
        # one buffer has all arguments, as the judge's has, with rows apart
        wide = torch.zeros(3, case.axes["batch_size"], 4096 + 32, dtype=torch.bfloat16)
        given = [wide[0, :, 16:-16], wide[1, :, 16:-16], wide[2, 0, 16:-16]]
        for place, value in zip(given, inputs.values(), strict=True):
            place.copy_(value)
        before = wide.clone()
        returned = as_tuple(run(*given))
        assert all(map(same_bits, returned, expected))
        assert same_bits(wide, before)
        wide.fill_(7.0)
        assert all(map(same_bits, returned, expected)), "an output lies in an input"


def test_input_that_holds_no_output_is_as_it_was():
    name = "fused_add_rmsnorm_h2048"
    file = next(f for f in discover_definitions(ROOT).files if f.name == name)

    def sums(x, residual, weight):
        # as FlashInfer's, of which this definition has no second output
        residual.add_(x)
        return residual * weight

    run = adapted(ROOT, file, sums)
    for _ in range(2):
        given = [torch.ones(2, 2048), torch.ones(2, 2048), torch.ones(2048)]
        (returned,) = as_tuple(run(*given))
        assert (returned == 2.0).all()
        assert all((value == 1.0).all() for value in given)


def test_kernel_is_not_asked_for_tokens_of_which_it_reads_outside():
    definition = loaded("lora_expand_r16_n1024")
    asked = rounds_of(definition, [], ROOT, torch.device("cpu"), 3)
    asking = Asking(None, asked, torch.device("cpu"), False, 3, lambda: None, 0.0)
    assert task._checked(asking) == asked
    asking.checks = asked.subject.kernels["sglang"].check_inputs
    taken = task._checked(asking)
    left_out = {n for n, _ in asked.rounds} - {n for n, _ in taken.rounds}
    assert {"some-without", "slots-outside"} <= left_out
    assert len(taken.rounds) > 5
    for one in [r for _, (r, *_) in taken.rounds] + [r for _, r in taken.relations]:
        slots = one.inputs["slots"]
        assert bool(((slots >= 0) & (slots < len(one.inputs["weights"]))).all())


def test_relation_is_not_asked_of_inputs_that_a_kernel_does_not_take():
    definition = loaded("lora_shrink_r16_k4096")
    asked = rounds_of(definition, [], ROOT, torch.device("cpu"), 3)
    # without a session: a call would raise
    asking = Asking(None, asked, torch.device("cpu"), False, 3, lambda: None, 0.0)
    one = asked.rounds[0][1][0]
    (relation,) = [r for r in relations_of(one) if r.name == "tokens-in-two"]
    notes = []
    with pytest.raises(AttributeError):
        _related(asking, one, relation, "alone", lambda *note: notes.append(note))

    def none(trial):
        raise Skip(Obstacle(Kind.NO_KERNEL, "rows that it does not write"))

    asking.checks = none
    _related(asking, one, relation, "alone", lambda *note: notes.append(note))
    assert not notes


def test_view_of_one_row_is_copied_as_copies_of_several_are():
    file = next(
        f for f in discover_definitions(ROOT).files if f.name == "heads_first_h64_d128"
    )
    run = adapted(ROOT, file, lambda x: x.transpose(0, 1).contiguous())
    for rows in (3, 1):
        given = torch.arange(rows * 64 * 128).reshape(rows, 64, 128).bfloat16()
        expected = given.transpose(0, 1).clone()
        (returned,) = as_tuple(run(given))
        given.fill_(7.0)
        assert same_bits(returned, expected), rows


def test_output_that_a_kernel_lacks_is_zeros_and_nothing_is_held_to_it():
    name = "cross_entropy_v50257"
    file = next(f for f in discover_definitions(ROOT).files if f.name == name)
    definition, _ = load_file(ROOT, file)
    asked = rounds_of(definition, [], ROOT, torch.device("cpu"), 4)
    one = next(of[0] for _, of in asked.rounds if all(of[0].case.axes.values()))
    losses, *others = one.expected
    run = adapted(ROOT, file, lambda *given: (losses, *(None for _ in others)))
    returned = as_tuple(run(*one.inputs.values()))
    assert [v.shape for v in returned] == [v.shape for v in one.expected]
    about = (None, asked, torch.device("cpu"), False, 4)
    names = list(one.subject.interface.output_specs)
    KernelJudge(*about, lacks=tuple(names[1:])).compared("", one, returned)
    with pytest.raises(Refused, match=names[1]):
        KernelJudge(*about).compared("", one, returned)
    wrong = (losses + 1.0, *returned[1:])
    with pytest.raises(Refused, match=names[0]):
        KernelJudge(*about, lacks=tuple(names[1:])).compared("", one, wrong)


def test_answer_that_is_no_tensor_is_named():
    file = next(f for f in discover_definitions(ROOT).files if f.op_type == "sampling")
    run = adapted(ROOT, file, lambda *given: {"a law": 1})
    subject = subject_of(load_file(ROOT, file)[0])
    case = next(c for c in subject.cases(("small",)) if all(c.axes.values()))
    with pytest.raises(TypeError, match="its adapter answers with dict"):
        run(*subject.trial(case).inputs.values())


def test_rows_that_a_policy_leaves_out_for_a_kernel_are_held_to_solutions_alone():
    name = "top_k_top_p_sampling_from_logits_v128256"
    file = next(f for f in discover_definitions(ROOT).files if f.name == name)
    definition, _ = load_file(ROOT, file)
    asked = rounds_of(definition, [], ROOT, torch.device("cpu"), 4)
    about = (None, asked, torch.device("cpu"), False, 4)
    one = next(of[0] for _, of in asked.rounds if of[0].case.axes)
    assert KernelJudge(*about, kernel="flashinfer").asked_by(one) == "flashinfer"
    assert KernelJudge(*about).asked_by(one) == Judge(*about).asked_by(one) == "oracle"


def test_rows_that_no_kernel_defines_are_held_to_solutions_alone():
    name = "mla_ragged_prefill_causal_h8_qk192_vo128"
    file = next(f for f in discover_definitions(ROOT).files if f.name == name)
    definition, _ = load_file(ROOT, file)
    asked = rounds_of(definition, [], ROOT, torch.device("cpu"), 4)
    rows_of = subject_of(definition).op.defined_rows
    one = next(of[0] for name, of in asked.rounds if name == "more-queries-than-keys")
    rows = rows_of(one.trial.definition, one.trial.inputs)
    assert 0 < int(rows.sum()) < len(rows)
    output, *others = one.expected
    wrong = output.clone()
    wrong[~rows] = 50.0
    about = (None, asked, torch.device("cpu"), False, 4)
    KernelJudge(*about).compared("", one, (wrong, *others))
    with pytest.raises(Refused):
        Judge(*about).compared("", one, (wrong, *others))
    wrong[rows] += 1.0
    with pytest.raises(Refused):
        KernelJudge(*about).compared("", one, (wrong, *others))
