"""What a scripted agent writes for eight small ops: drafts, the last of which is right."""

from __future__ import annotations

NORM = """import torch

def run(x, weight):
    y = x.float()
    y = y * torch.rsqrt({mean} + 1e-6)
    return (y * weight.float()).to(x.dtype)
"""
GATED = """import torch

def run(x, gate, weight):
    y = x.float()
    y = y * torch.rsqrt((y * y).mean(-1, keepdim=True) + 1e-6) * weight.float()
    return (y * {gate}).to(x.dtype)
"""
LAYER = """import torch

def run(x, weight, bias):
    y = torch.nn.functional.layer_norm(x.float(), x.shape[-1:], weight, {bias}, 1e-6)
    return y.to(x.dtype)
"""
GATED_UNIT = """import torch

def run(x):
    half = x.shape[-1] // 2
    gate, up = x[..., :half].float(), x[..., half:].float()
    return (torch.nn.functional.{function} * up).to(x.dtype)
"""
ROUTING = """import torch

def run(logits):
    weights, experts = torch.softmax(logits.float(), -1).topk(2, -1)
    {renormalise}
    return weights, experts.to(torch.int32)
"""
PRODUCT = """import torch

def run(a, b):
    return (a.float() @ b.float().T{end}).to(torch.bfloat16)
"""
MERGE = """import torch

def run(v_a, s_a, v_b, s_b):
    most = torch.maximum(s_a, s_b)
    most = torch.where(torch.isinf(most), torch.zeros_like(most), most)
    a, b = torch.{exp}(s_a - most), torch.{exp}(s_b - most)
    whole = a + b
    safe = torch.where(whole > 0, whole, torch.ones_like(whole))
    merged = (v_a.float() * a[..., None] + v_b.float() * b[..., None]) / safe[..., None]
    return merged.to(v_a.dtype), torch.log2(whole) + most
"""

DRAFTS = {
    "rmsnorm_h128": [
        NORM.format(mean="y.var(-1, keepdim=True)"),
        NORM.format(mean="(y * y).mean(-1, keepdim=True)"),
    ],
    "gated_rmsnorm_h128": [
        GATED.format(gate="torch.sigmoid(gate.float())"),
        GATED.format(gate="torch.nn.functional.silu(gate.float())"),
    ],
    "layernorm_h128": [LAYER.format(bias="None"), LAYER.format(bias="bias")],
    "silu_and_mul_i512": [
        GATED_UNIT.format(function="silu(up)"),
        GATED_UNIT.format(function="silu(gate)"),
    ],
    "gelu_and_mul_i1152": [
        GATED_UNIT.format(function="gelu(gate, approximate='tanh')"),
        GATED_UNIT.format(function="gelu(gate)"),
    ],
    "topk_softmax_e8_k2_renorm": [
        ROUTING.format(renormalise="pass"),
        ROUTING.format(renormalise="weights = weights / weights.sum(-1, keepdim=True)"),
    ],
    "gemm_bf16_n16_k5120": [PRODUCT.format(end=" * 2"), PRODUCT.format(end="")],
    "merge_state_h64_d64": [MERGE.format(exp="exp"), MERGE.format(exp="exp2")],
}
