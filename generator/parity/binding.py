"""Which definition of a dataset computes each stage of a model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from generator.dataset.paths import Discovered
from generator.models.config import Config
from generator.models.coverage import other_constants
from generator.models.instances import instance
from generator.models.modules import modules
from generator.models.need import Need
from generator.models.parallel import Deployment
from generator.ops.reference_text import with_constants
from generator.parity.recipe import PAGE_SIZES, Family, Stage, stages
from generator.problems import Failure
from generator.rules.constants import read_constant
from generator.rules.load import load_file

_ROLES = {
    "ragged": "prefill, ragged{}",
    "paged": "prefill, paged{}",
    "decode": "decode{}",
    "append": "append to the cache",
}
"""What attention runs: a role, and the module that names its definition."""


@dataclass(frozen=True)
class Bound:
    """Hold what computes a stage.

    `needed` is the definition that the model needs. `name` is the one whose reference,
    `text`, runs: `needed`, or where the dataset lacks it what its family makes, or one
    of its kind at other sizes; empty where there is none. `inputs` and `outputs` map
    names to dtypes, in order.
    """

    needed: str
    name: str = ""
    text: str = ""
    inputs: Mapping[str, str] | None = None
    outputs: Mapping[str, str] | None = None
    is_there: bool = False


class Binder:
    """Find the definitions of a model's stages in a dataset."""

    def __init__(
        self, root: Path, found: Discovered, config: Config, figures: Mapping[str, Any]
    ) -> None:
        """Take the model's config, and the figures that the run has in its place."""
        self.root = root
        # without quantisation: transformers' own weights are not quantised either
        kept = {k: v for k, v in config.figures.items() if k != "quantization_config"}
        self.config = config = replace(config, figures=kept)
        self.files = {file.name: file for file in found.files}
        self.figures = figures
        self.needs = {
            size: list(modules(config, Deployment(page_size=size)))
            for size in PAGE_SIZES
        }

    def bind(self, family: Family) -> dict[str, dict[str, Bound]]:
        """Return `TYPE/STAGE` → role → what computes it.

        A role is empty but for attention: `ragged`, or a role and `@PAGE_SIZE`. Raises
        Failure for a definition that can't be read.
        """
        return {
            f"{kind}/{stage.name}": dict(self._roles(kind, stage))
            for kind, stage in stages(family)
            if stage.needs
        }

    def _roles(self, kind: str, stage: Stage) -> Iterator[tuple[str, Bound]]:
        if stage.needs != "attention":
            bound = self._bound(stage.needs, 64)
            if bound is not None:
                yield "", bound
            return
        window = self.config.count("sliding_window")
        words = f", window of {window}" if kind == "sliding_attention" else ""
        for role, module in _ROLES.items():
            for size in PAGE_SIZES if role != "ragged" else (64,):
                bound = self._bound(module.format(words), size)
                if bound is not None:
                    yield (role if role == "ragged" else f"{role}@{size}"), bound

    def _bound(self, module: str, page_size: int) -> Bound | None:
        need = next((n for n in self.needs[page_size] if n.module == module), None)
        if need is None:
            return None
        for name in filter(None, (need.name, need.stated)):
            if name in self.files and (bound := self._loaded(name, name, need)):
                return bound
        wanted = need.stated or need.name
        spec = instance(self.config, Deployment(page_size=page_size), need)
        if spec is not None:
            inputs = {name: tensor.dtype for name, tensor in spec.inputs.items()}
            outputs = {name: tensor.dtype for name, tensor in spec.outputs.items()}
            text = self._at_these_figures(spec.reference)
            return Bound(wanted, wanted, text, inputs, outputs)
        for name in self.files:
            if _kind(name) in (_kind(need.name), _kind(need.stated)) and (
                bound := self._loaded(wanted, name, need)
            ):
                return bound
        return Bound(wanted)

    def _loaded(self, wanted: str, name: str, need: Need) -> Bound | None:
        """Return what a definition of the dataset computes; None for other constants."""
        definition, problems = load_file(self.root, self.files[name])
        if definition is None:
            said = problems[0].message if problems else "it can't be read."
            raise Failure(f"{self.files[name].path}: {said}")
        if any(other_constants(need, definition)):
            return None
        return Bound(
            wanted,
            name,
            self._at_these_figures(definition.reference),
            {n: tensor.dtype for n, tensor in definition.inputs.items()},
            {n: tensor.dtype for n, tensor in definition.outputs.items()},
            is_there=wanted == name,
        )

    def _at_these_figures(self, text: str) -> str:
        """Return a reference with the window of a tiny model.

        It is moved by as much as the figure: a window that is off by one stays so.
        """
        left = read_constant(text, "window_left")
        real = self.config.count("sliding_window")
        given = self.figures.get("sliding_window")
        if left is None or not real or not given:
            return text
        return with_constants(text, WINDOW_LEFT=left + given - real)


def _kind(name: str) -> str:
    """Return a definition's name without its sizes; pages of 1 have an interface of
    their own."""
    return re.sub(r"(?<=[a-z])\d+(?=_|$)", "", re.sub(r"_ps1$", "_one", name))
