"""Compare a model that definitions compose with transformers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from generator.dataset.paths import Discovered
from generator.models.config import Config, load, names
from generator.parity.binding import Binder
from generator.parity.families import FAMILIES
from generator.parity.geometry import (
    REAL,
    SETS,
    WHOLE,
    config_of,
    figures_of,
    tokens,
    whole_config,
)
from generator.parity.process import DTYPES, LIMIT_S, ask
from generator.parity.recipe import Family, stages
from generator.parity.report import ComparedModel
from generator.problems import Failure
from generator.problems.messages import quote

_ALIASES = {"kimi_k2": "deepseek_v3"}
"""Architectures by the name that transformers has for them."""


@dataclass(frozen=True)
class ParityQuestion:
    """The levels and dtypes to compare, at which geometry, on which weights.

    `steps` are those of training, `decoded` is the number of tokens to decode,
    `lengths` are those of sequences whose next token is decoded, and `seed` draws weights
    and tokens.
    """

    levels: Sequence[str]
    dtypes: Sequence[str] = DTYPES
    geometry: str = "tiny"
    weights: Path | None = None
    seed: int = 1
    steps: int = 5
    decoded: int = 128
    lengths: Sequence[int] = (1, 31, 32, 33, 63, 64, 65)
    device: str = "cpu"
    kernels: str = ""
    solution: Mapping[str, Any] | None = None


def family_of(source: str) -> tuple[str, Config]:
    """Return the family and the config of a family's name, a model's or a file.

    Raises Failure where the architecture has no recipe, with the nearest family.
    """
    if source in FAMILIES:
        return source, config_of(FAMILIES[source])
    if not Path(source).is_file() and source not in names():
        known = (*FAMILIES, *names())
        near = get_close_matches(source, known, 1, 0.0)[0]
        raise Failure(
            f"{quote(source)} is no family, no model and no file; the nearest that is "
            f"known is {near}. Families are {', '.join(FAMILIES)}."
        )
    for name, family in FAMILIES.items():
        if family.model == source:
            return name, config_of(family)
    config = load(source)
    kind = _ALIASES.get(kind := str(config.get("model_type")), kind)
    kinds = {
        str(load(f.model).get("model_type")): name
        for name, f in FAMILIES.items()
        if not f.published and f.tower is None
    }
    if kind not in kinds:
        near = kinds[get_close_matches(kind, kinds, 1, 0.0)[0]]
        raise Failure(
            f"{config.name}: no recipe is for {quote(kind)}; the nearest family is {near}."
        )
    return kinds[kind], config


def compare(
    root: Path,
    discovered: Discovered,
    sources: Sequence[str],
    question: ParityQuestion,
    folder: Path,
    limit_s: float = LIMIT_S,
) -> list[ComparedModel]:
    """Return what the comparison of some models found.

    `folder` is where transformers was installed, `limit_s` the seconds that a model
    may take. Raises Failure where something can't be compared at all.
    """
    models = [family_of(source) for source in sources]
    geometries = SETS.get(question.geometry, (question.geometry,))
    asked = [
        (config, replace(question, geometry=geometry), name)
        for name, config in models
        for geometry in geometries
    ]
    requests = [
        ask_for(root, discovered, name, config, of) for config, of, name in asked
    ]
    answers = ask(requests, folder, limit_s)
    return [
        ComparedModel(
            config.name if len(geometries) == 1 else f"{config.name}, {of.geometry}",
            answer,
            *_names(FAMILIES[name], request["bound"]),
        )
        for (config, of, name), request, answer in zip(
            asked, requests, answers, strict=True
        )
    ]


def ask_for(
    root: Path,
    discovered: Discovered,
    name: str,
    config: Config,
    question: ParityQuestion,
) -> dict[str, Any]:
    """Return the worker's request for a config of a family."""
    family = FAMILIES[name]
    is_given = question.weights is not None
    figures = figures_of(config, family, question.geometry, is_given=is_given)
    binder = Binder(root, discovered, config, figures, is_mapped=not family.published)
    bound = binder.bind(family)
    if question.solution is not None:
        _require(question.solution, config.name, bound)
    return {
        "recipe": asdict(family),
        "figures": whole_config(family, figures),
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
        "lengths": list(question.lengths),
        "tokens": tokens(figures),
        "device": question.device,
        "kernels": question.kernels,
        "solution": question.solution and dict(question.solution),
        # threads cost more than they give on the matrices of a tiny model
        "threads": 0 if question.geometry in (REAL, WHOLE) else 1,
    }


def _require(solution: Mapping[str, Any], model: str, bound: Any) -> None:
    """Raise Failure where no stage runs the definition of a solution."""
    run = {one.name for roles in bound.values() for one in roles.values() if one.name}
    wanted = solution["definition"]
    if wanted not in run:
        near = get_close_matches(wanted, run, 1, 0.0)[0]
        raise Failure(
            f"{solution['name']}: no stage of {model} runs its definition, "
            f"{wanted}; the nearest that one runs is {near}."
        )


def _names(
    family: Family, bound: Mapping[str, Mapping[str, Any]]
) -> tuple[list[str], list[str]]:
    """Return the needed definitions that nobody has, and those of the dataset.

    A stage that no definition is named for stands among the first as it is called.
    """
    every = [one for roles in bound.values() for one in roles.values()]
    uncovered = {one["needed"] for one in every if not one["name"]}
    uncovered |= {
        f"{stage.name} ({stage.kind})"
        for _, stage in stages(family)
        if not stage.needs and stage.kind not in ("add", "join", "join_add")
    }
    return sorted(uncovered), sorted({one["name"] for one in every if one["is_there"]})
