"""The defects of lightning attention: decays, states, what is read when."""

from __future__ import annotations

import torch

from generator.ops.mutants import (
    Change,
    DomainMutant,
    Inputs,
    MutantGroup,
    Outputs,
    on_inputs,
    on_outputs,
    with_output,
)
from kernel_judge.definition import Definition


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of a decode step or of a prefill."""
    root = definition.axes["head_dim"] ** 0.5
    is_decode = "seq_len" not in (definition.interface.input_specs["q"].shape or ())

    def short_state(outputs: Outputs, inputs: Inputs) -> Outputs:
        return with_output(outputs, 1, outputs[1].bfloat16().float())

    def by_values(outputs: Outputs, inputs: Inputs) -> Outputs:
        return with_output(outputs, 1, outputs[1].mT.contiguous())

    def read_before(outputs: Outputs, inputs: Inputs) -> Outputs:
        read = torch.einsum("bhk,bhkv->bhv", inputs["q"].float(), inputs["state"])
        return with_output(outputs, 0, read.to(outputs[0].dtype))

    changes: dict[str, Change] = {
        "no decay": lambda i: {"slopes": torch.zeros_like(i["slopes"])},
        "decay twice as fast": lambda i: {"slopes": 2.0 * i["slopes"]},
        "slopes in base 2": lambda i: {"slopes": i["slopes"] * 0.6931472},
        "slope of the head before": lambda i: {"slopes": i["slopes"].roll(1)},
        "slope of the first head": lambda i: {
            "slopes": i["slopes"][:1].expand_as(i["slopes"]).contiguous()
        },
        "slopes rounded to bfloat16": lambda i: {
            "slopes": i["slopes"].bfloat16().float()
        },
        "states begin at 0": lambda i: {"state": torch.zeros_like(i["state"])},
        "state transposed": lambda i: {"state": i["state"].mT.contiguous()},
        "state of the sequence before": lambda i: {"state": i["state"].roll(1, 0)},
        "states rounded to bfloat16": lambda i: {
            "state": i["state"].bfloat16().float()
        },
        "scaled by the root of the length": lambda i: {"q": i["q"] / root},
        "keys and values swapped": lambda i: {"k": i["v"], "v": i["k"]},
        "queries and keys swapped": lambda i: {"q": i["k"], "k": i["q"]},
        "head before": lambda i: {"q": i["q"].roll(1, 1)},
        "values of the sequence before": lambda i: {"v": i["v"].roll(1, 0)},
    }
    every = [on_inputs(definition, name, change) for name, change in changes.items()]
    every += [
        on_outputs(definition, "new states rounded to bfloat16", short_state),
        on_outputs(definition, "new states transposed", by_values),
    ]
    if is_decode:
        every.append(on_outputs(definition, "read before the update", read_before))
    return tuple(every)


MUTANTS = (MutantGroup(mutants, "q k v state slopes new_state"),)
