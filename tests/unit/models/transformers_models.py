"""What transformers makes of models whose figures are here: run by tests, in its process.

Reads from standard input {"models": {name: config}, "rows": {name: [[module, definition,
at, constants]]}} and the sources, writes what differs: {name: [lines]}. Weights are on torch's device
"meta", so that models have their full size and no memory.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterator
from typing import Any

import torch
from transformers import CONFIG_MAPPING, AutoModel, AutoModelForCausalLM
from transformers.utils import logging

NORM = re.compile(r"^(?:gemma_)?(?:allreduce_add_|fused_add_)?rmsnorm_.*h(\d+)$")
ROTARY = re.compile(r"^rope_with_cos_sin_cache_\w+_style_d\d+_rd(\d+)$")
EXPERTS = re.compile(r"^moe_.*_e(\d+)_h(\d+)_i(\d+)$")
CHOICE = re.compile(r"^(?:fused_)?topk_\w+_e(\d+)_k(\d+)")
ACTIVATION = re.compile(r"^(silu|gelu|gelu_tanh|relu2|swiglu_oai)(?:_and_mul)?_i\d+$")
ACTIVATIONS = {
    "SiLUActivation": "silu",
    "SiLU": "silu",
    "GELUActivation": "gelu",
    "GELUTanh": "gelu_tanh",
    "NewGELUActivation": "gelu_tanh",
    "ReLUSquaredActivation": "relu2",
}
LATENTS = ("q_a_layernorm", "kv_a_layernorm")
WINDOW = re.compile(r"^gqa_ragged_prefill_causal_\w*?(?:w(\d+)_)?h\d+_kv")
GEMM = re.compile(r"^(?:gemm|fp8_blockscale_gemm).*_n(\d+)_k(\d+)$")
LAYERS = 6
NO_CLASS = {"kimi_k2": "deepseek_v3"}
"""Architectures that transformers knows by another name."""


def main() -> None:
    logging.set_verbosity_error()
    asked = json.load(sys.stdin)
    answer = {}
    for name, whole in asked["models"].items():
        lines = [*defaults(whole, asked["defaults"].get(name, []))]
        if name in asked["rows"]:
            lines += modules(whole, asked["rows"][name])
        answer[name] = lines
    json.dump(answer, sys.stdout)


def class_and_text(whole: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the config class of the text model, and its figures."""
    text = whole.get("text_config") or whole
    kind = NO_CLASS.get(text["model_type"], text["model_type"])
    return CONFIG_MAPPING[kind], {
        key: value
        for key, value in text.items()
        if key not in ("model_type", "quantization_config", "vision_config")
    }


def defaults(whole: dict[str, Any], keys: list[str]) -> Iterator[str]:
    """Yield each figure that is said to be transformers' default, and is not."""
    if not keys:
        return
    config, figures = class_and_text(whole)
    stated = {key: value for key, value in figures.items() if key not in keys}
    loaded = json.loads(json.dumps(config(**stated).to_dict()))
    for key in keys:
        if figures.get(key) != loaded.get(key):
            yield f"{key}: {figures.get(key)}, transformers' default is {loaded.get(key)}"


def shortened(count: int, figures: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of a model's first layers, which have modules of each kind."""
    most = min(count, LAYERS)
    cut = {
        key: value[:most]
        for key, value in figures.items()
        if isinstance(value, (list, str)) and len(value) == count
    }
    return {**figures, **cut, "num_hidden_layers": most}


def modules(whole: dict[str, Any], rows: list[list[Any]]) -> Iterator[str]:
    """Yield each module that no row lists, and each row that transformers has not."""
    config, figures = class_and_text(whole)
    loaded = config(**figures)
    if figures.pop("linear_attn_config", None):
        keys = ("layer_types", "mlp_layer_types", "linear_head_dim", "linear_num_heads")
        figures |= {key: getattr(loaded, key) for key in keys}
    figures = shortened(loaded.num_hidden_layers, figures)
    with torch.device("meta"):
        try:
            model = AutoModelForCausalLM.from_config(config(**figures))
        except ValueError:
            # a text model that is only part of others: without a head
            model = AutoModel.from_config(config(**figures))
    there = {
        path: module
        for path, module in model.named_modules()
        if [*module.parameters(recurse=False)]
    }
    ends = [end for _, _, at, _ in rows for end in at]
    for path, module in there.items():
        # a mixer's own parameters are inputs of its kernels
        if [*module.children()] or not re.search(r"\.\d+\.", path):
            continue
        if not any(listed(end, path) for end in ends) and "forget_gate" not in path:
            yield f"{path} ({type(module).__name__}) is in no row"
    yield from _constants(model, rows)
    yield from _mixtures(model, rows)
    for module, definition, at, _ in rows:
        match = GEMM.match(definition)
        if match is None or not at:
            continue
        layers: dict[str, list[torch.nn.Linear]] = {}
        for path, linear in there.items():
            if isinstance(linear, torch.nn.Linear) and any(
                f".{path}.".endswith(f".{end}.") for end in at
            ):
                layers.setdefault(path.rpartition(".")[0], []).append(linear)
        yield from _wrong(module, definition, match, layers)


def _constants(model: Any, rows: list[list[Any]]) -> Iterator[str]:
    """Yield each norm, window and RoPE of transformers that is not as rows have it."""
    norms = {
        (end, int(match[1]), constants["eps"], constants["unit_offset"])
        for _, definition, at, constants in rows
        if (match := NORM.match(definition))
        for end in at
    }
    config = model.config.get_text_config()
    for path, module in model.named_modules():
        weight = getattr(module, "weight", None)
        kind = type(module).__name__
        if not kind.endswith("RMSNorm") or "Gated" in kind or weight is None:
            continue
        allowed = {of[1:] for of in norms if f".{path}".endswith(f".{of[0]}")}
        text = inspect.getsource(type(module).forward)
        eps = getattr(module, "eps", getattr(module, "variance_epsilon", None))
        if path.endswith(LATENTS):
            # SGLang gives them the config's eps, transformers 1e-6
            allowed = {(size, 1e-6, offset) for size, _, offset in allowed}
        here = (weight.numel(), eps, "1.0 + self.weight" in text)
        if allowed and here not in allowed:
            yield f"{path}: {here}, rows have {sorted(allowed)}"
    theirs = {
        _window(module, config)
        for path, module in model.named_modules()
        if path.endswith("self_attn") and hasattr(module, "k_proj")
    }
    words = [m for _, name, *_ in rows if (m := WINDOW.match(name))]
    ours = {int(match[1]) + 1 if match[1] else None for match in words}
    if theirs and ours and theirs != ours:
        yield f"windows {ours}, transformers' are {theirs}"
    turns = {int(match[1]) for _, name, *_ in rows if (match := ROTARY.match(name))}
    widths = {
        2 * buffer.numel()
        for path, buffer in model.named_buffers()
        if path.endswith("inv_freq")
    }
    # MiniMax-M2's files have `rotary_dim`, which SGLang reads and transformers does not
    if widths and not widths <= turns and not hasattr(config, "rotary_dim"):
        yield f"RoPE turns {turns}, transformers' {widths}"


def _mixtures(model: Any, rows: list[list[Any]]) -> Iterator[str]:
    """Yield what is wrong with activations, the choice of experts, and their sizes."""
    acts = {m[1] for _, name, *_ in rows if (m := ACTIVATION.match(name))}
    choices = {m.groups() for _, name, *_ in rows if (m := CHOICE.match(name))}
    experts = {m.groups() for _, name, *_ in rows if (m := EXPERTS.match(name))}
    for path, module in model.named_modules():
        kind = ACTIVATIONS.get(type(module).__name__)
        if acts and kind and path.endswith("mlp.act_fn") and kind not in acts:
            yield f"{path}: {kind}, rows have {acts}"
        top = getattr(module, "top_k", None)
        if choices and type(top) is int and str(top) not in {k for _, k in choices}:
            yield f"{path}: {top} experts a token, rows have {choices}"
        fused = getattr(module, "gate_up_proj", None)
        if experts and path.endswith("experts") and fused is not None:
            here = {tuple(map(int, of)) for of in experts}
            count, *sizes = fused.shape
            if not any(
                (count, {hidden, 2 * width}) == (of, set(sizes))
                for of, hidden, width in here
            ):
                yield f"{path}: {tuple(fused.shape)}, rows have {here}"
    norms = {getattr(m, "norm_topk_prob", None) for m in model.modules()} - {None}
    plain = {name for _, name, *_ in rows if name.startswith("topk_softmax_")}
    if plain and len(norms) == 1:
        (is_one,) = norms
        if is_one != any(name.endswith("_renorm") for name in plain):
            yield f"weights of experts add up to 1: {is_one}, rows have {plain}"


def _window(module: Any, config: Any) -> int | None:
    """Return how many tokens attention sees, None for all."""
    text = inspect.getsource(type(module))
    if 'self.config, "sliding_window"' in text:
        return getattr(config, "sliding_window", None)
    if not getattr(module, "is_sliding", True):
        return None
    return getattr(module, "sliding_window", None)


def listed(end: str, path: str) -> bool:
    return f".{end}." in f".{path}."


def _wrong(
    module: str,
    definition: str,
    match: re.Match[str],
    layers: dict[str, list[torch.nn.Linear]],
) -> Iterator[str]:
    """Yield what is wrong with a row of a product: its sizes, or its bias."""
    sizes = {
        (sum(one.out_features for one in fused), fused[0].in_features)
        for fused in layers.values()
    }
    if sizes and (int(match[1]), int(match[2])) not in sizes:
        yield f"{module}: {definition}, transformers' sizes are {sorted(sizes)}"
    biases = {one.bias is not None for fused in layers.values() for one in fused}
    if biases and ("bias_" in definition) not in biases:
        yield f"{module}: {definition}, transformers' bias is {biases.pop()}"


if __name__ == "__main__":
    main()
