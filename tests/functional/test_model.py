"""`trace-dataset model` as a black box."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.functional.test_validate import run

ROOT = Path(__file__).parents[2]


def test_a_model_of_the_dataset_is_shown_with_what_proves_it():
    done = run("model", "qwen3-8b", "--json", "--dataset", str(ROOT))

    shown = json.loads(done.stdout)
    states = {m["definition"]: m["state"] for m in shown["modules"]}
    assert states["gqa_paged_decode_h32_kv8_d128_ps64"] == "kernel"
    assert "missing" not in states.values()
    assert done.returncode == 0


def test_a_norm_of_another_model_is_no_substitute(tmp_path: Path):
    plain = "definitions/rmsnorm/rmsnorm_h2048.json"
    (tmp_path / plain).parent.mkdir(parents=True)
    shutil.copy(ROOT / plain, tmp_path / plain)
    arguments = ("model", "qwen3-next-80b-a3b", "--dataset", str(tmp_path), "--json")

    before = json.loads(run(*arguments).stdout)["modules"]
    after = json.loads(run(*arguments, "--write").stdout)["modules"]

    name, module = "gemma_rmsnorm_eps_1em6_h2048", "norm before the first layer"
    (norm,) = (m for m in before if m["module"] == module)
    assert norm["state"] == "missing"
    assert (
        "rmsnorm_h2048: its unit_offset is False, the model's is True" in norm["note"]
    )
    (norm,) = (m for m in after if m["module"] == module)
    assert (norm["state"], norm["definition"]) == ("unverified", name)


def test_missing_definitions_are_written_into_an_empty_dataset_and_valid(
    tmp_path: Path,
):
    arguments = ("model", "qwen3-8b", "--tp", "4", "--page-size", "16")
    arguments = (*arguments, "--dataset", str(tmp_path))

    first = run(*arguments, "--write")
    again = run(*arguments, "--write")

    written = [line for line in first.stderr.splitlines() if line.startswith("wrote ")]
    # calls of FlashInfer pass these names what such definitions do not take
    called = (
        "gqa_paged_decode_h8_kv2_d128_ps16",
        "append_paged_kv_cache_kv2_d128_ps16",
    )
    assert not [line for line in written if any(name in line for name in called)]
    modules = json.loads(run(*arguments, "--json").stdout)["modules"]
    states = {m["definition"]: (m["state"], m["note"]) for m in modules}
    for name in called:
        assert states[name][0] == "not_called"
        assert "TypeError" in states[name][1]
    assert "wrote " not in again.stderr
    file = tmp_path / "definitions/gemm/gemm_bf16_n1536_k4096.json"
    assert "status:unverified" in json.loads(file.read_text())["tags"]
    checked = run("validate", "--strict", "--dataset", str(tmp_path))
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nothing-like-it",), "is no file, and no model of that name is known"),
        (("llama-3.1-8b", "--tp", "7"), "--tp 7 does not divide"),
        (("llama-3.1-8b", "--tp", "0"), "--tp"),
        (("llama-3.1-8b", "--page-size", "4097"), "--page-size"),
        (("llama-3.1-8b", "--dataset", "/nowhere"), "/nowhere"),
    ],
)
def test_a_mistake_is_one_line(arguments, said):
    done = run("model", *arguments)

    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 4
