"""mamba_ssu: one step of Mamba 2's selective state space model, states in a pool.

step = softplus(dt + dt_bias), state = state·exp(A·step) + step·x·B, output = state·C +
D·x. Heads share groups of B and C. A row with slot -1 is padding: it writes no state,
and its output is 0.
"""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.op_types.mamba_ssu.relations import mamba_relations
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.inputs.trial import Trial
from kernel_judge.obstacle import Kind
from kernel_judge.skipping import skip
from kernel_judge.subject import Kernel, Op

PAD_SLOT = -1
_CANCELLING = (
    "the 129 products of an output cancel from magnitudes that add up to about 100, and "
    "float32 adds them with an error of 128·2^-24 of that, 8e-4, at most; large steps "
    "make sums of 1600, whose errors cancel as well and stay within it"
)
TOLERANCES = (
    Override(
        "output",
        Tolerance(rtol=4e-3, atol=1e-3, nmse=5e-6),
        f"one rounding to bfloat16: half an ulp is 2^-8 at most; {_CANCELLING}",
        source="oracle",
    ),
    Override(
        "output",
        Tolerance(rtol=8e-3, atol=1e-3, nmse=5e-6),
        "both sides round a float32 value once, to neighbours at most: 2^-7; "
        f"{_CANCELLING}",
    ),
    Override(
        "new_state",
        Tolerance(rtol=4e-3, atol=1e-5, nmse=5e-6),
        "one rounding to bfloat16: half an ulp is 2^-8 at most; two float32 products "
        "cancel from about 20, of which four roundings of 2^-24 are 5e-6",
        source="oracle",
    ),
    Override(
        "new_state",
        Tolerance(rtol=8e-3, atol=3e-5, nmse=5e-6),
        "both sides round a float32 value once, to neighbours at most: 2^-7; the fast "
        "logarithm in the kernel's softplus is off by 2^-21.4 near 1, which A·state and "
        "B·x, 45 together, make 2e-5",
    ),
)
# on SM90 FlashInfer selects one by the batch size
_SIMPLE, _VERTICAL = Backend("simple"), Backend("vertical", min_sm=90)


def cases(definition: Definition) -> list[Case]:
    """Return the cases: shuffled slots, padding, tiny and large steps, batches."""
    return [
        _case("one-sequence", "small", 1, 3),
        _case("shuffled-slots", "small", 3, 6),
        _case("padding", "small", 4, 6, padding=(1, 3)),
        # softplus(-9 ± 1) is about exp(-9): the state hardly changes
        _case("tiny-steps", "small", 2, 3, dt_mean=-9.0),
        # around 20, where kernels replace softplus by the identity
        _case("large-steps", "small", 2, 3, dt_mean=20.0),
        _case("batch", "medium", 8, 12, padding=(3, 7)),
        _case("past-limits", LIMITS, 131, 290, padding=(3, 7)),
        _case("large-batch", "large", 96, 133, padding=(0, 50, 94, 95)),
    ]


def _case(
    name: str,
    size: str,
    batch_size: int,
    slots: int,
    padding: tuple[int, ...] = (),
    dt_mean: float = -0.5,
) -> Case:
    # more slots than rows, so that a slot read as a row shows
    axes = {"batch_size": batch_size, "state_cache_size": slots}
    return Case(name, size, axes, {"padding": padding, "dt_mean": dt_mean})


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the inputs; dt, A, D and dt_bias have one value a head.

    state bfloat16 [state_cache_size, nheads, head_dim, dstate]; x and dt bfloat16
    [batch_size, nheads, head_dim]; A float32 [nheads, head_dim, dstate]; B and C
    bfloat16 [batch_size, ngroups, dstate]; D and dt_bias bfloat16 [nheads, head_dim];
    state_batch_indices int32 [batch_size]. Decay rates -A are 1/16 … 16, as
    in trained models.
    """
    axes = {**definition.axes, **case.axes}
    batch, heads, dim = axes["batch_size"], axes["nheads"], axes["head_dim"]
    dstate = axes["dstate"]
    bf16 = torch.bfloat16

    def drawn(name: str, *shape: int, std: float = 1.0) -> torch.Tensor:
        return stream.child(name).values(shape, std)

    # powers of two times a factor: an exponential would differ between libraries
    powers = torch.tensor([2.0**n for n in stream.child("A").integers(-4, 4, heads)])
    rates = powers * (1.0 + drawn("mantissa", heads, std=0.4).abs())
    # a workload has neither, but slots of its own
    dt_mean, padding = case.params.get("dt_mean", -0.5), case.params.get("padding", ())
    bias = (drawn("dt_bias", heads) + dt_mean).to(bf16)
    slots = stream.child("slots").permutation(axes["state_cache_size"])[:batch]
    slots[list(padding)] = PAD_SLOT
    dt = drawn("dt", batch, heads, std=0.5).to(bf16)
    skip = drawn("D", heads, std=2.0).to(bf16)
    groups = (batch, axes["ngroups"], dstate)
    return {
        "state": drawn("state", axes["state_cache_size"], heads, dim, dstate).to(bf16),
        "x": drawn("x", batch, heads, dim).to(bf16),
        "dt": dt[:, :, None].expand(batch, heads, dim).contiguous(),
        "A": -rates[:, None, None].expand(heads, dim, dstate).contiguous(),
        "B": drawn("B", *groups).to(bf16),
        "C": drawn("C", *groups).to(bf16),
        "D": skip[:, None].expand(heads, dim).contiguous(),
        "dt_bias": bias[:, None].expand(heads, dim).contiguous(),
        "state_batch_indices": slots.to(torch.int32),
    }


def oracle(
    definition: Definition, inputs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the output, shaped as x, and the pool, shaped as state, in float64."""
    wide = {name: tensor.double() for name, tensor in inputs.items()}
    output, pool = torch.zeros_like(wide["x"]), wide["state"]
    ratio = definition.axes["nheads"] // definition.axes["ngroups"]
    for row, slot in enumerate(inputs["state_batch_indices"].tolist()):
        if slot == PAD_SLOT:
            continue
        for group in range(definition.axes["ngroups"]):
            heads = slice(group * ratio, (group + 1) * ratio)
            raw = wide["dt"][row, heads] + wide["dt_bias"][heads]
            # log(1 + e^raw) without overflow, and accurate for small values
            step = torch.logaddexp(raw, torch.zeros_like(raw))
            x = wide["x"][row, heads]
            state = pool[slot, heads] * torch.exp(wide["A"][heads] * step[..., None])
            state = state + torch.outer(
                (step * x).flatten(), wide["B"][row, group]
            ).view(state.shape)
            pool[slot, heads] = state
            output[row, heads] = state @ wide["C"][row, group] + wide["D"][heads] * x
    return output, pool


def defined_rows(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the rows that are not padding: bool [batch_size].

    For padding the kernels compute with a state of zeros and return a meaningless output.
    """
    rows: torch.Tensor = inputs["state_batch_indices"] != PAD_SLOT
    return rows


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return both kernels, independent of the batch size."""
    return (_SIMPLE, _VERTICAL)


# inputs of one value a head → their axes up to the heads
_ONE_A_HEAD = {"dt": 2, "A": 1, "D": 1, "dt_bias": 1}


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return bfloat16 output and pool of FlashInfer, which updates the pool in place."""
    from flashinfer.mamba import selective_state_update

    state = inputs["state"]
    views = {n: _one_a_head(inputs[n], left) for n, left in _ONE_A_HEAD.items()}
    output = selective_state_update(
        state,
        inputs["x"],
        views["dt"],
        views["A"],
        inputs["B"],
        inputs["C"],
        views["D"],
        dt_bias=views["dt_bias"],
        dt_softplus=True,
        state_batch_indices=inputs["state_batch_indices"],
        pad_slot_id=PAD_SLOT,
        algorithm=backend,
    )
    return output, state


def heads_have_one_value(trial: Trial) -> None:
    """Skip inputs with several values a head, of which FlashInfer's kernel reads one."""
    for name, left in _ONE_A_HEAD.items():
        tensor = trial.inputs[name]
        if not torch.equal(_one_a_head(tensor, left), tensor):
            skip(Kind.NO_KERNEL, f"{name} has several values a head")


def _one_a_head(tensor: torch.Tensor, axes_left: int) -> torch.Tensor:
    """Return a view with stride 0 along all but the first `axes_left` axes.

    The kernel requires it; the values along these axes are equal.
    """
    first = tensor.flatten(axes_left)[..., 0].contiguous()
    return first.view(first.shape + (1,) * (tensor.dim() - axes_left)).expand_as(tensor)


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    defined_rows=defined_rows,
    relations=mamba_relations,
    tolerances=TOLERANCES,
    kernels={
        "flashinfer": Kernel(
            flashinfer_backends,
            flashinfer_ground_truth,
            check_inputs=heads_have_one_value,
        )
    },
)
