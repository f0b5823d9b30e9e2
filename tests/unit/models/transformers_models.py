"""What transformers makes of models whose figures are here: run by tests, in its process.

Reads from standard input {"models": {name: config}, "rows": {name: [[module, definition,
at]]}} and the sources, writes what differs: {name: [lines]}. Weights are on torch's device
"meta", so that models have their full size and no memory.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from typing import Any

import torch
from transformers import CONFIG_MAPPING, AutoModel, AutoModelForCausalLM
from transformers.utils import logging

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
    figures = shortened(config(**figures).num_hidden_layers, figures)
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
    ends = [end for *_, at in rows for end in at]
    for path, module in there.items():
        # a mixer's own parameters are inputs of its kernels
        if [*module.children()] or not re.search(r"\.\d+\.", path):
            continue
        if not any(listed(end, path) for end in ends) and "forget_gate" not in path:
            yield f"{path} ({type(module).__name__}) is in no row"
    for module, definition, at in rows:
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
