"""The definitions: consistent with themselves and with what is known of the models."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from generator.ops.family import every_spec
from generator.ops.reference_text import variants
from generator.ops.registry import op_specs
from tests.builders import REFERENCES
from tests.golden.op_types import KEPT

ROOT = Path(__file__).resolve().parents[3]
SPECS = every_spec()
GQA = [spec for spec in SPECS if spec.op_type in ("gqa_paged", "gqa_ragged")]
EVERY = pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)

# eps and heads of the published config.json files, written down a second time here.
EPS = {
    "deepseek-r1": 1e-06,
    "deepseek-v3": 1e-06,
    "gemma-3-27b": 1e-06,
    "gpt-oss-20b": 1e-05,
    "llama-3.1-70b": 1e-05,
    "llama-3.1-8b": 1e-05,
    "llama-3.2-1b": 1e-05,
    "llama-3.2-3b": 1e-05,
    "llama-4-scout": 1e-05,
    "minimax-m2": 1e-06,
    "qwen2.5-7b": 1e-06,
    "qwen3-14b": 1e-06,
    "qwen3-30b-a3b": 1e-06,
    "qwen3-8b": 1e-06,
    "qwen3-next-80b-a3b": 1e-06,
    # its norm has none: this is FlashInfer's default, which the names state
    "wan2.1-vae": 1e-06,
}
HEADS = {
    "baichuan2-13b": (40, 40),
    "bge-large-en-v1.5": (16, 16),
    "bloom-7b1": (32, 32),
    "gemma-2-27b": (32, 16),
    "gemma-2-9b": (16, 8),
    "gemma-3-27b": (32, 16),
    "gemma-4-26b-a4b": (16, 2),
    "glm-4.6": (96, 8),
    "gpt-oss-120b": (64, 8),
    "gpt-oss-20b": (64, 8),
    "grok-1": (48, 8),
    "llama-2-7b": (32, 32),
    "llama-3.1-70b": (64, 8),
    "llama-3.1-8b": (32, 8),
    "llama-3.1-8b-awq": (32, 8),
    "llama-3.2-11b-vision": (32, 8),
    "llama-3.2-1b": (32, 8),
    "llama-3.2-3b": (24, 8),
    "llama-3.3-70b": (64, 8),
    "llama-4-scout": (40, 8),
    "llama-4-scout-17b-16e": (40, 8),
    "minimax-m2": (48, 8),
    "mistral-7b-v0.1": (32, 8),
    "mixtral-8x22b": (48, 8),
    "mpt-7b": (32, 32),
    "olmo-3-7b": (32, 32),
    "phi-4-14b": (40, 10),
    "qwen2.5-7b": (28, 4),
    "qwen3-14b": (40, 8),
    "qwen3-235b": (64, 4),
    "qwen3-235b-a22b": (64, 4),
    "qwen3-30b-a3b": (32, 4),
    "qwen3-32b": (64, 8),
    "qwen3-next-80b-a3b": (16, 2),
    "smollm3-3b": (16, 4),
    "whisper-large-v3": (20, 20),
}
# tokens that are no axis: dtypes, and the GPU that a kernel's name says
DTYPES = {"fp", "bf", "f", "int", "mxfp", "kve", "qe", "sm"}
# the only layers that are here of a model that has others
HEADS_OF_DIM = {("gemma-4-31b", 256): (32, 16), ("gemma-4-31b", 512): (32, 4)}
# constants that a name leaves out, because they follow from those it has
UNNAMED = {
    "mla_ragged": {"num_kv_heads": "num_qo_heads"},
    "gdn": {"num_k_heads": "num_q_heads"},
}
# constants of the indexer's cache, whose layout is one
CACHE_LAYOUT = {"kv_cache_num_heads": 1, "head_dim_with_scale": 128 + 4}

# the one constant that an op_type's references have; those of others are in their tests
CONSTANTS = {
    "rmsnorm": lambda spec: EPS[tag_values(spec, "model")[0]],
    "dsa_paged": lambda spec: spec.const("topk"),
}


def load(spec):
    path = ROOT / "definitions" / spec.op_type / f"{spec.name}.json"
    return json.loads(path.read_text(encoding="utf-8"))


def tag_values(spec, key):
    return [tag.partition(":")[2] for tag in spec.tags if tag.startswith(f"{key}:")]


def reference_modules(definition):
    """Name the modules that a definition's reference may be from, by its facts.

    Of an op_type about which nothing is said here any of its own will do.
    """
    op_type = definition["op_type"]
    if op_type == "gdn":
        # with the word l2norm where the name has it
        return [definition["name"].partition("_qk")[0]]
    if op_type == "moe":
        return [moe_module(definition)]
    if op_type == "rmsnorm":
        kernel = re.search(
            "(fused_(add_)?)?rmsnorm(_quant|_silu|_residual)?", definition["name"]
        )[0]
        offset = ("model:gemma-3-27b", "model:qwen3-next-80b-a3b")
        gemma = not set(offset).isdisjoint(definition["tags"])
        if gemma and kernel.startswith("fused_add_rmsnorm"):
            return [kernel.replace("rmsnorm", "rmsnorm_gemma")]
        return [f"gemma_{kernel}" if gemma else kernel]
    if op_type == "dsa_paged":
        indexer = "stage:indexer" in definition["tags"]
        return ["dsa_topk_indexer_fp8" if indexer else "dsa_sparse_attention"]
    if op_type == "sampling":
        return [definition["name"].rpartition("_v")[0]]
    if op_type in ("gqa_paged", "mla_paged"):
        stage = "prefill" if "stage:prefill" in definition["tags"] else "decode"
        if words := variant_words(definition["name"]):
            return [f"{op_type}_{stage}_{words}"]
        page_size = definition["axes"]["page_size"]["value"]
        flag = "_return_lse" if "return_lse" in definition["inputs"] else ""
        return [f"{op_type}_{stage}{'_ps1' if page_size == 1 else ''}{flag}"]
    if op_type == "gqa_ragged":
        words = variant_words(definition["name"])
        return [f"gqa_ragged_prefill_{words}" if words else "gqa_ragged_prefill"]
    return ["_".join((name, *words)) for name, words in variants(op_type)]


def variant_words(name):
    """Name what a definition's name adds to attention, as the modules are named."""
    known = {"sink": "sink", "cap": "cap", "w": "window", "noncausal": "noncausal"}
    known |= {
        "alibi": "alibi",
        "custom": "custom_mask",
        "hnd": "hnd",
        "kve4m": "kve4m3",
        "qe4m": "qe4m3",
    }
    stems = [re.sub(r"[0-9]+$", "", part) for part in name.split("_")]
    return "_".join(known[stem] for stem in stems if stem in known)


def moe_module(definition):
    """Name the module by the API and, where one is not for all, by the routing."""
    (api,) = (t.rpartition(".")[2] for t in definition["tags"] if "fi_api" in t)
    shard = "_shard" if "_shard_" in definition["name"] else ""
    if api == "trtllm_fp8_block_scale_moe":
        grouped = "routed_scaling_factor" in definition["inputs"]
        return f"moe_fp8_block_scale_{'ds_routing' if grouped else f'renorm{shard}'}"
    if "routed" in api:
        return f"{api.replace('_routed', '')}_routed{shard}"
    api += shard
    return f"{api}_topk1" if "routing_bias" in definition["inputs"] else api


def test_counts():
    counts = Counter(spec.op_type for spec in SPECS)
    assert counts == {name: kept["definitions"] for name, kept in KEPT.items()}
    assert len({spec.name for spec in SPECS}) == len(SPECS)


def test_each_family_shares_its_texts():
    texts = {(spec.op_type, str(spec.reference)) for spec in SPECS}
    counts = Counter(op_type for op_type, _ in texts)
    assert counts == {name: kept["references"] for name, kept in KEPT.items()}


@EVERY
def test_keys_stand_in_the_order_of_the_format(spec):
    definition = load(spec)
    expected = "name description op_type tags axes inputs outputs constraints reference"
    assert list(definition) == expected.split()
    assert definition["name"] == spec.name
    declared = [definition["axes"], definition["inputs"], definition["outputs"]]
    described = [d for part in declared for d in part.values()]
    assert all(d["description"] for d in [definition, *described])


def named_axes(spec):
    """Return token → the constant axis that it stands for in a definition's name."""
    tokens = {}
    for token, axes in op_specs()[spec.op_type].name_tokens.items():
        known = [axes] if isinstance(axes, str) else axes
        if found := [axis for axis in known if axis in spec.axes]:
            tokens[token] = found[0]
    return tokens


@EVERY
def test_name_tokens_are_the_constants(spec):
    axes = named_axes(spec)
    stated = op_specs()[spec.op_type].name_constants
    found = re.findall(r"_([a-z]+)(\d+)(?=_|$)", spec.name)
    found = [(token, n) for token, n in found if token in axes or token not in stated]
    # what the others of moe, topk8_ng8_kg4, mean is in its own tests
    is_moe = spec.op_type.startswith("moe")
    tokens = {t: n for t, n in found if not is_moe or t in axes}
    named = {axes[t]: int(n) for t, n in tokens.items() if t not in DTYPES}
    if "block_table" in spec.inputs:
        named |= CACHE_LAYOUT
    for unnamed, same in UNNAMED.get(spec.op_type, {}).items():
        named[unnamed] = named[same]
    constants = {n: a.value for n, a in spec.axes.items() if a.value is not None}
    if spec.op_type == "moe_experts":
        named["gemm1_out_size"] = 2 * int(dict(found)["i"])
    if spec.op_type == "gemm_fp4":
        # the name counts codes, of which a byte has two
        named["bytes_k"] = int(spec.name.rpartition("_k")[2]) // 2
    # a constraint may give one that the name leaves out
    for axis, is_same, formula in (text.partition(" == ") for text in spec.constraints):
        if axis in constants and axis not in named and is_same:
            named[axis] = eval(formula, {"__builtins__": {}}, named)
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
def test_reference_is_a_module_of_its_family(spec):
    definition = load(spec)
    found = [parsed_module(spec, name) for name in reference_modules(definition)]
    reference = ast.parse(definition["reference"])
    if spec.op_type not in CONSTANTS:
        without_constants(reference)
    assert ast.dump(reference) in map(ast.dump, found)


def parsed_module(spec, name):
    """Return a module of references, its constants those of the definition."""
    tree = ast.parse(REFERENCES[name])
    if spec.op_type not in CONSTANTS:
        without_constants(tree)
    for node in tree.body:
        if isinstance(node, ast.Assign) and spec.op_type in CONSTANTS:
            node.value = ast.Constant(CONSTANTS[spec.op_type](spec))
    return tree


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
        of_dim = HEADS_OF_DIM.get((model, spec.const("head_dim")))
        queries, keys = of_dim or HEADS[model]
        # devices beyond the KV heads have copies
        assert (queries, max(keys, tp)) == (qo, kv)


def test_gemma_norms_are_tagged_with_the_gemma_kernels():
    apis = {
        spec.name: tag_values(spec, "fi_api")
        for spec in SPECS
        if spec.op_type == "rmsnorm" and "(1 + weight)" in spec.description
    }
    assert apis == {
        "rmsnorm_h5376": ["flashinfer.norm.gemma_rmsnorm"],
        "fused_add_rmsnorm_h5376": ["flashinfer.norm.gemma_fused_add_rmsnorm"],
        "gemma_rmsnorm_h128": ["flashinfer.norm.gemma_rmsnorm"],
        "gemma_rmsnorm_h256": ["flashinfer.norm.gemma_rmsnorm"],
        "gemma_rmsnorm_h2048": ["flashinfer.norm.gemma_rmsnorm"],
        "gemma_fused_add_rmsnorm_h2048": ["flashinfer.norm.gemma_fused_add_rmsnorm"],
        **{
            f"gemma_fused_add_rmsnorm_residual_h{size}": [
                "flashinfer.norm.gemma_fused_add_rmsnorm"
            ]
            for size in (2048, 5376)
        },
    }
