"""probs: what samplers do to whole rows before they draw.

A softmax at each row's temperature; probabilities of what top-k or top-p keep, divided by
their sum; logits that top-k masks. What ties with the last one kept is kept as well.
"""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.op_types.probs.inputs import row_inputs
from generator.ops.op_types.probs.relations import row_relations
from kernel_judge.comparison.tolerance import EXACT, Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

TOLERANCES = (
    Override(
        "probs",
        Tolerance(rtol=2e-5, atol=1e-30, nmse=1e-10),
        "the quotient of logit and temperature, and its product with log2(e), round by "
        "2^-24 of themselves: 3e-6 of a probability at 50; exp and a float32 sum of the "
        "row add 2e-6",
    ),
    Override(
        "renorm_probs",
        Tolerance(rtol=2e-5, atol=1e-30, nmse=1e-10),
        "a float32 sum has at most 300 roundings of 2^-24 in a kernel's threads and the "
        "tree above them, 1.8e-5, and one division",
    ),
    Override("masked_logits", EXACT, "logits are kept as they are, or left out"),
)
_ALL = 2**30
_Rows = tuple[tuple[str, float], ...]
_CASES: dict[str, dict[str, _Rows]] = {
    "softmax": {
        "one-row": (("normal", 1.0),),
        "temperatures": tuple(("normal", t) for t in (0.2, 0.5, 1.3, 2.0, 20.0)),
        # exp() of these overflows float32; quotients are exact
        "high-logits": (("high", 1.0), ("high", 2.0), ("alike", 0.7)),
        "masked-tokens": (("masked", 1.0), ("masked", 0.6)),
    },
    "top_k": {
        "one-row": (("steps", 3),),
        "k-per-row": tuple(("steps", k) for k in (1, 2, 3, 5, 8, 12)),
        "ties-at-k": tuple(("tied", k) for k in (1, 2, 3, 5, 6, 8)),
        "k-keeps-all": (("steps", _ALL), ("zeros", 20), ("certain", 2)),
        # these tie when rounded to bfloat16
        "near-ties": (("near", 1), ("near", 8), ("wide", 300)),
    },
    "top_p": {
        "one-row": (("steps", 0.6),),
        "p-per-row": tuple(("steps", p) for p in (0.1, 0.3, 0.5, 0.8, 0.9, 1e-9)),
        # a sum of tokens equals p exactly: no further token crosses it
        "p-is-a-sum": (("steps", 0.25), ("steps", 0.4375), ("half", 192 / 1024)),
        "ties-at-p": (("tied", 0.3), ("tied", 0.4), ("tied", 0.8)),
        "p-keeps-all": (
            ("steps", 1.0),
            ("zeros", 1.0),
            ("short", 1.0),
            ("certain", 1.0),
        ),
        "near-ties": (("near", 0.01), ("near", 7.5 / 32), ("wide", 0.9)),
        "near-a-sum": (("half", 191.5 / 1024), ("half", 192.5 / 1024)),
    },
}
_BATCH = ("normal", "steps", "tied", "half", "zeros", "even", "thirds", "wide")


def cases(definition: Definition) -> list[Case]:
    """Return the cases of the definition's kind, and batches of many rows."""
    kind = "softmax" if "temperature" in definition.interface.inputs else "top_k"
    kind = "top_p" if "top_p" in definition.interface.inputs else kind
    some = {"softmax": (0.3, 0.7, 1.0, 1.7), "top_k": (1, 4, 10, 40)}
    values = some.get(kind, (0.2, 0.45, 0.7, 0.9))
    names = _BATCH[:1] if kind == "softmax" else _BATCH[1:]

    def batch(count: int) -> _Rows:
        return tuple((names[i % len(names)], values[i % 4]) for i in range(count))

    sized = [("small", name, rows) for name, rows in _CASES[kind].items()]
    sized += [("medium", "batch", batch(9)), ("large", "long-batch", batch(256))]
    # on either side of what a kernel may sort at once
    far = [("distinct", k) for k in (127, 129, 200, 257, 520) if kind == "top_k"]
    sized.append((LIMITS, "past-limits", (*batch(130), *far)))
    return [
        Case(name, size, {"batch_size": len(rows)}, {"rows": rows})
        for size, name, rows in sized
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the inputs; see `row_inputs` for their shapes."""
    return row_inputs(definition, case, stream)


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return each row on its own in float64: float64 [batch_size, vocab_size]."""
    rows, settings = inputs.values()
    pairs = zip(rows.double(), settings.tolist(), strict=True)
    return torch.stack([_row(definition, row, value) for row, value in pairs])


def _row(definition: Definition, row: torch.Tensor, setting: float) -> torch.Tensor:
    if "temperature" in definition.interface.inputs:
        exponents = row / setting
        return torch.exp(exponents - exponents.logsumexp(dim=0))
    levels, counts = torch.unique(row, return_counts=True)
    levels, counts = levels.flip(0), counts.flip(0)
    # what more probable tokens have: their number, or their sum
    weights = counts * levels if "top_p" in definition.interface.inputs else counts
    least = levels[(weights.cumsum(0) - weights) < setting].min()
    if "logits" in definition.interface.inputs:
        return torch.where(row >= least, row, -torch.inf)
    kept = torch.where(row >= least, row, 0.0)
    return kept / kept.sum()


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the only CUDA kernel."""
    return (Backend(""),)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Call the kernel of flashinfer.sampling that the definition is named after."""
    from flashinfer import sampling

    rows, settings = inputs.values()
    if "top_k" in inputs:
        settings = settings.clamp(max=rows.shape[1])
    return getattr(sampling, definition.name.rpartition("_v")[0])(rows, settings)


_TIES = (
    "inputs rewritten: the kernel gets the next float below top_p; outputs rewritten: "
    "what ties with the last kept is kept too, and the rest divided by the sum"
)


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return SGLang's PyTorch code for top-p; its top-k drops ties."""
    names = definition.interface.inputs
    native = Backend("native", needs_cuda=False, rewrites=_TIES)
    return (native,) if "top_p" in names else ()


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Call top_p_normalize_probs_torch, and give what ties with the last its value.

    It keeps a token if those before it hold <= p, the op if they hold < p: it gets the
    next float below p. Of ties it keeps as many as it takes, so that the smallest value
    it kept says which to keep; what it kept is divided by the sum of these.
    """
    from sglang.srt.layers import sampler

    probs, p = inputs["probs"], inputs["top_p"]
    below = torch.nextafter(p, torch.zeros_like(p))
    kept = sampler.top_p_normalize_probs_torch(probs, below) > 0
    least = probs.masked_fill(~kept, torch.inf).amin(dim=1, keepdim=True)
    whole = probs.masked_fill(probs < least, 0.0)
    normalised: torch.Tensor = whole / whole.sum(dim=1, keepdim=True)
    return normalised


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=row_relations,
    tolerances=TOLERANCES,
    kernels={
        "flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth),
        "sglang": Kernel(sglang_backends, sglang_ground_truth),
    },
)
