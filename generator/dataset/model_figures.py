"""Published figures of the models that `model:` tags name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any


@cache
def model_figures() -> Mapping[str, Mapping[str, Any]]:
    """Return model name → figures of its config.json, those of another one resolved.

    `same_as` is another model with the same figures, `spelling_of` the same model.
    """
    table = _table()
    return {
        name: table[figures.get("same_as", figures.get("spelling_of", name))]
        for name, figures in table.items()
    }


def usual_spelling(model: str) -> str:
    """Return the name that tags have for a model: its own where no other is known."""
    spelt: str = _table().get(model, {}).get("spelling_of", model)
    return spelt


@cache
def _table() -> Mapping[str, Mapping[str, Any]]:
    text = (Path(__file__).parent / "data" / "models.json").read_text("utf-8")
    return {k: v for k, v in json.loads(text).items() if not k.startswith("_")}
