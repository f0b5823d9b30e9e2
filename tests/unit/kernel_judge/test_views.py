"""Views of wider buffers: the values are there, poison is around, and writes show."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from generator.rules.load import load_definitions
from generator.rules.subjects import subject_of
from kernel_judge import checks
from kernel_judge.inputs.trial import same_bits
from kernel_judge.inputs.views import can_be_wider, is_poison_around, view_of_wider
from kernel_judge.obstacle import Kind
from tests.builders import CPU, ROOT, replaced

SUM = "def run(hidden_states, weight):\n    x = hidden_states.float()\n"
SAMPLER = "sampling_from_probs_v128256"


@pytest.mark.parametrize(
    "dtype",
    [torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.int32, torch.bool],
)
def test_a_view_has_the_values_and_poison_around_it(dtype: torch.dtype) -> None:
    value = torch.arange(12).reshape(3, 4).remainder(2).to(dtype)
    view = view_of_wider(value)
    assert same_bits(view, value)
    assert not view.is_contiguous()
    assert is_poison_around(view)
    around = view._base.float()
    around = torch.cat([around[:, :16], around[:, 20:]], 1)
    wanted = torch.full_like(around, {torch.int32: -1, torch.bool: 1}.get(dtype, 0))
    assert bool(
        around.isnan().all() if dtype.is_floating_point else same_bits(around, wanted)
    )
    view.copy_(view.clone())
    assert is_poison_around(view)
    view._base.view(torch.uint8)[1, -1] = 0
    assert not is_poison_around(view)


def test_what_has_no_rows_stays_as_it_is() -> None:
    for value in (2.0, torch.tensor(1.0), torch.empty(0, 3)):
        assert not can_be_wider(value)


def _checked(text: str):
    (definition,) = load_definitions(ROOT, names=["rmsnorm_h128"]).definitions
    subject = subject_of(replace(definition, reference=text))
    case = next(case for case in subject.cases() if case.axes["batch_size"] > 1)
    return checks.strided_inputs(subject, subject.trial(case))


def test_a_reference_that_writes_beside_its_rows_is_seen() -> None:
    writes = (
        "    hidden_states._base[0, 0] = 1 if hidden_states._base is not None else 0\n"
    )
    writes = "    if hidden_states._base is not None:\n        hidden_states._base[0, 0] = 1\n"
    checked = _checked(f"{SUM}{writes}    return hidden_states.clone()\n")
    assert checked.defect == "run() writes beside the rows of hidden_states"


def test_a_reference_that_refuses_views_is_skipped_with_what_it_says() -> None:
    checked = _checked(f"{SUM}    return hidden_states.view(-1).view_as(x)\n")
    assert checked.defect is None
    assert checked.skipped is not None
    assert "run() takes no views: RuntimeError: view size" in checked.skipped.reason


def test_a_reference_that_never_runs_is_not_skipped() -> None:
    with pytest.raises(RuntimeError, match="planted"):
        _checked("def run(hidden_states, weight):\n    raise RuntimeError('planted')\n")


def test_a_sampler_gives_other_tokens_for_one_seed_and_is_caught() -> None:
    (definition,) = load_definitions(ROOT, names=[SAMPLER]).definitions
    own = "import torch\n_OWN = torch.Generator().manual_seed(1)\n"
    wrong = own + replaced(
        definition.reference, "probs, 1)", "probs, 1, generator=_OWN)"
    )
    for text, defect in ((definition.reference, None), (wrong, "samples differs")):
        subject = subject_of(replace(definition, reference=text), {"vocab_size": 512})
        for case in subject.cases(("small",))[:1]:
            checked = checks.determinism(subject, subject.trial(case))
            assert (checked.defect or "").startswith(defect or ""), checked
            assert bool(checked.defect) is bool(defect), checked


def test_the_cpu_is_compared_with_a_gpu_alone() -> None:
    (definition,) = load_definitions(ROOT, names=["rmsnorm_h128"]).definitions
    subject = subject_of(definition)
    checked = checks.matches_cpu(subject, subject.trial(subject.cases()[0], CPU))
    assert checked.skipped is not None
    assert checked.skipped.kind is Kind.NEEDS_CUDA


class _Gpu:
    type = "cuda"


@pytest.mark.parametrize("wrong", [False, True])
@pytest.mark.parametrize(
    "name", ["rmsnorm_h128", "gqa_paged_decode_h16_kv2_d128_ps1", SAMPLER]
)
def test_what_a_gpu_returned_is_held_to_the_cpu(name: str, wrong: bool) -> None:
    (definition,) = load_definitions(ROOT, names=[name]).definitions
    subject = subject_of(definition)
    trial = subject.trial(subject.cases()[0])
    outputs = trial.outputs
    if wrong and name != SAMPLER:
        outputs[0].mul_(1.05)
    # a call that was made on a GPU would have left these
    trial.device = _Gpu()  # type: ignore[assignment]
    checked = checks.matches_cpu(subject, trial)
    if name == SAMPLER:
        assert checked.skipped is not None
        assert "draws samples" in checked.skipped.reason
    else:
        assert checked.skipped is None
        assert checked.passed is not wrong
        assert {one.source for one in checked.comparisons} == {"metamorphic:cpu"}


@pytest.mark.parametrize("before", ["", "weight.view(-1)\n    "])
def test_on_the_cpu_windows_are_made_whole_for_who_takes_no_views(before: str) -> None:
    name = "embedding_v16032_h2048"
    (definition,) = load_definitions(ROOT, names=[name]).definitions
    first = "rows = input_ids - vocab_start"
    text = replaced(definition.reference, first, before + first)
    strides: list[bool] = []
    subject = subject_of(replace(definition, reference=text))
    run = subject.run

    def seen(ids: torch.Tensor, weight: torch.Tensor, start: int) -> torch.Tensor:
        strides.append(weight.is_contiguous())
        return run(ids, weight, start)

    trial = subject.trial(subject.cases()[0])
    assert len(trial.outputs) == 1
    trial.device = _Gpu()  # type: ignore[assignment]
    checked = checks.matches_cpu(subject.with_run(seen), trial)
    assert checked.passed
    assert strides == ([False, True] if before else [False])
