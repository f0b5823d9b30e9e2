"""Definitions against transformers: they agree, and planted defects are found.

One process of transformers answers for all tests, and one dataset is planted in.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from generator.dataset.paths import discover_definitions
from generator.parity.families import FAMILIES as ALL_FAMILIES
from generator.parity.parity import ParityQuestion, ask_for, family_of
from generator.parity.process import ask
from generator.parity.report import ComparedModel, failures, parity_report
from generator.reports import printed

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
    "llama-vision",
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


@dataclass(frozen=True)
class Plant:
    """Name a defect: where it is, and which stage must be the first to show it.

    `key` and `role` name the definition whose text has `old`, replaced by `new`.
    """

    family: str
    key: str
    old: str
    new: str
    first: str
    role: str = ""
    level: str = "forward"


PLANTS = {
    "Gemma without 1 + weight": Plant(
        "gemma3",
        "sliding_attention/input_norm",
        "(1.0 + weight.float())",
        "weight.float()",
        "input_norm",
    ),
    "RoPE interleaved": Plant(
        "llama",
        "/rope",
        "x[..., :rotary_dim].float().chunk(2, dim=-1)",
        "x[..., 0:rotary_dim:2].float(), x[..., 1:rotary_dim:2].float()",
        "rope",
    ),
    "gate and up swapped": Plant("llama", "/act", "gate, up =", "up, gate =", "act"),
    "KV off by one position": Plant(
        "llama",
        "/attention",
        "+ last_page_lens[b]\n",
        "+ last_page_lens[b] - 1\n",
        "decode@64",
        "decode@64",
        "decode",
    ),
    "KV off by one position, pages of one token": Plant(
        "llama",
        "/attention",
        "kv_indices[kv_start:kv_end]",
        "kv_indices[kv_start + 1 : kv_end]",
        "decode@1",
        "decode@1",
        "decode",
    ),
    "appended one position later": Plant(
        "qwen3",
        "/attention",
        "slots = positions % page_size",
        "slots = (positions + 1) % page_size",
        "append@64",
        "append@64",
        "decode",
    ),
    "wrong GQA grouping": Plant(
        "llama",
        "/attention",
        "queries.reshape(q_len, num_kv_heads, group_size, head_dim)",
        "queries.reshape(q_len, group_size, num_kv_heads, head_dim).transpose(1, 2)",
        "attention",
        "ragged",
    ),
    "scale of the head's length": Plant(
        "gemma3",
        "full_attention/attention",
        "* sm_scale",
        "/ math.sqrt(head_dim)",
        "attention",
        "ragged",
    ),
    "window one key longer": Plant(
        "gemma3",
        "sliding_attention/attention",
        "- WINDOW_LEFT",
        "- WINDOW_LEFT - 1",
        "attention",
        "ragged",
    ),
    "softmax over all experts": Plant(
        "gpt-oss",
        "/routing",
        "weights / weights.sum(dim=1, keepdim=True)",
        "weights",
        "routing",
    ),
    "no scaling of the routed experts": Plant(
        "deepseek-v3", "/routing", "* routed_scaling_factor", "", "routing"
    ),
    "chunks one token longer": Plant(
        "llama4",
        "chunked_attention/attention",
        "// ATTENTION_CHUNK_SIZE",
        "// (ATTENTION_CHUNK_SIZE + 1)",
        "attention",
        "ragged",
    ),
    "sigmoid of the experts left out": Plant(
        "llama4", "/routing", "torch.sigmoid(logits)", "logits", "routing"
    ),
    "a soft cap of the logits left out": Plant(
        "gemma2",
        "full_attention/attention",
        "LOGITS_SOFT_CAP * torch.tanh(logits / LOGITS_SOFT_CAP)",
        "logits",
        "attention",
        "ragged",
    ),
    "norm of each head, not of all together": Plant(
        "minimax-m2",
        "/k_norm",
        "x.square().mean(dim=-1, keepdim=True)",
        "x.square().unflatten(-1, (2, -1)).mean(-1, keepdim=True)"
        ".expand(-1, -1, x.shape[-1] // 2).flatten(1)",
        "k_norm",
    ),
    "an image's rows turned by their order": Plant(
        "qwen3-vl", "/rope", "rows[:, 1, ...", "rows[:, 0, ...", "rope"
    ),
    "patches turned with their neighbours": Plant(
        "qwen3-vl",
        "/v_rope",
        "x[..., :rotary_dim].float().chunk(2, dim=-1)",
        "x[..., 0:rotary_dim:2].float(), x[..., 1:rotary_dim:2].float()",
        "v_rope",
    ),
    "LayerNorm without its mean": Plant(
        "qwen3-vl",
        "/v_norm2",
        "x - x.mean(dim=-1, keepdim=True)",
        "x",
        "v_norm2",
    ),
    "an image that sees no later patch": Plant(
        "qwen3-vl",
        "/v_attention",
        "logits.softmax(dim=-1)",
        "(logits + torch.full_like(logits, -1e4).triu(1)).softmax(dim=-1)",
        "v_attention",
    ),
    "speech that is read but for its last row": Plant(
        "whisper",
        "/cross_attention",
        "kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]",
        "kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1] - 1",
        "cross_attention",
    ),
    "LayerNorm's bias left out": Plant(
        "whisper", "/enc_final", " + bias", "", "enc_final"
    ),
    "logits of a source scaled": Plant(
        "t5",
        "/cross_attention",
        "* sm_scale",
        "/ math.sqrt(head_dim)",
        "cross_attention",
    ),
    "heads that share another one's view of an image": Plant(
        "llama-vision",
        "cross/cross_attention",
        "queries.reshape(-1, num_kv_heads, group_size, head_dim)",
        "queries.reshape(-1, group_size, num_kv_heads, head_dim).transpose(1, 2)",
        "cross_attention",
    ),
    "padding of a tile that the image does not see": Plant(
        "llama-vision",
        "/v_attention",
        "kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]",
        "kv_start, kv_end = kv_bounds[b], min(kv_bounds[b + 1], kv_bounds[b] + 17)",
        "v_attention",
    ),
    "an expert's gate by a bias": Plant(
        "hunyuan3",
        "/routing",
        "weights = scores.gather",
        "weights = (scores + bias).gather",
        "routing",
    ),
    "a decay of heads, not of channels": Plant(
        "kimi-linear",
        "linear_attention/delta",
        "steps = torch.nn.functional.softplus(a.float() + dt_bias)",
        "steps = torch.nn.functional.softplus(a.float() + dt_bias).mean(-1, keepdim=True)"
        ".expand_as(a)",
        "delta",
    ),
    "a norm of each head alone": Plant(
        "olmo3",
        "sliding_attention/k_norm",
        "x.square().mean(dim=-1, keepdim=True)",
        "x.square().unflatten(-1, (2, -1)).mean(-1, keepdim=True)"
        ".expand(-1, -1, x.shape[-1] // 2).flatten(1)",
        "k_norm",
    ),
    "neighbours turned as halves": Plant(
        "ernie4.5",
        "/rope",
        "x[..., 0:rotary_dim:2].float(), x[..., 1:rotary_dim:2].float()",
        "x[..., :rotary_dim].float().chunk(2, dim=-1)",
        "rope",
    ),
    "eps ten times as large": Plant(
        "llama", "/input_norm", "EPS = 1e-05", "EPS = 1e-04", "input_norm"
    ),
}


BACKWARD_PLANTS = {
    "no gradient of the gate": Plant(
        "llama", "/act", "silu(gate)", "silu(gate.detach())", "gate_up: gate"
    ),
    "no gradient of the values": Plant(
        "qwen3",
        "/attention",
        "v[kv_start:kv_end]",
        "v[kv_start:kv_end].detach()",
        "qkv: v",
        "ragged",
    ),
}


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
