"""The bundled figures: where each comes from, and what transformers makes of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from generator.models.architectures import ARCHITECTURES, REFUSED
from generator.models.config import DATA, config_of, load, names
from generator.models.modules import needs, unplaced
from generator.models.parallel import Deployment
from generator.problems import Failure
from tests.builders import ROOT
from tests.unit.models.foreign import FOREIGN

SOURCES = json.loads((DATA.parent / "sources.json").read_text("utf-8"))
TRANSFORMERS = ROOT / ".transformers"
with_transformers = pytest.mark.skipif(
    not TRANSFORMERS.is_dir(), reason="transformers is not in .transformers/"
)
OTHER = {
    # figures that transformers' defaults lack, or that contradict one another there
    "deepseek_v2": {"num_experts_per_tok": 6},
    "dots1": {
        "n_routed_experts": 16,
        "n_shared_experts": 1,
        "num_experts_per_tok": 6,
        "n_group": 1,
        "topk_group": 1,
    },
    "hunyuan_v1_dense": {"head_dim": 128},
    "ministral": {"head_dim": 128},
}


def published(name: str) -> dict[str, Any]:
    whole: dict[str, Any] = json.loads((DATA / f"{name}.json").read_text("utf-8"))
    return whole


def text(whole: dict[str, Any]) -> dict[str, Any]:
    figures: dict[str, Any] = whole.get("text_config") or whole
    return figures


def test_each_model_says_where_its_figures_come_from():
    assert sorted(SOURCES) == list(names())
    for name, source in SOURCES.items():
        assert source.keys() <= {"checkpoint", "read", "defaults", "note"}, name
        assert source["checkpoint"].count("/") == 1, name
        stated = text(published(name)).keys() - {"model_type"}
        assert set(source.get("defaults", ())) <= stated, name
        # without a copy of the file, all figures are defaults
        assert "read" in source or stated == set(source["defaults"]), name


def test_an_architecture_is_mapped_or_refused():
    assert not ARCHITECTURES.keys() & REFUSED.keys()
    families = {kind.removesuffix("_text") for kind in ARCHITECTURES}
    assert len(families) >= 40


@pytest.mark.parametrize("name", names())
def test_figures_are_read_to_the_last_or_the_model_is_refused(name: str) -> None:
    whole = published(name)
    kinds = {whole["model_type"], text(whole)["model_type"]}
    if not kinds & ARCHITECTURES.keys():
        with pytest.raises(Failure, match="is refused: it has") as failure:
            load(name)
        assert any(REFUSED.get(kind, "\0") in str(failure.value) for kind in kinds)
    else:
        # a key that nothing is known of would be listed as what it changes
        lacking = unplaced(load(name), Deployment())
        assert [u for u in lacking if u.startswith("what '")] == []


def rows(whole: dict[str, Any]) -> list[list[Any]]:
    config = config_of("model", whole)
    every = needs(config, Deployment())
    return [[n.module, n.name, n.at, dict(n.constants)] for n in every]


PLANTED = "seed-oss-36b with another bias"
WITHOUT_FIGURES = "transformers' defaults of "


@cache
def answers() -> dict[str, list[str]]:
    """Return what differs from transformers in each model, one of them a wrong one.

    All in one process, which imports torch and transformers for seconds.
    """
    models = {name: published(name) for name in names()} | FOREIGN
    defaults = {name: source.get("defaults", []) for name, source in SOURCES.items()}
    here = {text(published(name))["model_type"] for name in names()}
    for kind, architecture in ARCHITECTURES.items():
        # those with `defaults` hold another's text model
        if kind not in here and not architecture.defaults:
            whole = {"model_type": kind, **OTHER.get(kind, {})}
            models[WITHOUT_FIGURES + kind] = whole
    models[PLANTED] = {**published("seed-oss-36b"), "attention_out_bias": True}
    defaults[PLANTED] = ["attention_out_bias"]
    return ask(models, defaults)


def changed(name: str, entries: list[list[Any]]) -> list[list[Any]]:
    """Return rows; of the planted model with a wrong size and bias, and without norms."""
    if name != PLANTED:
        return entries
    return [
        [module, definition.replace("bias_n12288", "n10241"), at, constants]
        for module, definition, at, constants in entries
        if module != "norms that add the residual"
    ]


def ask(
    models: dict[str, dict[str, Any]], defaults: dict[str, list[str]]
) -> dict[str, list[str]]:
    placed = {
        name: changed(name, rows(whole))
        for name, whole in models.items()
        if {whole["model_type"], text(whole)["model_type"]} & ARCHITECTURES.keys()
    }
    script = Path(__file__).with_name("transformers_models.py")
    done = subprocess.run(
        [sys.executable, str(script)],
        input=json.dumps({"models": models, "rows": placed, "defaults": defaults}),
        env={**os.environ, "PYTHONPATH": str(TRANSFORMERS), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answer: dict[str, list[str]] = json.loads(done.stdout)
    return answer


@with_transformers
@pytest.mark.parametrize("name", names())
def test_defaults_modules_and_sizes_are_transformers_own(name: str) -> None:
    assert answers()[name] == []


@with_transformers
def test_architectures_without_a_model_here_have_transformers_modules():
    without = {k: v for k, v in answers().items() if k.startswith(WITHOUT_FIGURES)}
    assert len(without) >= 10
    assert {name: lines for name, lines in without.items() if lines} == {}


@with_transformers
def test_a_wrong_default_size_bias_and_module_are_seen():
    lines = answers()[PLANTED]
    assert "attention_out_bias: True, transformers' default is False" in lines
    assert any("n10241" in line and "sizes are" in line for line in lines)
    assert any("n10241" in line and "bias is True" in line for line in lines)
    missing = "post_attention_layernorm (SeedOssRMSNorm) is in no row"
    assert any(line.endswith(missing) for line in lines)


@pytest.mark.parametrize("name", ["glm-4.5-air", "deepseek-v3", "qwen3.5-35b-a3b"])
def test_an_unknown_architecture_is_told_the_nearest_by_its_keys(name: str) -> None:
    whole = text(published(name))
    kind = whole["model_type"]
    with pytest.raises(
        Failure, match=rf"'llama_next' is unknown; .* its keys, is {kind}"
    ):
        config_of("new", {**whole, "model_type": "llama_next"})
