"""What results are filed under: all that a run depends on, and nothing else."""

import json
from typing import Any

import pytest

from generator.rules.basis import basis_in, basis_of_bytes

PATH = "definitions/rmsnorm/rmsnorm_h4.json"
NORM: dict[str, Any] = {
    "name": "rmsnorm_h4",
    "op_type": "rmsnorm",
    "description": "A norm.",
    "tags": ["model:qwen3-14b", "status:verified"],
    "axes": {
        "batch_size": {"type": "var", "description": "Rows."},
        "hidden_size": {"type": "const", "value": 4},
    },
    "inputs": {
        "hidden_states": {"shape": ["batch_size", "hidden_size"], "dtype": "bfloat16"},
        "weight": {"shape": ["hidden_size"], "dtype": "bfloat16"},
    },
    "outputs": {
        "output": {"shape": ["batch_size", "hidden_size"], "dtype": "bfloat16"}
    },
    "constraints": ["batch_size > 0"],
    "reference": "import torch\n\n\ndef run(hidden_states, weight):\n    return weight\n",
}


def basis(**changes: Any) -> str:
    return basis_of_bytes(json.dumps({**NORM, **changes}).encode(), PATH)


@pytest.mark.parametrize(
    "changes",
    [
        {"description": "Another one."},
        {"tags": ["model:qwen3-14b"]},
        {"tags": ["model:qwen3-14b", "model:qwen3-32b", "tp:8"]},
        {"tags": ["model:qwen3-14b", "model:nobody-knows-it"]},
        {"tags": ["model:qwen3-14b", "fi_api:flashinfer.norm.rmsnorm"]},
    ],
)
def test_words_and_tags_that_no_run_reads_are_none_of_it(changes):
    assert basis(**changes) == basis()


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "rmsnorm_eps_1em5_h4"},
        {"op_type": "layernorm"},
        {"axes": {**NORM["axes"], "hidden_size": {"type": "const", "value": 8}}},
        {"inputs": dict(reversed(NORM["inputs"].items()))},
        {"inputs": {**NORM["inputs"], "weight": {"shape": [], "dtype": "bfloat16"}}},
        {
            "inputs": {
                **NORM["inputs"],
                "weight": {**NORM["inputs"]["weight"], "optional": True},
            }
        },
        {"outputs": {"y": NORM["outputs"]["output"]}},
        {"constraints": []},
        {"reference": NORM["reference"] + "# but a comment\n"},
        # the eps of Llama is another one: the kernel was called with Qwen's
        {"tags": ["model:llama-3.1-8b"]},
        {"tags": ["model:qwen3-14b", "model:llama-3.1-8b"]},
        {"tags": []},
    ],
)
def test_all_that_a_run_reads_is_of_it(changes):
    assert basis(**changes) != basis()


def test_functions_are_called_by_their_tags_where_no_op_serves():
    one, other = (
        basis(op_type="unknown", tags=[f"fi_api:flashinfer.norm.{name}"])
        for name in ("rmsnorm", "layernorm")
    )
    assert one != other


def test_another_spelling_of_a_model_is_the_same_model():
    first = basis(tags=["model:qwen3-next-80b-a3b"])
    assert basis(tags=["model:qwen3-next"]) == first
    assert basis(tags=["model:llama-3.1-8b"]) != first


def test_a_file_that_is_no_definition_has_the_hash_of_its_bytes(tmp_path):
    texts = [
        b"",
        b"[]",
        b"{",
        b'{"name": 1}',
        b'{"axes": 3}',
        b"\xff",
        b'{"name": "x"}',
    ]
    assert len({basis_of_bytes(text, PATH) for text in texts}) == len(texts)
    (tmp_path / "x.json").write_bytes(texts[-1])
    assert basis_in(tmp_path, "x.json") == basis_of_bytes(texts[-1], "x.json")
    with pytest.raises(FileNotFoundError):
        basis_in(tmp_path, "absent.json")


def test_it_is_of_the_value_and_not_of_the_file():
    spaced = json.dumps(NORM, indent=4).encode()
    assert basis_of_bytes(spaced, PATH) == basis()
    assert basis_of_bytes(spaced.replace(b"\n", b"\r\n"), "elsewhere") == basis()
    assert basis(reference=NORM["reference"].replace("\n", "\r\n")) == basis()
