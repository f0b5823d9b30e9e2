"""A dump of a norm, as FlashInfer writes it."""

from __future__ import annotations

from typing import Any

HEAD = "from __future__ import annotations\nimport torch\n\n"


def dump(**changes: Any) -> dict[str, Any]:
    """Return a dump of a norm with fields changed."""
    return {
        "name": "norm_h4",
        "op_type": "norm",
        "description": None,
        "tags": ["fi_api:flashinfer.norm.norm", "status:verified"],
        "axes": {"m": {"type": "var"}, "h": {"type": "const", "value": 4}},
        "inputs": {
            "x": {"shape": ["m", "h"], "dtype": "bfloat16"},
            "eps": {"shape": None, "dtype": "float32"},
        },
        "outputs": {"y": {"shape": ["m", "h"], "dtype": "bfloat16"}},
        "reference": f"{HEAD}def _norm_reference(x, eps):\n    return x * eps\n",
        "check": "def check():\n    raise SystemExit\n",
        **changes,
    }
