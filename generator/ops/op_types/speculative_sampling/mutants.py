"""The defects of chains: when a draft is accepted, and what is drawn behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from generator.ops.mutants import (
    Change,
    DomainMutant,
    Inputs,
    MutantGroup,
    calling,
    on_inputs,
    zeroed,
)
from kernel_judge.definition import Definition

Accept = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
Weigh = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of a chain's acceptance, of its draw and of its padding."""
    accepting: dict[str, Accept] = {
        "ratio inverted": lambda p, q: torch.rand_like(p) * q < p,
        "accepted where the target has no less": lambda p, q: q >= p,
        "accepted by the target alone": lambda p, q: torch.rand_like(p) < q,
        "always accepted": lambda p, q: q >= 0,
        "never accepted": lambda p, q: q < 0,
        "one u for a chain": lambda p, q: torch.rand_like(p[:, :1]) * p < q,
        "half of the ratio": lambda p, q: torch.rand_like(p) * p * 2.0 < q,
    }
    drawing: dict[str, Weigh] = {
        "target for residual": lambda target, draft: target,
        "draft for residual": lambda target, draft: (draft - target).clamp_min(0.0),
        "distance for residual": lambda target, draft: (target - draft).abs(),
        "most probable of the residual": lambda target, draft: _greedy(target - draft),
    }
    changes: dict[str, Change] = {
        "draft of the next row": lambda i: {"draft_probs": i["draft_probs"].roll(1, 0)},
        "target of the next row": lambda i: {
            "target_probs": i["target_probs"].roll(1, 0)
        },
        "target one place early": lambda i: {
            "target_probs": i["target_probs"][:, [*range(1, _length(i)), -1]]
        },
        "bonus from the last draft's target": lambda i: {
            "target_probs": i["target_probs"][:, [*range(_length(i) - 1), -2]]
        },
        "target squared": lambda i: {
            "target_probs": _normal(i["target_probs"].square())
        },
        "first token ignored": lambda i: {
            "target_probs": _normal(zeroed(i["target_probs"], 2, 0))
        },
        "last token ignored": lambda i: {
            "target_probs": _normal(zeroed(i["target_probs"], 2, -1))
        },
    }
    return (
        *(
            calling(definition, name, _other(accept=accept))
            for name, accept in accepting.items()
        ),
        *(
            calling(definition, name, _other(weigh=weigh))
            for name, weigh in drawing.items()
        ),
        calling(definition, "no stop at a rejection", _unstopped),
        calling(definition, "nothing drawn behind a chain", _nothing_behind),
        calling(definition, "0 for padding", _zero_for_padding),
        calling(definition, "drafts as they came", _all_drafts),
        *(on_inputs(definition, name, change) for name, change in changes.items()),
    )


def _length(inputs: Inputs) -> int:
    length: int = inputs["target_probs"].shape[1]
    return length


def _normal(probs: torch.Tensor) -> torch.Tensor:
    # a row of zeros would be no distribution
    probs = probs + 1e-12 * (probs.sum(dim=2, keepdim=True) == 0)
    return probs / probs.sum(dim=2, keepdim=True)


def _greedy(weights: torch.Tensor) -> torch.Tensor:
    largest = weights.argmax(dim=1, keepdim=True)
    return torch.zeros_like(weights).scatter(1, largest, 1.0)


def _accepted(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    return torch.rand_like(p) * p < q


def _residual(target: torch.Tensor, draft: torch.Tensor) -> torch.Tensor:
    return (target - draft).clamp_min(0.0)


def _chain(
    inputs: Inputs, accept: Accept = _accepted, weigh: Weigh = _residual
) -> torch.Tensor:
    """Return what a chain becomes under another acceptance or other weights."""
    draft, tokens, target = inputs.values()
    drafts = tokens.shape[1]
    places = tokens.long()[:, :, None]
    drafted = draft.gather(2, places)[:, :, 0]
    kept = accept(drafted, target[:, :drafts].gather(2, places)[:, :, 0])
    result = torch.full((len(tokens), drafts + 1), -1, dtype=tokens.dtype)
    for row, accepted in enumerate(kept.tolist()):
        emitted = next((n for n, yes in enumerate(accepted) if not yes), drafts)
        weights = target[row, emitted][None]
        if emitted < drafts:
            weights = weigh(weights, draft[row, emitted][None])
            # nothing is left where a mutant rejects what can't be rejected
            weights = weights if bool(weights.sum() > 0) else target[row, emitted][None]
        result[row, :emitted] = tokens[row, :emitted]
        result[row, emitted] = int(torch.multinomial(weights, 1))
    return result


def _other(
    accept: Accept = _accepted, weigh: Weigh = _residual
) -> Callable[[Callable[..., Any], Inputs], torch.Tensor]:
    return lambda _, inputs: _chain(inputs, accept, weigh)


def _unstopped(run: Callable[..., Any], inputs: Inputs) -> torch.Tensor:
    """Return the drafts that would be accepted, each on its own."""
    returned: torch.Tensor = run(*inputs.values())
    result = returned.clone()
    tokens = inputs["draft_token_ids"]
    behind = result[:, 1:] == -1
    result[:, 1:] = torch.where(behind & (tokens >= 0), tokens, result[:, 1:])
    return result


def _nothing_behind(run: Callable[..., Any], inputs: Inputs) -> torch.Tensor:
    returned: torch.Tensor = run(*inputs.values())
    result = returned.clone()
    result[:, -1] = -1
    return result


def _zero_for_padding(run: Callable[..., Any], inputs: Inputs) -> torch.Tensor:
    returned: torch.Tensor = run(*inputs.values())
    return returned.clamp_min(0)


def _all_drafts(run: Callable[..., Any], inputs: Inputs) -> torch.Tensor:
    returned: torch.Tensor = run(*inputs.values())
    return torch.cat([inputs["draft_token_ids"], returned[:, -1:]], dim=1)


MUTANTS = (MutantGroup(mutants, "draft_probs draft_token_ids target_probs"),)
