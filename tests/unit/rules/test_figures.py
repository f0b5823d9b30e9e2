"""Const axes of definitions that models need at several parallelisms."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from generator.dataset.definition import build_definition
from generator.models.config import load
from generator.models.instances import instance
from generator.models.modules import needs
from generator.models.parallel import Deployment
from generator.ops.family import definition_json
from generator.rules import figures


def said(model: str, module: str, tp: int, wrong: int = 0) -> Iterator[str]:
    """Yield what the rule says of a module's definition, its first length a wrong one."""
    config, deployment = load(model), Deployment(tp=tp)
    (need,) = {
        n.name: n for n in needs(config, deployment) if n.module == module
    }.values()
    spec = instance(config, deployment, need)
    assert spec is not None
    value = json.loads(definition_json(spec))
    axis = next(of for of in value["axes"].values() if of["type"] == "const")
    axis["value"] += wrong
    definition = build_definition(value, f"{spec.op_type}/{spec.name}.json", "")
    yield from (problem.message for problem in figures.check(definition, None))


@pytest.mark.parametrize(
    ("model", "module", "tp"),
    [
        # 100278 rows, filled up to 100288 for 8 GPUs
        ("olmo-3-7b", "embedding", 8),
        ("olmo-3-7b", "embedding", 2),
        ("llama-4-maverick", "MLP, activation", 1),
        ("llama-4-maverick", "MLP, activation", 8),
    ],
)
def test_what_the_map_asks_for_is_what_the_rule_allows(
    model: str, module: str, tp: int
) -> None:
    assert list(said(model, module, tp)) == []
    assert list(said(model, module, tp, wrong=2)) != []
