"""A domain mutant gives what a reference gives that has the defect in its text."""

from __future__ import annotations

import pytest
import torch

from generator.ops.domain_mutants import domain_mutants
from kernel_judge.inputs.trial import as_tuple, seed
from tests.builders import cases_of, class_of, replaced, run_of, trial_of
from tests.unit.ops import geometries as g
from tests.unit.ops.survivors import op_of

GQA = ("gqa_paged_prefill_causal_h24_kv8_d128_ps64", g.GQA)
RAGGED = ("gqa_ragged_prefill_causal_h24_kv8_d128", g.GQA)
NORM = ("rmsnorm_h7168", {"hidden_size": 256})
GEMMA = ("rmsnorm_h5376", {"hidden_size": 256})
ADDED = ("fused_add_rmsnorm_h2048", {"hidden_size": 256})
ROPE = ("rope_with_cos_sin_cache_neox_style_d128_rd64", {})
DECODE = ("gdn_decode_qk4_v8_d128_k_last", g.GDN)
PREFILL = ("gdn_prefill_qk4_v8_d128_k_last", g.GDN)
MTP = ("gdn_mtp_qk4_v8_d128_k_last", g.GDN)
MAMBA = (
    "mamba_ssu_decode_h128_d64_s128_ng8",
    {"nheads": 8, "head_dim": 4, "dstate": 16, "ngroups": 2},
)
DEEPSEEK = (
    "moe_fp8_block_scale_ds_routing_topk8_ng8_kg4_e32_h7168_i2048",
    g.WIDE_EXPERTS | g.WIDE_BLOCKS,
)
RENORM = (
    "moe_fp8_block_scale_renorm_topk10_e128_h2048_i512",
    g.WIDE_EXPERTS | g.WIDE_BLOCKS,
)
LLAMA4 = ("trtllm_fp4_block_scale_moe_topk1_e16_h5120_i8192", g.EXPERTS)
INDEXER = (
    "dsa_topk_indexer_fp8_h64_d128_topk2048_ps64",
    {"num_index_heads": 8, "topk": 128, "page_size": 16},
)
TOP_P = ("top_p_sampling_from_probs_v128256", g.VOCABULARY)
BOTH = ("top_k_top_p_sampling_from_probs_v128256", g.VOCABULARY)

_PAGED_MASK = "torch.arange(kv_len - q_len, kv_len, device"
_POSITIONS = "torch.arange(kv_len - q_len, kv_len, device=q.device)"
_ROPE_PAIRS = (
    (
        "first, second = x[..., :rotary_dim].float().chunk(2, dim=-1)",
        "first, second = x[..., :rotary_dim].float().unflatten(-1, (-1, 2)).unbind(-1)",
    ),
    (
        "torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)",
        "torch.stack((first * cos - second * sin, second * cos + first * sin), -1)"
        + ".flatten(-2)",
    ),
)
# definition, mutant, and the replacements that plant the defect in its text
WRITTEN = [
    (GQA, "mask aligned top-left", ((_PAGED_MASK, "torch.arange(q_len, device"),)),
    (
        GQA,
        "mask missing",
        ((_PAGED_MASK, "torch.arange(kv_len, kv_len + q_len, device"),),
    ),
    (
        GQA,
        "mask one too strict",
        ((_PAGED_MASK, "torch.arange(kv_len - q_len - 1, kv_len - 1, device"),),
    ),
    (
        GQA,
        "mask one too wide",
        ((_PAGED_MASK, "torch.arange(kv_len - q_len + 1, kv_len + 1, device"),),
    ),
    (
        RAGGED,
        "mask aligned top-left",
        ((_POSITIONS, "torch.arange(q_len, device=q.device)"),),
    ),
    (RAGGED, "mask one too strict", (("> query_positions", ">= query_positions"),)),
    (RAGGED, "LSE in natural logarithm", ((" / math.log(2)", ""),)),
    (NORM, "eps ten times too large", (("EPS = 1e-06", "EPS = 1e-5"),)),
    (NORM, "eps missing", (("EPS = 1e-06", "EPS = 0.0"),)),
    (GEMMA, "weight without +1", (("(1.0 + weight.float())", "weight.float()"),)),
    (NORM, "weight with +1", (("* weight.float()", "* (1.0 + weight.float())"),)),
    (ADDED, "residual not added", ((" + residual.float()", ""),)),
    (ROPE, "pairs interleaved", _ROPE_PAIRS),
    (
        ROPE,
        "rotary_dim ignored",
        (
            ("2 * cos.shape[-1]", "x.shape[-1]"),
            (
                "    # Dimension i",
                "    cos, sin = cos.repeat(1, 1, 2), sin.repeat(1, 1, 2)\n"
                + "    # Dimension i",
            ),
        ),
    ),
    (
        DECODE,
        "value head h reads key head h % k for h // ratio",
        (
            (
                "keys = k[:, 0].float().repeat_interleave(heads_per_key, dim=1)",
                "keys = torch.cat([k[:, 0].float()] * heads_per_key, dim=1)",
            ),
            (
                "queries = q[:, 0].float().repeat_interleave(heads_per_key, dim=1)",
                "queries = torch.cat([q[:, 0].float()] * heads_per_key, dim=1)",
            ),
        ),
    ),
    (
        MAMBA,
        "head h reads group h % groups for h // ratio",
        (
            (
                "B[rows].float().repeat_interleave(heads_per_group, dim=1)",
                "B[rows].float().repeat(1, heads_per_group, 1)",
            ),
            (
                "C[rows].float().repeat_interleave(heads_per_group, dim=1)",
                "C[rows].float().repeat(1, heads_per_group, 1)",
            ),
        ),
    ),
    (MAMBA, "D missing", (("read + D.float() * inputs", "read"),)),
    (MAMBA, "slot -1 taken as the last", ((">= 0", ">= -1"),)),
    (DEEPSEEK, "bias kept in the weights", (("scores.gather(", "biased.gather("),)),
    (
        DEEPSEEK,
        "weights not renormalised",
        ((" / chosen.sum(dim=1, keepdim=True)", ""),),
    ),
    (
        DEEPSEEK,
        "groups by their best instead of their best two",
        ((".topk(2, dim=2)", ".topk(1, dim=2)"),),
    ),
    (DEEPSEEK, "local expert offset ignored", ((" + local_expert_offset", ""),)),
    (
        DEEPSEEK,
        "weights of the next token",
        (("weights[tokens, slots]", "weights[tokens - 1, slots]"),),
    ),
    (DEEPSEEK, "gate and up swapped", (("up, gate = (", "gate, up = ("),)),
    (
        DEEPSEEK,
        "scale of the hidden states transposed",
        (
            (
                "hidden_states_scale.T.unsqueeze(2)",
                "hidden_states_scale.reshape(len(hidden_states), -1).unsqueeze(2)",
            ),
        ),
    ),
    (
        RENORM,
        "weights not renormalised",
        (
            (
                "torch.softmax(logits, dim=1)",
                "torch.softmax(routing_logits.float(), dim=1).gather(1, experts)",
            ),
        ),
    ),
    (
        LLAMA4,
        "bias used",
        (
            (
                "routing_logits.float().max(dim=1)",
                "_by_bias(routing_logits.float(), routing_bias.float())",
            ),
            (
                "@torch.no_grad()",
                (
                    "def _by_bias(logits, bias):\n"
                    "    experts = (torch.sigmoid(logits) + bias).argmax(dim=1)\n"
                    "    return logits.gather(1, experts[:, None])[:, 0], experts\n\n\n"
                    "@torch.no_grad()"
                ),
            ),
        ),
    ),
    (
        LLAMA4,
        "score scales the output",
        (
            (".float() * torch.sigmoid(logits).unsqueeze(1)", ".float()"),
            (
                "    return output",
                "    output *= torch.sigmoid(logits).unsqueeze(1)\n    return output",
            ),
        ),
    ),
    (
        DECODE,
        "state decay after the update",
        (
            ("decayed = state * decay", "decayed, faded = state, decay"),
            ("    read = ", "    new_state = new_state * faded\n    read = "),
        ),
    ),
    (
        PREFILL,
        "state decay after the update",
        (
            (
                "decayed = new_state[rows] * decay",
                "decayed, faded = new_state[rows], decay",
            ),
            ("        read = ", "        updated = updated * faded\n        read = "),
        ),
    ),
    (
        MTP,
        "state decay after the update",
        (
            ("decayed = state * decay", "decayed, faded = state, decay"),
            ("        read = ", "        state = state * faded\n        read = "),
        ),
    ),
    (DECODE, "beta missing", (("added = beta.unsqueeze(-1) * ", "added = "),)),
    (PREFILL, "softplus missing", (("torch.nn.functional.softplus", "torch.relu"),)),
    (
        TOP_P,
        "top-p excluding the crossing token",
        ((".cumsum(dim=1) - weights", ".cumsum(dim=1)"),),
    ),
    (
        BOTH,
        "top-p excluding the crossing token",
        ((".cumsum(dim=1) - weights", ".cumsum(dim=1)"),),
    ),
    (
        BOTH,
        "p reached and not crossed",
        (("before < top_p", "before <= top_p"),),
    ),
    (
        BOTH,
        "top-k then top-p without renormalising",
        (("    weights = weights / weights.sum(dim=1, keepdim=True)\n", ""),),
    ),
    (
        INDEXER,
        "relu missing",
        (("dots.relu()", "dots"),),
    ),
    (INDEXER, "indices local instead of global", (("slots.int()", "best.int()"),)),
]


def results(which, run):
    """Return all that a run() gives in the small cases, as one vector: float64."""
    definition, _ = g.definition_and_run(*which)
    cls = class_of(op_of(definition), definition, run)
    found = []
    for case in cases_of(cls):
        given = list(trial_of(cls, case).fresh_inputs().values())
        seed(1)
        outputs = as_tuple(run(*given))
        if which == MTP:
            # the buffer, which it fills where it is given one
            outputs += tuple(value for value in given[-1:] if value is not None)
        if which == INDEXER:
            # of tied tokens any may be chosen
            outputs = tuple(map(chosen, outputs)) if case.name != "ties" else ()
        found += [output.double().flatten() for output in outputs]
    return torch.cat(found)


def chosen(ids):
    """Return which ids each row has, in whatever order: float32 [rows, 4096]."""
    return torch.zeros(len(ids), 4096).scatter_(1, ids.long() + 1, 1.0)


@pytest.mark.parametrize(
    ("which", "name", "changes"),
    WRITTEN,
    ids=[f"{which[0]}-{name}" for which, name, _ in WRITTEN],
)
def test_a_mutant_is_the_defect_that_its_name_says(which, name, changes):
    definition, run = g.definition_and_run(*which)
    text = g.reference_of(*which)
    for old, new in changes:
        text = replaced(text, old, new)
    (mutant,) = [m for m in domain_mutants(definition) if m.name == name]
    written, wrapped = results(which, run_of(text)), results(which, mutant.wrap(run))
    right = results(which, run)
    # a row that a wrong mask leaves without a key is NaN in a text that forgot it
    both = written.isfinite() & wrapped.isfinite() & right.isfinite()
    assert both.double().mean() > 0.75
    to_written, to_right = (
        float((wrapped - other)[both].square().sum()) for other in (written, right)
    )
    # not 0: a text also says elsewhere which queries see no key at all
    assert to_written < 0.05 * to_right
