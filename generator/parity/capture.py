"""Inputs and outputs of a model's modules, captured in one forward."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from generator.problems import Failure

Tensor = torch.Tensor
FUNCTIONS = {
    "apply_rotary_pos_emb": "rope",
    "apply_rotary_pos_emb_interleave": "rope",
    "apply_rotary_emb": "rope",
    "apply_rotary_pos_emb_vision": "rope",
    "eager_attention_forward": "attention",
    "causal_conv1d_fn": "convolution",
    "torch_chunk_gated_delta_rule": "recurrence",
    "chunk_kimi_delta_attention": "recurrence",
    "mamba2_chunk_scan": "recurrence",
}
"""Functions of transformers' modules that stages stand for, and their paths."""
_DIGITS = "0123456789"


class Capture:
    """Inputs and outputs of modules, as matrices of one row a token."""

    def __init__(
        self,
        length: int,
        config: Any,
        unpacked: Callable[[str, Tensor], list[Tensor]],
        *,
        with_gradients: bool = False,
    ) -> None:
        self.length = length
        self.with_gradients = with_gradients
        self.config, self._unpacked = config, unpacked
        self.logits = torch.empty(0)
        self.given: dict[str, Any] = {}
        self.returned: dict[str, Any] = {}
        self.arguments: list[Mapping[str, Any]] = []
        self.prefixes: list[str] = []
        self.choices: dict[int, Tensor] = {}
        self._layer = -1
        self._calls: list[str] = []

    def hook(self, path: str) -> Callable[..., None]:
        """Return a hook that keeps what the module at a path is given and returns."""

        def keep(module: nn.Module, args: Any, kwargs: Any, returned: Any) -> None:
            arguments = [*args, *kwargs.values()]
            self.given[path] = next(
                (v for v in arguments if isinstance(v, Tensor) and v.dim() > 1), None
            )
            self._watch(self.given[path], returned)
            # Llama 4 adds to what a module returned, in its memory
            is_one = isinstance(returned, Tensor) and not self.with_gradients
            self.returned[path] = returned.clone() if is_one else returned

        return keep

    def entering(self, index: int) -> Callable[..., None]:
        """Return a hook that notes the layer, and the arguments it is called with."""

        def note(module: nn.Module, args: Any, kwargs: Any) -> None:
            self._layer, self._calls = index, []
            self.arguments.append({**kwargs, "args": args})

        return note

    def leaving(self, *of: Any) -> None:
        """Note that no layer runs."""
        self._layer = -1

    def function(self, path: str, returned: Any) -> None:
        """Keep what a function returns in the layer that is running."""
        self._watch(returned)
        # a decoder attends twice: to itself and to what an encoder made
        count = sum(key.rstrip(_DIGITS) == path for key in self._calls)
        name = f"{path}{count + 1}" if count else path
        self._calls.append(name)
        self.returned[f"{name}@{self._layer}"] = returned

    def _watch(self, *values: Any) -> None:
        """Ask for the gradients of tensors, where they are wanted."""
        for value in values if self.with_gradients else ():
            if isinstance(value, (tuple, list)):
                self._watch(*value)
            elif isinstance(value, Tensor) and value.requires_grad:
                value.retain_grad()

    def gradients(self) -> Capture:
        """Return the gradients in the place of values; None where there is none."""
        gradients = Capture(self.length, self.config, self._unpacked)
        gradients.prefixes = self.prefixes
        gradients.given = {path: _gradient(v) for path, v in self.given.items()}
        gradients.returned = {path: _gradient(v) for path, v in self.returned.items()}
        return gradients

    def values(self, place: str, layer: int | None) -> list[Tensor]:
        """Return the matrices seen at a place of a recipe.

        `PATH<` is what a module was given, `PATH+` the choice of a router, `PATH:1` the
        second value that it returns, `PATH*` the sum of what experts make of all tokens,
        one after the other. `.` is the layer, and `logits` are those of the model.
        """
        if place == "logits":
            return [self.logits]
        if place == "keys":
            path = f"{self.prefixes[layer or 0]}.self_attn.indexer"
            return [chosen_keys(self.returned[path][0], self.config, 0)]
        if place == "attention<":
            return [self._rows(v) for v in self.returned[f"{place}@{layer}"]]
        if place.rstrip(_DIGITS) in FUNCTIONS.values():
            returned = self.returned[f"{place}@{layer}"]
            if place == "convolution" and returned is not None:
                # the only one that has channels before tokens
                return [self._rows(returned.transpose(1, 2))]
            every = returned if isinstance(returned, (tuple, list)) else (returned,)
            every = every if place == "rope" else every[:1]
            return [self._rows(v) for v in every if v is not None]
        store = self.given if place.endswith("<") else self.returned
        path, _, at = place.rstrip("<+*").partition(":")
        if layer is not None:
            path = f"{self.prefixes[layer]}.{path}".removesuffix("..")
        if path not in store:
            raise Failure(f"transformers has no module {path} that a recipe names.")
        returned = store[path]
        whole = returned if isinstance(returned, (tuple, list)) else (returned,)
        if place.endswith("+"):
            return [choice(tuple(whole))]
        if place.endswith("*"):
            return [returned.reshape(-1, self.length, returned.shape[-1]).sum(dim=0)]
        if at:
            return [self._rows(whole[int(at)])]
        every = [self._rows(v) for v in whole if isinstance(v, Tensor)]
        return self._unpacked(place, every[0]) if len(every) == 1 else every

    def _rows(self, value: Tensor) -> Tensor:
        """Return a value as a matrix of one row a token."""
        if value.dim() > 2 and set(value.shape[:-2]) == {1}:
            return value.reshape(value.shape[-2:])
        if value.dim() == 4 and value.shape[1] != self.length:
            value = value.transpose(1, 2)
        # what cross-attention reads has rows of its own
        is_one = value.dim() > 2 and value.shape[0] == 1
        return value.reshape(value.shape[1] if is_one else self.length, -1)


def chosen_keys(keys: Tensor, config: Any, first: int) -> Tensor:
    """Return which keys tokens from position `first` on see: 1 for those, 0 for others.

    Of later ones an indexer that has too few to choose from names some as well.
    """
    rows = torch.zeros(len(keys), config.max_position_embeddings)
    return rows.scatter(1, keys.long(), 1.0).tril(first)


def _gradient(value: Any) -> Any:
    """Return the gradient of a tensor, of each in a tuple."""
    if isinstance(value, (tuple, list)):
        return tuple(_gradient(one) for one in value)
    has = isinstance(value, Tensor) and value.requires_grad
    return value.grad if has else None


def choice(returned: tuple[Tensor, ...]) -> Tensor:
    """Return what a router chooses as a matrix: weights by expert, 0 where not chosen."""
    if len(returned) == 2:
        # Llama 4's: the weights by expert, and the logits
        return returned[0]
    logits, weights, experts = returned
    return dense(weights, experts, logits.shape[-1])


def dense(weights: Tensor, experts: Tensor, count: int) -> Tensor:
    """Return a choice of experts as a matrix: weights by expert, 0 where not chosen."""
    empty = weights.new_zeros(len(weights), count)
    return empty.scatter(1, experts.long(), weights)
