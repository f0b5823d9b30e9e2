"""Composition of model families from definitions: plain data, without torch.

A value is a matrix, one row a token; a stage reads some by name and writes others. What
transformers computes there is the output of its module `at` a path in the layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PAGE_SIZES = (1, 64)
"""Tokens of a page, in decoding."""


@dataclass(frozen=True)
class Stage:
    """One step of a layer: its inputs, outputs, and the definition that computes it.

    `kind` is the function of `kinds.py` that reshapes values to a definition's inputs.
    `at` names transformers' modules with the weights, or one of its functions (`rope`,
    `attention`); `truth` is where the values written are seen there, `at` if not given:
    `PATH` for what a module returns, `PATH<` for what it is given, `.` for the layer.
    `needs` is the module of `generator.models.modules` that names the definition, empty
    where there is none by design.
    """

    name: str
    kind: str
    reads: str
    writes: str
    at: str = ""
    needs: str = ""
    truth: str = ""


FIRST_NORM = "norm before the first layer"
EMBED = Stage("embed", "embedding", "tokens", "h", "model.embed_tokens", "embedding")
FINAL = (
    Stage("final_norm", "norm", "h", "x", "model.norm", FIRST_NORM),
    Stage("lm_head", "linear", "x", "logits", "lm_head", "lm_head"),
)


@dataclass(frozen=True)
class Family:
    """A family: the model that stands for it, its stages, and its tiny geometry.

    `mixers` are the stages of attention or what stands in its place, by the type of the
    layer; `feeds` those of the MLP, by `dense` and `moe`. `tiny` replaces figures of the
    config, and `facts` are figures that transformers needs beside the published ones;
    `others` are those of other models of the family, where they differ. `real` is
    replaced at real geometry beside the number of layers, one of each type. `untrained`
    are stages whose references write to what gradients need: transformers' own trains.

    Of models that take more than text: `tower` makes of what `senses` names (an image,
    speech, a source text) the values that its `final` stages write, for stages of the
    text to read. `base` is the path of the module that has the layers, `layers` its lists
    of them, and `auto` is transformers' class. `entry` stands behind the embedding,
    `joins` behind the first layers, some for each. `published` are figures of a model that
    comes without a config here: stages name their definitions by them, behind a `=`.
    `around` are figures of the config around that of the text.
    """

    model: str
    mixers: Mapping[str, tuple[Stage, ...]]
    feeds: Mapping[str, tuple[Stage, ...]]
    tiny: Mapping[str, Any]
    facts: Mapping[str, Any] = field(default_factory=dict)
    others: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    real: Mapping[str, Any] = field(default_factory=dict)
    untrained: tuple[str, ...] = ()
    embed: Stage = EMBED
    final: tuple[Stage, ...] = FINAL
    published: Mapping[str, Any] = field(default_factory=dict)
    auto: str = "AutoModelForCausalLM"
    base: str = ""
    layers: str = "layers"
    around: Mapping[str, Any] = field(default_factory=dict)
    senses: str = ""
    entry: tuple[Stage, ...] = ()
    joins: tuple[tuple[Stage, ...], ...] = ()
    tower: Family | None = None

    def joined(self, layer: int) -> tuple[Stage, ...]:
        """Return the stages that stand behind a layer."""
        return self.joins[layer] if layer < len(self.joins) else ()


def stages(family: Family) -> list[tuple[str, Stage]]:
    """Return every stage with the type of its layer, empty where it is in all of them."""
    steps = [("", family.embed)]
    steps += [(kind, stage) for kind, mixer in family.mixers.items() for stage in mixer]
    steps += [("", stage) for feed in family.feeds.values() for stage in feed]
    joins = (stage for behind in family.joins for stage in behind)
    ends = (*family.entry, *joins, *family.final)
    steps += [("", stage) for stage in ends]
    return steps + (stages(family.tower) if family.tower else [])


def from_plain(value: Mapping[str, Any]) -> Family:
    """Return the family that `dataclasses.asdict` made a value of."""
    parts: dict[str, Any] = {
        part: {
            kind: tuple(Stage(**one) for one in of) for kind, of in value[part].items()
        }
        for part in ("mixers", "feeds")
    }
    parts["untrained"] = tuple(value["untrained"])
    parts["embed"] = Stage(**value["embed"])
    for part in ("entry", "final"):
        parts[part] = tuple(Stage(**one) for one in value[part])
    parts["joins"] = tuple(tuple(Stage(**s) for s in of) for of in value["joins"])
    parts["tower"] = from_plain(value["tower"]) if value["tower"] else None
    return Family(**{**value, **parts})
