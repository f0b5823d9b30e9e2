"""Providers of production kernels, as values; imports no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Provider:
    """A library whose kernels are ground truths.

    `name` stands in sources and in `kernels={"name": …}`, `title` in sentences.
    `distribution` has the version, `module` is imported; the adapters are written for
    `oldest` and later. pip finds it as `install`, what it needs included. `described`
    is what a rendered file says of its kernels. CPU kernels count where it has them
    `on_cpu`. A call takes about so many `seconds`, of which tests are spread.
    `adapters` is op_type → the module that has a `KERNEL` for it, for op_types that do
    not name the provider themselves. `broken` is why its own module can't be used.
    """

    name: str
    title: str
    distribution: str
    module: str
    described: str
    oldest: tuple[int, ...] = ()
    install: str = ""
    on_cpu: bool = False
    seconds: float = 0.1
    adapters: Mapping[str, str] = field(default_factory=dict)
    broken: str = ""


OURS = {
    "flashinfer": Provider(
        *("flashinfer", "FlashInfer", "flashinfer-python", "flashinfer"),
        "FlashInfer's kernels, live, on a CUDA device",
        # the wrappers' plan() takes the arguments that the adapters pass from 0.6 on
        oldest=(0, 6),
        install="gen-tests[flashinfer]",
        seconds=0.2,
    ),
    "sglang": Provider(
        *("sglang", "SGLang", "sglang", "sglang"),
        "SGLang's layers, live, in a process of their own",
        # the layers are where the adapters look for them from 0.5.23 on
        oldest=(0, 5, 23),
        install="gen-tests[sglang]",
        on_cpu=True,
        seconds=1.0,
    ),
    # cuBLAS and the like: production kernels where no other exists
    "pytorch": Provider(
        *("pytorch", "PyTorch", "torch", "torch"),
        "PyTorch's CUDA kernel, live, on a CUDA device",
        oldest=(2, 8),
        install="gen-tests[torch]",
    ),
}
# of other distributions, added by whoever knows those that are installed
_others: dict[str, Provider] = {}


def add_providers(others: Mapping[str, Provider]) -> None:
    """Add the providers of other distributions; none takes the place of one of ours."""
    _others.update({name: p for name, p in others.items() if name not in OURS})


def providers() -> Mapping[str, Provider]:
    """Return name → each provider, in the order in which they are asked."""
    return {**OURS, **_others}


def serving(op_type: str) -> tuple[Provider, ...]:
    """Return the providers that bring adapters for an op_type of others."""
    return tuple(p for p in providers().values() if op_type in p.adapters)
