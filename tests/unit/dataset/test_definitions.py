"""The definitions: consistent with themselves and with what is known of the models."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from tools.families.every import every_spec
from tools.families.reference_text import REFERENCES

ROOT = Path(__file__).resolve().parents[3]
SPECS = every_spec()
GQA = [spec for spec in SPECS if spec.op_type in ("gqa_paged", "gqa_ragged")]
EVERY = pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)

# eps and heads of the published config.json files, written down a second time here.
EPS = {
    "deepseek-r1": 1e-06,
    "deepseek-v3": 1e-06,
    "gemma-3-27b": 1e-06,
    "llama-3.1-8b": 1e-05,
    "minimax-m2": 1e-06,
    "qwen3-14b": 1e-06,
    "qwen3-30b-a3b": 1e-06,
}
HEADS = {
    "gemma-3-27b": (32, 16),
    "llama-3.1-70b": (64, 8),
    "llama-3.1-8b": (32, 8),
    "llama-3.2-3b": (24, 8),
    "llama-4-scout": (40, 8),
    "llama-4-scout-17b-16e": (40, 8),
    "minimax-m2": (48, 8),
    "mixtral-8x22b": (48, 8),
    "phi-4-14b": (40, 10),
    "qwen3-14b": (40, 8),
    "qwen3-235b": (64, 4),
    "qwen3-30b-a3b": (32, 4),
    "qwen3-32b": (64, 8),
    "qwen3-next-80b-a3b": (16, 2),
}
NAME_TOKENS = {
    "gemm": {"n": "N", "k": "K"},
    "rmsnorm": {"h": "hidden_size"},
    "gqa_paged": {
        "h": "num_qo_heads",
        "kv": "num_kv_heads",
        "d": "head_dim",
        "ps": "page_size",
    },
    "mla_paged": {
        "h": "num_qo_heads",
        "ckv": "head_dim_ckv",
        "kpe": "head_dim_kpe",
        "ps": "page_size",
    },
    "gqa_ragged": {"h": "num_qo_heads", "kv": "num_kv_heads", "d": "head_dim"},
    "mla_ragged": {"h": "num_qo_heads", "qk": "qk_dim", "vo": "vo_dim"},
    "rope": {"d": "head_size", "rd": "rotary_dim"},
    "mamba_ssu": {"h": "nheads", "d": "head_dim", "s": "dstate", "ng": "ngroups"},
    "dsa_paged": {
        "h": "num_qo_heads",
        "d": "index_head_dim",
        "ckv": "head_dim_ckv",
        "kpe": "head_dim_kpe",
        "topk": "topk",
        "ps": "page_size",
    },
    "gdn": {"qk": "num_q_heads", "v": "num_v_heads", "d": "head_size"},
    "sampling": {"v": "vocab_size"},
    # what the others, topk8_ng8_kg4_e32, mean is in the tests of moe
    "moe": {"h": "hidden_size", "i": "intermediate_size"},
}
# an indexer's heads are no query heads
INDEXER_TOKENS = {**NAME_TOKENS["dsa_paged"], "h": "num_index_heads"}
# tokens that are no axis
DTYPES = {"fp"}
# constants that a name leaves out, because they follow from those it has
UNNAMED = {
    "mla_ragged": {"num_kv_heads": "num_qo_heads"},
    "gdn": {"num_k_heads": "num_q_heads"},
}
# constants of the indexer's cache, whose layout is one
CACHE_LAYOUT = {"kv_cache_num_heads": 1, "head_dim_with_scale": 128 + 4}
# op_types with one reference for all definitions
MODULES = {
    "gemm": "gemm",
    "gqa_ragged": "gqa_ragged_prefill",
    "mla_ragged": "mla_ragged_prefill",
    "rope": "rope_with_cos_sin_cache_neox_style",
    "mamba_ssu": "mamba_ssu_decode",
}


def load(spec):
    path = ROOT / "definitions" / spec.op_type / f"{spec.name}.json"
    return json.loads(path.read_text(encoding="utf-8"))


def tag_values(spec, key):
    return [tag.partition(":")[2] for tag in spec.tags if tag.startswith(f"{key}:")]


def reference_module(definition):
    """Name the module that a definition's reference was read from, by its facts."""
    if definition["op_type"] in MODULES:
        return MODULES[definition["op_type"]]
    if definition["op_type"] == "gdn":
        return "_".join(definition["name"].split("_")[:2])
    if definition["op_type"] == "moe":
        return moe_module(definition)
    if definition["op_type"] == "rmsnorm":
        kernel = definition["name"].rpartition("_h")[0]
        gemma = any(tag.startswith("model:gemma") for tag in definition["tags"])
        return f"gemma_{kernel}" if gemma else kernel
    if definition["op_type"] == "dsa_paged":
        indexer = "stage:indexer" in definition["tags"]
        return "dsa_topk_indexer_fp8" if indexer else "dsa_sparse_attention"
    if definition["op_type"] == "sampling":
        return definition["name"].rpartition("_v")[0]
    stage = "prefill" if "stage:prefill" in definition["tags"] else "decode"
    page_size = definition["axes"]["page_size"]["value"]
    return f"{definition['op_type']}_{stage}" + ("_ps1" if page_size == 1 else "")


def moe_module(definition):
    """Name the module by the API and, where one is not for all, by the routing."""
    (api,) = (t.rpartition(".")[2] for t in definition["tags"] if "fi_api" in t)
    if api == "trtllm_fp8_block_scale_moe":
        grouped = "routed_scaling_factor" in definition["inputs"]
        return f"moe_fp8_block_scale_{'ds_routing' if grouped else 'renorm'}"
    return f"{api}_topk1" if "routing_bias" in definition["inputs"] else api


def test_counts():
    counts = Counter(spec.op_type for spec in SPECS)
    assert counts == {
        "rmsnorm": 15,
        "gemm": 32,
        "gqa_paged": 37,
        "mla_paged": 6,
        "gqa_ragged": 9,
        "mla_ragged": 2,
        "rope": 1,
        "mamba_ssu": 2,
        "dsa_paged": 3,
        "gdn": 9,
        "sampling": 21,
        "moe": 19,
    }
    assert len({spec.name for spec in SPECS}) == 156


def test_each_family_shares_its_texts():
    texts = {(spec.op_type, spec.reference) for spec in SPECS}
    counts = Counter(op_type for op_type, _ in texts)
    several = {
        "rmsnorm": 6,
        "gqa_paged": 4,
        "mla_paged": 4,
        "dsa_paged": 2,
        "gdn": 3,
        "sampling": 3,
        "moe": 10,
    }
    assert counts == dict.fromkeys(MODULES, 1) | several


@EVERY
def test_keys_stand_in_the_order_of_the_format(spec):
    definition = load(spec)
    expected = "name description op_type tags axes inputs outputs constraints reference"
    assert list(definition) == expected.split()
    assert definition["name"] == spec.name
    declared = [definition["axes"], definition["inputs"], definition["outputs"]]
    described = [d for part in declared for d in part.values()]
    assert all(d["description"] for d in [definition, *described])


@EVERY
def test_name_tokens_are_the_constants(spec):
    indexer = "block_table" in spec.inputs
    axes = INDEXER_TOKENS if indexer else NAME_TOKENS[spec.op_type]
    found = re.findall(r"_([a-z]+)(\d+)", spec.name)
    tokens = {t: n for t, n in found if spec.op_type != "moe" or t in axes}
    named = {axes[t]: int(n) for t, n in tokens.items() if t not in DTYPES}
    if indexer:
        named |= CACHE_LAYOUT
    for unnamed, same in UNNAMED.get(spec.op_type, {}).items():
        named[unnamed] = named[same]
    constants = {n: a.value for n, a in spec.axes.items() if a.value is not None}
    # decode's one token is no number of the name
    constants.pop("seq_len", None)
    if spec.op_type == "moe":
        assert constants["gemm1_out_size"] == 2 * constants["intermediate_size"]
        constants = {name: constants[name] for name in axes.values()}
    assert named == constants


@EVERY
def test_shapes_name_declared_axes_and_use_them_all(spec):
    tensors = [*spec.inputs.values(), *spec.outputs.values()]
    named = {axis for tensor in tensors for axis in tensor.shape or ()}
    # top_k is known by the name alone where no tensor has that axis
    assert named == set(spec.axes) - ({"top_k"} - named)
    assert not set(spec.inputs) & set(spec.outputs)


@EVERY
def test_reference_is_the_module_of_its_family(spec):
    definition = load(spec)
    source = REFERENCES / f"{reference_module(definition)}.py"
    expected = ast.parse(source.read_text(encoding="utf-8"))
    docstring = expected.body.pop(0)
    assert isinstance(docstring, ast.Expr)
    for node in expected.body:
        if isinstance(node, ast.Assign) and spec.op_type != "moe":
            is_topk = ast.unparse(node.targets[0]) == "TOPK"
            model = tag_values(spec, "model")[0]
            value = spec.const("topk") if is_topk else EPS[model]
            node.value = ast.Constant(value)
    found = ast.parse(definition["reference"])
    if spec.op_type == "moe":
        without_constants(found)
        without_constants(expected)
    assert ast.dump(found) == ast.dump(expected)


def without_constants(tree):
    """Leave the values of top-level constants to the tests of the constants."""
    for node in tree.body:
        if isinstance(node, ast.Assign):
            node.value = ast.Constant(0)


@EVERY
def test_run_takes_the_inputs_in_order(spec):
    nodes = ast.parse(load(spec)["reference"]).body
    functions = {f.name: f for f in nodes if isinstance(f, ast.FunctionDef)}
    run = functions["run"]
    assert [arg.arg for arg in run.args.args] == list(spec.inputs)


@pytest.mark.parametrize("spec", GQA, ids=lambda spec: spec.name)
def test_heads_are_the_models_share(spec):
    (tp,) = map(int, tag_values(spec, "tp"))
    for model in tag_values(spec, "model"):
        qo, kv = spec.const("num_qo_heads") * tp, spec.const("num_kv_heads") * tp
        assert HEADS[model] == (qo, kv)


def test_gemma_norms_are_tagged_with_the_gemma_kernels():
    apis = {
        spec.name: tag_values(spec, "fi_api")
        for spec in SPECS
        if spec.op_type == "rmsnorm" and "(1 + weight)" in spec.description
    }
    assert apis == {
        "rmsnorm_h5376": ["flashinfer.norm.gemma_rmsnorm"],
        "fused_add_rmsnorm_h5376": ["flashinfer.norm.gemma_fused_add_rmsnorm"],
    }
