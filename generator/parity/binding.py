"""Choice of the definition that computes each stage of a model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from generator.dataset.definition import (
    LoadedDefinition,
    build_definition,
    declarations,
)
from generator.dataset.paths import Discovered
from generator.models.config import Config
from generator.models.coverage import other_constants
from generator.models.instances import instance
from generator.models.modules import modules
from generator.models.need import Need
from generator.models.parallel import Deployment
from generator.ops.family import definition_json
from generator.ops.reference_text import with_constants
from generator.ops.registry import op_specs
from generator.parity.recipe import PAGE_SIZES, Family, Stage, stages
from generator.problems import Failure
from generator.rules.constants import read_constant, resolve_constants
from generator.rules.load import load_file

_ATTENTION = {
    "ragged": "prefill, ragged{}",
    "paged": "prefill, paged{}",
    "decode": "decode{}",
    "append": "append to the cache",
}
"""What attention runs: a role, and the module that names its definition."""
_CHUNKED = ", within chunks"
_CONVOLVED = {"": " (fwd)", "step": " (update)"}
_STEPPED = {"": ", prefill", "step": ", decode"}
_RECURRENT = {
    "delta_convolution": _CONVOLVED,
    "mamba_convolution": _CONVOLVED,
    "delta_rule": _STEPPED,
    "kimi_rule": _STEPPED,
    "state_space": _STEPPED,
}
"""The same of what keeps a state: what stands behind the module's name."""
_SAMPLING = {"softmax": "sampling, softmax", "sampler": "sampling, top_k, top_p"}
"""What draws tokens at the end of a model."""
_SHARES = (2, 4, 8, 16)


@dataclass(frozen=True)
class StageBinding:
    """The implementation that computes a stage.

    `needed` is the definition that the model needs. `name` is the one whose reference,
    `text`, runs: `needed`, or where the dataset lacks it what its family makes, or one
    of its kind at other sizes; empty where there is none. `inputs` and `outputs` are
    declarations (`bfloat16[batch_size, hidden_size]`) by names, in order; `axes` are
    the constant ones, `constants` those that the interface does not carry.
    """

    needed: str
    name: str = ""
    text: str = ""
    op_type: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    axes: Mapping[str, int] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    is_there: bool = False


class Binder:
    """The definitions that a dataset has for a model's stages."""

    def __init__(
        self,
        root: Path,
        discovered: Discovered,
        config: Config,
        figures: Mapping[str, Any],
        *,
        is_mapped: bool = True,
    ) -> None:
        """Take the model's config, and the figures that the run has in its place.

        Stages of what is not mapped name their definitions themselves.
        """
        self.root = root
        # without quantisation: transformers' own weights are not quantised either
        plain = {k: v for k, v in config.figures.items() if k != "quantization_config"}
        self.config = config = replace(config, figures=plain)
        self.files = {file.name: file for file in discovered.files}
        self.figures = figures
        sizes = ("hidden_size", "num_attention_heads")
        self.is_whole = all(figures.get(key) == config.get(key) for key in sizes)
        self.needs = {
            size: [*map(_composed, modules(config, Deployment(page_size=size)))]
            if is_mapped
            else []
            for size in PAGE_SIZES
        }

    def bind(self, family: Family) -> dict[str, dict[str, StageBinding]]:
        """Return `TYPE/STAGE` → role → what computes it.

        Most stages have the role `` alone. Attention has `ragged`, and others with
        `@PAGE_SIZE`; what keeps a state has `step` beside; `/sampling` has its own.
        `/N` behind a role is the definition of one GPU among N, where the dataset has
        it and the sizes are the model's own. Raises Failure for a definition that can't
        be read.
        """
        figures = {**self.config.figures, **family.published}
        if family.tower is not None:
            figures |= family.tower.published
        bindings = {
            f"{kind}/{stage.name}": dict(
                self._named(stage, figures)
                if stage.needs.startswith("=")
                else self._roles(kind, stage)
            )
            for kind, stage in stages(family)
            if stage.needs
        }
        sampling = {role: self._bound(of, 64) for role, of in _SAMPLING.items()}
        return {**bindings, "/sampling": {r: b for r, b in sampling.items() if b}}

    def _roles(self, kind: str, stage: Stage) -> Iterator[tuple[str, StageBinding]]:
        modules_of = dict(self._modules(kind, stage))
        for role, (module, size) in modules_of.items():
            if bound := self._bound(module, size):
                yield role, bound
        if not self.is_whole or modules_of.keys() == {""}:
            return
        for role, (module, size) in modules_of.items():
            for shares in _SHARES:
                if bound := self._share(module, size, shares):
                    yield f"{role}/{shares}", bound

    def _named(
        self, stage: Stage, figures: Mapping[str, Any]
    ) -> Iterator[tuple[str, StageBinding]]:
        """Yield role, and what computes a stage that names its definition itself."""
        name = stage.needs[1:].format(**figures)
        if stage.kind != "attention":
            yield "", self._by_name(name)
            return
        yield "ragged", self._by_name(f"gqa_ragged_prefill_causal_{name}")
        _, kv = name.split("_", 1)
        for size in PAGE_SIZES:
            paged = f"gqa_paged_{{}}_{name}_ps{size}".format
            yield f"paged@{size}", self._by_name(paged("prefill_causal"))
            yield f"decode@{size}", self._by_name(paged("decode"))
            append = f"append_paged_kv_cache_{kv}_ps{size}"
            yield f"append@{size}", self._by_name(append)

    def _by_name(self, name: str) -> StageBinding:
        """Return the definition of a name, or one of its kind at other sizes."""
        alike = [name, *(of for of in self.files if _kind(of) == _kind(name))]
        for other in alike:
            if other in self.files:
                definition, problems = load_file(self.root, self.files[other])
                if definition is None:
                    problem = problems[0].message if problems else "it can't be read."
                    raise Failure(f"{self.files[other].path}: {problem}")
                return self._of(definition, name)
        return StageBinding(name)

    def _modules(
        self, kind: str, stage: Stage
    ) -> Iterator[tuple[str, tuple[str, int]]]:
        """Yield role, and the module that names its definition with a page size."""
        for role, ending in _RECURRENT.get(stage.kind, {}).items():
            yield role, (stage.needs + ending, 64)
        if stage.needs == "attention":
            window = self.config.count("sliding_window")
            is_windowed = kind == "sliding_attention" or not self._has_whole()
            words = f", window of {window}" if is_windowed else ""
            chunks = _CHUNKED if kind == "chunked_attention" else words
            yield "ragged", (_ATTENTION["ragged"].format(chunks), 64)
            for role, module in list(_ATTENTION.items())[1:]:
                for size in PAGE_SIZES:
                    yield f"{role}@{size}", (module.format(words), size)
        elif stage.kind not in _RECURRENT:
            yield "", (stage.needs, 64)

    def _has_whole(self) -> bool:
        """Return whether a layer of the model attends to the whole sequence."""
        return any(need.module == "decode" for need in self.needs[64])

    def _share(self, module: str, page_size: int, shares: int) -> StageBinding | None:
        """Return the dataset's definition of one GPU among several, None without one."""
        try:
            needs = modules(self.config, Deployment(tp=shares, page_size=page_size))
            need = next((n for n in needs if n.module == module), None)
        except Failure:
            # the heads can't be divided so
            return None
        usual = next(n for n in self.needs[page_size] if n.module == module)
        if need is None or need.name == usual.name:
            return None
        name = next((name for name in need.names if name in self.files), None)
        return (name and self._loaded(name, name, need)) or None

    def _bound(self, module: str, page_size: int) -> StageBinding | None:
        need = next((n for n in self.needs[page_size] if n.module == module), None)
        if need is None:
            return None
        for name in need.names:
            if name in self.files and (bound := self._loaded(name, name, need)):
                return bound
        wanted = need.name
        spec = instance(self.config, Deployment(page_size=page_size), need)
        if spec is not None:
            definition = build_definition(json.loads(definition_json(spec)), "", "")
            return replace(self._of(definition, wanted), name=wanted)
        for name in self.files:
            if _kind(name) in map(_kind, need.names) and (
                bound := self._loaded(wanted, name, need)
            ):
                return bound
        return StageBinding(wanted)

    def _loaded(self, wanted: str, name: str, need: Need) -> StageBinding | None:
        """Return what a definition of the dataset computes; None for other constants."""
        definition, problems = load_file(self.root, self.files[name])
        if definition is None:
            problem = problems[0].message if problems else "it can't be read."
            raise Failure(f"{self.files[name].path}: {problem}")
        if any(other_constants(need, definition)):
            return None
        return self._of(definition, wanted)

    def _of(self, definition: LoadedDefinition, wanted: str) -> StageBinding:
        spec = op_specs().get(definition.op_type)
        constants = resolve_constants(definition, spec)[0] if spec else ()
        values = {constant.name: constant.value for constant in constants}
        if values.get("window_left") is not None:
            values["window_left"] += self._moved()
        return StageBinding(
            wanted,
            definition.name,
            self._at_these_figures(definition.reference),
            definition.op_type,
            declarations(definition.inputs),
            declarations(definition.outputs),
            definition.const_axes,
            values,
            is_there=definition.path != "" and wanted == definition.name,
        )

    def _moved(self) -> int:
        """Return by how much the window of the run is longer than the model's."""
        real = self.config.count("sliding_window")
        window = self.figures.get("sliding_window")
        return window - real if real and window else 0

    def _at_these_figures(self, text: str) -> str:
        """Return a reference with the window, or the chunks, of a tiny model.

        A window is moved by as much as the figure: one that is off by one stays so.
        """
        chunk = self.config.count("attention_chunk_size")
        if chunk:
            small = self.figures["attention_chunk_size"]
            line = "ATTENTION_CHUNK_SIZE = {}"
            text = text.replace(line.format(chunk), line.format(small))
        left = read_constant(text, "window_left")
        moved = self._moved()
        if left is None or not moved:
            return text
        return with_constants(text, WINDOW_LEFT=left + moved)


def _composed(need: Need) -> Need:
    """Return the need of a product as the chain computes it: it adds biases itself, and
    a router's logits are float32 behind a product in the model's dtype."""
    name = re.sub(r"^gemm_(bf16_f32|f32|bf16_bias|bias)_", "gemm_bf16_", need.name)
    return replace(need, name=name)


def _kind(name: str) -> str:
    """Return a definition's name without its sizes; pages of 1 have an interface of
    their own."""
    # an eps is part of a kind: 1em6
    digits = r"(?<=[a-z])(?<!\dem)\d+(?=_|$)"
    return re.sub(digits, "", re.sub(r"_ps1$", "_one", name))
