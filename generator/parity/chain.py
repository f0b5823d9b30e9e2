"""A model as its recipe composes it: stage after stage, from tokens to logits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch

from generator.parity.calls import StageCall
from generator.parity.capture import Capture
from generator.parity.recipe import PAGE_SIZES, Family, Stage
from generator.parity.routed import UNROUTED, Routes, as_exact, flipped
from generator.parity.stage_adapters import KINDS
from generator.parity.stage_context import Pages, StageContext
from generator.parity.subject import ParityModel

Tensor = torch.Tensor
Calls = Mapping[str, Mapping[str, StageCall]]


@dataclass
class Decoding:
    """The caches and states of a sequence: pages of `page_size` for `capacity` tokens."""

    page_size: int
    capacity: int
    pages: dict[int, Pages] = field(default_factory=dict)
    states: dict[str, Tensor] = field(default_factory=dict)


class Chain:
    """The stages of a family, run on the weights of a model of transformers."""

    def __init__(self, subject: ParityModel, family: Family, calls: Calls) -> None:
        self.subject = subject
        self.family = family
        self.calls = calls
        self.tower: Chain | None = None
        if family.tower is not None and subject.tower is not None:
            self.tower = Chain(subject.tower, family.tower, calls)
        self._handed: dict[str, Tensor] = {}
        self._exact = UNROUTED
        self.flips = 0
        # (layer, stage, value) → what was written; kept where it is a dict
        self.written: dict[tuple[int | None, str, str], Tensor] | None = None

    def stages(self, layer: int) -> tuple[Stage, ...]:
        """Return the stages of a layer."""
        mixer = self.family.mixers.get(self.subject.kind(layer))
        mixer = self.family.mixers[""] if mixer is None else mixer
        of_layer = self.subject.layers[layer]
        mlp = getattr(of_layer, "mlp", getattr(of_layer, "feed_forward", None))
        feed = "moe" if hasattr(mlp, "experts") else "dense"
        return (*mixer, *self.family.feeds.get(feed, ()))

    def calls_of(self, stage: Stage, layer: int | None) -> Mapping[str, StageCall]:
        """Return the definitions of a stage by role."""
        kind = "" if layer is None else self.subject.kind(layer)
        of_kind = self.calls.get(f"{kind}/{stage.name}")
        return of_kind if of_kind is not None else self.calls.get(f"/{stage.name}", {})

    def site(
        self,
        stage: Stage,
        layer: int | None,
        positions: Tensor,
        decoding: Decoding | None = None,
    ) -> StageContext:
        """Return where a stage runs."""
        calls = self.calls_of(stage, layer)
        site = StageContext(self.subject, layer, stage.at, calls, positions)
        if decoding is not None:
            site.pages, site.states = decoding.pages, decoding.states
            site.page_size = decoding.page_size
            site.capacity = decoding.capacity
        return site

    def run(
        self,
        stage: Stage,
        layer: int | None,
        values: Mapping[str, Tensor],
        positions: Tensor,
        decoding: Decoding | None = None,
    ) -> dict[str, Tensor]:
        """Return what a stage writes."""
        site = self.site(stage, layer, positions, decoding)
        read = [values[name] for name in stage.reads.split()]
        written = (self.kept(value) for value in KINDS[stage.kind](site, *read))
        outputs = dict(zip(stage.writes.split(), written, strict=True))
        if stage.kind == "routing" and layer is not None and layer in self._exact:
            exact, chosen = self._exact[layer][positions], outputs[stage.writes]
            self.flips += int(flipped(chosen, exact).sum())
            outputs[stage.writes] = as_exact(chosen, exact)
        if self.written is not None:
            for name, value in outputs.items():
                if value.requires_grad:
                    value.retain_grad()
                    self.written[layer, stage.name, name] = value
        return outputs

    def has_bias(self, stage: Stage, layer: int | None) -> bool:
        """Return whether a stage is a product with a bias."""
        if stage.kind not in ("linear", "router"):
            return False
        modules = (self.subject.module(path, layer) for path in stage.at.split())
        return any(getattr(module, "bias", None) is not None for module in modules)

    @contextmanager
    def routed(self, exact: Routes) -> Iterator[None]:
        """Let tokens go to these experts; `flips` counts those that would not have."""
        self._exact, self.flips = exact, 0
        try:
            yield
        finally:
            self._exact = UNROUTED

    def kept(self, value: Tensor) -> Tensor:
        """Return a value in the chain's dtype if a definition has another of 16 bits."""
        is_narrow = value.dtype in (torch.float16, torch.bfloat16)
        return value.to(self.subject.model.dtype) if is_narrow else value

    def page_sizes(self) -> list[int]:
        """Return the sizes of pages for which every attention has its definitions."""
        roles = [
            set(self.calls_of(stage, layer))
            for layer in range(len(self.subject.layers))
            for stage in self.stages(layer)
            if stage.kind in ("attention", "latent_attention")
        ]
        if not roles:
            # keys and values are states then
            has_states = any(
                stage.kind == "biased_attention"
                for layer in range(len(self.subject.layers))
                for stage in self.stages(layer)
            )
            return [0] if has_states else []
        return [
            size
            for size in PAGE_SIZES
            if all({f"decode@{size}", f"paged@{size}"} <= of for of in roles)
        ]

    def layer(
        self,
        layer: int,
        h: Tensor,
        positions: Tensor,
        decoding: Decoding | None = None,
        handed: Mapping[str, Tensor] | None = None,
    ) -> Tensor:
        """Return what a layer makes of the residual stream, and of a tower's values."""
        values = {**(handed or {}), "h": h}
        for stage in self.stages(layer):
            values |= self.run(stage, layer, values, positions, decoding)
        return values["out"]

    def forward(
        self,
        tokens: Tensor,
        first: int = 0,
        decoding: Decoding | None = None,
    ) -> tuple[Tensor, list[Tensor]]:
        """Return the logits of tokens from position `first` on, and each layer's output."""
        positions = torch.arange(first, first + len(tokens))
        values, stream = self._through({"tokens": tokens}, positions, decoding)
        return values["logits"], stream

    def _through(
        self,
        start: Mapping[str, Tensor],
        positions: Tensor,
        decoding: Decoding | None = None,
    ) -> tuple[dict[str, Tensor], list[Tensor]]:
        """Return the values behind the last stage, and each layer's output."""
        handed = self.handed()
        values = {**handed, **start}
        for stage in (self.family.embed, *self.family.entry):
            values |= self.run(stage, None, values, positions)
        stream = []
        for layer in range(len(self.subject.layers)):
            h = self.layer(layer, values["h"], positions, decoding, handed)
            stream.append(h)
            values |= {"h": h, f"h{layer}": h}
            for stage in self.family.joined(layer):
                values |= self.run(stage, None, values, positions)
        for stage in self.family.final:
            values |= self.run(stage, None, values, positions)
        return values, stream

    def handed(self) -> dict[str, Tensor]:
        """Return what the tower makes for the text, once where nothing is trained."""
        if self.tower is None:
            return {}
        if self._handed and not torch.is_grad_enabled():
            return self._handed
        start, positions = self.tower.begins()
        values, _ = self.tower._through(start, positions)
        names = [n for one in self.tower.family.final for n in one.writes.split()]
        self._handed = {name: values[name] for name in names}
        return self._handed

    def begins(self) -> tuple[dict[str, Tensor], Tensor]:
        """Return what a tower begins with, and the positions of its rows."""
        senses = self.subject.senses
        return {self.family.embed.reads: senses.input}, torch.arange(senses.rows)


def truths(stage: Stage, layer: int | None, seen: Capture) -> dict[str, Tensor]:
    """Return what transformers computes of the values that a stage writes."""
    places = (stage.truth or stage.at).split()
    values = [value for place in places for value in seen.values(place, layer)]
    return dict(zip(stage.writes.split(), values, strict=False))
