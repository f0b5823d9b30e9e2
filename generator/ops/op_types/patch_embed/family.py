"""Encoders of images and transformers of latents: their first layer."""

from __future__ import annotations

import random
from dataclasses import dataclass

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.reference_text import reference_text
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import Structure
from generator.ops.workloads.tokens import LLAMA

_MOST_IMAGES = 64


@dataclass(frozen=True)
class Encoder:
    """The constants of one definition."""

    channels: int
    image: int
    patch: int
    hidden: int
    models: tuple[str, ...]
    has_bias: bool = True
    last: bool = False


ENCODERS = (
    Encoder(3, 224, 14, 1024, ("clip-vit-large-patch14",), has_bias=False),
    Encoder(3, 224, 14, 1024, ("clip-vit-large-patch14",), has_bias=False, last=True),
    Encoder(3, 224, 16, 768, ("vit-base-patch16-224",)),
    Encoder(3, 224, 16, 768, ("vit-base-patch16-224",), last=True),
    Encoder(3, 384, 14, 1152, ("siglip-so400m-patch14-384",)),
    Encoder(3, 518, 14, 1024, ("dinov2-large",)),
    Encoder(3, 560, 14, 1280, ("llama-3.2-11b-vision",), has_bias=False),
    Encoder(3, 896, 14, 1152, ("gemma-3-27b",)),
    Encoder(16, 128, 2, 2432, ("stable-diffusion-3.5-large",)),
    Encoder(4, 128, 2, 1152, ("pixart-sigma-xl",)),
)


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(patch_spec(encoder) for encoder in ENCODERS)


def patch_spec(encoder: Encoder) -> Spec:
    """Return the definition for one set of constants."""
    side = encoder.image // encoder.patch
    pixels = ("batch_size", "channels", "image_size", "image_size")
    if encoder.last:
        pixels = ("batch_size", "image_size", "image_size", "channels")
    inputs = {
        "images": Tensor(pixels, "bfloat16", "Pixels, or latents."),
        "weight": Tensor(
            ("hidden_size", "channels", "patch_size", "patch_size"),
            "bfloat16",
            "A patch of weights for each output.",
        ),
    }
    if encoder.has_bias:
        inputs["bias"] = Tensor(("hidden_size",), "bfloat16", "Added to each output.")
    words = [
        w for w, has in (("bias", encoder.has_bias), ("last", encoder.last)) if has
    ]
    head = "_".join(
        (
            "patch_embed",
            *(("bias",) if encoder.has_bias else ()),
            *(("channels_last",) if encoder.last else ()),
        )
    )
    order = "channels last" if encoder.last else "channels first"
    left = encoder.image - side * encoder.patch
    rest = (
        f" The last {left} rows and columns of pixels are in no patch." if left else ""
    )
    return Spec(
        name=(
            f"{head}_c{encoder.channels}_s{encoder.image}_p{encoder.patch}"
            f"_h{encoder.hidden}"
        ),
        description=(
            f"Patches of {encoder.patch} by {encoder.patch} pixels, {order}, times a weight"
            f"{', plus a bias' if encoder.has_bias else ''}: a row for each patch, row by"
            f" row of the image.{rest} In float32, rounded once to bfloat16."
        ),
        op_type="patch_embed",
        tags=tuple(f"model:{model}" for model in encoder.models),
        axes={
            "batch_size": Axis("Number of images."),
            "channels": Axis("Channels of a pixel.", encoder.channels),
            "image_size": Axis("Pixels of a side.", encoder.image),
            "patch_size": Axis("Pixels of a patch's side.", encoder.patch),
            "num_patches": Axis("Patches of an image.", side * side),
            "hidden_size": Axis("Length of a row.", encoder.hidden),
        },
        inputs=inputs,
        outputs={
            "output": Tensor(
                ("batch_size", "num_patches", "hidden_size"), "bfloat16", "The rows."
            )
        },
        constraints=("num_patches == (image_size // patch_size) ** 2",),
        reference=reference_text("patch_embed", "patch_embed", words),
        captured_from=LLAMA,
        captured_op_type="gemm",
        structure=batch,
        fits=images_fit,
    )


def batch(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return as many images as the captured gemm had rows."""
    return Structure({"batch_size": captured.axes["M"]})


def images_fit(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether so many images are encoded at once."""
    return captured.axes["M"] <= _MOST_IMAGES
