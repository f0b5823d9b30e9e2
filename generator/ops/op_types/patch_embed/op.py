"""patch_embed: each patch of an image times a weight, by a convolution or a product.

The production kernel is PyTorch's convolution with a stride of the patch's size. The
oracle adds up one line of all patches at a time in float64.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from generator.ops.op_types.patch_embed.relations import patch_relations
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition
from kernel_judge.inputs.memory import shape_of
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

_SUMS = (
    "float32 sums of at most 768 products, of about 1 in all, are off by 3e-6 where they "
    "cancel"
)
TOLERANCES = (
    Override(
        "output",
        Tolerance(rtol=4e-3, atol=6e-6, nmse=1.6e-5),
        f"one rounding to bfloat16: half an ulp is 2^-8 of a value at most; {_SUMS}",
        source="oracle",
    ),
    Override(
        "output",
        Tolerance(rtol=8e-3, atol=1.6e-2, nmse=1.6e-5),
        "cuDNN's convolution is rounded to bfloat16 before the bias is added, by half an ulp "
        "of numbers below 8, 2^-6, and both sides round once more (H100: NMSE 6.1e-6)",
        source="pytorch",
        constant="has_bias",
    ),
    Override(
        "output",
        Tolerance(rtol=8e-3, atol=3e-5, nmse=1.6e-5),
        "both sides round nearly the same float32 value once: to neighbours at most, 2^-7 "
        f"apart; {_SUMS}, and tensor cores cut off instead of rounding",
    ),
)


def cases(definition: Definition) -> list[Case]:
    """Return one image, several, and images whose pixels are all alike but one."""
    return [
        Case("one-image", "small", {"batch_size": 1}),
        Case("three-images", "small", {"batch_size": 3}),
        Case("bright-pixel", "small", {"batch_size": 2}, {"bright": True}),
        Case("batch", "medium", {"batch_size": 4}),
        Case("past-limits", LIMITS, {"batch_size": 67}),
        Case("many-images", "large", {"batch_size": 64}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return bfloat16 images and weights of which products are about 1, and a bias."""
    lengths = {**definition.axes, **case.axes}
    specs = definition.interface.input_specs
    shapes = {name: shape_of(spec, lengths) for name, spec in specs.items()}
    images = stream.child("images").values(shapes["images"])
    if case.params.get("bright"):
        images *= 2.0**-6
        images[:, 1, 1] = 20.0
    weight = stream.child("weight").values(
        shapes["weight"], 1.0 / math.sqrt(math.prod(shapes["weight"][1:]))
    )
    inputs = {"images": images.to(torch.bfloat16), "weight": weight.to(torch.bfloat16)}
    if "bias" in shapes:
        bias = stream.child("bias").values(shapes["bias"])
        inputs["bias"] = bias.to(torch.bfloat16)
    return inputs


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the rows, float64 [batch_size, num_patches, hidden_size], a line of pixels after the other."""
    size = definition.axes["patch_size"]
    side = definition.axes["image_size"] // size
    pixels, weight = inputs["images"].double(), inputs["weight"].double()
    if _channels_last(definition):
        pixels = pixels.movedim(3, 1)
    rows: torch.Tensor = pixels.new_zeros(len(pixels), side, side, weight.shape[0])
    for y in range(size):
        line = pixels[:, :, y::size][:, :, :side, : side * size]
        cut = line.reshape(*line.shape[:3], side, size)
        rows += torch.einsum("bcyxj,hcj->byxh", cut, weight[:, :, y])
    if "bias" in inputs:
        rows += inputs["bias"].double()
    return rows.flatten(1, 2)


def _channels_last(definition: Definition) -> bool:
    return (definition.interface.input_specs["images"].shape or ())[-1] == "channels"


def pytorch_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return PyTorch's convolution, cuDNN's on CUDA."""
    return (Backend("conv2d"),)


def pytorch_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return the patches of a convolution; channels that lie last are viewed as first."""
    images = inputs["images"]
    if _channels_last(definition):
        images = images.permute(0, 3, 1, 2)
    stride = definition.axes["patch_size"]
    rows = torch.nn.functional.conv2d(
        images, inputs["weight"], inputs.get("bias"), stride=stride
    )
    return rows.flatten(2).transpose(1, 2)


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=patch_relations,
    tolerances=TOLERANCES,
    kernels={"pytorch": Kernel(pytorch_backends, pytorch_ground_truth)},
)
