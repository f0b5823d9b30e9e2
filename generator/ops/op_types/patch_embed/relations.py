"""Relations of patches: images are for themselves, channels add up, outputs are free."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from generator.ops.row_relations import in_two_parts, reordered
from kernel_judge.comparison.tolerance import Tolerance
from kernel_judge.definition import Definition
from kernel_judge.relation import Bound, Claim, RelatedCalls, RelatedCase, Relation

_ALIKE = Bound(
    Tolerance(rtol=8e-3, atol=1.2e-5, nmse=1e-6),
    "float32 sums in another order, off by 3e-6 on either side; both round once, to "
    "neighbours at most: 2^-7, and that is rare",
)


def patch_relations(definition: Definition) -> list[Relation]:
    """Return the relations of patches of images."""
    cases = [RelatedCase("two-images", "small", {"batch_size": 2})]
    bounds = {"output": _ALIKE}
    return [
        reordered("images-reversed", ["batch_size"], bounds, cases),
        in_two_parts("images-one-by-one", "batch_size", bounds, cases),
        reordered("channels-reversed", ["channels"], bounds, cases),
        reordered("outputs-reversed", ["hidden_size"], bounds, cases),
        Relation("image-turned", _turned, cases),
    ]


def _turned(subject: RelatedCalls) -> Iterator[Claim]:
    """Turn images and weights by half a turn: the patches come in reverse."""
    axes, inputs = subject.definition.axes, subject.inputs
    whole = axes["image_size"] // axes["patch_size"] * axes["patch_size"]
    shape = subject.definition.interface.input_specs["images"].shape or ()
    first, second = (place for place, axis in enumerate(shape) if axis == "image_size")
    images = inputs["images"].clone()
    part = images.narrow(first, 0, whole).narrow(second, 0, whole)
    part.copy_(part.flip(first, second))
    weight = inputs["weight"].flip(2, 3).contiguous()
    actual = subject.run({**inputs, "images": images, "weight": weight})["output"]
    yield Claim("output", torch.flip(actual, (1,)), subject.whole["output"], _ALIKE)
