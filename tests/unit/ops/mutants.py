"""Ways in which a reference may be wrong, each a function from a `run` to a `run`.

A mutant wraps `run()` wherever a wrapper can express the fault; a fault of the mask is
a change of the reference's text.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from tests.builders import replaced

Run = Callable[..., Any]
Mutant = Callable[[Run], Run]


def on_outputs(change: Callable[[torch.Tensor, torch.Tensor], Any]) -> Mutant:
    """Return a mutant that changes output and LSE."""
    return lambda run: lambda *given: change(*run(*given))


def on_inputs(
    names: list[str], change: Callable[[dict[str, Any]], dict[str, Any]]
) -> Mutant:
    """Return a mutant that changes named inputs; the others go through."""

    def mutant(run: Run) -> Run:
        def wrong(*given: Any) -> Any:
            inputs = dict(zip(names, given, strict=True))
            return run(*{**inputs, **change(inputs)}.values())

        return wrong

    return mutant


def of_outputs() -> dict[str, Mutant]:
    """Return faults of the outputs of attention."""
    return {
        "LSE in natural logarithm": on_outputs(lambda o, e: (o, e * math.log(2.0))),
        "LSE of the next head": on_outputs(lambda o, e: (o, e.roll(1, dims=1))),
        "LSE without the maximum": on_outputs(lambda o, e: (o, e - e.round())),
        "output zero": on_outputs(lambda o, e: (torch.zeros_like(o), e)),
        "output of the next head": on_outputs(lambda o, e: (o.roll(1, dims=1), e)),
        "output 1 % too large": on_outputs(lambda o, e: (o * 1.01, e)),
        "output of opposite sign": on_outputs(lambda o, e: (-o, e)),
    }


def of_inputs(names: list[str], page_size: int) -> dict[str, Mutant]:
    """Return faults in how attention reads its inputs."""

    def change(function: Callable[[dict[str, Any]], dict[str, Any]]) -> Mutant:
        return on_inputs(names, function)

    found = {
        "scale missing": change(lambda i: {"sm_scale": 1.0}),
        "scale squared": change(lambda i: {"sm_scale": i["sm_scale"] ** 2}),
        "page order ignored": change(
            lambda i: {"kv_indices": torch.arange(len(i["kv_indices"])).int()}
        ),
        "pages sorted": change(lambda i: {"kv_indices": i["kv_indices"].sort()[0]}),
        "one page skipped": change(lambda i: {"kv_indices": _skipped(i["kv_indices"])}),
        "indptr off by one sequence": change(lambda i: {"kv_indptr": _later(i)}),
    }
    if page_size > 1:
        full = "last page taken as full"
        found[full] = change(
            lambda i: {"kv_last_page_len": 0 * i["kv_last_page_len"] + page_size}
        )
        found["last page one short"] = change(
            lambda i: {"kv_last_page_len": (i["kv_last_page_len"] - 1).clamp_min(1)}
        )
    return found


def _skipped(pages: torch.Tensor) -> torch.Tensor:
    """Return page indices in which the first page is read as the second one is."""
    return torch.cat([pages[1:2], pages[1:]]) if len(pages) > 1 else pages


def _later(inputs: dict[str, Any]) -> torch.Tensor:
    starts: torch.Tensor = inputs["kv_indptr"].clone()
    starts[1:-1] = (starts[1:-1] + 1).clamp_max(int(starts[-1]))
    return starts


def of_caches(names: list[str], first: str, second: str) -> dict[str, Mutant]:
    """Return faults that take one cache for another."""
    return {
        "caches swapped": on_inputs(
            names, lambda i: {first: i[second], second: i[first]}
        ),
        "first cache for both": on_inputs(names, lambda i: {second: i[first]}),
        "second cache for both": on_inputs(names, lambda i: {first: i[second]}),
    }


def interleaved(kv_heads: int) -> Mutant:
    """Return the mutant in which query head h reads KV head h % kv_heads."""

    def mutant(run: Run) -> Run:
        def wrong(q: torch.Tensor, *rest: Any) -> tuple[torch.Tensor, torch.Tensor]:
            order = torch.arange(q.shape[1]).reshape(-1, kv_heads).T.flatten()
            output, lse = run(q[:, order].contiguous(), *rest)
            back = order.argsort()
            return output[:, back], lse[:, back]

        return wrong

    return mutant


_MASK = "torch.arange(kv_len - q_len, kv_len, device"
MASKS = {
    "mask aligned top-left": "torch.arange(q_len, device",
    "mask missing": "torch.arange(kv_len, kv_len + q_len, device",
    "mask one too strict": "torch.arange(kv_len - q_len - 1, kv_len - 1, device",
    "mask one too wide": "torch.arange(kv_len - q_len + 1, kv_len + 1, device",
}


def with_mask(reference: str, mutant: str) -> str:
    """Return a prefill reference with another causal mask."""
    return replaced(reference, _MASK, MASKS[mutant])
