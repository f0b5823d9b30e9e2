"""Each module of transformers' models with parameters is one that a row names."""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from generator.execution.processes import run_python, safe_environment
from generator.models.config import config_of
from generator.models.modules import needs
from generator.models.need import Need
from generator.models.parallel import Deployment
from tests.builders import ROOT

FOLDER = Path(os.environ.get("GEN_TESTS_TRANSFORMERS", ROOT / ".transformers"))

SIZES = {
    "hidden_size": 64,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "intermediate_size": 96,
    "vocab_size": 256,
    "num_hidden_layers": 4,
    "pad_token_id": None,
}
EXPERTS = {
    "moe_intermediate_size": 32,
    "n_routed_experts": 16,
    "num_experts_per_tok": 2,
}
LATENT = {
    "num_key_value_heads": 8,
    "q_lora_rank": 24,
    "kv_lora_rank": 32,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 12,
    "first_k_dense_replace": 1,
    "n_group": 2,
    "topk_group": 1,
    **EXPERTS,
}
BIASED = {"attention_bias": True}
MORE: dict[str, list[dict[str, Any]]] = {
    "llama": [{}, {**BIASED, "mlp_bias": True}],
    "qwen3": [{}, BIASED],
    "qwen3_moe": [{"num_experts": 8, "moe_intermediate_size": 32}],
    "qwen3_next": [
        {
            "num_experts": 16,
            "num_experts_per_tok": 4,
            "moe_intermediate_size": 32,
            "shared_expert_intermediate_size": 40,
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 4,
            "linear_key_head_dim": 16,
            "linear_value_head_dim": 16,
            "mlp_only_layers": [0],
        }
    ],
    "glm4_moe": [{**EXPERTS, **BIASED, "use_qk_norm": True}, EXPERTS],
    "gpt_oss": [{"num_local_experts": 8}],
    "deepseek_v3": [LATENT, {**LATENT, **BIASED, "q_lora_rank": None}],
    "deepseek_v32": [{**LATENT, "index_n_heads": 4, "index_head_dim": 16}],
    "llama4_text": [{"num_local_experts": 4, "intermediate_size_mlp": 80}],
    "nemotron_h": [
        {
            **EXPERTS,
            "moe_shared_expert_intermediate_size": 40,
            "moe_latent_size": latent,
            "layers_block_type": ["linear_attention", "moe", "full_attention", "mlp"],
            "mamba_num_heads": 4,
            "mamba_head_dim": 16,
            "ssm_state_size": 8,
            "n_groups": 2,
        }
        for latent in (None, 48)
    ],
}
# test_data.py walks the models whose figures are here; these are variants of sizes
PLAIN = "gemma2 gemma3_text minimax_m2 ministral3 mistral mixtral phi3 qwen2"
KINDS = (*PLAIN.split(), *MORE)
CASES = [
    {"model_type": kind, **SIZES, **more}
    for kind in sorted(KINDS)
    for more in MORE.get(kind, [{}])
]
# parameters that an op takes as an input, with the module that takes it
INPUTS = {
    "self_attn": "sinks",
    "linear_attn": "A_log dt_bias",
    "mixer": "A_log D dt_bias",
    "gate": "e_score_correction_bias",
}


@pytest.fixture(scope="module")
def listed() -> list[list[dict[str, Any]]]:
    """Return the modules of each case, from one process with transformers."""
    if not FOLDER.is_dir():
        pytest.skip(f"transformers is not in {FOLDER}")
    environment = safe_environment(paths=[str(FOLDER.resolve()), str(ROOT)])
    done = run_python(
        ["-m", "tests.unit.models.transformers_modules"],
        environment={**environment, "HF_HUB_OFFLINE": "1"},
        timeout=300,
        text=json.dumps(CASES),
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answer: list[list[dict[str, Any]]] = json.loads(done.stdout)
    return answer


def owner(path: str, rows: list[Need]) -> Need | None:
    """Return the need that computes a module; the longest end of its path counts."""
    named = [
        (len(at), need)
        for need in rows
        for at in need.at
        if f".{path}".endswith(f".{at}") or (at in f"{path}." and at.count(".") > 1)
    ]
    return max(named, key=lambda pair: pair[0])[1] if named else None


def numbers(name: str) -> dict[str, int]:
    """Return the sizes in a name."""
    return {t: int(n) for t, n in re.findall(r"_([a-z]+)(\d+)(?=_|$)", name)}


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(CASES)))
def test_each_module_of_transformers_has_a_row(
    number: int, listed: list[list[dict[str, Any]]]
) -> None:
    rows = needs(config_of("tiny", CASES[number]), Deployment())
    parts: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    homeless = []
    for module in listed[number]:
        shapes = module["shapes"]
        last = module["path"].rpartition(".")[2]
        taken = INPUTS.get(last, "").split()
        if all(name in taken for name in shapes):
            continue
        need = owner(module["path"], rows)
        if need is None:
            homeless.append((module["path"], module["class"]))
            continue
        # layers differ in number alone
        where = re.sub(r"\.\d+\.", ".N.", module["path"])
        parts[f"{need.module}: {need.name}"][where] = module
    assert not homeless
    for key, of in parts.items():
        check(key.rpartition(": ")[2], of)


def check(name: str, of: dict[str, dict[str, Any]]) -> None:
    """Hold the sizes of a name to the shapes of the modules that it computes."""
    sizes, shapes = numbers(name), [module["shapes"] for module in of.values()]
    if name.startswith("gemm_"):
        # gate and up in an order of their own each
        assert sum(s["weight"][0] for s in shapes) == sizes["n"], (name, of)
        assert {s["weight"][1] for s in shapes} == {sizes["k"]}, (name, of)
        has_bias = any("bias" in s for s in shapes)
        assert has_bias == ("_bias_" in name), (name, of)
    elif "rmsnorm" in name:
        assert {s["weight"][0] for s in shapes} <= {sizes["h"]}, (name, of)
    elif name.startswith("causal_conv1d"):
        (shape,) = shapes
        assert shape["weight"][0] == sizes["d"], (name, of)
        assert ("bias" in shape) == ("_bias_" in name), (name, of)
    elif "embedding" in name:
        assert [s["weight"] for s in shapes] == [[sizes["v"], sizes["h"]]]
    elif name.startswith("moe_"):
        (shape,) = shapes
        assert all(value[0] == sizes["e"] for value in shape.values()), (name, of)
        assert {sizes["h"], sizes["i"]} <= {
            n // d for v in shape.values() for n in v for d in (1, 2)
        }
    else:
        assert name.startswith("layernorm"), (name, of)
