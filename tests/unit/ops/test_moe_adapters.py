"""What FlashInfer's and SGLang's MoE kernels are handed, seen by stand-ins."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace

import pytest
import torch

from generator.ops.op_types.moe import op as moe
from generator.ops.op_types.moe import routing as moe_routing
from generator.ops.op_types.moe import sglang as moe_sglang
from generator.ops.op_types.moe import sglang_calls as sglang_moe
from generator.ops.op_types.moe.weights import dequantize_mxfp4
from kernel_judge.comparison.compare import compare
from tests.builders import cases_of, class_of, loaded, run_of, trial_of
from tests.unit.ops.moe_faults import (
    DEEPSEEK,
    EVERY,
    FP4,
    FP4_LLAMA4,
    FP4_SHARD,
    RENORM,
    RENORM_SHARD,
    ROUTED,
    TENSOR,
    TENSOR_LLAMA4,
)
from tests.unit.ops.test_moe import small


def trial_for(name, case_name):
    cls = class_of(moe, small(name), run_of(loaded(name).reference))
    (case,) = (c for c in cases_of(cls, ("small", "medium")) if c.name == case_name)
    return cls, trial_of(cls, case)


def fused_experts(x, w1, w2, weights, ids, **options):
    """Compute as SGLang's Triton kernel does, in float64: w1 is [gate; up]."""
    assert options.pop("inplace") is False
    on_input = options.pop("apply_router_weight_on_input", False)
    one, two = w1.double(), w2.double()
    if options.pop("use_fp8_w8a8", False):
        assert options.pop("block_shape") == [128, 128]
        assert w1.dtype == w2.dtype == torch.float8_e4m3fn
        one, two = (
            w
            * options.pop(f"w{n}_scale")
            .double()
            .repeat_interleave(128, 1)
            .repeat_interleave(128, 2)
            for n, w in ((1, one), (2, two))
        )
    else:
        assert w1.dtype == w2.dtype == torch.bfloat16
    assert not options
    assert x.dtype == torch.bfloat16
    assert weights.dtype == torch.float32
    assert ids.dtype == torch.int32
    assert all(t.is_contiguous() for t in (x, w1, w2, weights, ids))
    output = torch.zeros(x.shape, dtype=torch.float64)
    for token, row in enumerate(ids.tolist()):
        for slot, expert in enumerate(row):
            if expert == -1:
                continue
            weight = weights[token, slot].double()
            states = x[token].double() * (weight if on_input else 1.0)
            gate, up = (one[expert] @ states).chunk(2)
            y = two[expert] @ (gate * torch.sigmoid(gate) * up)
            output[token] += y if on_input else y * weight
    return output.to(torch.bfloat16)


def routed(definition, inputs, x):
    """Stand in for SGLang's routing by the oracle's."""
    choices = moe_routing.choices(definition, inputs)
    ids = torch.tensor([list(choice) for choice in choices], dtype=torch.int32)
    return torch.tensor([list(choice.values()) for choice in choices]), ids


@pytest.fixture
def triton(monkeypatch):
    """Replace the kernel and the routing, both of which need SGLang."""

    @contextmanager
    def triton_moe(block_shape=None):
        yield fused_experts

    monkeypatch.setattr(sglang_moe, "triton_moe", triton_moe)
    monkeypatch.setattr(moe_sglang, "route", routed)


@pytest.mark.parametrize("name", EVERY)
def test_the_triton_kernel_gets_the_same_experts_in_its_own_order(triton, name):
    cls = class_of(moe, small(name), run_of(loaded(name).reference))
    for case in cases_of(cls, ("small", "medium")):
        trial = trial_of(cls, case)
        for backend in cls.subject().op.kernels["sglang"].backends(trial.definition):
            if backend.name == "native":
                continue
            given = trial.lazy_inputs()
            made = (
                cls.subject()
                .op.kernels["sglang"]
                .call(trial.definition, given, backend.name)
            )
            # where scales have all bits, bfloat16 rounds what the kernel is handed
            exact = not {"all_bits", "below"} & case.params.keys()
            source = f"sglang/{'native' if exact else backend.name}"
            tolerance = cls.subject().tolerance("output", source, case)
            found = compare(trial.outputs[0], made, tolerance, same_dtype=True)
            assert found.passed, (case.name, backend.name, found.findings)


@pytest.mark.parametrize(("case", "kept"), [("one-token", True), ("batch", False)])
def test_bfloat16_holds_the_weights_of_a_recorded_case(case, kept):
    _, trial = trial_for(RENORM, case)
    given = trial.lazy_inputs()
    narrow = moe_sglang.dequantized(given, [0], torch.bfloat16)
    wide = moe_sglang.dequantized(given, [0], torch.float32)
    for held, matrix in zip(narrow, wide, strict=True):
        assert torch.equal(held.float(), matrix) == kept


def test_weights_that_mxfp4_rounds_are_refused():
    _, trial = trial_for(FP4, "one-token")
    given = trial.lazy_inputs()
    given["gemm2_weights"].base.mul_(1.1)
    with pytest.raises(AssertionError, match="mxfp4 rounds"):
        moe_sglang.dequantized(given, [0], torch.float32)


@pytest.fixture
def kernels(monkeypatch):
    """Install a module named flashinfer whose kernels record what they are given."""
    calls = []

    def kernel(name, wrap):
        def call(*arguments, **options):
            calls.append((name, arguments, options))
            return wrap(torch.zeros(1))

        return call

    fused, core = ModuleType("flashinfer.fused_moe"), ModuleType("core")
    for name in ("trtllm_fp8_block_scale_moe", "trtllm_fp8_per_tensor_scale_moe"):
        setattr(fused, name, kernel(name, lambda output: output))
    for name in ("trtllm_fp4_block_scale_moe", "trtllm_fp4_block_scale_routed_moe"):
        setattr(fused, name, kernel(name, lambda output: [output]))

    def gated_order(cache, matrix, tile, num_elts_per_sf=None):
        # as the kernels interleave the halves; the shuffle behind it is FlashInfer's
        assert tile == 128
        return torch.arange(len(matrix)).view(2, -1).T.flatten()

    def order(cache, matrix, tile, num_elts_per_sf=None):
        return torch.arange(len(matrix))

    core._maybe_get_cached_w3_w1_permute_indices = gated_order
    core.get_w2_permute_indices_with_cache = order
    fused.core = core
    quantization = ModuleType("flashinfer.quantization.fp4_quantization")
    quantization.block_scale_interleave = lambda scales: scales.flatten()
    flashinfer = SimpleNamespace(fused_moe=fused)
    modules = {
        "flashinfer": flashinfer,
        "flashinfer.fused_moe": fused,
        "flashinfer.fused_moe.core": core,
        "flashinfer.quantization": SimpleNamespace(fp4_quantization=quantization),
        "flashinfer.quantization.fp4_quantization": quantization,
    }
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return calls


def call(name, case_name, kernels):
    cls, trial = trial_for(name, case_name)
    (backend,) = cls.subject().op.kernels["flashinfer"].backends(trial.definition)
    assert backend.min_sm == 100
    given = trial.fresh_inputs()
    cls.subject().op.kernels["flashinfer"].call(trial.definition, given, backend.name)
    ((kernel, arguments, options),) = kernels
    return trial, given, kernel, arguments, options


def test_deepseek_is_given_its_groups_and_its_first_expert(kernels):
    _, given, kernel, arguments, options = call(DEEPSEEK, "last-experts", kernels)
    assert kernel == "trtllm_fp8_block_scale_moe"
    tensors = [v for v in given.values() if isinstance(v, torch.Tensor)]
    assert all(a is b for a, b in zip(arguments, tensors, strict=False))
    assert arguments[8:] == (256, 8, 8, 4, 128, 224, 32, 2.5)
    assert options["routing_method_type"] == 2
    assert options["use_shuffled_weight"] is False


def test_renormalised_routing_has_no_groups(kernels):
    _, _, _, arguments, options = call(RENORM, "batch", kernels)
    assert arguments[1] is None
    assert arguments[8:] == (128, 10, None, None, 128, 0, 128, None)
    assert options["routing_method_type"] == 1


def test_a_shard_is_told_of_the_experts_elsewhere(kernels):
    _, _, _, arguments, _ = call(RENORM_SHARD, "end-experts", kernels)
    assert arguments[8:] == (512, 10, None, None, 128, 384, 128, None)
    kernels.clear()
    _, _, _, _, options = call(FP4_SHARD, "end-experts", kernels)
    told = ("num_experts", "local_expert_offset", "local_num_experts")
    assert [options[name] for name in told] == [128, 64, 64]


@pytest.mark.parametrize("name", [FP4, FP4_LLAMA4, ROUTED])
def test_fp4_weights_are_quantised_without_loss(kernels, name):
    trial, given, kernel, _, options = call(name, "batch", kernels)
    routes = kernel == "trtllm_fp4_block_scale_routed_moe"
    assert routes == (name != FP4)
    for half, interleaved in (("gemm1_weights", True), ("gemm2_weights", False)):
        codes, scales = options[half], options[f"{half}_scale"]
        assert scales.dtype == torch.float8_e4m3fn
        assert scales.shape == (*codes.shape[:2], codes.shape[2] // 16)
        made = dequantize_mxfp4(codes[3], scales[3].view(torch.uint8))
        rows = given[half][3]
        if interleaved:
            rows = rows.view(2, -1, rows.shape[1]).transpose(0, 1).flatten(0, 1)
        assert torch.equal(made, rows)
    if name == ROUTED:
        assert torch.equal(options["topk_ids"], given["topk_ids"])
        assert torch.equal(options["hidden_states"], given["hidden_states"])
    if name == FP4_LLAMA4:
        choices = moe_routing.choices(trial.definition, given)
        ids, weights = moe_routing.unpack(options["topk_ids"])
        assert ids.flatten().tolist() == [e for c in choices for e in c]
        assert (weights == 1.0).all()
        scores = torch.tensor([[w] for c in choices for w in c.values()])
        expected = (given["hidden_states"].float() * scores).bfloat16()
        torch.testing.assert_close(options["hidden_states"], expected)


@pytest.mark.parametrize("name", [TENSOR, TENSOR_LLAMA4])
def test_one_scale_an_expert_goes_through_and_rows_are_interleaved(kernels, name):
    trial, given, _, arguments, options = call(name, "batch", kernels)
    llama4 = name == TENSOR_LLAMA4
    assert arguments[16] is llama4, "the score scales the input"
    assert options["routing_method_type"] == (3 if llama4 else 1)
    for place, key in ((4, "scalar"), (5, "gate_scalar")):
        assert arguments[place] is given[f"output1_scales_{key}"]
    rows = given["gemm1_weights"].float()[2]
    assert torch.equal(arguments[3].float()[2, 0], rows[0])
    assert torch.equal(arguments[3].float()[2, 1], rows[len(rows) // 2])
    if llama4:
        choices = moe_routing.choices(trial.definition, given)
        chosen = arguments[0].argmax(dim=1).tolist()
        assert chosen == [e for c in choices for e in c]
        rows = torch.arange(len(chosen))
        kept = given["routing_logits"][rows, chosen]
        assert torch.equal(arguments[0][rows, chosen], kept)
