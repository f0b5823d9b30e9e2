"""Compare a model that definitions compose with transformers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from generator.dataset.paths import Discovered
from generator.models.config import Config, load, names
from generator.parity.binding import Binder
from generator.parity.process import ask
from generator.parity.recipe import FAMILIES, Family
from generator.parity.report import Compared
from generator.problems import Failure
from generator.problems.messages import quote

DTYPES = ("float32", "bfloat16")
TOKENS = 75
"""Tokens of a comparison: more than one page, and than the window of a tiny model."""
_VOCABULARY = 8192
_LONGEST_WINDOW = 1024
# of a config, what transformers' text model does without
_DROPPED = ("quantization_config", "text_config", "vision_config", "audio_config")


@dataclass(frozen=True)
class Question:
    """Hold what is compared: levels and dtypes, at which geometry, on which weights.

    `steps` are those of training, `decoded` is the number of tokens to decode, and
    `seed` draws weights and tokens.
    """

    levels: Sequence[str]
    dtypes: Sequence[str] = DTYPES
    is_tiny: bool = True
    weights: Path | None = None
    seed: int = 1
    steps: int = 5
    decoded: int = 128


def family_of(source: str) -> tuple[str, Config]:
    """Return the family and the config of a family's name, a model's or a file.

    Raises Failure where the architecture has no recipe, with the nearest family.
    """
    if source in FAMILIES:
        return source, load(FAMILIES[source].model)
    if not Path(source).is_file() and source not in names():
        known = (*FAMILIES, *names())
        near = get_close_matches(source, known, 1, 0.0)[0]
        raise Failure(
            f"{quote(source)} is no family, no model and no file; the nearest that is "
            f"known is {near}. Families are {', '.join(FAMILIES)}."
        )
    config = load(source)
    kind = str(config.get("model_type"))
    kinds = {str(load(f.model).get("model_type")): name for name, f in FAMILIES.items()}
    if kind not in kinds:
        near = kinds[get_close_matches(kind, kinds, 1, 0.0)[0]]
        raise Failure(
            f"{config.name}: no recipe is for {quote(kind)}; the nearest family is {near}."
        )
    return kinds[kind], config


def compare(
    root: Path,
    found: Discovered,
    sources: Sequence[str],
    question: Question,
    folder: Path,
) -> list[Compared]:
    """Return what the comparison of some models found.

    `folder` is where transformers was installed. Raises Failure where something can't
    be compared at all.
    """
    models = [family_of(source) for source in sources]
    requests = [ask_for(root, found, *model, question) for model in models]
    answers = ask(requests, folder)
    return [
        Compared(config.name, answer, *_names(request["bound"]))
        for (_, config), request, answer in zip(models, requests, answers, strict=True)
    ]


def ask_for(
    root: Path, found: Discovered, name: str, config: Config, question: Question
) -> dict[str, Any]:
    """Return the worker's request for a config of a family."""
    family = FAMILIES[name]
    figures = _figures(config, family, question)
    bound = Binder(root, found, config, figures).bind(family)
    return {
        "recipe": asdict(family),
        "figures": figures,
        "bound": {
            key: {role: asdict(one) for role, one in roles.items()}
            for key, roles in bound.items()
        },
        "levels": list(question.levels),
        "dtypes": list(question.dtypes),
        "weights": str(question.weights) if question.weights else None,
        "seed": question.seed,
        "steps": question.steps,
        "decoded": question.decoded,
        "tokens": _tokens(figures),
        # threads cost more than they give on the matrices of a tiny model
        "threads": 1 if question.is_tiny else 0,
    }


def _names(bound: Mapping[str, Mapping[str, Any]]) -> tuple[list[str], list[str]]:
    """Return the needed definitions that nobody has, and those of the dataset."""
    every = [one for roles in bound.values() for one in roles.values()]
    uncovered = {one["needed"] for one in every if not one["name"]}
    return sorted(uncovered), sorted({one["name"] for one in every if one["is_there"]})


def _tokens(figures: Mapping[str, Any]) -> int:
    """Return how many tokens to compare: more than a window, where that is possible."""
    window = figures.get("sliding_window") or 0
    return max(TOKENS, window + 32) if window <= _LONGEST_WINDOW else TOKENS


def _figures(config: Config, family: Family, question: Question) -> dict[str, Any]:
    """Return the config for transformers: tiny, or one layer of each type as it is."""
    figures = {**config.figures, **family.facts}
    if question.is_tiny:
        figures |= family.tiny
    else:
        types = [kind for kind in family.mixers if kind]
        figures["num_hidden_layers"] = max(len(types), 1)
        figures["max_position_embeddings"] = 4096
        figures["vocab_size"] = min(config.size("vocab_size"), _VOCABULARY)
        if types:
            figures["layer_types"] = types
    return {key: value for key, value in figures.items() if key not in _DROPPED}
