"""Context of a stage in a chain: definitions, weights, and caches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from generator.parity.calls import Sharded, StageCall
from generator.parity.subject import ParityModel

Tensor = torch.Tensor


@dataclass
class Pages:
    """The paged cache of one layer: two parts, and the pages where tokens lie.

    The parts are keys and values, or latents and their turned parts.

    Slots that no token fills hold 1e4, so that a read of one is seen.
    """

    page_size: int
    keys: Tensor
    values: Tensor
    table: Tensor
    length: int = 0

    @classmethod
    def empty(cls, size: int, capacity: int, k: Tensor, v: Tensor) -> Pages:
        """Return a cache for `capacity` tokens; its pages lie in a drawn order.

        `k` and `v` are such as it will hold: one token a row.
        """
        count = -(-capacity // size) + 2
        generator = torch.Generator(k.device).manual_seed(count)
        table = torch.randperm(count, generator=generator).int()
        keys, values = (of.new_full((count, size, *of.shape[1:]), 1e4) for of in (k, v))
        return cls(size, keys, values, table)

    def structure(self, rows: int, chunk: int = 0) -> dict[str, Tensor]:
        """Return the structural inputs for the last `rows` tokens as one sequence.

        With a `chunk`, tokens of each chunk of positions are a sequence of their own.
        """
        first, ends = self.length - rows, [self.length]
        if chunk:
            ends = [*range((first // chunk + 1) * chunk, self.length, chunk), *ends]
        queries = torch.tensor([0, *(end - first for end in ends)], dtype=torch.int32)
        return {**self._sequences(ends, chunk), "qo_indptr": queries}

    def prefixes(self, count: int, chunk: int = 0) -> dict[str, Tensor]:
        """Return the structural inputs of sequences of 1, 2, … `count` tokens."""
        return self._sequences(range(1, count + 1), chunk)

    def _sequences(self, ends: Sequence[int], chunk: int) -> dict[str, Tensor]:
        """Return the pages of sequences by their ends; they begin with their chunk."""
        starts = [(end - 1) // chunk * chunk if chunk else 0 for end in ends]
        size = self.page_size
        pages = [
            self.table[start // size : -(-end // size)]
            for start, end in zip(starts, ends, strict=True)
        ]
        return {
            "kv_indptr": torch.tensor([0, *map(len, pages)]).cumsum(0).int(),
            "kv_indices": torch.cat(pages),
            "kv_last_page_len": torch.tensor(
                [(end - 1) % size + 1 for end in ends], dtype=torch.int32
            ),
        }

    def read(self) -> Tensor:
        """Return the keys and values of the sequence: [tokens, both of all heads]."""
        at = torch.arange(self.length)
        slots = self.table[at // self.page_size].long(), at % self.page_size
        return torch.cat(
            [part[slots].flatten(1) for part in (self.keys, self.values)], 1
        )


@dataclass
class StageContext:
    """The context of a stage: the layer, its weights, and the definitions by role.

    `states` are those of layers that keep one, None without decoding. With a `page_size`
    attention is over `pages`, made for `capacity` tokens; `role`
    chooses one of its definitions, which the number of rows does else.
    """

    subject: ParityModel
    layer: int | None
    at: str
    calls: Mapping[str, StageCall | Sharded]
    positions: Tensor
    pages: dict[int, Pages] = field(default_factory=dict)
    states: dict[str, Tensor] | None = None
    page_size: int = 0
    capacity: int = 0
    role: str = ""

    @property
    def modules(self) -> list[Any]:
        """Return transformers' modules that have the weights."""
        return [self.subject.module(path, self.layer) for path in self.at.split()]

    @property
    def call(self) -> StageCall | Sharded | None:
        """Return the one definition of the stage, None where it has none."""
        return self.calls.get("")

    @property
    def attention(self) -> Any:
        """Return the layer's attention module."""
        path = next(of for of in ("self_attn", "mixer", "attn") if self._has(of))
        return self.subject.module(path, self.layer)

    @property
    def chunk(self) -> int:
        """Return the length of chunks that the layer attends within, 0 for none."""
        if self.subject.kind(self.layer or 0) != "chunked_attention":
            return 0
        return int(self.subject.config.attention_chunk_size)

    def _has(self, path: str) -> bool:
        return hasattr(self.subject.layers[self.layer or 0], path)

    def steps(self, rows: Tensor) -> bool:
        """Return whether a state goes through the rows one by one, as in decoding."""
        is_decoding = self.states is not None and len(rows) == 1
        return self.role == "step" or is_decoding

    def state(self, name: str) -> Tensor | None:
        """Return the layer's state in decoding, None where there is none yet."""
        return (self.states or {}).get(f"{self.layer}.{name}")

    def keep(self, name: str, state: Tensor) -> None:
        """Keep the layer's state for the next step, in decoding."""
        if self.states is not None:
            self.states[f"{self.layer}.{name}"] = state
