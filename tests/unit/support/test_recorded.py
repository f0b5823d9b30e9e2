"""Record on a pretended GPU, then replay: agreement, faults, and what is stale."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from generator.ops import gqa_paged, mamba_ssu, mla_paged, rmsnorm, rope
from generator.support import available, harness, record
from generator.support import recorded as recorded_module
from generator.support.compare import FAILED, PASSED, Comparison
from generator.support.definition import Backend, Case
from generator.support.machine import Machine
from generator.support.memory import dtype_of
from generator.support.record import CURRENT, RECORDED, UNUSABLE
from generator.support.recording import read, recording_path, write
from generator.support.take import Job
from tests.builders import (
    cases_of,
    class_of,
    ignore_property,
    loaded,
    run_of,
    sized,
    skip_reason,
    trial_of,
)
from tests.unit.ops import mutants

HERE = Machine("NVIDIA H200", 90, {"flashinfer": "0.6", "torch": "2.11"}, "2026-11-21")
NEWER = Machine("NVIDIA H200", 90, {"flashinfer": "0.7", "torch": "2.11"}, "2026-11-22")
ATTENTION = {"num_qo_heads": 4, "num_kv_heads": 2, "head_dim": 32}
NAMES = {
    "gqa_paged_decode_h32_kv8_d128_ps64": (gqa_paged, ATTENTION),
    "gqa_paged_prefill_causal_h32_kv8_d128_ps64": (gqa_paged, ATTENTION),
    "mla_paged_decode_h16_ckv512_kpe64_ps64": (mla_paged, {"num_qo_heads": 4}),
    "rmsnorm_h5120": (rmsnorm, {"hidden_size": 5120}),
    "rope_with_cos_sin_cache_neox_style_d128_rd64": (rope, {}),
    "mamba_ssu_decode_h128_d64_s128_ng8": (mamba_ssu, {"nheads": 8, "ngroups": 2}),
}
DECODE, PREFILL, _, NORM, ROPE, MAMBA = NAMES


def pretended(op, factor=1.0):
    """Return an adapter that gives the oracle's outputs in the declared dtypes."""

    def ground_truth(definition, inputs, backend):
        returned = op.oracle(definition, inputs)
        returned = returned if isinstance(returned, tuple) else (returned,)
        specs = definition.interface.output_specs.values()
        return tuple(
            (value * factor).to(dtype_of(spec.dtype))
            for value, spec in zip(returned, specs, strict=True)
        )

    return staticmethod(ground_truth)


def rendered(name, run=None, **changes):
    op, axes = NAMES[name]
    definition = sized(name, **axes)
    run = run or run_of(loaded(name).reference)
    changes = {"flashinfer_ground_truth": pretended(op), **changes}
    return class_of(op, definition, run, **changes)


@pytest.fixture(autouse=True)
def usable(monkeypatch):
    """Pretend that every provider can be called on the CPU."""
    for module in (available, harness, record):
        monkeypatch.setattr(module, "backend_reason", lambda *_: None)


@pytest.fixture
def job(tmp_path):
    return Job("", str(tmp_path), "", {}, device="cpu")


def path_of(cls, job):
    return recording_path(Path(job.out), cls.op_type, cls.name)


def replay(cls, job, case=None, told=ignore_property):
    """Run the test on every recorded case, or one; return what fails."""
    failures = {}
    for one in cases_of(cls):
        if case in (None, one.name):
            try:
                cls().test_matches_recorded(trial_of(cls, one), Path(job.out), told)
            except AssertionError as error:
                failures[one.name] = str(error)
            except pytest.skip.Exception:
                pass
    return failures


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_is_replayed_on_the_cpu(name, job):
    cls, told = rendered(name), []
    result = record.record(cls, job, HERE)
    assert (result.status, result.remarks) == (RECORDED, [])
    backends = cls.flashinfer_backends(cls.definition())
    assert result.labels == tuple(
        f"{available.source_name('flashinfer', b)}@0.6@NVIDIA-H200" for b in backends
    )
    assert result.bytes == path_of(cls, job).stat().st_size
    assert not replay(cls, job, told=lambda _, value: told.append(json.loads(value)))
    assert {r["source"] for r in told} == {
        f"recorded:{available.source_name('flashinfer', b)}" for b in backends
    }
    assert all(r["verdict"] == "PASSED" for r in told)
    assert told[0]["recording"]["gpu"] == "NVIDIA H200"
    assert record.record(cls, job, HERE).status == CURRENT


def test_the_metadata_says_how_it_came_about(job):
    cls = rendered(DECODE)
    symbols = {cls.name: ["flashinfer.decode.Wrapper", "other.symbol"]}
    record.record(cls, Job("", job.out, "", symbols, "cpu"), HERE)
    body = read(path_of(cls, job)).body
    assert list(body["cases"]) == sorted(c.name for c in cases_of(cls))
    assert body["cases"]["boundaries"]["stream"] == [cls.name, "boundaries"]
    assert set(body["cases"]["boundaries"]["inputs"]) == set(cls.interface.inputs)
    about = body["recordings"]["flashinfer/fa2@0.6@NVIDIA-H200"]
    assert about["symbol"] == "flashinfer.decode.Wrapper"
    assert (about["provider"], about["backend"]) == ("flashinfer", "fa2")
    assert (about["sm"], about["date"]) == (90, "2026-11-21")
    entry = about["cases"]["boundaries"]["output"]
    assert (entry["dtype"], entry["shape"]) == ("bfloat16", [11, 4, 32])
    assert entry["oracle"]["nmse"] < 1e-5


def wrong_runs():
    """Return references that are wrong where the real kernel contradicts them."""
    decode = run_of(loaded(DECODE).reference)
    prefill = run_of(loaded(PREFILL).reference)
    names = list(sized(DECODE).interface.inputs)
    of_rope = list(sized(ROPE).interface.inputs)
    of_mamba = list(sized(MAMBA).interface.inputs)
    found = {}
    for fault, mutant in {
        **mutants.of_outputs(),
        **mutants.of_inputs(names, 64),
        **mutants.of_caches(names, "k_cache", "v_cache"),
        "heads interleaved": mutants.interleaved(2),
    }.items():
        found[f"decode: {fault}"] = (DECODE, mutant(decode))
    for fault, mutant in mutants.of_outputs().items():
        found[f"prefill: {fault}"] = (PREFILL, mutant(prefill))
    for fault in mutants.MASKS:
        text = mutants.with_mask(loaded(PREFILL).reference, fault)
        found[f"prefill: {fault}"] = (PREFILL, run_of(text))

    def interleaved_cache(inputs):
        # sine and cosine of the next frequency: another convention of pairs
        return {"cos_sin_cache": inputs["cos_sin_cache"].roll(1, dims=1)}

    run = run_of(loaded(ROPE).reference)
    found["rope: other convention"] = (
        ROPE,
        mutants.on_inputs(of_rope, interleaved_cache)(run),
    )

    def padded_as_zero(inputs):
        slots = inputs["state_batch_indices"]
        return {"state_batch_indices": slots.where(slots >= 0, 0)}

    run = run_of(loaded(MAMBA).reference)
    found["mamba: sentinel taken for slot 0"] = (
        MAMBA,
        mutants.on_inputs(of_mamba, padded_as_zero)(run),
    )
    return found


WRONG = wrong_runs()


@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_reference_is_red_in_the_replay(fault, job):
    name, run = WRONG[fault]
    assert record.record(rendered(name), job, HERE).status == RECORDED
    assert replay(rendered(name, run), job), f"{fault} agrees with the recording"


PLANTED = {
    "one head": lambda i: i.__setitem__((slice(None), 3), 0),
    "one row": lambda i: i.__setitem__(7, 0),
    "the last row": lambda i: i.__setitem__(-1, 0),
    "the tail of a head": lambda i: i.__setitem__((slice(None), slice(None), -3), 0),
}


@pytest.mark.parametrize("place", PLANTED)
def test_a_fault_in_one_place_is_seen_by_the_stored_positions(place, job):
    # 231 rows, 32 heads and 128 columns: one element in 231 is stored
    full = {"flashinfer_backends": staticmethod(lambda _: (Backend("fa3"),))}
    run = run_of(loaded(PREFILL).reference)

    def wrong(*given):
        output, lse = run(*given)
        PLANTED[place](output)
        return output, lse

    classes = [
        class_of(
            gqa_paged,
            sized(PREFILL),
            each,
            flashinfer_ground_truth=pretended(gqa_paged),
            **full,
        )
        for each in (run, wrong)
    ]
    record.record(classes[0], job, HERE)
    assert not replay(classes[0], job, "whole-prompt")
    assert replay(classes[1], job, "whole-prompt")


def test_a_fault_in_one_page_is_seen_by_the_stored_positions(job):
    cls = class_of(
        gqa_paged,
        sized(DECODE),
        run_of(loaded(DECODE).reference),
        flashinfer_ground_truth=pretended(gqa_paged),
    )
    assert record.record(cls, job, HERE).status == RECORDED
    names = list(cls.interface.inputs)
    (case,) = [c for c in cases_of(cls) if c.name == "boundaries"]
    pages = trial_of(cls, case).inputs["kv_indices"]
    for page in (pages[0], pages[5], pages[-1]):

        def one_page(inputs, page=page):
            cache = inputs["v_cache"].clone()
            cache[page] = 0
            return {"v_cache": cache}

        run = mutants.on_inputs(names, one_page)(run_of(loaded(DECODE).reference))
        wrong = class_of(gqa_paged, sized(DECODE), run)
        assert replay(wrong, job, "boundaries"), int(page)


def test_worst_elements_are_named_by_their_place_in_the_whole_output(job):
    run = run_of(loaded(NORM).reference)

    def wrong(*given):
        output = run(*given)
        output[:, 7] += 100
        return output

    record.record(rendered(NORM), job, HERE)
    failures = replay(rendered(NORM, wrong), job, "large-values")
    (text,) = failures.values()
    assert ", 7): actual" in text
    assert "against recorded:flashinfer" in text


def test_without_a_recording_it_skips_with_the_command(job):
    cls = rendered(NORM)
    trial = trial_of(cls, cases_of(cls)[0])
    reason = skip_reason(
        lambda: cls().test_matches_recorded(trial, Path(job.out), ignore_property)
    )
    assert reason.startswith("recorded: no ")
    assert reason.endswith(f"trace-dataset record --definition-name {NORM}")


def test_a_stated_reason_is_told_where_nothing_is_recorded(job):
    cls = rendered(NORM)
    folder = Path(job.out)
    (folder / "unrecorded.json").write_text(json.dumps({NORM: "needs SM100"}))
    recorded_module._reasons.cache_clear()
    told = recorded_module.missing(cls, folder)
    recorded_module._reasons.cache_clear()
    assert told.startswith("recorded: not yet: needs SM100; to record: trace-dataset")


def other_inputs(definition, case, stream):
    made = rmsnorm.make_inputs(definition, case, stream)
    return {**made, "weight": made["weight"] * 2}


def other_cases(definition):
    return [Case(c.name, c.size, {"batch_size": 9}) for c in rmsnorm.cases(definition)]


def fewer_cases(definition):
    return rmsnorm.cases(definition)[:1]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"EPS": 1e-4}, "the definition's interface or constants have changed"),
        ({"make_inputs": staticmethod(other_inputs)}, "the inputs weight have other"),
        ({"cases": staticmethod(other_cases)}, "the case 'one-row' has changed"),
        ({"cases": staticmethod(fewer_cases)}, "there is no case 'large-values'"),
    ],
)
def test_a_stale_recording_is_red_until_it_is_made_anew(changes, text, job):
    record.record(rendered(NORM), job, HERE)
    cls = rendered(NORM, **changes)
    failures = replay(cls, job, "one-row")
    assert text in failures["one-row"]
    assert f"trace-dataset record --definition-name {NORM}" in failures["one-row"]
    assert record.record(cls, job, HERE).status == RECORDED
    assert not any("stale" in text for text in replay(cls, job).values())


def test_a_changed_reference_leaves_a_recording_current(job):
    record.record(rendered(NORM), job, HERE)
    run = mutants.on_outputs(lambda o: o)(run_of(loaded(NORM).reference))
    assert record.record(rendered(NORM, run), job, HERE).status == CURRENT


def test_recordings_stand_side_by_side(job):
    cls = rendered(DECODE)
    record.record(cls, job, HERE)
    first = path_of(cls, job).read_bytes()
    assert record.record(cls, job, NEWER).status == RECORDED
    labels = read(path_of(cls, job)).body["recordings"]
    assert len(labels) == 6
    assert {label.split("@")[1] for label in labels} == {"0.6", "0.7"}
    assert not replay(cls, job)
    assert record.record(cls, job, HERE).status == CURRENT
    assert path_of(cls, job).read_bytes() != first


def test_new_inputs_drop_what_was_recorded_of_the_old_ones(job):
    record.record(rendered(NORM), job, HERE)
    cls = rendered(NORM, make_inputs=staticmethod(other_inputs))
    record.record(cls, job, NEWER)
    assert list(read(path_of(cls, job)).body["recordings"]) == [
        "flashinfer@0.7@NVIDIA-H200"
    ]
    assert not replay(cls, job)


def test_force_records_anew_and_the_same(job):
    cls = rendered(NORM)
    record.record(cls, job, HERE)
    before = path_of(cls, job).read_bytes()
    again = Job("", job.out, "", {}, "cpu", force=True)
    assert record.record(cls, again, HERE).status == RECORDED
    assert path_of(cls, job).read_bytes() == before


def test_a_damaged_file_is_an_error_that_names_it_and_is_replaced(job):
    from generator.support.recording import Damaged

    cls = rendered(NORM)
    record.record(cls, job, HERE)
    path = path_of(cls, job)
    content = path.read_bytes()
    path.write_bytes(content[:-5])
    with pytest.raises(Damaged, match="is damaged"):
        replay(cls, job, "one-row")
    result = record.record(cls, job, HERE)
    assert result.status == RECORDED
    assert str(path) in result.remarks[0]
    assert path.read_bytes() == content


def failing(backend):
    def ground_truth(definition, inputs, asked):
        if asked == backend:
            raise RuntimeError("no kernel image\nis available")
        return pretended(gqa_paged)(definition, inputs, asked)

    return staticmethod(ground_truth)


def test_a_backend_that_fails_leaves_the_others(job):
    cls = rendered(DECODE, flashinfer_ground_truth=failing("fa2"))
    result = record.record(cls, job, HERE)
    assert result.status == RECORDED
    assert [label.split("@")[0] for label in result.labels] == [
        "flashinfer/cuda-cores",
        "flashinfer/fa3",
    ]
    assert result.remarks == [
        "flashinfer/fa2 failed: RuntimeError: no kernel image is available"
    ]


def test_where_all_fail_nothing_is_written(job):
    def ground_truth(definition, inputs, backend):
        raise RuntimeError("broken")

    cls = rendered(NORM, flashinfer_ground_truth=staticmethod(ground_truth))
    result = record.record(cls, job, HERE)
    assert result.status == "failed"
    assert not path_of(cls, job).exists()


def test_a_kernel_that_contradicts_the_oracle_is_recorded_and_told(job):
    cls = rendered(NORM, flashinfer_ground_truth=pretended(rmsnorm, 1.1))
    result = record.record(cls, job, HERE)
    assert result.status == RECORDED
    assert "flashinfer disagrees with the oracle in one-row" in result.remarks[0]
    assert replay(cls, job)


def test_an_unusable_provider_is_told_with_its_reason(job, monkeypatch):
    monkeypatch.setattr(record, "backend_reason", lambda *_: "not installed")
    result = record.record(rendered(NORM), job, HERE)
    assert result.status == UNUSABLE
    assert "no provider is usable: flashinfer: not installed" in result.remarks[0]


class Counts:
    """A policy that stores what it wants, and judges that."""

    def judge(self, actual, expected, question):
        return Comparison(PASSED, ())

    def record(self, expected, question):
        assert question.source == "flashinfer"
        return {"sum": expected.float().sum().reshape(1)}

    def judge_recorded(self, actual, recorded, question):
        off = abs(float(actual.float().sum() - recorded["sum"]))
        return Comparison(PASSED if off < 5.0 else FAILED, (), figures={"off": off})


class Whole:
    """A policy that knows nothing of recordings."""

    def judge(self, actual, expected, question):
        assert expected.dim() == 2
        return Comparison(PASSED if actual.shape == expected.shape else FAILED, ())


@pytest.mark.parametrize("policy", [Counts(), Whole()])
def test_policies_judge_recordings_too(policy, job):
    cls = rendered(NORM, policies={"output": policy})
    assert record.record(cls, job, HERE).status == RECORDED
    told = []
    assert not replay(cls, job, told=lambda _, value: told.append(json.loads(value)))
    assert told
    wrong = rendered(
        NORM, lambda *given: torch.ones(3, 5).bfloat16(), policies={"output": policy}
    )
    assert replay(wrong, job)


def test_other_positions_than_those_chosen_now_are_told(job):
    cls = rendered(NORM)
    record.record(cls, job, HERE)
    path = path_of(cls, job)
    found = read(path)
    for about in found.body["recordings"].values():
        for outputs in about["cases"].values():
            for entry in outputs.values():
                if "positions" in entry:
                    entry["positions"] = "0" * 16
    write(path, found)
    assert "other positions than are chosen now" in str(replay(cls, job))


def test_a_case_that_is_gone_leaves_the_file_with_the_next_recording(job):
    record.record(rendered(NORM), job, HERE)
    cls = rendered(NORM, cases=staticmethod(fewer_cases))
    assert record.record(cls, job, NEWER).status == RECORDED
    body = read(path_of(cls, job)).body
    assert list(body["cases"]) == ["one-row"]
    assert len(body["recordings"]) == 2
    assert not replay(cls, job)


def test_a_broken_context_keeps_what_was_recorded_before(job, monkeypatch):
    monkeypatch.setattr(record, "can_go_on", lambda device: False)
    cls = rendered(DECODE, flashinfer_ground_truth=failing("fa2"))
    result = record.record(cls, job, HERE)
    assert result.status == RECORDED
    assert [label.split("@")[0] for label in result.labels] == ["flashinfer/cuda-cores"]


def test_large_inputs_are_not_kept_for_the_next_backend(job, monkeypatch):
    from generator.support import take

    made = []

    def make_inputs(definition, case, stream):
        made.append(case.name)
        return gqa_paged.make_inputs(definition, case, stream)

    cls = rendered(DECODE, make_inputs=staticmethod(make_inputs))
    record.record(cls, job, HERE)
    assert len(made) == 4
    monkeypatch.setattr(take, "KEPT_BYTES", 0)
    record.record(cls, Job("", job.out, "", {}, "cpu", force=True), HERE)
    assert len(made) == 4 + 3 * 4
