"""A user's weights in a whole model: read, compared, and refused where they don't fit."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from generator.dataset.paths import discover_definitions
from generator.parity.parity import ParityQuestion, compare
from generator.parity.report import failures
from generator.problems import Failure

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("GEN_TESTS_TRANSFORMERS", ROOT / ".transformers"))
FIGURES = {
    "model_type": "qwen3_moe",
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "intermediate_size": 64,
    "moe_intermediate_size": 24,
    "num_experts": 8,
    "num_experts_per_tok": 8,
    "norm_topk_prob": True,
    "num_hidden_layers": 2,
    "vocab_size": 96,
    "rms_norm_eps": 1e-6,
    "max_position_embeddings": 256,
    "tie_word_embeddings": False,
}
pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(),
    reason=f"{FOLDER.name} is not there: `python3 tools/dev.py test` installs it",
)


def checkpoint() -> dict[str, torch.Tensor]:
    """Return weights as published: each expert by itself."""
    sizes = {
        "input_layernorm": (32,),
        "post_attention_layernorm": (32,),
        "self_attn.q_norm": (16,),
        "self_attn.k_norm": (16,),
        "self_attn.q_proj": (64, 32),
        "self_attn.k_proj": (32, 32),
        "self_attn.v_proj": (32, 32),
        "self_attn.o_proj": (32, 64),
        "mlp.gate": (8, 32),
    }
    for expert in range(8):
        for part in ("gate_proj", "up_proj"):
            sizes[f"mlp.experts.{expert}.{part}"] = (24, 32)
        sizes[f"mlp.experts.{expert}.down_proj"] = (32, 24)
    every = {
        f"model.layers.{layer}.{name}.weight": size
        for layer in range(2)
        for name, size in sizes.items()
    }
    every |= {
        "model.embed_tokens.weight": (96, 32),
        "model.norm.weight": (32,),
        "lm_head.weight": (96, 32),
    }
    torch.manual_seed(0)
    return {name: 0.2 * torch.randn(size) for name, size in every.items()}


def compared(folder: Path, weights: dict[str, torch.Tensor]) -> list[str]:
    (folder / "config.json").write_text(json.dumps(FIGURES))
    save_file(weights, folder / "model.safetensors")
    question = ParityQuestion(
        ["stage", "forward"], ["float32"], geometry="whole", weights=folder
    )
    source = str(folder / "config.json")
    (found,) = compare(ROOT, discover_definitions(ROOT), [source], question, FOLDER)
    levels = found.found["float32"]
    layers = {entry["layer"] for entry in levels["stage"]}
    assert layers == {None, 0, 1}
    return [why for level, of in levels.items() for why in failures(level, of)]


def test_all_layers_of_a_checkpoint_agree(tmp_path: Path) -> None:
    assert compared(tmp_path, checkpoint()) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model.norm.weight": torch.ones(16)}, r"norm\.weight is \[16\]; .* \[32\]"),
        ({"model.norm.weight": None}, r"lacks model\.norm\.weight, and 0 more"),
    ],
)
def test_weights_that_do_not_fit_are_refused(
    tmp_path: Path, change: dict[str, torch.Tensor | None], said: str
) -> None:
    weights = {**checkpoint(), **change}
    kept = {name: of for name, of in weights.items() if of is not None}
    with pytest.raises(Failure, match=said):
        compared(tmp_path, kept)


def test_truncated_weights_are_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(FIGURES))
    file = tmp_path / "model.safetensors"
    save_file(checkpoint(), file)
    file.write_bytes(file.read_bytes()[:-4])
    question = ParityQuestion(
        ["stage"], ["float32"], geometry="whole", weights=tmp_path
    )
    source = str(tmp_path / "config.json")
    with pytest.raises(Failure, match="can't be read"):
        compare(ROOT, discover_definitions(ROOT), [source], question, FOLDER)
