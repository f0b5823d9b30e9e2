"""Domains: what draws become, and that nothing else is among them."""

import json
from pathlib import Path

import pytest
import torch

from generator.dataset.definition import build_definition
from generator.evaluation.checkers.domain import DOMAINS, into
from generator.evaluation.checkers.drawn_workload import drawn_inputs, not_finite
from generator.ops.registry import op_specs

ROOT = Path(__file__).resolve().parents[4]


def drawn(dtype=torch.float32):
    return torch.randn(64, 128, generator=torch.Generator().manual_seed(1)).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_draws_become_values_of_their_domain(dtype):
    x = drawn(dtype)
    lengths = into("unit", x).float().square().sum(-1)
    torch.testing.assert_close(lengths, torch.ones(64), rtol=1e-2, atol=0.0)
    assert torch.equal(into("negative", x), -x.abs())
    assert torch.equal(into("non-negative", x), x.abs())
    sums = into("probabilities", x).float()
    assert bool((sums >= 0).all())
    torch.testing.assert_close(sums.sum(-1), torch.ones(64), rtol=1e-2, atol=0.0)
    for name in ("unit", "negative", "non-negative", "probabilities"):
        assert into(name, x).dtype == dtype
        assert into(name, x).shape == x.shape


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8])
def test_every_byte_becomes_a_power_of_two_near_one(dtype):
    every = torch.arange(256, dtype=torch.uint8).view(dtype).view(2, 128)
    made = into("powers-of-two", every)
    assert made.dtype == dtype
    exponents = made.view(torch.uint8).int() - 127
    assert sorted(set(exponents.flatten().tolist())) == list(range(-8, 8))


def test_a_vector_of_zeros_has_no_length_and_stays():
    assert torch.equal(into("unit", torch.zeros(2, 4)), torch.zeros(2, 4))


def test_the_schema_has_the_same_domains():
    path = ROOT / "generator/dataset/schemas/definition.schema.json"
    tensor = json.loads(path.read_text())["$defs"]["tensor"]["properties"]
    assert set(tensor["domain"]["enum"]) == set(DOMAINS)
    stated = [d for spec in op_specs().values() for d in spec.domains.values()]
    by_dtype = [{d} if isinstance(d, str) else {*d.values()} for d in stated]
    used = set().union(*by_dtype)
    assert used == set(DOMAINS)


def loaded(op_type, name):
    path = f"definitions/{op_type}/{name}.json"
    definition = build_definition(json.loads((ROOT / path).read_text()), path, "")
    lines = (ROOT / f"workloads/{op_type}/{name}.jsonl").read_text().splitlines()
    return definition, [json.loads(line)["workload"] for line in lines]


@pytest.mark.parametrize(
    ("op_type", "name"),
    [
        ("mhc", "mhc_pre_big_fuse_hc4_h4096_mix24"),
        ("quantization", "mxfp4_dequantize_k2880"),
    ],
)
def test_with_domains_outputs_are_finite_and_without_they_are_not(op_type, name):
    definition, workloads = loaded(op_type, name)
    few = [w for w in workloads if sum(w["axes"].values()) < 300]
    assert few
    assert [not_finite(definition, w, ROOT) for w in few] == [{}] * len(few)
    assert any(not_finite(definition, w, ROOT, domains=False) for w in few)


def test_keys_of_unit_length_keep_states_small():
    definition, workloads = loaded("gdn", "gdn_prefill_qk4_v8_d128_k_last")
    few = min(workloads, key=lambda w: w["axes"]["total_seq_len"])
    keys = drawn_inputs(definition, few, ROOT)["k"].float().square().sum(-1)
    torch.testing.assert_close(keys, torch.ones_like(keys), rtol=1e-2, atol=0.0)
    plain = drawn_inputs(definition, few, ROOT, domains=False)["k"]
    assert float(plain.float().square().sum(-1).min()) > 20
