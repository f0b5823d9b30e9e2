"""Building blocks of attention's relations: bounds, peers, runs of other layouts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from generator.ops.attention.caches import is_head_major
from generator.ops.attention.sequences import Batch, is_prefill, laid_out, sequences_of
from generator.ops.attention.variant import Variant, has_mask, has_sinks, variant_of
from kernel_judge.comparison.tolerance import Tolerance
from kernel_judge.definition import Definition
from kernel_judge.relation import Bound, Outputs, ReferenceCall, RelatedCalls

_SAME_LOGITS = (
    "float32 sums in another order: logits of up to 30 are off by some 2^-24·30, 2e-6, "
    "and the weights by as much of their value"
)
ALIKE = {
    "output": Bound(
        Tolerance(rtol=8e-3, atol=5e-5, nmse=1e-6),
        f"{_SAME_LOGITS}, far below 5e-5 of values up to 2.5; both sides round nearly "
        "the same value once, to neighbours at most: 2^-7, and that is rare",
    ),
    "lse": Bound(Tolerance(rtol=2e-6, atol=1e-5, nmse=1e-10), _SAME_LOGITS),
}
MERGED = {
    "output": Bound(
        Tolerance(rtol=4e-3, atol=1e-2, nmse=1e-5),
        "both parts and the whole are rounded to bfloat16: half an ulp is 2^-8 at most, "
        "of values up to 2.5 that is 1e-2; three roundings of 2.4e-6 (2^-8/sqrt(3)/1.44, "
        "squared) are 7e-6 of the power",
    ),
    "lse": ALIKE["lse"],
}


def head_axes(definition: Definition) -> list[str]:
    """Return the axes that count heads: those of queries, and of keys where they are."""
    return [a for a in ("num_qo_heads", "num_kv_heads") if a in definition.axes]


def peer(
    definition: Definition,
    *,
    prefill: bool,
    plain: bool = False,
    windowless: bool = False,
    causal: bool | None = None,
    **changes: int,
) -> Callable[[Definition], bool]:
    """Return a filter for definitions of a stage whose axes differ only by `changes`.

    With `plain`, they have neither window, cap nor sinks, and a cache of bfloat16 in
    layout NHD, but the same mask, or that of `causal`. With `windowless` they have no
    window, and all else is the same.
    """
    axes = {**definition.axes, **changes}
    wanted = _stated(definition)
    if windowless:
        wanted = (replace(wanted[0], window_left=-1), *wanted[1:])
    if plain:
        alone = Variant(causal=wanted[0].causal if causal is None else causal)
        wanted = (alone, False, False, False, ["bfloat16"], False)

    def accepts(other: Definition) -> bool:
        same = _stated(other) == wanted
        return same and other.axes == axes and is_prefill(other) == prefill

    return accepts


def _stated(
    definition: Definition,
) -> tuple[Variant, bool, bool, bool, list[str], bool]:
    """Return what tells a variant: constants, sinks, mask, layout, dtypes, a flag."""
    specs = definition.interface.input_specs.values()
    dtypes = {spec.dtype for spec in specs if spec.shape and len(spec.shape) > 1}
    return (
        variant_of(definition),
        has_sinks(definition),
        has_mask(definition),
        is_head_major(definition),
        sorted(dtypes),
        takes_flag(definition),
    )


def takes_flag(definition: Definition) -> bool:
    """Return whether LSE is returned only where the input return_lse is true."""
    return "return_lse" in definition.interface.inputs


def run_on(
    run: ReferenceCall, subject: RelatedCalls, batch: Batch, *key: str, **changed: Any
) -> Outputs:
    """Return the outputs of `run()` for a batch; `key` seeds the order of its pages.

    `changed` replaces inputs that no sequence owns, sm_scale and sinks, say.
    """
    axes, inputs = subject.definition.axes, subject.inputs
    common = {
        name: inputs[name]
        for name, spec in subject.definition.interface.input_specs.items()
        if spec.shape is None or spec.shape[0] in axes
    }
    name = subject.trial.case.name
    return run(laid_out(run.definition, batch, {**common, **changed}, name, *key))


def batch_of(subject: RelatedCalls) -> Batch:
    """Return the sequences of the subject's inputs."""
    return sequences_of(subject.definition, subject.inputs)


def merged(first: Outputs, second: Outputs) -> Outputs:
    """Merge attention over two sets of keys by base-2 LSE.

    Each has output [queries, heads, d] and LSE [queries, heads]; the result is float64.
    """
    lse = torch.stack([first["lse"].double(), second["lse"].double()])
    total = torch.logsumexp(lse * math.log(2.0), dim=0) / math.log(2.0)
    weights = torch.exp2(lse - total)[..., None]
    output = weights[0] * first["output"].double() + weights[1] * second["output"]
    return {"output": output, "lse": total}
