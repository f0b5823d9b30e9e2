"""Which definition computes a stage, and which models have a recipe."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from generator.dataset.paths import discover_definitions
from generator.parity import parity
from generator.parity.binding import Binder, StageBinding
from generator.parity.families import FAMILIES
from generator.parity.parity import ParityQuestion, ask_for, family_of
from generator.problems import Failure

ROOT = Path(__file__).resolve().parents[3]


def bound(family: str, root: Path = ROOT) -> dict[str, dict[str, StageBinding]]:
    name, config = family_of(family)
    figures = {**config.figures, **FAMILIES[name].tiny}
    return Binder(root, discover_definitions(root), config, figures).bind(
        FAMILIES[name]
    )


def test_a_definition_of_the_dataset_computes_its_stage() -> None:
    found = bound("llama")
    norm = found["/input_norm"][""]
    assert (norm.needed, norm.name, norm.is_there) == (
        "rmsnorm_h4096",
        "rmsnorm_h4096",
        True,
    )
    assert "EPS = 1e-05" in norm.text
    roles = found["/attention"]
    assert roles["decode@1"].name == "gqa_paged_decode_h32_kv8_d128_ps1"
    assert roles["paged@64"].name == "gqa_paged_prefill_causal_h32_kv8_d128_ps64"


def test_a_family_makes_what_the_dataset_lacks(tmp_path: Path) -> None:
    folder = tmp_path / "definitions" / "gemm"
    folder.mkdir(parents=True)
    kept = "gemm_bf16_n128256_k4096.json"
    (folder / kept).write_bytes((ROOT / "definitions" / "gemm" / kept).read_bytes())
    found = bound("llama", tmp_path)
    assert found["/lm_head"][""].is_there
    made = found["/input_norm"][""]
    assert (made.needed, made.is_there) == (
        "rmsnorm_eps_1em5_h4096",
        False,
    )
    assert "EPS = 1e-05" in made.text


def test_a_window_becomes_shorter_by_as_much_as_the_model_s() -> None:
    attention = bound("gemma3")["sliding_attention/attention"]["ragged"]
    assert attention.name == "gqa_ragged_prefill_causal_w1023_h32_kv16_d128"
    assert "WINDOW_LEFT = 23" in attention.text


def test_norms_with_other_constants_do_not_stand_in() -> None:
    head = bound("gemma3")["sliding_attention/q_norm"][""]
    assert head.name == "gemma_rmsnorm_h128"
    assert bound("qwen3")["/q_norm"][""].name == "rmsnorm_h128"


def test_a_broken_definition_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "definitions" / "rmsnorm"
    folder.mkdir(parents=True)
    (folder / "rmsnorm_h4096.json").write_text("{")
    with pytest.raises(Failure, match=r"definitions/rmsnorm/rmsnorm_h4096\.json"):
        bound("llama", tmp_path)


def test_an_unknown_model_names_the_nearest() -> None:
    with pytest.raises(Failure, match="nearest that is known is gemma3"):
        family_of("gema3")


def test_a_model_without_a_recipe_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    others = {name: of for name, of in FAMILIES.items() if name != "mixtral"}
    monkeypatch.setattr(parity, "FAMILIES", others)
    said = "no recipe is for 'mixtral'; the nearest family is"
    with pytest.raises(Failure, match=said):
        family_of("mixtral-8x22b")


def test_a_config_is_of_the_family_of_its_architecture(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"model_type": "qwen3_moe"}))
    assert family_of(str(config))[0] == "qwen3-moe"


def test_tokens_are_more_than_a_window() -> None:
    found = discover_definitions(ROOT)
    name, config = family_of("gpt-oss")
    question = ParityQuestion(["stage"], geometry="real")
    assert ask_for(ROOT, found, name, config, question)["tokens"] == 160
    assert ask_for(ROOT, found, name, config, ParityQuestion(["stage"]))["tokens"] == 75


def test_a_share_of_several_gpus_is_bound_at_the_model_s_own_sizes() -> None:
    found = discover_definitions(ROOT)
    name, config = family_of("qwen3-14b")
    asked = ask_for(ROOT, found, name, config, ParityQuestion([], geometry="real"))
    roles = asked["bound"]["/attention"]
    assert roles["ragged/2"]["name"] == "gqa_ragged_prefill_causal_h20_kv4_d128"
    assert "ragged/2" not in bound("qwen3-14b")["/attention"]


def test_a_solution_of_no_stage_is_refused() -> None:
    found = discover_definitions(ROOT)
    solution = {"name": "mine", "definition": "rmsnorm_h5376"}
    question = ParityQuestion([], solution=solution)
    with pytest.raises(Failure, match=r"no stage of llama-3\.1-8b runs its definition"):
        ask_for(ROOT, found, *family_of("llama"), question)
