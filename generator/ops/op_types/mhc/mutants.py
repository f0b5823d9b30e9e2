"""The defects of hyper-connections: which mix is whose, rounds, sums and epsilons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from generator.ops.common_mutants import rounded_inputs
from generator.ops.mutants import (
    Change,
    DomainMutant,
    Inputs,
    MutantGroup,
    computed,
    on_inputs,
    on_outputs,
    shifted,
    with_output,
)
from kernel_judge.definition import Definition

_EPS, _ROUNDS = 1e-6, 20


def before(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of what a layer reads."""
    streams = definition.axes["hc"]
    count = streams * definition.axes["hidden_size"]

    def logits(inputs: Inputs) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        inverse = torch.rsqrt(inputs["sqrsum"].double() / count + _EPS)
        mixes = (inputs["dot_mix"].double() * inverse[:, None]).split(
            [streams, streams, streams**2], dim=1
        )
        bases = inputs["mhc_base"].double().split([streams, streams, streams**2])
        scaled = [
            mix * scale + base
            for mix, scale, base in zip(
                mixes, inputs["mhc_scale"].double(), bases, strict=True
            )
        ]
        return scaled[0], scaled[1], scaled[2].view(-1, streams, streams)

    def sinkhorn(
        x: torch.Tensor, axes: tuple[int, int] = (1, 2), rounds: int = _ROUNDS
    ) -> torch.Tensor:
        first, second = axes
        for turn in range(rounds):
            if turn:
                x = x / (x.sum(dim=second, keepdim=True) + _EPS)
            x = x / (x.sum(dim=first, keepdim=True) + _EPS)
        return x

    def streams_of(inputs: Inputs, pre: torch.Tensor) -> torch.Tensor:
        mixed: torch.Tensor = (pre[..., None] * inputs["residual"].double()).sum(1)
        return mixed

    # output → name → how it is computed otherwise
    others: dict[int, dict[str, Callable[[Inputs], torch.Tensor]]] = {
        0: {
            "post without its factor": lambda i: logits(i)[1].sigmoid(),
            "post of the layer's mixes": lambda i: 2.0 * logits(i)[0].sigmoid(),
            "post as softmax": lambda i: 2.0 * logits(i)[1].softmax(-1),
        },
        1: {
            "rows first": lambda i: sinkhorn(logits(i)[2].softmax(-1) + _EPS, (2, 1)),
            "19 rounds": lambda i: sinkhorn(
                logits(i)[2].softmax(-1) + _EPS, rounds=_ROUNDS - 1
            ),
            "21 rounds": lambda i: sinkhorn(
                logits(i)[2].softmax(-1) + _EPS, rounds=_ROUNDS + 1
            ),
            "softmax alone": lambda i: logits(i)[2].softmax(-1),
            "softmax without eps": lambda i: sinkhorn(logits(i)[2].softmax(-1)),
            "softmax along columns": lambda i: sinkhorn(logits(i)[2].softmax(1) + _EPS),
            "softmax of all": lambda i: sinkhorn(
                logits(i)[2].flatten(1).softmax(1).view_as(logits(i)[2]) + _EPS
            ),
            "exp for softmax": lambda i: sinkhorn(logits(i)[2].exp() + _EPS),
            "mixes transposed as they are read": lambda i: sinkhorn(
                logits(i)[2].mT.softmax(-1) + _EPS
            ),
        },
        2: {
            "pre as softmax": lambda i: streams_of(i, logits(i)[0].softmax(-1)),
            "pre doubled": lambda i: streams_of(i, 2.0 * logits(i)[0].sigmoid()),
            "pre without sigmoid": lambda i: streams_of(i, logits(i)[0]),
            "mean of the streams": lambda i: i["residual"].double().mean(1),
            "first stream alone": lambda i: i["residual"][:, 0],
        },
    }
    changes: dict[str, Change] = {
        "mean of squares over one stream": lambda i: {"sqrsum": i["sqrsum"] * streams},
        "squares not divided": lambda i: {"sqrsum": i["sqrsum"] * count},
        "sqrsum of the residual": lambda i: {
            "sqrsum": i["residual"].float().square().sum((1, 2))
        },
        "eps ten times too large": lambda i: {"sqrsum": i["sqrsum"] + 9 * _EPS * count},
        "eps missing": lambda i: {"sqrsum": (i["sqrsum"] - _EPS * count).clamp_min(0)},
        "scales missing": lambda i: {"mhc_scale": torch.ones_like(i["mhc_scale"])},
        "scales in another order": lambda i: {"mhc_scale": i["mhc_scale"].roll(1)},
        "base missing": lambda i: {"mhc_base": torch.zeros_like(i["mhc_base"])},
        "base of the next mix": lambda i: {"mhc_base": i["mhc_base"].roll(1)},
        "mixes of the next token": lambda i: {"dot_mix": shifted(i["dot_mix"], 0)},
        "residual of the next stream": lambda i: {
            "residual": shifted(i["residual"], 1)
        },
    }
    return (
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        *(
            computed(definition, name, formula, place)
            for place, formulas in others.items()
            for name, formula in formulas.items()
        ),
        on_outputs(
            definition, "mixes transposed", lambda o, _: with_output(o, 1, _T(o[1]))
        ),
    )


def _T(mix: torch.Tensor) -> torch.Tensor:
    return mix.mT.contiguous()


def behind(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of what the streams become."""

    def rounded(inputs: Inputs) -> torch.Tensor:
        mixed = torch.einsum(
            "tij,tih->tjh", inputs["comb_res_mix"], inputs["residual"].float()
        )
        written = inputs["post_layer_mix"][..., None] * inputs["x"].float()[:, None]
        total: torch.Tensor = mixed.bfloat16().float() + written
        return total

    changes: dict[str, Change] = {
        "mixes transposed": lambda i: {"comb_res_mix": _T(i["comb_res_mix"])},
        "layer's output left out": lambda i: {"x": torch.zeros_like(i["x"])},
        "streams left out": lambda i: {"residual": torch.zeros_like(i["residual"])},
        "layer's output in full": lambda i: {
            "post_layer_mix": torch.ones_like(i["post_layer_mix"])
        },
        "same share in all streams": lambda i: {
            "post_layer_mix": i["post_layer_mix"]
            .mean(1, True)
            .expand(-1, 4)
            .contiguous()
        },
        "streams not mixed": _not_mixed,
        "residual of the next stream": lambda i: {
            "residual": shifted(i["residual"], 1)
        },
        "share of the next stream": lambda i: {
            "post_layer_mix": shifted(i["post_layer_mix"], 1)
        },
    }
    return (
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        computed(definition, "sum of the streams rounded before x", rounded),
    )


def _not_mixed(inputs: Inputs) -> dict[str, Any]:
    one = torch.eye(inputs["comb_res_mix"].shape[1])
    return {"comb_res_mix": one.expand_as(inputs["comb_res_mix"]).contiguous()}


MUTANTS = (
    MutantGroup(before, "dot_mix sqrsum residual mhc_scale mhc_base hc hidden_size"),
    MutantGroup(behind, "x residual post_layer_mix comb_res_mix out"),
    MutantGroup(rounded_inputs, "residual hc"),
)
