"""How the values of a chain become the inputs of definitions, and back."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import torch
from torch.nn import functional

from generator.parity.subject import Subject
from generator.problems.failure import Failure

Tensor = torch.Tensor
_NARROW = (torch.float16, torch.bfloat16)


class Call:
    """Call a definition's reference on tensors of a chain's dtype.

    In float32 nothing is rounded: a reference's 16-bit dtypes are float32 as well. In
    bfloat16 inputs have the definition's dtypes, and outputs are bfloat16.
    """

    def __init__(self, bound: Mapping[str, Any], dtype: torch.dtype) -> None:
        self.name: str = bound["name"]
        self.inputs: Mapping[str, str] = bound["inputs"]
        self.outputs = tuple(bound["outputs"])
        self.dtype = dtype
        text = bound["text"]
        if dtype == torch.float32:
            for narrow in ("bfloat16", "float16"):
                text = text.replace(f"torch.{narrow}", "torch.float32")
        module = ModuleType("reference")
        try:
            exec(compile(text, f"<{self.name}>", "exec"), module.__dict__)  # noqa: S102
            # without the no_grad around it, so that gradients pass
            self.run: Callable[..., Any] = inspect.unwrap(module.run)
        except Exception as error:
            raise Failure(
                f"{self.name}: the reference can't be loaded: {error}"
            ) from error

    def __call__(self, **offered: Any) -> dict[str, Tensor]:
        """Return the outputs by name. Raises Failure where `run()` raises."""
        lacks = [name for name in self.inputs if name not in offered]
        if lacks:
            raise Failure(f"{self.name}: the recipe has no input {lacks[0]}.")
        given = [self._given(offered[name], of) for name, of in self.inputs.items()]
        try:
            returned = self.run(*given)
        except Exception as error:
            what = " ".join(f"{type(error).__name__}: {error}".split())
            raise Failure(f"{self.name}: run() raised {what}") from error
        whole = returned if isinstance(returned, (tuple, list)) else (returned,)
        kept = [self._kept(value) for value in whole]
        return dict(zip(self.outputs, kept, strict=True))

    def _given(self, value: Any, declared: str) -> Any:
        if not isinstance(value, Tensor) or not value.is_floating_point():
            return value
        if self.dtype == torch.float32:
            return value.float()
        return value.to(getattr(torch, declared))

    def _kept(self, value: Tensor) -> Tensor:
        return value.to(self.dtype) if value.dtype in _NARROW else value


@dataclass
class Pages:
    """Hold the paged cache of one layer: keys and values, and where tokens lie.

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

        `k` and `v` are such as it will hold: [tokens, heads, head_dim].
        """
        count = -(-capacity // size) + 2
        generator = torch.Generator().manual_seed(count)
        table = torch.randperm(count, generator=generator).int()
        keys, values = (of.new_full((count, size, *of.shape[1:]), 1e4) for of in (k, v))
        return cls(size, keys, values, table)

    def structure(self, rows: int) -> dict[str, Tensor]:
        """Return the structural inputs for the last `rows` tokens as one sequence."""
        used = -(-self.length // self.page_size)
        return {
            "kv_indptr": torch.tensor([0, used], dtype=torch.int32),
            "kv_indices": self.table[:used],
            "kv_last_page_len": torch.tensor(
                [(self.length - 1) % self.page_size + 1], dtype=torch.int32
            ),
            "qo_indptr": torch.tensor([0, rows], dtype=torch.int32),
        }

    def prefixes(self, count: int) -> dict[str, Tensor]:
        """Return the structural inputs of sequences of 1, 2, … `count` tokens."""
        used = [-(-length // self.page_size) for length in range(1, count + 1)]
        last = [(length - 1) % self.page_size + 1 for length in range(1, count + 1)]
        return {
            "kv_indptr": torch.tensor([0, *used]).cumsum(0).int(),
            "kv_indices": torch.cat([self.table[:pages] for pages in used]),
            "kv_last_page_len": torch.tensor(last, dtype=torch.int32),
        }

    def read(self) -> Tensor:
        """Return the keys and values of the sequence: [tokens, both of all heads]."""
        at = torch.arange(self.length)
        slots = self.table[at // self.page_size].long(), at % self.page_size
        return torch.cat(
            [part[slots].flatten(1) for part in (self.keys, self.values)], 1
        )


@dataclass
class Site:
    """Say where a stage runs: the layer, its weights, and the definitions by role."""

    subject: Subject
    layer: int | None
    at: str
    calls: Mapping[str, Call]
    positions: Tensor
    pages: dict[int, Pages] = field(default_factory=dict)
    page_size: int = 0
    capacity: int = 0

    @property
    def modules(self) -> list[Any]:
        """Return transformers' modules that have the weights."""
        return [self.subject.module(path, self.layer) for path in self.at.split()]

    @property
    def call(self) -> Call | None:
        """Return the one definition of the stage, None where it has none."""
        return self.calls.get("")

    @property
    def attention(self) -> Any:
        """Return the layer's attention module."""
        return self.subject.module("self_attn", self.layer)


def embedding(site: Site, tokens: Tensor) -> list[Tensor]:
    """Look rows of the weight up, times the scale that Gemma has."""
    (module,) = site.modules
    if site.call is None:
        return [module(tokens)]
    found = site.call(
        indices=tokens, weight=module.weight, input_ids=tokens, table=module.weight
    )
    (rows,) = found.values()
    scale = getattr(module, "embed_scale", None)
    return [rows if scale is None else rows * scale.to(rows.dtype)]


def norm(site: Site, x: Tensor) -> list[Tensor]:
    """Normalise rows, each head by itself where the weight has a head's length."""
    (module,) = site.modules
    rows = x.reshape(-1, module.weight.numel())
    if site.call is None:
        return [module(rows).reshape(x.shape)]
    found = site.call(hidden_states=rows, weight=module.weight)
    return [found["output"].reshape(x.shape)]


def add_norm(site: Site, branch: Tensor, residual: Tensor) -> list[Tensor]:
    """Normalise the sum of a branch and the residual."""
    (module,) = site.modules
    if site.call is None:
        return [module(residual + branch)]
    found = site.call(hidden_states=branch, residual=residual, weight=module.weight)
    return [found["output"]]


def linear(site: Site, x: Tensor) -> list[Tensor]:
    """Multiply by the weights of one or several modules, fused by rows."""
    modules = site.modules
    if site.call is None:
        return [functional.linear(x, m.weight, m.bias) for m in modules]
    fused = torch.cat([m.weight for m in modules])
    product = site.call(A=x, B=fused)["C"]
    parts = torch.split(product, [len(m.weight) for m in modules], dim=1)
    biases = [getattr(m, "bias", None) for m in modules]
    return [
        part if bias is None else part + bias
        for part, bias in zip(parts, biases, strict=True)
    ]


def rope(site: Site, q: Tensor, k: Tensor) -> list[Tensor]:
    """Turn the heads of queries and keys by their positions."""
    dim = site.attention.head_dim
    query, key = (part.reshape(len(part), -1, dim) for part in (q, k))
    cache = site.subject.rope_cache(site.layer or 0)
    if site.call is None:
        turned = site.subject.turned(query, key, cache, site.positions)
    else:
        found = site.call(q=query, k=key, cos_sin_cache=cache, positions=site.positions)
        turned = [found["q_out"], found["k_out"]]
    return [part.flatten(1) for part in turned]


def attention(site: Site, q: Tensor, k: Tensor, v: Tensor) -> list[Tensor]:
    """Attend within one sequence, or to the pages of a cache that keys are added to."""
    heads = _heads(site, q, k, v)
    if not site.page_size:
        call = site.calls.get("ragged")
        if call is None:
            return [_own_attention(site, *heads)]
        bounds = torch.tensor([0, len(q)], dtype=torch.int32)
        ragged = {"qo_indptr": bounds, "kv_indptr": bounds}
        query, key, value = heads
        found = call(q=query, k=key, v=value, **ragged, **_scale(site))
        return [found["output"].flatten(1)]
    pages = _append(site, heads[1], heads[2])
    structure = pages.structure(len(q))
    role = "decode" if len(q) == 1 else "paged"
    return [_paged(site, f"{role}@{site.page_size}", heads[0], pages, structure)]


def attention_of_role(
    site: Site, role: str, q: Tensor, k: Tensor, v: Tensor
) -> tuple[Tensor, Tensor]:
    """Return what a paged definition computes of one sequence, and None or its truth.

    Of `append` that is the cache, read token by token; of `decode` each query is a
    sequence of its own, which ends at its key.
    """
    heads = _heads(site, q, k, v)
    kind, _, size = role.partition("@")
    site.page_size, site.capacity = int(size), len(q)
    if kind != "append":
        site.calls = {role: site.calls[role]}
    pages = _append(site, heads[1], heads[2])
    if kind == "append":
        return pages.read(), torch.cat((k, v), dim=1)
    structure = pages.structure(len(q)) if kind == "paged" else pages.prefixes(len(q))
    return _paged(site, role, heads[0], pages, structure), torch.empty(0)


def _heads(site: Site, *parts: Tensor) -> list[Tensor]:
    return [part.reshape(len(part), -1, site.attention.head_dim) for part in parts]


def _scale(site: Site) -> dict[str, Any]:
    """Return the inputs that attention takes from its module."""
    found: dict[str, Any] = {"sm_scale": site.attention.scaling}
    if getattr(site.attention, "sinks", None) is not None:
        found["sinks"] = site.attention.sinks
    return found


def _paged(
    site: Site, role: str, q: Tensor, pages: Pages, structure: Mapping[str, Tensor]
) -> Tensor:
    if role not in site.calls:
        raise Failure(f"layer {site.layer}: no definition computes attention, {role}.")
    cache = {"k_cache": pages.keys, "v_cache": pages.values}
    found = site.calls[role](q=q, **cache, **structure, **_scale(site))
    return found["output"].flatten(1)


def _own_attention(site: Site, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Return what transformers' attention computes: [tokens, heads * head_dim]."""
    at = site.positions
    hidden = at[None, :] > at[:, None]
    window = getattr(site.attention, "sliding_window", None)
    if window:
        hidden |= at[None, :] <= at[:, None] - window
    mask = torch.zeros(hidden.shape, dtype=q.dtype).masked_fill(
        hidden, torch.finfo(q.dtype).min
    )
    heads = (part.transpose(0, 1)[None] for part in (q, k, v))
    scaling = site.attention.scaling
    attended = site.subject.attend(
        site.attention, *heads, mask[None, None], scaling=scaling
    )[0]
    return attended[0].flatten(1)  # type: ignore[no-any-return]


def _append(site: Site, k: Tensor, v: Tensor) -> Pages:
    """Write keys and values into the layer's pages."""
    layer = site.layer or 0
    if layer not in site.pages:
        site.pages[layer] = Pages.empty(site.page_size, site.capacity, k, v)
    pages = site.pages[layer]
    first, pages.length = pages.length, pages.length + len(k)
    positions = torch.arange(first, pages.length, dtype=torch.int32)
    call = site.calls.get(f"append@{site.page_size}")
    if call is None:
        at = positions.long()
        slots = pages.table[at // pages.page_size].long(), at % pages.page_size
        pages.keys[slots], pages.values[slots] = k, v
        return pages
    found = call(
        append_key=k, append_value=v, positions=positions,
        batch_indices=torch.zeros_like(positions),
        k_cache=pages.keys, v_cache=pages.values, **pages.structure(len(k)),
    )  # fmt: skip
    pages.keys, pages.values = found.values()
    return pages


def activation(site: Site, gate: Tensor, up: Tensor) -> list[Tensor]:
    """Activate the gate and multiply it by the up projection."""
    (module,) = site.modules
    if site.call is None:
        return [module.act_fn(gate) * up]
    return [*site.call(input=torch.cat((gate, up), dim=1)).values()]


def add(site: Site, residual: Tensor, branch: Tensor) -> list[Tensor]:
    """Add a branch to the residual: what stands between definitions."""
    return [residual + branch]


KINDS: Mapping[str, Callable[..., list[Tensor]]] = {
    "embedding": embedding,
    "norm": norm,
    "add_norm": add_norm,
    "linear": linear,
    "rope": rope,
    "attention": attention,
    "activation": activation,
    "add": add,
}
