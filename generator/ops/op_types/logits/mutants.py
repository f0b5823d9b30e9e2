"""The defects of what is done to logits: signs, other tokens, bits, the logarithm."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from generator.ops.mutants import (
    Change,
    DomainMutant,
    Inputs,
    MutantGroup,
    Outputs,
    computed,
    on_inputs,
    on_outputs,
    with_output,
)
from kernel_judge.definition import Definition

Formula = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
_SCALED: dict[str, Formula] = {
    "all divided": lambda x, f: x / f,
    "all multiplied": lambda x, f: x * f,
    "signs the wrong way round": lambda x, f: torch.where(x < 0, x / f, x * f),
    "subtracted": lambda x, f: x - f,
    "penalties below 1 ignored": lambda x, f: torch.where(
        x < 0, x * f.clamp_min(1.0), x / f.clamp_min(1.0)
    ),
    "penalties above 1.25 limited": lambda x, f: torch.where(
        x < 0, x * f.clamp_max(1.25), x / f.clamp_max(1.25)
    ),
    "penalties above 255 limited": lambda x, f: torch.where(
        x < 0, x * f.clamp_max(255.0), x / f.clamp_max(255.0)
    ),
    "rounded to bfloat16": lambda x, f: (
        torch.where(x < 0, x * f, x / f).bfloat16().float()
    ),
}
_BIASED: dict[str, Formula] = {
    "bias subtracted": lambda x, b: x - b,
    "bias of the token before": lambda x, b: x + b.roll(1, 1),
    "bias of the row before": lambda x, b: x + b.roll(1, 0),
    "biases below 0 ignored": lambda x, b: x + b.clamp_min(0.0),
    "bias instead": lambda x, b: torch.where(b != 0, b, x),
    "rounded to bfloat16": lambda x, b: (x + b).bfloat16().float(),
}


def _formulas(name: str, formulas: dict[str, Formula]) -> MutantGroup:
    def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
        def instead(formula: Formula) -> Callable[[Inputs], torch.Tensor]:
            return lambda i: formula(i["logits"], i[name])

        pairs = formulas.items()
        return tuple(computed(definition, what, instead(f)) for what, f in pairs)

    return MutantGroup(mutants, f"logits {name} output")


def of_counts(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of penalties from counts."""

    def none(name: str) -> Change:
        return lambda i: {name: torch.zeros_like(i[name])}

    def limited(name: str) -> Change:
        return lambda i: {name: i[name].clamp_max(255.0)}

    changes: dict[str, Change] = {
        "prompt ignored": none("prompt_counts"),
        "output ignored": none("output_counts"),
        "prompt counts as output": lambda i: {
            "output_counts": i["output_counts"] + i["prompt_counts"]
        },
        "each token counted once": lambda i: {
            "output_counts": i["output_counts"].clamp_max(1)
        },
        "counts limited to 2": lambda i: {
            "output_counts": i["output_counts"].clamp_max(2)
        },
        "counts of 8 bits": lambda i: {"output_counts": i["output_counts"] & 255},
        "prompt counts of 8 bits": lambda i: {
            "prompt_counts": i["prompt_counts"] & 255
        },
        **{
            f"{name} above 255 limited": limited(f"{name}_penalties")
            for name in ("repetition", "frequency", "presence")
        },
        "counts of the token before": lambda i: {
            "output_counts": i["output_counts"].roll(1, 1)
        },
        "counts of the row before": lambda i: {
            "output_counts": i["output_counts"].roll(1, 0)
        },
        "frequency and presence swapped": lambda i: {
            "frequency_penalties": i["presence_penalties"],
            "presence_penalties": i["frequency_penalties"],
        },
        "frequency added": lambda i: {"frequency_penalties": -i["frequency_penalties"]},
        "presence added": lambda i: {"presence_penalties": -i["presence_penalties"]},
        "penalties below 0 ignored": lambda i: {
            "frequency_penalties": i["frequency_penalties"].clamp_min(0.0)
        },
        "presence missing": none("presence_penalties"),
        "frequency missing": none("frequency_penalties"),
        "repetition inverted": lambda i: {
            "repetition_penalties": 1.0 / i["repetition_penalties"]
        },
        "repetition of the row before": lambda i: {
            "repetition_penalties": i["repetition_penalties"].roll(1)
        },
    }

    def first(outputs: Outputs, inputs: Inputs) -> Outputs:
        # subtracted before the factor: a penalty of a penalty
        counts, x = inputs["output_counts"], inputs["logits"]
        x = x - counts * inputs["frequency_penalties"][:, None]
        x = x - (counts > 0) * inputs["presence_penalties"][:, None]
        seen = (counts > 0) | (inputs["prompt_counts"] > 0)
        factor = torch.where(seen, inputs["repetition_penalties"][:, None], 1.0)
        return (torch.where(x < 0, x * factor, x / factor),)

    return (
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        on_outputs(definition, "subtracted before the factor", first),
    )


def of_bits(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of packed masks."""

    def reversed_bits(inputs: Inputs) -> dict[str, torch.Tensor]:
        words = inputs["bitmask"].long() & 0xFFFFFFFF
        turned = sum(((words >> b) & 1) << (31 - b) for b in range(32))
        signed = turned - ((turned >> 31) << 32)
        return {"bitmask": torch.as_tensor(signed).to(torch.int32)}

    def swapped_bytes(inputs: Inputs) -> dict[str, torch.Tensor]:
        octets = inputs["bitmask"].contiguous().view(torch.uint8)
        turned = octets.unflatten(1, (-1, 4)).flip(2).flatten(1).contiguous()
        return {"bitmask": turned.view(torch.int32)}

    def lowest(outputs: Outputs, inputs: Inputs) -> Outputs:
        return (outputs[0].masked_fill(outputs[0].isneginf(), -1e9),)

    def zero(outputs: Outputs, inputs: Inputs) -> Outputs:
        masked = outputs[0].isneginf() & ~inputs["logits"].isneginf()
        return (outputs[0].masked_fill(masked, 0.0),)

    changes: dict[str, Change] = {
        "bits inverted": lambda i: {"bitmask": ~i["bitmask"]},
        "highest bit first": reversed_bits,
        "bytes of a word swapped": swapped_bytes,
        "bit of the token before": lambda i: {"bitmask": i["bitmask"] << 1},
        "sign bits lost": lambda i: {"bitmask": i["bitmask"] & 0x7FFFFFFF},
        "words of the row before": lambda i: {"bitmask": i["bitmask"].roll(1, 0)},
        "word before": lambda i: {"bitmask": i["bitmask"].roll(1, 1)},
        "whole words alone": lambda i: {
            "bitmask": torch.where(i["bitmask"] == 0, 0, -1).to(torch.int32)
        },
    }
    return (
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        on_outputs(definition, "lowest is -1e9", lowest),
        on_outputs(definition, "masked is 0", zero),
    )


def of_logprobs(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of the top log-probabilities."""

    def change(
        name: str, formula: Callable[[torch.Tensor], torch.Tensor]
    ) -> DomainMutant:
        return on_outputs(
            definition, name, lambda o, _: with_output(o, 0, formula(o[0]))
        )

    def of_those(outputs: Outputs, inputs: Inputs) -> Outputs:
        return with_output(outputs, 0, outputs[0].log_softmax(dim=1))

    def as_logits(outputs: Outputs, inputs: Inputs) -> Outputs:
        return with_output(outputs, 0, inputs["logits"].gather(1, outputs[1]))

    def unshifted(outputs: Outputs, inputs: Inputs) -> Outputs:
        lse = inputs["logits"].exp().sum(1, keepdim=True).log()
        chosen = inputs["logits"].gather(1, outputs[1])
        return with_output(outputs, 0, chosen - lse)

    return (
        change("probabilities", torch.exp),
        change("base 2", lambda x: x / math.log(2.0)),
        change("base 10", lambda x: x / math.log(10.0)),
        change("rounded to bfloat16", lambda x: x.bfloat16().float()),
        change("rounded to float16", lambda x: x.half().float()),
        on_outputs(definition, "log-softmax of those alone", of_those),
        on_outputs(definition, "logits", as_logits),
        on_outputs(definition, "largest logit not subtracted", unshifted),
        on_outputs(
            definition,
            "rising order",
            lambda o, _: (o[0].flip(1), o[1].flip(1)),
        ),
        on_outputs(
            definition,
            "tokens alone in rising order",
            lambda o, _: (o[0], o[1].flip(1)),
        ),
        on_outputs(definition, "tokens one further", lambda o, _: (o[0], o[1] + 1)),
    )


MUTANTS = (
    _formulas("scaling_penalties", _SCALED),
    _formulas("logit_bias", _BIASED),
    MutantGroup(of_counts, "logits prompt_counts output_counts repetition_penalties"),
    MutantGroup(of_bits, "logits bitmask"),
    MutantGroup(of_logprobs, "logits logprobs tokens"),
)
