"""Defects planted in texts of definitions, which parity with transformers must find."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Plant:
    """Name a defect: where it is, and which stage must be the first to show it.

    `key` and `role` name the definition whose text has `old`, replaced by `new`.
    """

    family: str
    key: str
    old: str
    new: str
    first: str
    role: str = ""
    level: str = "forward"


PLANTS = {
    "Gemma without 1 + weight": Plant(
        "gemma3",
        "sliding_attention/input_norm",
        "(1.0 + weight.float())",
        "weight.float()",
        "input_norm",
    ),
    "RoPE interleaved": Plant(
        "llama",
        "/rope",
        "x[..., :rotary_dim].float().chunk(2, dim=-1)",
        "x[..., 0:rotary_dim:2].float(), x[..., 1:rotary_dim:2].float()",
        "rope",
    ),
    "gate and up swapped": Plant("llama", "/act", "gate, up =", "up, gate =", "act"),
    "KV off by one position": Plant(
        "llama",
        "/attention",
        "+ last_page_lens[b]\n",
        "+ last_page_lens[b] - 1\n",
        "decode@64",
        "decode@64",
        "decode",
    ),
    "KV off by one position, pages of one token": Plant(
        "llama",
        "/attention",
        "kv_indices[kv_start:kv_end]",
        "kv_indices[kv_start + 1 : kv_end]",
        "decode@1",
        "decode@1",
        "decode",
    ),
    "appended one position later": Plant(
        "qwen3",
        "/attention",
        "slots = positions % page_size",
        "slots = (positions + 1) % page_size",
        "append@64",
        "append@64",
        "decode",
    ),
    "wrong GQA grouping": Plant(
        "llama",
        "/attention",
        "queries.reshape(q_len, num_kv_heads, group_size, head_dim)",
        "queries.reshape(q_len, group_size, num_kv_heads, head_dim).transpose(1, 2)",
        "attention",
        "ragged",
    ),
    "scale of the head's length": Plant(
        "gemma3",
        "full_attention/attention",
        "* sm_scale",
        "/ math.sqrt(head_dim)",
        "attention",
        "ragged",
    ),
    "window one key longer": Plant(
        "gemma3",
        "sliding_attention/attention",
        "- WINDOW_LEFT",
        "- WINDOW_LEFT - 1",
        "attention",
        "ragged",
    ),
    "softmax over all experts": Plant(
        "gpt-oss",
        "/routing",
        "weights / weights.sum(dim=1, keepdim=True)",
        "weights",
        "routing",
    ),
    "weights of experts that do not add up to 1": Plant(
        "mistral4",
        "/routing",
        "weights / weights.sum(dim=1, keepdim=True)",
        "weights",
        "routing",
    ),
    "a norm of the latent without a mean": Plant(
        "deepseek-v2", "/kv_a_norm", ".mean(dim=-1", ".sum(dim=-1", "kv_a_norm"
    ),
    "no scaling of the routed experts": Plant(
        "deepseek-v3", "/routing", "* routed_scaling_factor", "", "routing"
    ),
    "chunks one token longer": Plant(
        "llama4",
        "chunked_attention/attention",
        "// ATTENTION_CHUNK_SIZE",
        "// (ATTENTION_CHUNK_SIZE + 1)",
        "attention",
        "ragged",
    ),
    "sigmoid of the experts left out": Plant(
        "llama4", "/routing", "torch.sigmoid(logits)", "logits", "routing"
    ),
    "a soft cap of the logits left out": Plant(
        "gemma2",
        "full_attention/attention",
        "LOGITS_SOFT_CAP * torch.tanh(logits / LOGITS_SOFT_CAP)",
        "logits",
        "attention",
        "ragged",
    ),
    "norm of each head, not of all together": Plant(
        "minimax-m2",
        "/k_norm",
        "x.square().mean(dim=-1, keepdim=True)",
        "x.square().unflatten(-1, (2, -1)).mean(-1, keepdim=True)"
        ".expand(-1, -1, x.shape[-1] // 2).flatten(1)",
        "k_norm",
    ),
    "an image's rows turned by their order": Plant(
        "qwen3-vl", "/rope", "rows[:, 1, ...", "rows[:, 0, ...", "rope"
    ),
    "patches turned with their neighbours": Plant(
        "qwen3-vl",
        "/v_rope",
        "x[..., :rotary_dim].float().chunk(2, dim=-1)",
        "x[..., 0:rotary_dim:2].float(), x[..., 1:rotary_dim:2].float()",
        "v_rope",
    ),
    "LayerNorm without its mean": Plant(
        "qwen3-vl",
        "/v_norm2",
        "x - x.mean(dim=-1, keepdim=True)",
        "x",
        "v_norm2",
    ),
    "an image that sees no later patch": Plant(
        "qwen3-vl",
        "/v_attention",
        "logits.softmax(dim=-1)",
        "(logits + torch.full_like(logits, -1e4).triu(1)).softmax(dim=-1)",
        "v_attention",
    ),
    "speech that is read but for its last row": Plant(
        "whisper",
        "/cross_attention",
        "kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]",
        "kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1] - 1",
        "cross_attention",
    ),
    "LayerNorm's bias left out": Plant(
        "whisper", "/enc_final", " + bias", "", "enc_final"
    ),
    "logits of a source scaled": Plant(
        "t5",
        "/cross_attention",
        "* sm_scale",
        "/ math.sqrt(head_dim)",
        "cross_attention",
    ),
    "heads that share another one's view of an image": Plant(
        "llama-vision",
        "cross/cross_attention",
        "queries.reshape(-1, num_kv_heads, group_size, head_dim)",
        "queries.reshape(-1, group_size, num_kv_heads, head_dim).transpose(1, 2)",
        "cross_attention",
    ),
    "padding of a tile that the image does not see": Plant(
        "llama-vision",
        "/v_attention",
        "kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]",
        "kv_start, kv_end = kv_bounds[b], min(kv_bounds[b + 1], kv_bounds[b] + 17)",
        "v_attention",
    ),
    "an expert's gate by a bias": Plant(
        "hunyuan3",
        "/routing",
        "weights = scores.gather",
        "weights = (scores + bias).gather",
        "routing",
    ),
    "a decay of heads, not of channels": Plant(
        "kimi-linear",
        "linear_attention/delta",
        "steps = torch.nn.functional.softplus(a.float() + dt_bias)",
        "steps = torch.nn.functional.softplus(a.float() + dt_bias).mean(-1, keepdim=True)"
        ".expand_as(a)",
        "delta",
    ),
    "a norm of each head alone": Plant(
        "olmo3",
        "sliding_attention/k_norm",
        "x.square().mean(dim=-1, keepdim=True)",
        "x.square().unflatten(-1, (2, -1)).mean(-1, keepdim=True)"
        ".expand(-1, -1, x.shape[-1] // 2).flatten(1)",
        "k_norm",
    ),
    "neighbours turned as halves": Plant(
        "ernie4.5",
        "/rope",
        "x[..., 0:rotary_dim:2].float(), x[..., 1:rotary_dim:2].float()",
        "x[..., :rotary_dim].float().chunk(2, dim=-1)",
        "rope",
    ),
    "eps ten times as large": Plant(
        "llama", "/input_norm", "EPS = 1e-05", "EPS = 1e-04", "input_norm"
    ),
}


BACKWARD_PLANTS = {
    "no gradient of the gate": Plant(
        "llama", "/act", "silu(gate)", "silu(gate.detach())", "gate_up: gate"
    ),
    "no gradient of the values": Plant(
        "qwen3",
        "/attention",
        "v[kv_start:kv_end]",
        "v[kv_start:kv_end].detach()",
        "qkv: v",
        "ragged",
    ),
}
