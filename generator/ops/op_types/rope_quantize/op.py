"""rope_quantize: rotary embedding of queries and keys, scaled and rounded to e4m3.

The rotary part turns in float32; it and the part without position are multiplied by a
scale, cut off at 448 and rounded once. Keys, and values, may be written to a paged cache,
of which slots that no row is for keep what they hold.
"""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.far_factors import far_apart
from generator.ops.float8 import e4m3_values
from generator.ops.op_types.rope_quantize.inputs import axes_of, made_inputs
from generator.ops.op_types.rope_quantize.names import CACHES
from generator.ops.op_types.rope_quantize.relations import quantised_relations
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

_PARTS = ("q_rope", "k_rope", "q_nope", "k_nope")
TOLERANCES = tuple(
    Override(
        f"{name}_out",
        Tolerance(rtol=1.25e-1, atol=2e-3, nmse=1e-5),
        "both sides round nearly the same float32 value once to e4m3: to neighbours at "
        "most, 2^-3 apart, or 2^-9 below 2^-6; that happens to one in 10^5 elements, "
        "near ties, and to less than 1e-5 of the power in any case",
    )
    for name in (*_PARTS, *CACHES)
)
_RAGGED = tuple(Stream("appended").integers(8, 100, 6))
# lengths of sequences after and in the append, rows of cosines, scales of q and of k and v
_CASES: dict[str, tuple[str, tuple[tuple[int, int], ...], int, float, float]] = {
    "one-token": ("small", ((1, 1),), 64, 0.375, 2.5),
    "decode": ("small", ((17, 1), (64, 1), (65, 1), (1, 1)), 100, 3.0, 1.25),
    "later-chunks": ("small", ((80, 6), (0, 0), (66, 4), (3, 3)), 50, 12.5, 20.0),
    "saturated": ("small", ((70, 5),), 40, 100.0, 320.0),
    "subnormal": ("small", ((66, 4),), 40, 2**-8 * 1.25, 2**-8 * 1.75),
    "batch": (
        "medium",
        tuple((n, n % 7 + 1) for n in _RAGGED),
        4096,
        7.0,
        9.0,
    ),
    "past-limits": (
        LIMITS,
        ((2_100, 2_100), *[(400, 370)] * 17),
        (1 << 17) + 2_000,
        7.0,
        9.0,
    ),
    "long-batch": ("large", ((4096, 4096), (4200, 4096)), 163_840, 12.5, 20.0),
}


_ROWS = ("q_rope", "q_nope", "k_rope", "k_nope", "v")


def cases(definition: Definition) -> list[Case]:
    """Return single tokens, chunks, values beyond 448 and below 2^-6."""
    usual = [
        Case(
            name,
            size,
            axes_of(definition, lengths, rows),
            {"lengths": lengths, "scale_q": scale_q, "scale_kv": scale_kv},
        )
        for name, (size, lengths, rows, scale_q, scale_kv) in _CASES.items()
    ]
    (chunks,) = (case for case in usual if case.name == "later-chunks")
    scales = ("quant_scale_q", "quant_scale_kv")
    return [*usual, *far_apart(chunks, *scales, against=_ROWS, exponent=20.0)]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the inputs; see `made_inputs` for their shapes."""
    return made_inputs(definition, case, stream)


def oracle(definition: Definition, inputs: dict[str, Any]) -> tuple[torch.Tensor, ...]:
    """Return the codes' values in float64, shaped as the outputs; row by row in caches."""
    row = inputs["cos_sin_cache"].double().index_select(0, inputs["pos_ids"])
    half = row.shape[1] // 2
    turn = torch.complex(row[:, :half], row[:, half:])
    real = torch.arange(half, device=row.device)
    imaginary = real + half
    if not definition.constants["is_neox"]:
        real, imaginary = 2 * real, 2 * real + 1

    def turned(name: str) -> torch.Tensor:
        out: torch.Tensor = inputs[name].double()
        # one number for all heads, if there are any
        by = turn[:, None] if out.dim() == 3 else turn
        numbers = torch.complex(out[..., real], out[..., imaginary]) * by
        out[..., real], out[..., imaginary] = numbers.real, numbers.imag
        return out

    of_q, of_kv = inputs["quant_scale_q"], inputs["quant_scale_kv"]
    results = {
        "q_rope": e4m3_values(turned("q_rope") * of_q),
        "q_nope": e4m3_values(inputs["q_nope"].double() * of_q),
        "k_rope": e4m3_values(turned("k_rope") * of_kv),
        "k_nope": e4m3_values(inputs["k_nope"].double() * of_kv),
    }
    if "kpe_cache" in inputs:
        written = {"ckv_cache": results["k_nope"], "kpe_cache": results["k_rope"]}
        results |= {n: _appended(inputs, n, rows) for n, rows in written.items()}
    elif "k_cache" in inputs:
        keys = torch.cat([results["k_rope"], results["k_nope"]], dim=-1)
        results["k_cache"] = _appended(inputs, "k_cache", keys)
        values = e4m3_values(inputs["v"].double() * of_kv)
        results["v_cache"] = _appended(inputs, "v_cache", values)
    outputs = definition.interface.outputs
    return tuple(results[name.removesuffix("_out")] for name in outputs)


def _appended(inputs: dict[str, Any], name: str, rows: torch.Tensor) -> torch.Tensor:
    cache: torch.Tensor = inputs[name].double()
    starts, pages = inputs["kv_indptr"].tolist(), inputs["kv_indices"].tolist()
    where = zip(
        inputs["batch_indices"].tolist(), inputs["positions"].tolist(), strict=True
    )
    for i, (sequence, position) in enumerate(where):
        page, slot = divmod(position, cache.shape[1])
        cache[pages[starts[sequence] + page], slot] = rows[i]
    return cache


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the only CUDA kernel of both styles."""
    return (Backend(""),)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return FlashInfer's e4m3 outputs; it writes to the caches that are given."""
    from flashinfer import rope

    tensors = [inputs[name] for name in _PARTS]
    options = {
        "is_neox": definition.constants["is_neox"],
        "quantize_dtype": torch.float8_e4m3fn,
        "quant_scale_q": inputs["quant_scale_q"],
        "quant_scale_kv": inputs["quant_scale_kv"],
    }
    where = (inputs["cos_sin_cache"], inputs["pos_ids"])
    caches = tuple(inputs[name] for name in CACHES if name in inputs)
    if not caches:
        mla = tensors[1].dim() == 2
        kernel = rope.mla_rope_quantize_fp8 if mla else rope.rope_quantize_fp8
        return kernel(*tensors, *where, **options)
    table = [
        inputs[name]
        for name in ("kv_indices", "kv_indptr", "batch_indices", "positions")
    ]
    q_rope_out, q_nope_out = rope.rope_quantize_fp8_append_paged_kv_cache(
        *tensors,
        inputs.get("v"),
        *where,
        caches,
        *table,
        page_size=definition.axes["page_size"],
        kv_layout="NHD",
        **options,
    )
    return q_rope_out, q_nope_out, *caches


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=quantised_relations,
    tolerances=TOLERANCES,
    kernels={"flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth)},
)
