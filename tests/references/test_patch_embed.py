"""Reference tests of op_type patch_embed.

Rendered: don't edit. `gen-tests --op-type patch_embed` renders this file anew.

Each class tests one definition: what its `run()` returns for the inputs of each case in
`cases`, and of the dataset's workloads, is compared with
- PyTorch's CUDA kernel, live, on a CUDA device
- what these kernels returned when they were recorded, anywhere
- an independent float64 implementation in PyTorch, `oracle`, anywhere
- what it returns for related inputs, `relations`, anywhere
A recorded output has the tolerance of its kernel.

Begin at `# ---- the tests`: there stands each reference, with its tolerances above it and
the definitions that have it below. Before that stand the op (cases, inputs, oracle, how
kernels are called) and the interfaces. docs/tests.md of gen-tests lists the tests of a
class; kernel_judge/comparison/tolerance.py has the default tolerance of each dtype.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import torch

from generator.ops.op_types.patch_embed.relations import patch_relations
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition, Interface
from kernel_judge.inputs.memory import shape_of
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# relations: generator.ops.op_types.patch_embed.relations

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


# ---- the interfaces

INTERFACE_PATCH_EMBED_BIAS = Interface(
    inputs={
        "images": "bfloat16[batch_size, channels, image_size, image_size]",
        "weight": "bfloat16[hidden_size, channels, patch_size, patch_size]",
        "bias": "bfloat16[hidden_size]",
    },
    outputs={"output": "bfloat16[batch_size, num_patches, hidden_size]"},
    constraints=("num_patches == (image_size // patch_size) ** 2",),
)
INTERFACE_PATCH_EMBED_BIAS_CHANNELS_LAST = INTERFACE_PATCH_EMBED_BIAS.but(
    inputs={"images": "bfloat16[batch_size, image_size, image_size, channels]"},
)
INTERFACE_PATCH_EMBED = INTERFACE_PATCH_EMBED_BIAS.but(
    without=("bias",),
)
INTERFACE_PATCH_EMBED_CHANNELS_LAST = INTERFACE_PATCH_EMBED_BIAS_CHANNELS_LAST.but(
    without=("bias",),
)

# ---- the tests


class PatchEmbedTests(
    GroundTruthsAgree, matches("pytorch"), MatchesRecorded, Metamorphic
):
    """What the tests of patch_embed share."""

    op_type = "patch_embed"
    sizes = ("small", "medium")
    op = OP


# fmt: off
# ruff: noqa: RUF012 - axes are read, never changed
# Each reference with its tags, then a class for each definition that has it.
# How to read its tolerances:
# - |actual - expected| <= atol + rtol * |expected| for each element, and the squared errors
#   are at most NMSE of the squared expected values. An atol* grows with the case's values.
# - The first row counts that fits the output, the source (the oracle, or a kernel as
#   provider/backend) and, after `in`, the case. Some definitions do not call all kernels.
# - Errors of one sign, a factor or an offset, are bounded beside that: "Errors with a sign"
#   in docs/evaluate.md of gen-tests.
# Reasons in short; `TOLERANCES`, or the module of bounds named above, derives them in full:
# (1) one rounding to bfloat16.
# (2) cuDNN's convolution is rounded to bfloat16 before the bias is added, by half an
# ulp of numbers below 8, 2^-6, and both sides round once more (H100.
# (3) both sides round nearly the same float32 value once.


# In float32, rounded once to bfloat16.
# Tolerances:
#   output  source   rtol   atol   NMSE     reason
#   output  oracle   0.004  6e-06  1.6e-05  (1)
#   output  pytorch  0.008  0.016  1.6e-05  (2)
def reference_patch_embed_bias():
    import torch


    @torch.no_grad()
    def run(images: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        size = weight.shape[-1]
        side = images.shape[2] // size
        pixels = images[:, :, : side * size, : side * size].float()
        # batch, channels, patch row, row in it, patch column, column in it
        cut = pixels.reshape(*pixels.shape[:2], side, size, side, size)
        patches = cut.permute(0, 2, 4, 1, 3, 5).reshape(len(images), side * side, -1)
        rows = patches @ weight.flatten(1).float().T
        rows = rows + bias.float()
        return rows.to(images.dtype)

    return run


class PatchEmbedBiasBase(PatchEmbedTests):
    reference = staticmethod(reference_patch_embed_bias)
    interface = INTERFACE_PATCH_EMBED_BIAS
    constants = ("has_bias",)
    HAS_BIAS = True  # "bias" in the name

# The next 2: Patches of 2 by 2 pixels, channels first, times a weight, plus a bias: a
# row for each patch, row by row of the image.
class TestPatchEmbedBiasC16S128P2H2432(PatchEmbedBiasBase):
    name = "patch_embed_bias_c16_s128_p2_h2432"  # model:stable-diffusion-3.5-large
    axes = {
        "channels": 16,
        "image_size": 128,
        "patch_size": 2,
        "num_patches": 4096,
        "hidden_size": 2432,
    }
    sha256 = "644d98f57d9a80b7c730d3fb1de3550df40222fecfbb958584a80f7650d3c541"

class TestPatchEmbedBiasC4S128P2H1152(PatchEmbedBiasBase):
    name = "patch_embed_bias_c4_s128_p2_h1152"  # model:pixart-sigma-xl
    axes = {
        "channels": 4,
        "image_size": 128,
        "patch_size": 2,
        "num_patches": 4096,
        "hidden_size": 1152,
    }
    sha256 = "3f69f7fd8e50d29522413d23e4b06998fcfb5045813a955abae465f3d65ff05c"

# Patches of 16 by 16 pixels, channels first, times a weight, plus a bias: a row for
# each patch, row by row of the image.
class TestPatchEmbedBiasC3S224P16H768(PatchEmbedBiasBase):
    name = "patch_embed_bias_c3_s224_p16_h768"  # model:vit-base-patch16-224
    axes = {
        "channels": 3,
        "image_size": 224,
        "patch_size": 16,
        "num_patches": 196,
        "hidden_size": 768,
    }
    sha256 = "99a360d26b58749741b245af1827f77324c581ab098b613a2fe7b848d377496e"

# The next 2: Patches of 14 by 14 pixels, channels first, times a weight, plus a bias: a
# row for each patch, row by row of the image.
class TestPatchEmbedBiasC3S518P14H1024(PatchEmbedBiasBase):
    name = "patch_embed_bias_c3_s518_p14_h1024"  # model:dinov2-large
    axes = {
        "channels": 3,
        "image_size": 518,
        "patch_size": 14,
        "num_patches": 1369,
        "hidden_size": 1024,
    }
    sha256 = "31b2c3e6e769e9a50031dad8c22aa170fa722f9d78c8d9218034a68daf387406"

class TestPatchEmbedBiasC3S896P14H1152(PatchEmbedBiasBase):
    name = "patch_embed_bias_c3_s896_p14_h1152"  # model:gemma-3-27b
    axes = {
        "channels": 3,
        "image_size": 896,
        "patch_size": 14,
        "num_patches": 4096,
        "hidden_size": 1152,
    }
    sha256 = "7ae6012270d1211c423f85337b92497c6a2fbe7b8f2663196d43abb31165c97e"

# Patches of 14 by 14 pixels, channels first, times a weight, plus a bias: a row for
# each patch, row by row of the image. The last 6 rows and columns of pixels are in no
# patch.
class TestPatchEmbedBiasC3S384P14H1152(PatchEmbedBiasBase):
    name = "patch_embed_bias_c3_s384_p14_h1152"  # model:siglip-so400m-patch14-384
    axes = {
        "channels": 3,
        "image_size": 384,
        "patch_size": 14,
        "num_patches": 729,
        "hidden_size": 1152,
    }
    sha256 = "4d789b6edcfd21b78728e2ed2d5cd6ab48e7c642806b5b6bfde2b2965f321a02"


# Patches of 16 by 16 pixels, channels last, times a weight, plus a bias: a row for each
# patch, row by row of the image. In float32, rounded once to bfloat16.
# model:vit-base-patch16-224
# Tolerances: those of reference_patch_embed_bias.
def reference_patch_embed_bias_channels_last():
    import torch


    @torch.no_grad()
    def run(images: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        size = weight.shape[-1]
        side = images.shape[1] // size
        pixels = images[:, : side * size, : side * size].float()
        pixels = pixels.permute(0, 3, 1, 2)
        # batch, channels, patch row, row in it, patch column, column in it
        cut = pixels.reshape(*pixels.shape[:2], side, size, side, size)
        patches = cut.permute(0, 2, 4, 1, 3, 5).reshape(len(images), side * side, -1)
        rows = patches @ weight.flatten(1).float().T
        rows = rows + bias.float()
        return rows.to(images.dtype)

    return run


class TestPatchEmbedBiasChannelsLastC3S224P16H768(PatchEmbedTests):
    name = "patch_embed_bias_channels_last_c3_s224_p16_h768"
    reference = staticmethod(reference_patch_embed_bias_channels_last)
    interface = INTERFACE_PATCH_EMBED_BIAS_CHANNELS_LAST
    axes = {
        "channels": 3,
        "image_size": 224,
        "patch_size": 16,
        "num_patches": 196,
        "hidden_size": 768,
    }
    constants = ("has_bias",)
    HAS_BIAS = True  # "bias" in the name
    sha256 = "bee137731eca78b9eb48b645a21b49083755c079e71581f59833ac7dff58f36e"


# Patches of 14 by 14 pixels, channels first, times a weight: a row for each patch, row
# by row of the image. In float32, rounded once to bfloat16.
# Tolerances:
#   output  source   rtol   atol   NMSE     reason
#   output  oracle   0.004  6e-06  1.6e-05  (1)
#   output  pytorch  0.008  3e-05  1.6e-05  (3)
def reference_patch_embed():
    import torch


    @torch.no_grad()
    def run(images: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        size = weight.shape[-1]
        side = images.shape[2] // size
        pixels = images[:, :, : side * size, : side * size].float()
        # batch, channels, patch row, row in it, patch column, column in it
        cut = pixels.reshape(*pixels.shape[:2], side, size, side, size)
        patches = cut.permute(0, 2, 4, 1, 3, 5).reshape(len(images), side * side, -1)
        rows = patches @ weight.flatten(1).float().T
        return rows.to(images.dtype)

    return run


class PatchEmbedBase(PatchEmbedTests):
    reference = staticmethod(reference_patch_embed)
    interface = INTERFACE_PATCH_EMBED
    axes = {"channels": 3, "patch_size": 14}

class TestPatchEmbedC3S224P14H1024(PatchEmbedBase):
    name = "patch_embed_c3_s224_p14_h1024"  # model:clip-vit-large-patch14
    axes = {"image_size": 224, "num_patches": 256, "hidden_size": 1024}
    sha256 = "f0977dd3ca4468a2801fe50e6751020abea90bdd887fd167ce822609dcac24af"

class TestPatchEmbedC3S560P14H1280(PatchEmbedBase):
    name = "patch_embed_c3_s560_p14_h1280"  # model:llama-3.2-11b-vision
    axes = {"image_size": 560, "num_patches": 1600, "hidden_size": 1280}
    sha256 = "49a1b9850d93c3099b4627bb2348d8f5f47965e3655d1c923ef46462f167ba53"


# Patches of 14 by 14 pixels, channels last, times a weight: a row for each patch, row
# by row of the image. In float32, rounded once to bfloat16.
# model:clip-vit-large-patch14
# Tolerances: those of reference_patch_embed.
def reference_patch_embed_channels_last():
    import torch


    @torch.no_grad()
    def run(images: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        size = weight.shape[-1]
        side = images.shape[1] // size
        pixels = images[:, : side * size, : side * size].float()
        pixels = pixels.permute(0, 3, 1, 2)
        # batch, channels, patch row, row in it, patch column, column in it
        cut = pixels.reshape(*pixels.shape[:2], side, size, side, size)
        patches = cut.permute(0, 2, 4, 1, 3, 5).reshape(len(images), side * side, -1)
        rows = patches @ weight.flatten(1).float().T
        return rows.to(images.dtype)

    return run


class TestPatchEmbedChannelsLastC3S224P14H1024(PatchEmbedTests):
    name = "patch_embed_channels_last_c3_s224_p14_h1024"
    reference = staticmethod(reference_patch_embed_channels_last)
    interface = INTERFACE_PATCH_EMBED_CHANNELS_LAST
    axes = {
        "channels": 3,
        "image_size": 224,
        "patch_size": 14,
        "num_patches": 256,
        "hidden_size": 1024,
    }
    sha256 = "3dbe48d3a178437ba0449b620d946799f942d22705faad21a61b137d4e730fc7"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
