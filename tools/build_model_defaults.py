"""Write generator/models/defaults.json: what transformers supplies where a config is silent.

python tools/build_model_defaults.py [--transformers FOLDER]

For each architecture of `generator.models.architectures`, the keys of its config class in
transformers with their defaults, but for those that change no definition. FOLDER is where
`tools/dev.py` put transformers, `.transformers` if not given. Kept in git: a test compares.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from generator.dataset.atomic_write import write_atomically
from generator.models.architectures import ARCHITECTURES
from generator.models.keys import IRRELEVANT


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transformers", type=Path, default=ROOT / ".transformers")
    sys.path.insert(0, str(parser.parse_args().transformers.resolve()))
    text = json.dumps(defaults(), indent=1, sort_keys=True, default=str)
    write_atomically(ROOT / "generator/models/defaults.json", f"{text}\n".encode())


def defaults() -> dict[str, dict[str, Any]]:
    """Return model_type → key → the default of transformers' config class.

    Lists of layers are empty: they have as many entries as the default model has layers.
    What follows from the sizes of others (head_dim, in many) is null.
    """
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    found: dict[str, dict[str, Any]] = {}
    for kind, architecture in ARCHITECTURES.items():
        model_type = architecture.defaults or kind
        if model_type not in found:
            config = CONFIG_MAPPING[model_type]
            stated = config().to_dict()
            # twice the heads, or twice their length: what changes follows from others
            more = [
                config(**{key: 2 * stated[key]}).to_dict()
                for key in ("hidden_size", "num_attention_heads")
            ]
            found[model_type] = {
                key: _default(key, value, [other.get(key) for other in more])
                for key, value in stated.items()
                if key not in IRRELEVANT
            }
    return found


def _default(key: str, value: Any, others: list[Any]) -> Any:
    if isinstance(value, list):
        return []
    follows = key not in ("hidden_size", "num_attention_heads") and any(
        other != value for other in others
    )
    return None if follows else value


if __name__ == "__main__":
    main()
