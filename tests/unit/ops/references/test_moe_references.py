"""The MoE references against loops over single elements with Python floats."""

from __future__ import annotations

import math

import pytest
import torch

from generator.ops.reference_text import reference_text
from generator.ops.registry import op_module
from tests.builders import run_of

FP4 = "trtllm_fp4_block_scale_moe"
HIDDEN, INTERMEDIATE = 256, 128


def reference(module):
    """Return a reference's module, whose constants a test may replace."""
    return op_module("moe", f"references.{module}")


def draw(*shape, std=1.0, seed=0):
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(*shape, generator=generator) * std


def silu(value):
    return value / (1.0 + math.exp(-value))


def expert(x, w13, w2):
    """Return one expert's output for one token: w13 is up, then gate."""
    both = w13.double() @ x.double()
    half = len(both) // 2
    inner = [silu(float(both[half + i])) * float(both[i]) for i in range(half)]
    return w2.double() @ torch.tensor(inner, dtype=torch.float64)


def dequantised(values, scales):
    made = values.double().clone()
    for row in range(scales.shape[0]):
        for column in range(scales.shape[1]):
            block = slice(128 * row, 128 * row + 128), slice(128 * column, None)
            made[block][:, :128] *= float(scales[row, column])
    return made


def close(actual, expected):
    assert actual.dtype == torch.bfloat16
    torch.testing.assert_close(
        actual.double(), expected, rtol=2**-8, atol=1e-4 * float(expected.abs().max())
    )


def f8(*shape, seed=0):
    return draw(*shape, std=10.0, seed=seed).to(torch.float8_e4m3fn)


def block_scales(local):
    return (
        draw(local, 2 * INTERMEDIATE // 128, HIDDEN // 128, seed=5).abs() / 100,
        draw(local, HIDDEN // 128, INTERMEDIATE // 128, seed=6).abs() / 100,
    )


def test_deepseek_by_hand(monkeypatch):
    found = reference("moe_fp8_block_scale_ds_routing")
    for name, value in (("TOP_K", 2), ("N_GROUP", 3), ("TOPK_GROUP", 1)):
        monkeypatch.setattr(found, name, value)
    # group 1 has the best two by score and bias, though group 2 has the best one;
    # the bias makes expert 5 beat expert 4
    logits = torch.tensor([[0.0, 0.0, 0.0, -1.0, 1.0, 0.0, 3.0, -9.0, -9.0]] * 3)
    bias = torch.zeros(9)
    bias[3:6] = torch.tensor([0.75, 0.25, 0.5])
    x, x_scale = f8(3, HIDDEN), draw(2, 3).abs() / 10
    w13, w2 = f8(4, 2 * INTERMEDIATE, HIDDEN), f8(4, HIDDEN, INTERMEDIATE)
    s13, s2 = block_scales(4)
    # experts 2 … 5 are here, and 3, 4, 5 score 0.27 + 0.75, 0.73 + 0.25, 0.5 + 0.5
    given = (logits, bias.bfloat16(), x, x_scale, w13, s13, w2, s2, 2, 1.5)
    scores = {3: 1 / (1 + math.e), 5: 0.5}
    expected = torch.zeros(3, HIDDEN, dtype=torch.float64)
    for token in range(3):
        state = x[token].double()
        state[:128] *= float(x_scale[0, token])
        state[128:] *= float(x_scale[1, token])
        for number, score in scores.items():
            one = dequantised(w13[number - 2], s13[number - 2])
            two = dequantised(w2[number - 2], s2[number - 2])
            weight = 1.5 * score / sum(scores.values())
            expected[token] += weight * expert(state, one, two)
    close(found.run(*given), expected)
    elsewhere = (*given[:8], 100, 1.5)
    assert not found.run(*elsewhere).any()


def test_renormalised_by_hand():
    run = run_of(str(reference_text("moe", "moe_fp8_block_scale_renorm", TOP_K=2)))
    logits = torch.tensor([[0.0, 1.0, 2.0], [3.0, 1.0, 1.5]])
    x, x_scale = f8(2, HIDDEN), draw(2, 2).abs() / 10
    w13, w2 = f8(3, 2 * INTERMEDIATE, HIDDEN), f8(3, HIDDEN, INTERMEDIATE)
    s13, s2 = block_scales(3)
    expected = torch.zeros(2, HIDDEN, dtype=torch.float64)
    for token, chosen in enumerate(((1, 2), (0, 2))):
        state = x[token].double()
        state[:128] *= float(x_scale[0, token])
        state[128:] *= float(x_scale[1, token])
        total = sum(math.exp(logits[token, e]) for e in chosen)
        for number in chosen:
            one = dequantised(w13[number], s13[number])
            two = dequantised(w2[number], s2[number])
            weight = math.exp(logits[token, number]) / total
            expected[token] += weight * expert(state, one, two)
    close(run(logits.bfloat16(), x, x_scale, w13, s13, w2, s2), expected)


def test_fp4_routed_and_renormalised_are_the_same_sum():
    plain = run_of(str(reference_text("moe", FP4, TOP_K=2)))
    routed = run_of(str(reference_text("moe", FP4, ("routed",))))
    # a softmax of two equal logits is exactly a half each
    logits = torch.tensor([[0.0, 2.0, 2.0, 1.0], [1.0, 0.0, -1.0, 1.0]]).bfloat16()
    chosen = torch.tensor([[2, 1], [0, 3]], dtype=torch.int32)
    ids = chosen << 16 | 0x3F00
    x = draw(2, HIDDEN).bfloat16()
    w13, w2 = draw(4, 2 * INTERMEDIATE, HIDDEN, std=0.1), draw(4, HIDDEN, INTERMEDIATE)
    expected = torch.stack(
        [
            sum(0.5 * expert(x[t], w13[e], w2[e]) for e in chosen[t].tolist())
            for t in range(2)
        ]
    )
    close(plain(logits, x, w13, w2), expected)
    close(routed(ids, x, w13, w2), expected)


@pytest.mark.parametrize("kind", ["fp4", "fp8"])
def test_llama4_scales_the_input(kind):
    logits = torch.tensor([[0.0, 1.0, 0.5], [-1.0, -2.0, -1.5]])
    # whoever adds it to the scores chooses the last expert
    bias = torch.tensor([0.0, 0.0, 3.0])
    chosen, logit = (1, 0), (1.0, -1.0)
    scales = torch.tensor([2.0, 4.0, 0.5]), torch.tensor([1.0, 8.0, 0.25])
    down = torch.tensor([1.0, 2.0, 4.0])
    if kind == "fp4":
        run = run_of(str(reference_text("moe", FP4, ("topk1",))))
        x, w2 = draw(2, HIDDEN).bfloat16(), draw(3, HIDDEN, INTERMEDIATE)
        w13 = draw(3, 2 * INTERMEDIATE, HIDDEN, std=0.1)
        given = (logits.bfloat16(), x, w13, w2, bias.bfloat16())
        scales, down = (torch.ones(3), torch.ones(3)), torch.ones(3)
    else:
        run = reference("trtllm_fp8_per_tensor_scale_moe_topk1").run
        x = (draw(2, HIDDEN) / 10).to(torch.float8_e4m3fn)
        w13, w2 = f8(3, 2 * INTERMEDIATE, HIDDEN), f8(3, HIDDEN, INTERMEDIATE)
        w13 = (w13.float() / 16).to(torch.float8_e4m3fn)
        given = (logits.bfloat16(), x, w13, *scales, w2, down, bias.bfloat16())
    expected = []
    for token in range(2):
        number = chosen[token]
        score = 1.0 / (1.0 + math.exp(-logit[token]))
        half_scales = torch.ones(2 * INTERMEDIATE, 1, dtype=torch.float64)
        half_scales[:INTERMEDIATE] *= float(scales[0][number])
        half_scales[INTERMEDIATE:] *= float(scales[1][number])
        one = w13[number].double() * half_scales
        two = w2[number].double() * float(down[number])
        expected.append(expert(x[token].double() * score, one, two))
    close(run(*given), torch.stack(expected))


def test_one_scale_an_expert_by_hand(monkeypatch):
    found = reference("trtllm_fp8_per_tensor_scale_moe")
    monkeypatch.setattr(found, "TOP_K", 1)
    x = (draw(2, HIDDEN) / 10).to(torch.float8_e4m3fn)
    w13 = draw(2, 2 * INTERMEDIATE, HIDDEN).to(torch.float8_e4m3fn)
    w2 = f8(2, HIDDEN, INTERMEDIATE)
    up, gate = torch.tensor([2.0, 4.0]), torch.tensor([0.5, 0.25])
    down = torch.tensor([1.0, 3.0])
    logits = torch.tensor([[0.0, 1.0], [1.0, 0.0]]).bfloat16()
    expected = []
    for token, number in enumerate((1, 0)):
        one = w13[number].double().clone()
        one[:INTERMEDIATE] *= float(up[number])
        one[INTERMEDIATE:] *= float(gate[number])
        two = w2[number].double() * float(down[number])
        expected.append(expert(x[token], one, two))
    given = (logits, x, w13, up, gate, w2, down)
    close(found.run(*given), torch.stack(expected))
