"""Fingerprints: what changes one, and what does not."""

from __future__ import annotations

import dataclasses
import hashlib

import torch

from kernel_judge.definition import Case
from kernel_judge.recording.fingerprint import (
    case_value,
    input_hashes,
    interface_hash,
)
from tests.builders import known


def test_inputs_are_hashed_by_their_bytes():
    tensor = torch.arange(6, dtype=torch.int32).reshape(2, 3)
    hashes = input_hashes({"x": tensor, "t": tensor.T, "s": 0.25, "e": tensor[:0]})
    assert hashes["x"] == hashlib.sha256(tensor.numpy().tobytes()).hexdigest()
    assert hashes["t"] == hashlib.sha256(tensor.T.numpy().tobytes()).hexdigest()
    assert hashes["s"] == hashlib.sha256(b"0.25").hexdigest()
    assert hashes["e"] == hashlib.sha256(b"").hexdigest()
    for dtype in (torch.bfloat16, torch.float8_e4m3fn, torch.bool):
        assert len(input_hashes({"x": torch.ones(3).to(dtype)})["x"]) == 64
    assert len(input_hashes({"x": torch.tensor(1.0)})["x"]) == 64


def test_an_interface_is_its_names_axes_and_constants():
    first = known("gqa_paged_decode_h32_kv8_d128_ps64")
    hashes = {interface_hash(first)}
    inputs = dict(reversed(first.interface.inputs.items()))
    others = [
        dataclasses.replace(first, name="other"),
        dataclasses.replace(first, axes={**first.axes, "head_dim": 64}),
        dataclasses.replace(first, constants={"eps": 1e-6}),
        dataclasses.replace(
            first, interface=dataclasses.replace(first.interface, inputs=inputs)
        ),
    ]
    hashes |= {interface_hash(other) for other in others}
    assert len(hashes) == 5
    same = dataclasses.replace(first, axes=dict(reversed(first.axes.items())))
    assert interface_hash(same) == interface_hash(first)


def test_a_case_is_plain_json():
    case = Case("c", "small", {"M": 1}, {"lens": (1, 2), "std": 2.0})
    assert case_value(case) == {
        "size": "small",
        "axes": {"M": 1},
        "params": {"lens": [1, 2], "std": 2.0},
    }
