"""gdn: how inputs reach the kernels, and what comes back."""

from __future__ import annotations

import sys
from types import ModuleType

import torch

from generator.ops.op_types.gdn import op as gdn
from kernel_judge.checks.pairs import results
from tests.builders import (
    cases_of,
    class_of,
    compare_all,
    loaded,
    run_of,
    sized,
    trial_of,
)
from tests.unit.ops.test_gdn import REFERENCES, SMALL, STAGES

NORMALISED = {
    stage: loaded(f"gdn_{stage}_l2norm_qk4_v8_d128_k_last").reference
    for stage in STAGES
}
SMALL_NORMALISED = {
    stage: sized(
        f"gdn_{stage}_l2norm_qk4_v8_d128_k_last",
        num_q_heads=2,
        num_k_heads=2,
        num_v_heads=4,
        head_size=16,
    )
    for stage in STAGES
}


def reference(stage, l2norm):
    """Return the text that a kernel computes with its flag on, or off."""
    return (NORMALISED if l2norm else REFERENCES)[stage]


def stand_ins(monkeypatch, **modules):
    """Install modules with a kernel each, and the packages around them."""
    for path, kernel in modules.items():
        names = path.split("__")
        for length in range(1, len(names) + 1):
            name = ".".join(names[:length])
            if name not in sys.modules:
                monkeypatch.setitem(sys.modules, name, ModuleType(name))
        for length in range(1, len(names)):
            parent = sys.modules[".".join(names[:length])]
            child = sys.modules[".".join(names[: length + 1])]
            monkeypatch.setattr(parent, names[length], child, raising=False)
        module = sys.modules[".".join(names)]
        monkeypatch.setattr(module, kernel.__name__, kernel, raising=False)


def gated_delta_rule_decode_pretranspose(
    q, k, v, state, A_log, a, dt_bias, b, scale, *, use_qk_l2norm
):
    assert scale > 0
    run = run_of(reference("decode", use_qk_l2norm))
    output, new_state = run(q, k, v, state, A_log, a, dt_bias, b, scale)
    state.copy_(new_state)
    return output, state


def gated_delta_rule_mtp(*given, disable_state_update, use_qk_l2norm, **options):
    assert disable_state_update
    assert options["scale"] > 0
    output, _ = run_of(reference("mtp", use_qk_l2norm))(*given, **options)
    return output, given[3]


def by_gates(
    q, k, v, log_g, beta, state, cu_seqlens, scale, use_qk_l2norm_in_kernel=False
):
    """Return what the reference gives for gates that are known already."""
    log_g, zero = log_g.reshape(-1, log_g.shape[-1]), torch.zeros(())
    # softplus(20 + x) is 20 + x, and exp(0) is 1
    run = run_of(
        reference("prefill", use_qk_l2norm_in_kernel)
        .replace("torch.nn.functional.softplus", "")
        .replace("torch.sigmoid", "")
    )
    heads = torch.zeros(log_g.shape[-1])
    return run(q, k, v, state, heads, -log_g, zero, beta, cu_seqlens, scale)


def test_flashinfers_kernels_get_what_they_take(monkeypatch):
    asked = []

    def chunk_gated_delta_rule(q, k, v, *, g, beta, output_final_state, **options):
        asked.append(options.pop("use_cp"))
        assert output_final_state
        assert bool((g > 0).all())
        assert bool((g < 1).all())
        kept = options.pop("output_state")
        state, cu_seqlens = options.pop("initial_state"), options.pop("cu_seqlens")
        output, new_state = by_gates(
            q, k, v, g.log(), beta, state, cu_seqlens, **options
        )
        rows = cu_seqlens.diff() > 0
        kept[rows] = new_state[rows]
        return output, kept

    stand_ins(
        monkeypatch,
        flashinfer__gdn_decode=gated_delta_rule_decode_pretranspose,
        flashinfer__gdn_prefill=chunk_gated_delta_rule,
    )
    stand_ins(monkeypatch, flashinfer__gdn_decode=gated_delta_rule_mtp)
    assert compared("flashinfer") == {
        "decode": ["pretranspose"],
        "mtp": ["mtp"],
        "prefill": ["fused", "context-parallel"],
    }
    # of prefill its flag does nothing
    normalised = {"decode": ["pretranspose"], "mtp": ["mtp"], "prefill": []}
    assert compared("flashinfer", l2norm=True) == normalised
    assert set(asked) == {False, True}


def compared(provider, l2norm=False):
    """Compare every small case but those whose gates vanish; return the backends."""
    found = {}
    for stage in STAGES:
        small = (SMALL_NORMALISED if l2norm else SMALL)[stage]
        cls = class_of(gdn, small, run_of(reference(stage, l2norm)))
        backends = getattr(gdn, f"{provider}_backends")(small)
        found[stage] = [backend.name for backend in backends]
        for backend in backends:
            if backend.name == "native":
                continue
            for case in cases_of(cls):
                if stage == "prefill" and case.name == "short-memory":
                    continue
                trial = trial_of(cls, case)
                adapter = getattr(gdn, f"{provider}_ground_truth")
                given = adapter(small, trial.fresh_inputs(), backend.name)
                source = f"{provider}/{backend.name}"
                actual = results(cls.subject(), trial)
                compare_all(cls.subject(), trial, actual, given, source)
    return found


def test_sglangs_kernels_get_what_they_take(monkeypatch):
    def fused_sigmoid_gating_delta_rule_update(
        *, softplus_beta, softplus_threshold, initial_state_source, **options
    ):
        assert (softplus_beta, softplus_threshold) == (1.0, 20.0)
        pool, slots = initial_state_source, options.pop("initial_state_indices")
        frozen = options.pop("disable_state_update")
        l2norm = options.pop("use_qk_l2norm_in_kernel")
        buffer = options.pop("intermediate_states_buffer")
        rows, steps = (
            options.pop(name) for name in ("intermediate_state_indices", "cache_steps")
        )
        if not frozen:
            assert buffer is rows is steps is None
            output, states = run_of(reference("decode", l2norm))(
                state=pool[slots], **options
            )
            pool[slots] = states
            return output
        assert rows.tolist() == list(range(len(slots)))
        assert steps == options["q"].shape[1]
        options |= {"initial_state": pool, "initial_state_indices": slots}
        return run_of(reference("mtp", l2norm))(
            intermediate_states_buffer=buffer, **options
        )[0]

    def fused_recurrent_gated_delta_rule(*given, output_final_state, **options):
        assert output_final_state
        q, k, v, log_g, beta = (tensor.squeeze(0) for tensor in given)
        state = options.pop("initial_state")
        output, state = by_gates(q, k, v, log_g, beta, state, **options)
        return output[None], state

    def chunk_gated_delta_rule(*given, initial_state_indices, **options):
        pool = options.pop("initial_state")
        q, k, v, log_g, beta = (tensor.squeeze(0) for tensor in given)
        state = pool[initial_state_indices]
        # behind an empty sequence SGLang would take the state of another one
        assert bool(options["cu_seqlens"].diff().gt(0).all())
        output, pool[initial_state_indices] = by_gates(
            q, k, v, log_g, beta, state, **options
        )
        return output[None], None, "the states of all chunks"

    attention = "sglang__kernels__ops__attention"
    fused = f"{attention}__linear__fused_sigmoid_gating_recurrent"
    stand_ins(
        monkeypatch,
        **{
            fused: fused_sigmoid_gating_delta_rule_update,
            f"{attention}__fla__fused_recurrent": fused_recurrent_gated_delta_rule,
            f"{attention}__fla__chunk": chunk_gated_delta_rule,
        },
    )
    kernels = {
        "decode": ["native", "triton"],
        "mtp": ["native", "triton"],
        "prefill": ["native", "triton", "triton-chunked"],
    }
    assert compared("sglang") == kernels
    assert compared("sglang", l2norm=True) == kernels
