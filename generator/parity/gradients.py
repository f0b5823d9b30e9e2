"""Gradients of what stages write, by the chain and by transformers, last stage first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch.nn import functional

from generator.parity.chain import Chain
from generator.parity.recipe import Stage
from generator.parity.subject import ParityModel

Tensor = torch.Tensor
_UNSEEN = ("+", ":1", "*", "^")
"""Ends of places whose values transformers has in another form."""


@dataclass(frozen=True)
class Backward:
    """A value of a chain with its gradients: transformers' and the chain's.

    `readers` are the stages of the layer that read it.
    """

    layer: int | None
    stage: str
    value: str
    readers: tuple[str, ...]
    theirs: Tensor
    ours: Tensor


def backward(chain: Chain, theirs: ParityModel, tokens: Tensor) -> Iterator[Backward]:
    """Yield the gradients of the loss with regard to each value, the last one first.

    Both models must want gradients of their parameters, and have none yet.
    """
    seen = theirs.capture(tokens, with_gradients=True)
    chain.written = {}
    logits, _ = chain.forward(tokens)
    for of in (seen.logits, logits):
        loss = functional.cross_entropy(of[:-1].float(), tokens[1:])
        loss.backward()  # type: ignore[no-untyped-call]
    written, chain.written = chain.written, None
    seen = seen.gradients()
    steps = list(_steps(chain))
    for layer, stage in reversed(steps):
        place = stage.truth or stage.at
        if (
            (stage.kind == "add" and place != ".")
            or place.endswith(_UNSEEN)
            # a choice of keys has no gradient
            or place in ("logits", "keys")
        ):
            continue
        values = [v for one in place.split() for v in seen.values(one, layer)]
        names = stage.writes.split()
        for name, value in zip(names, values, strict=False):
            key = (layer, stage.name, name)
            ours = written[key].grad if key in written else None
            if ours is None:
                # what no later stage derives
                ours = torch.zeros_like(value)
            readers = tuple(
                s.name for at, s in steps if _reads(s, name) and at == layer
            )
            yield Backward(layer, stage.name, name, readers, value, ours)


def _reads(stage: Stage, name: str) -> bool:
    return name in stage.reads.split()


def _steps(chain: Chain) -> Iterator[tuple[int | None, Stage]]:
    yield None, chain.family.embed
    for layer in range(len(chain.subject.layers)):
        yield from ((layer, stage) for stage in chain.stages(layer))
    yield from ((None, stage) for stage in chain.family.final)
