"""Sizes, outputs and needed inputs of templates that have no `init`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from generator.dialects import flashinfer, without_init
from tests.unit.dialects.test_import import HEAD, dump


def axis(description: str = "", **fields: Any) -> Any:
    return SimpleNamespace(description=description, **fields)


def tensor(*dims: str, optional: bool = False) -> Any:
    return SimpleNamespace(
        dim_names=list(dims), dtype=None, param=None, tuple_idx=None, optional=optional
    )


TEMPLATE = SimpleNamespace(
    axes={
        "tokens": axis("Tokens, 2 * 3 of them."),
        "tiles": axis("ceil(wide / 128)."),
        "hidden": axis(abbrev="h"),
        "wide": axis("Rows: 2 * hidden for gated.", abbrev=""),
        "width": axis("hidden // 2 or hidden."),
        "experts": axis("Experts (256).", abbrev="e"),
        "rows": axis("Rows (16)."),
        "hidden_padded": axis(abbrev=""),
    },
    inputs={
        "x": tensor("tokens", "hidden"),
        "w": tensor("wide", "hidden"),
        "scale": tensor("tiles", optional=True),
    },
    reference=lambda x, w, scale: None,
)


def test_sizes_are_those_that_descriptions_state() -> None:
    assert without_init.stated(TEMPLATE) == {
        "tiles": "(wide + 128 - 1) // 128",
        "wide": "2 * hidden",
        "experts": "256",
    }
    sizes = without_init.sizes_of(TEMPLATE, {}, {"hidden": 160})
    expected = {
        "tokens": 8,
        "hidden": 160,
        "wide": 320,
        "tiles": 3,
        "hidden_padded": 160,
        "experts": 256,
        "rows": 8,
    }
    assert {name: sizes[name] for name in expected} == expected
    assert without_init.sizes_of(TEMPLATE, {"wide": 5}, {})["wide"] == 5


def test_an_optional_input_that_the_reference_requires_is_found() -> None:
    def reference(made: Any) -> list[Any]:
        if made["scale"] is None:
            raise ValueError("scale is required when quantised")
        return [tuple((made["x"] @ made["w"].T).shape)]

    sizes = without_init.sizes_of(TEMPLATE, {}, {"hidden": 16})
    returned, needed = without_init.tried(TEMPLATE, sizes, {}, reference)
    assert (returned, needed) == ([(8, 32)], ("scale",))


def test_an_axis_of_outputs_alone_has_the_size_that_is_returned() -> None:
    source = f"{HEAD}def _norm_reference(x):\n    return x[:, :3]\n"
    value = dump(
        reference=source,
        inputs={"x": {"shape": ["m", "h"], "dtype": "bfloat16"}},
        outputs={"y": {"shape": ["m", "r"], "dtype": "unknown"}},
        axes={"m": {"type": "var"}, "h": {"type": "const", "value": 4}, "r": {}},
    )
    value["axes"]["r"] = {"type": "var"}
    sketch = {
        "template": "t",
        "dump": value,
        "apis": [],
        "inputs": {"x": {"param": None, "tuple_idx": None}},
        "returned": [{"tensor": [8, 3], "dtype": "float32"}],
    }
    found = flashinfer.convert(sketch)
    assert found.value is not None, found.reason
    assert found.value["axes"]["r"] == {"type": "const", "value": 3}
    assert found.value["outputs"]["y"]["dtype"] == "float32"


def test_the_parts_of_a_tuple_written_in_place_are_outputs() -> None:
    source = f"{HEAD}def _norm_reference(x, kv):\n    k, v = kv\n    k[:] = x\n    return kv\n"
    cache = {"shape": ["m", "h"], "dtype": "bfloat16"}
    made = {"tensor": [8, 4], "dtype": "bfloat16"}
    sketch = {
        "template": "t",
        "dump": dump(
            reference=source,
            inputs={"x": dict(cache), "kv": dict(cache)},
            outputs={"kv": dict(cache)},
        ),
        "apis": [],
        "inputs": {n: {"param": None, "tuple_idx": None} for n in ("x", "kv")},
        "init": {
            "call": {"m": 8},
            "defaults": {},
            "made": {"x": made, "kv": {"items": [made, made]}},
            "returned": [made, made],
        },
    }
    sketch["dump"]["init"] = "def init(*, m, device):\n    return {}\n"  # type: ignore[index]
    found = flashinfer.convert(sketch)
    assert found.value is not None, found.reason
    assert list(found.value["outputs"]) == ["kv_0_out", "kv_1_out"]
    assert "'kv_1_out': (1, 'kv')" in found.custom
    names: dict[str, Any] = {}
    exec(found.value["reference"], names)  # noqa: S102
    k, v = torch.zeros(2, 4), torch.ones(2, 4)
    new, _ = names["run"](torch.full((2, 4), 5.0), k, v)
    assert (float(new.max()), float(k.max())) == (5.0, 0.0)
