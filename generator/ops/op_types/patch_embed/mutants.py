"""The defects of patches: their order, pixels' order, channels, what is left over."""

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
)
from kernel_judge.definition import Definition


def of_pixels(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of which pixel meets which weight."""
    shape = definition.interface.input_specs["images"].shape or ()
    rows, columns = (place for place, axis in enumerate(shape) if axis == "image_size")
    channels = shape.index("channels")
    side = definition.axes["image_size"] // definition.axes["patch_size"]

    def by_columns(outputs: Outputs, inputs: Inputs) -> Outputs:
        grid = outputs[0].reshape(len(outputs[0]), side, side, -1)
        return (grid.transpose(1, 2).reshape(outputs[0].shape).contiguous(),)

    def last_patch(outputs: Outputs, inputs: Inputs) -> Outputs:
        wrong = outputs[0].clone()
        wrong[:, -1] = wrong[:, 0]
        return (wrong,)

    changes: dict[str, Change] = {
        "images transposed": lambda i: {
            "images": i["images"].transpose(rows, columns).contiguous()
        },
        "weights transposed": lambda i: {"weight": i["weight"].mT.contiguous()},
        "weights turned": lambda i: {"weight": i["weight"].flip(2, 3).contiguous()},
        "channels reversed": lambda i: {
            "images": i["images"].flip(channels).contiguous()
        },
        "pixels one row late": lambda i: {"images": i["images"].roll(1, rows)},
        "pixels one column late": lambda i: {"images": i["images"].roll(1, columns)},
        "image before": lambda i: {"images": i["images"].roll(1, 0)},
        "first channel for all": lambda i: {
            "images": i["images"]
            .narrow(channels, 0, 1)
            .expand_as(i["images"])
            .contiguous()
        },
        "weights rounded to e4m3": lambda i: {
            "weight": i["weight"].to(torch.float8_e4m3fn).to(torch.bfloat16)
        },
    }
    return (
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        on_outputs(definition, "patches column by column", by_columns),
        on_outputs(definition, "last patch of the first", last_patch),
    )


def of_bias(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of the bias."""
    changes: dict[str, Change] = {
        "bias missing": lambda i: {"bias": torch.zeros_like(i["bias"])},
        "bias twice": lambda i: {"bias": 2.0 * i["bias"]},
        "bias of the next output": lambda i: {"bias": i["bias"].roll(-1)},
    }
    return tuple(
        on_inputs(definition, name, change) for name, change in changes.items()
    )


MUTANTS = (
    MutantGroup(of_pixels, "images weight patch_size"),
    MutantGroup(of_bias, "images bias"),
)
