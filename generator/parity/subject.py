"""A model of transformers with seeded weights, and what its modules see in one forward."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from typing import Any
from unittest import mock

import torch
from torch import nn

from generator.parity.capture import FUNCTIONS, Capture, choice
from generator.parity.recipe import Family
from generator.parity.routed import UNROUTED, Routes, flipped, returned_as_exact
from generator.parity.senses import Senses

Tensor = torch.Tensor
_GATED = {"gate_attn": "gated", "cross_attn": "cross"}
"""What layers of Llama 3.2 Vision have, and of which type they are then."""
_ENDINGS = ("", "_interleave")
_ROUTERS = ("mlp.gate", "mlp.router", "feed_forward.router", "mixer.gate")
"""Where transformers' layers have routers."""


class ParityModel:
    """One model of transformers in one dtype."""

    def __init__(
        self, model: nn.Module, family: Family, *, seed: int = 1, senses: Any = None
    ) -> None:
        """Take a model, the family whose layers are its own, and what it gets.

        A tower is a subject of its own, with the `senses` of the text.
        """
        self.model: Any = model
        self.family = family
        config: Any = model.config
        self.config: Any = config.get_text_config()
        prefix = str(model.base_model_prefix)
        path = family.base or (prefix if hasattr(model, prefix) else "model")
        self.base: Any = model.get_submodule(path)
        lists: list[Any] = [*map(self.base.get_submodule, family.layers.split())]
        self.layers: list[Any] = [layer for of in lists for layer in of]
        self.is_tower = senses is not None
        self.seed = seed
        self.flips = 0
        self.senses: Senses = senses or Senses(family.senses, model, seed)
        self.tower: ParityModel | None = None
        if family.tower is not None:
            self.tower = ParityModel(model, family.tower, senses=self.senses)
        self.modeling = sys.modules[type(self.base).__module__]
        self._ropes: dict[str, Tensor] = {}

    def module(self, path: str, layer: int | None) -> Any:
        """Return a module by its path in a layer, or in the model."""
        root = self.model if layer is None else self.layers[layer]
        return root.get_submodule(path)

    def kind(self, layer: int) -> str:
        """Return the type of a layer as the config has it, empty where it has none."""
        has = (of for name, of in _GATED.items() if hasattr(self.layers[layer], name))
        if self.is_tower or "cross" in self.family.mixers:
            return next(has, "")
        turned = getattr(self.config, "no_rope_layers", None)
        if turned and not turned[layer] and "unturned" in self.family.mixers:
            return "unturned"
        types = getattr(self.config, "layer_types", None)
        return types[layer] if types else ""

    def unpacked(self, path: str, value: Tensor) -> list[Tensor]:
        """Return the parts of what a module returns that has several in one weight."""
        name = path.rpartition(".")[2]
        if name == "qkv_proj":
            text = self.config
            dim = getattr(text, "head_dim", None)
            dim = dim or text.hidden_size // text.num_attention_heads
            query, kv = text.num_attention_heads * dim, text.num_key_value_heads * dim
            return list(torch.split(value, [query, kv, kv], dim=1))
        if name == "qkv":
            return list(value.chunk(3, dim=1))
        return list(value.chunk(2, dim=1)) if name == "gate_up_proj" else [value]

    @cached_property
    def axes(self) -> Tensor | None:
        """Return positions in time, height and width: [3, positions]; None for one."""
        if self.is_tower or self.senses.kind != "image":
            return None
        return self.senses.axes(self.config.max_position_embeddings)

    def called(self, tokens: Tensor) -> Any:
        """Return what transformers' model returns of a sequence, without a cache."""
        return self.model(**self.senses.arguments(tokens), use_cache=False)

    @property
    def pairs_neighbours(self) -> bool:
        """Return whether RoPE turns a dimension with its neighbour."""
        # GLM-5's code has no other way
        has = [hasattr(self.modeling, f"apply_rotary_pos_emb{s}") for s in _ENDINGS]
        return has == [False, True] or getattr(self.config, "rope_interleave", False)

    def rope_cache(self, layer: int) -> Tensor:
        """Return cosines and sines of all positions: float32 [positions, rotary_dim]."""
        if self.is_tower:
            return self.senses.turns(self.base)
        kind = self.kind(layer)
        rotary = self.base.rotary_emb
        frequencies = getattr(rotary, f"{kind}_inv_freq", None)
        key = kind if frequencies is not None else ""
        if key not in self._ropes:
            half = (rotary.inv_freq if frequencies is None else frequencies).numel()
            positions = torch.arange(self.config.max_position_embeddings)[None]
            if self.axes is not None or hasattr(rotary, "mrope_section"):
                positions = positions.expand(3, 1, -1)
            more = (kind,) if frequencies is not None else ()
            pair = rotary(torch.zeros(1, dtype=torch.float32), positions, *more)
            if isinstance(pair, Tensor):
                # Llama 4 has them as complex numbers
                pair = pair.real, pair.imag
            self._ropes[key] = torch.cat([part[0, :, :half] for part in pair], dim=-1)
        return self._ropes[key]

    def turned(self, q: Tensor, k: Tensor, cache: Tensor, at: Tensor) -> Any:
        """Return queries and keys turned by transformers' own function.

        They are [tokens, heads, head_dim], as returned.
        """
        if hasattr(self.modeling, "apply_rotary_emb"):
            pair = torch.complex(*cache[at][None].chunk(2, dim=-1))
            turned = self.modeling.apply_rotary_emb(q[None], k[None], pair)
            return [part[0] for part in turned]
        cos, sin = cache[at][None].to(q.dtype).chunk(2, dim=-1)
        if "GptOss" not in type(self.base).__name__:
            cos, sin = torch.cat((cos, cos), -1), torch.cat((sin, sin), -1)
        name = "apply_rotary_pos_emb"
        if self.pairs_neighbours:
            name += "_interleave"
        heads = (part.transpose(0, 1)[None] for part in (q, k))
        turned = getattr(self.modeling, name)(*heads, cos, sin)
        return [part[0].transpose(0, 1) for part in turned]

    @cached_property
    def is_eager(self) -> bool:
        """Return whether attention is transformers' own code, operation by operation."""
        attention = getattr(self.layers[0], "self_attn", None)
        return (
            self.model.dtype == torch.float32
            or hasattr(attention, "sinks")
            # sdpa has no soft cap of the logits, and no bias of positions
            or bool(getattr(attention, "attn_logit_softcapping", None))
            or self.senses.kind == "source"
        )

    @cached_property
    def attend(self) -> Callable[..., Any]:
        """Return transformers' attention: eager in float32, sdpa in bfloat16.

        Eager rounds the logits to bfloat16, which no kernel does.
        """
        if self.is_eager:
            eager: Callable[..., Any] = self.modeling.eager_attention_forward
            return eager
        from transformers.integrations.sdpa_attention import sdpa_attention_forward

        return sdpa_attention_forward  # type: ignore[no-any-return]

    def routed_logits(
        self, tokens: Tensor, exact: Routes = UNROUTED
    ) -> tuple[Tensor, dict[int, Tensor]]:
        """Return the logits of one sequence: [tokens, vocabulary], and its experts."""
        with self.attending(), self.choosing(exact) as chosen:
            logits: Tensor = self.called(tokens).logits
        return logits[0], chosen

    def capture(
        self, tokens: Tensor, *, with_gradients: bool = False, exact: Routes = UNROUTED
    ) -> Capture:
        """Run one forward and keep what every module is given and returns.

        With gradients these values get theirs as well, once the loss is derived.
        """
        rows = self.senses.rows if self.is_tower else len(tokens)
        capture = Capture(
            rows, self.config, self.unpacked, with_gradients=with_gradients
        )
        with torch.set_grad_enabled(with_gradients), ExitStack() as stack:
            for path, module in self.model.named_modules():
                hook = module.register_forward_hook(
                    capture.hook(path), with_kwargs=True
                )
                stack.callback(hook.remove)
            for index, layer in enumerate(self.layers):
                enter = layer.register_forward_pre_hook(
                    capture.entering(index), with_kwargs=True
                )
                stack.callback(enter.remove)
                leave = layer.register_forward_hook(capture.leaving)
                stack.callback(leave.remove)
            stack.enter_context(self.attending(capture.function))
            chosen = stack.enter_context(self.choosing(exact))
            returned = self.called(tokens)
        capture.logits = returned.logits[0]
        capture.choices = chosen
        prefixes = {id(m): path for path, m in self.model.named_modules()}
        capture.prefixes = [prefixes[id(layer)] for layer in self.layers]
        return capture

    @contextmanager
    def choosing(self, exact: Routes = UNROUTED) -> Iterator[dict[int, Tensor]]:
        """Collect which experts the layers' routers choose, by layer.

        Tokens go to the `exact` ones; `flips` counts those that would not have.
        """
        choices: dict[int, Tensor] = {}
        self.flips = 0

        def keep(index: int) -> Callable[..., Any]:
            def hook(module: nn.Module, args: Any, returned: Any) -> Any:
                choices[index] = choice(returned).detach()
                if index not in exact:
                    return None
                self.flips += int(flipped(choices[index], exact[index]).sum())
                return returned_as_exact(returned, exact[index])

            return hook

        with ExitStack() as stack:
            for index, layer in enumerate(self.layers):
                modules = dict(layer.named_modules())
                for path in (path for path in _ROUTERS if path in modules):
                    hook = modules[path].register_forward_hook(keep(index))
                    stack.callback(hook.remove)
            yield choices

    @contextmanager
    def attending(
        self, keep: Callable[[str, Any], None] = lambda path, returned: None
    ) -> Iterator[None]:
        """Let attention be the one above, and functions of the module be seen."""
        attend = self.attend
        with ExitStack() as stack:
            for name, path in FUNCTIONS.items():
                function = getattr(self.modeling, name, None)
                if function is None:
                    continue
                called = attend if path == "attention" else function
                seen = _seen(called, path, keep)
                stack.enter_context(mock.patch.object(self.modeling, name, seen))
            yield


def _seen(
    called: Callable[..., Any], path: str, keep: Callable[[str, Any], None]
) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        returned = called(*args, **kwargs)
        keep(path, returned)
        if path == "attention":
            keep(f"{path}<", args[1:4])
        return returned

    return wrapper
