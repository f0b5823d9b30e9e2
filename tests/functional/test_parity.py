"""Definitions against transformers: they agree, and planted defects are found.

One process of transformers answers for all tests, and one dataset is planted in.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from generator.dataset.paths import discover_definitions
from generator.parity.families import FAMILIES as ALL_FAMILIES
from generator.parity.parity import ParityQuestion, ask_for, family_of
from generator.parity.process import ask
from generator.parity.report import ComparedModel, failures, parity_report
from generator.reports import printed
from tests.functional.parity_plants import BACKWARD_PLANTS, PLANTS, Plant

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("GEN_TESTS_TRANSFORMERS", ROOT / ".transformers"))
DENSE = ("llama", "qwen3", "gemma3")
HYBRID = ("qwen3-next", "nemotron-h")
LIKE_LLAMA = ("mistral", "qwen2", "phi3", "gemma2")
MIXED = ("mixtral", "glm4-moe", "minimax-m2", "llama4")
TOWERS = ("qwen3-vl", "whisper", "t5")
UNMAPPED = ("smollm3", "seed-oss", "olmo2", "arcee", "hunyuan")
FAMILIES = (
    *(*DENSE, "qwen3-moe", "gpt-oss", "deepseek-v3", "deepseek-v3.2"),
    *(*HYBRID, *LIKE_LLAMA, *MIXED, *TOWERS, *UNMAPPED),
)
# compared at fewer levels: tools/build_parity.py has them at all
LATER = (
    *("granite", "olmo3", "exaone4", "ernie4.5", "ministral3", "qwen2-moe", "hunyuan3"),
    *("glm4-moe-lite", "glm5", "qwen3.5", "qwen3.5-moe", "kimi-linear", "nemotron3"),
    *("llama-vision", "qwen3-vl-moe", "deepseek-v2", "mistral4"),
)
QUICK = ("stage", "layer", "forward", "decode")
BRIEF = ("stage", "forward")
STEPS = 5
LENGTHS = (1, 33, 64)
SOLUTION = """
import torch


def run(hidden_states, weight, output):
    x = hidden_states.float()
    x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5)
    output.copy_(x * weight.float())
"""

pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(),
    reason=f"{FOLDER.name} is not there: `python3 tools/dev.py test` installs it",
)


SOLUTIONS = {
    "an honest solution": SOLUTION,
    "a solution with 1 + weight": SOLUTION.replace("weight.f", "(1 + weight).f"),
}


def solution(text: str) -> dict[str, Any]:
    return {
        "name": "norm",
        "definition": "rmsnorm_h4096",
        "fills": True,
        "entry_point": "main.py::run",
        "sources": [{"path": "main.py", "content": text}],
    }


@pytest.fixture(scope="module")
def answers() -> dict[str, dict[str, Any]]:
    """Return name → what the worker found: families as they are, and defects."""
    found = discover_definitions(ROOT)

    def request(family: str, question: ParityQuestion) -> dict[str, Any]:
        return ask_for(ROOT, found, *family_of(family), question)

    requests = {
        name: request(name, ParityQuestion(QUICK, decoded=STEPS, lengths=LENGTHS))
        for name in FAMILIES
    }
    requests |= {name: request(name, ParityQuestion(BRIEF)) for name in LATER}
    requests["trained"] = request("llama", ParityQuestion(["train"], steps=2))
    for name, text in SOLUTIONS.items():
        asked = ParityQuestion(
            ["stage", "forward"], ["bfloat16"], solution=solution(text)
        )
        requests[name] = request("llama", asked)
    for name, plant in PLANTS.items():
        levels = ["stage", plant.level]
        asked = request(
            plant.family,
            ParityQuestion(levels, ["float32"], decoded=STEPS, lengths=LENGTHS),
        )
        requests[name] = planted(asked, plant.key, plant.role, replacing(plant))
    for name, plant in BACKWARD_PLANTS.items():
        asked = request(plant.family, ParityQuestion(["train"], ["float32"], steps=1))
        requests[name] = planted(asked, plant.key, plant.role, replacing(plant))
    late = request("qwen3", ParityQuestion(["stage", "forward"], ["float32"]))
    requests["q and k norm after RoPE"] = normed_late(late)
    rough = request("gpt-oss", ParityQuestion(["forward"], ["bfloat16"]))
    requests["experts chosen roughly"] = planted(rough, "/routing", "", chosen_roughly)
    vision = request("llama-vision", ParityQuestion(["stage", "forward"], ["float32"]))
    requests["no gate before an image"] = ungated(vision)
    return dict(zip(requests, ask(list(requests.values()), FOLDER), strict=True))


def replacing(plant: Plant) -> Callable[[str], str]:
    def replaced(text: str) -> str:
        assert plant.old in text
        return text.replace(plant.old, plant.new)

    return replaced


def planted(
    request: dict[str, Any], key: str, role: str, change: Callable[[str], str]
) -> dict[str, Any]:
    changed = copy.deepcopy(request)
    bound = changed["bound"][key][role]
    bound["text"] = change(bound["text"])
    return changed


def chosen_roughly(text: str) -> str:
    """Return a routing that chooses by rounded logits, and weighs by whole ones."""
    old = "weights, experts = scores.topk(TOP_K, dim=1)"
    assert old in text
    rounded = "(router_logits.float() * 4).round().topk(TOP_K, dim=1)"
    return text.replace(
        old, f"experts = {rounded}.indices\n    weights = scores.gather(1, experts)"
    )


def normed_late(request: dict[str, Any]) -> dict[str, Any]:
    """Return a request whose recipe turns queries and keys before it normalises them."""
    changed: dict[str, Any] = json.loads(json.dumps(request))
    (mixer,) = changed["recipe"]["mixers"].values()
    stages = {stage["name"]: stage for stage in mixer}
    stages["rope"] |= {"reads": "q k", "writes": "q_t k_t"}
    stages["q_norm"] |= {"reads": "q_t", "writes": "q_r"}
    stages["k_norm"] |= {"reads": "k_t", "writes": "k_r"}
    order = [name for name in stages if name not in ("q_norm", "k_norm")]
    place = order.index("rope") + 1
    order[place:place] = ["q_norm", "k_norm"]
    changed["recipe"]["mixers"] = {"": [stages[name] for name in order]}
    return changed


def ungated(request: dict[str, Any]) -> dict[str, Any]:
    """Return a request whose recipe adds what it sees of an image without a gate."""
    changed: dict[str, Any] = json.loads(json.dumps(request))
    for stage in changed["recipe"]["mixers"]["cross"]:
        if stage["name"] == "cross_residual":
            stage["kind"] = "add"
    return changed


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_family_agrees_with_transformers(
    answers: dict[str, Any], family: str, dtype: str
) -> None:
    found = answers[family][dtype]
    assert tuple(found) == QUICK
    broken = [why for level in QUICK for why in failures(level, found[level])]
    assert broken == []
    assert sum(bool(entry["definition"]) for entry in found["stage"]) > 30
    # DeepSeek-V3.2 decodes by sparse attention alone, which no stage runs
    assert bool(found["decode"]["page_sizes"]) == (family != "deepseek-v3.2")


@pytest.mark.parametrize("family", LATER)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_later_family_agrees_with_transformers(
    answers: dict[str, Any], family: str, dtype: str
) -> None:
    found = answers[family][dtype]
    assert [why for level in BRIEF for why in failures(level, found[level])] == []
    assert sum(bool(entry["definition"]) for entry in found["stage"]) > 30


def test_no_family_is_left_out() -> None:
    assert sorted((*FAMILIES, *LATER)) == sorted(ALL_FAMILIES)


@pytest.mark.parametrize("family", DENSE)
def test_float32_has_the_bits_of_transformers(
    answers: dict[str, Any], family: str
) -> None:
    found = answers[family]["float32"]
    one_row = ("decode@1", "decode@64")
    errors = {
        e["stage"]: e["nmse"] for e in found["stage"] if e["stage"] not in one_row
    }
    assert set(errors.values()) == {0.0}
    assert found["forward"]["nmse"] == 0.0


def test_training_follows_transformers(answers: dict[str, Any]) -> None:
    for dtype, found in answers["trained"].items():
        assert found["train"]["passed"], (dtype, found["train"]["why"])
        assert len(found["train"]["steps"]) == 2


@pytest.mark.parametrize("name", PLANTS)
def test_a_defect_is_found_in_its_stage_and_in_the_whole(
    answers: dict[str, Any], name: str
) -> None:
    found, plant = answers[name]["float32"], PLANTS[name]
    broken = [entry for entry in found["stage"] if not entry["passed"]]
    assert broken[0]["stage"] == plant.first
    assert {entry["stage"] for entry in broken} == {plant.first}
    assert not found[plant.level]["passed"]


@pytest.mark.parametrize("family", ["llama", "qwen3", "qwen3-moe"])
def test_drawn_tokens_are_equal_between_pages(
    answers: dict[str, Any], family: str
) -> None:
    (drawn,) = answers[family]["float32"]["decode"]["sampled"]
    assert drawn["page_sizes"] == [1, 64]
    assert drawn["passed"]
    assert len(set(drawn["tokens"])) > 1


def test_drawn_tokens_of_pages_that_are_read_wrongly_differ(
    answers: dict[str, Any],
) -> None:
    plant = "KV off by one position, pages of one token"
    (drawn,) = answers[plant]["float32"]["decode"]["sampled"]
    assert drawn["passed"] is False


@pytest.mark.parametrize("name", BACKWARD_PLANTS)
def test_a_wrong_gradient_is_found_where_it_begins(
    answers: dict[str, Any], name: str
) -> None:
    found = answers[name]["float32"]["train"]
    broken = [entry for entry in found["backward"] if not entry["passed"]]
    assert broken[0]["stage"] == BACKWARD_PLANTS[name].first
    assert broken[0]["layer"] == 2
    assert broken[0]["stage"] in found["why"]


def test_an_order_of_stages_is_found(answers: dict[str, Any]) -> None:
    found = answers["q and k norm after RoPE"]["float32"]
    broken = [entry["stage"] for entry in found["stage"] if not entry["passed"]]
    assert broken[:3] == ["rope", "q_norm", "k_norm"]
    assert not found["forward"]["passed"]


def test_more_flips_than_roundings_make_are_found(answers: dict[str, Any]) -> None:
    found = answers["experts chosen roughly"]["bfloat16"]["forward"]
    assert found["ratio"] < 2
    (flag,) = found["flags"]
    assert "choices of experts are not float32's" in flag
    assert found["passed"] is False


def test_a_gate_left_out_is_found(answers: dict[str, Any]) -> None:
    found = answers["no gate before an image"]["float32"]
    broken = {entry["stage"] for entry in found["stage"] if not entry["passed"]}
    assert broken == {"cross_residual"}
    assert not found["forward"]["passed"]


@pytest.mark.parametrize("name", SOLUTIONS)
def test_a_solution_is_seen_in_its_stage_and_in_the_logits(
    answers: dict[str, Any], name: str
) -> None:
    plain, found = answers[name]["bfloat16"], answers[name]["bfloat16 with norm"]
    is_right = name == "an honest solution"
    by_it = [entry for entry in found["stage"] if entry["source"] == "norm"]
    assert {entry["definition"] for entry in by_it} == {"rmsnorm_h4096"}
    assert [entry["passed"] for entry in by_it] == [is_right] * len(by_it)
    others = [entry for entry in found["stage"] if entry["source"] != "norm"]
    assert all(entry["passed"] for entry in others)
    assert plain["forward"]["passed"]
    assert found["forward"]["passed"] == is_right
    text = "".join(printed(parity_report("tiny", [_compared(answers[name])]), "text"))
    assert "beside the references" in text


def _compared(found: dict[str, Any]) -> ComparedModel:
    return ComparedModel("llama", found, [], [])
