"""Published figures of the models that `model:` tags name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any


@cache
def model_figures() -> Mapping[str, Mapping[str, Any]]:
    """Return model name → figures of its config.json, `same_as` resolved."""
    text = (Path(__file__).parent / "data" / "models.json").read_text("utf-8")
    table = {k: v for k, v in json.loads(text).items() if not k.startswith("_")}
    return {
        name: table[figures["same_as"]] if "same_as" in figures else figures
        for name, figures in table.items()
    }
