"""Kernels that are pretended, and what is recorded of them and replayed."""

from __future__ import annotations

from pathlib import Path

from generator.ops.op_types.gqa_paged import op as gqa_paged
from generator.ops.op_types.mamba_ssu import op as mamba_ssu
from generator.ops.op_types.mla_paged import op as mla_paged
from generator.ops.op_types.rmsnorm import op as rmsnorm
from generator.ops.op_types.rope import op as rope
from generator.running import record_worker as record
from generator.running.kernel_recorder import RecordJob
from generator.running.machine import RecordingMachine
from generator.running.skipped_test import Skipped
from kernel_judge.checks import available, sources
from kernel_judge.inputs.memory import dtype_of
from kernel_judge.recording.recording_file import recording_path
from tests.builders import (
    cases_of,
    class_of,
    ignore_property,
    loaded,
    run_of,
    sized,
    trial_of,
)

HERE = RecordingMachine(
    "NVIDIA H200", 90, {"flashinfer": "0.6", "torch": "2.11"}, "2026-11-21"
)
NEWER = RecordingMachine(
    "NVIDIA H200", 90, {"flashinfer": "0.7", "torch": "2.11"}, "2026-11-22"
)
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
    """Return an adapter that gives the oracle's outputs in the declared dtypes.

    It gives None for those that the backend's kernel does not return.
    """

    def ground_truth(definition, inputs, backend):
        (lacks,) = (
            b.lacks for b in op.flashinfer_backends(definition) if b.name == backend
        )
        returned = op.oracle(definition, inputs)
        returned = returned if isinstance(returned, tuple) else (returned,)
        specs = definition.interface.output_specs
        return tuple(
            None if name in lacks else (value * factor).to(dtype_of(spec.dtype))
            for value, (name, spec) in zip(returned, specs.items(), strict=True)
        )

    return staticmethod(ground_truth)


def rendered(name, run=None, **changes):
    op, axes = NAMES[name]
    definition = sized(name, **axes)
    run = run or run_of(loaded(name).reference)
    changes = {"flashinfer_ground_truth": pretended(op), **changes}
    return class_of(op, definition, run, **changes)


def path_of(cls, job):
    return recording_path(Path(job.out), cls.op_type, cls.name)


def replay(cls, job, case=None, told=ignore_property):
    """Run the test on every recorded case, or one; return what fails."""
    failures = {}
    for one in cases_of(cls, job.sizes):
        if case in (None, one.name):
            try:
                cls().test_matches_recorded(trial_of(cls, one), Path(job.out), told)
            except AssertionError as error:
                failures[one.name] = str(error)
            except Skipped:
                pass
    return failures


def pretend_usable(monkeypatch):
    """Pretend that every provider can be called on the CPU."""
    for module in (available, sources, record):
        monkeypatch.setattr(module, "backend_obstacle", lambda *_: None)


def job_in(folder):
    return RecordJob(str(folder), device="cpu")
