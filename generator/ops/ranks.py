"""One GPU a rank within one process: collectives by FlashInfer and by NCCL.

Kernels of a rank write to the memory of the others. Serving maps that into the process
of each rank; here all ranks are of this process, and a pointer is enough.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from kernel_judge.definition import Backend, Definition

# what FlashInfer's kernel reads: flags of its barrier, for each rank; data that come in
# parts, of which three are in turn; state of its own, with the size of such a part
_FLAGS, _PARTS, _STATE = 256, 3, 5


def devices_of(first: torch.device, ranks: int) -> list[torch.device]:
    """Return the GPUs of the ranks: that of the inputs, then the others in order."""
    here = first.index or 0
    others = (n for n in range(torch.cuda.device_count()) if n != here)
    chosen = [here, *others][:ranks]
    return [torch.device("cuda", n) for n in chosen]


def allreduce_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return both ways in which FlashInfer's kernel moves data, one GPU a rank."""
    ranks = definition.axes["world_size"]
    return tuple(
        Backend(name, min_sm=90, needs=("flashinfer.comm",), gpus=ranks)
        for name in ("oneshot", "twoshot")
    )


def nccl_sum(parts: torch.Tensor) -> torch.Tensor:
    """Return the sum over ranks, [tokens, columns], of [ranks, tokens, columns]."""
    spread, devices = _spread(parts)
    totals = [torch.empty_like(part) for part in spread]
    torch.cuda.nccl.all_reduce(spread, totals)  # type: ignore[no-untyped-call]
    _finish(devices)
    return _agreed(totals)


def nccl_gather(shards: torch.Tensor) -> torch.Tensor:
    """Return [tokens, ranks * columns], side by side, of [ranks, tokens, columns]."""
    spread, devices = _spread(shards)
    wholes = [shard.new_empty(shards.shape) for shard in spread]
    torch.cuda.nccl.all_gather(spread, wholes)
    _finish(devices)
    return _agreed(wholes).transpose(0, 1).flatten(1)


def nccl_scatter(parts: torch.Tensor) -> torch.Tensor:
    """Return what each rank keeps of the sum, [ranks, tokens / ranks, columns]."""
    spread, devices = _spread(parts)
    shares = [part.chunk(len(parts))[0].clone() for part in spread]
    torch.cuda.nccl.reduce_scatter(spread, shares)
    _finish(devices)
    return torch.stack([rows.to(parts.device) for rows in shares])


def allreduce(parts: torch.Tensor, *, oneshot: bool) -> torch.Tensor:
    """Return the sum by FlashInfer's kernel, launched on every rank without a norm.

    parts [ranks, tokens, columns], bfloat16; `oneshot` as of `allreduce_fusion`.
    """
    totals = _launched(parts, "kAllReduce", {}, ("allreduce_out",), oneshot=oneshot)
    return totals["allreduce_out"]


def allreduce_fusion(
    parts: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    eps: float,
    *,
    oneshot: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the norm and the rows by FlashInfer's kernel, launched on every rank.

    parts [ranks, tokens, columns], residual [tokens, columns], weight [columns], all
    bfloat16. `oneshot` sends each part to every rank; else each rank adds some tokens
    and sends their sum, which takes more tokens than ranks: rows of zeros fill up.
    """
    written = _launched(
        parts,
        "kARResidualRMSNorm",
        {"residual_in": residual, "rms_gamma": weight, "rms_eps": eps},
        ("residual_out", "norm_out"),
        oneshot=oneshot,
    )
    return written["norm_out"], written["residual_out"]


def _launched(
    parts: torch.Tensor,
    pattern: str,
    beside: Mapping[str, torch.Tensor | float],
    outputs: Sequence[str],
    *,
    oneshot: bool,
) -> dict[str, torch.Tensor]:
    """Return what the kernel writes to each of `outputs`, the same on all ranks.

    `beside` are arguments of a pattern beside the parts, rows of tokens or others.
    """
    from flashinfer.comm import AllReduceFusionPattern, trtllm_allreduce_fusion

    ranks, tokens, columns = parts.shape
    spread, devices = _spread(parts)
    rows = tokens if oneshot else max(tokens, ranks + 1)
    _reach_each_other(devices)
    filled = [_padded(part, rows) for part in spread]
    arguments = [
        {name: _on(value, device, rows) for name, value in beside.items()}
        | {name: torch.empty_like(part) for name in ("allreduce_out", *outputs)}
        for part, device in zip(filled, devices, strict=True)
    ]
    buffers, tables = _workspace(devices, rows * columns)
    # nothing is allocated from here on: it could wait for a kernel that waits for another
    _finish(devices)
    with warnings.catch_warnings():
        # the same kernel has a wrapper that makes its workspace by processes
        warnings.simplefilter("ignore", DeprecationWarning)
        for rank, device in enumerate(devices):
            with torch.cuda.device(device):
                trtllm_allreduce_fusion(
                    allreduce_in=filled[rank],
                    world_size=ranks,
                    world_rank=rank,
                    token_num=rows,
                    hidden_dim=columns,
                    workspace_ptrs=tables[rank],
                    launch_with_pdl=False,
                    trigger_completion_at_end=True,
                    fp32_acc=True,
                    pattern_code=getattr(AllReduceFusionPattern, pattern),
                    use_oneshot=oneshot,
                    **dict.fromkeys(_ARGUMENTS) | arguments[rank],
                )
    _finish(devices)
    del buffers
    return {
        name: _agreed([of_rank[name] for of_rank in arguments])[:tokens]
        for name in outputs
    }


# of a pattern, None where it has none
_ARGUMENTS = (
    "allreduce_out",
    "residual_in",
    "residual_out",
    "norm_out",
    "quant_out",
    "scale_out",
    "rms_gamma",
    "rms_eps",
    "scale_factor",
    "layout_code",
)


def _spread(parts: torch.Tensor) -> tuple[list[torch.Tensor], list[torch.device]]:
    """Return each rank's part on its GPU, and the GPUs."""
    devices = devices_of(parts.device, len(parts))
    spread = [part.to(device) for part, device in zip(parts, devices, strict=True)]
    return spread, devices


def _on(value: torch.Tensor | float, device: torch.device, rows: int) -> Any:
    """Return an argument on a GPU; rows of tokens are filled up."""
    if not isinstance(value, torch.Tensor):
        return value
    return (_padded(value, rows) if value.dim() == 2 else value).to(device)


def _workspace(
    devices: Sequence[torch.device], elements: int
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Return buffers on all ranks, and each rank's table of pointers to them.

    `elements` are those of one rank's part. Parts that have not come are negative zeros.
    """
    ranks = len(devices)
    part_bytes = 2 * ranks * elements
    state = torch.zeros(_STATE, dtype=torch.int32)
    state[3] = part_bytes
    kinds: list[list[torch.Tensor]] = [[], [], []]
    states = []
    for device in devices:
        at_once = torch.zeros(2 * elements, dtype=torch.bfloat16, device=device)
        flags = torch.zeros(ranks * _FLAGS, dtype=torch.int32, device=device)
        in_parts = torch.full(
            (_PARTS * ranks * elements,), -0.0, dtype=torch.bfloat16, device=device
        )
        for kind, buffer in zip(kinds, (at_once, flags, in_parts), strict=True):
            kind.append(buffer)
        states.append(state.to(device, copy=True))
    shared = [buffer for kind in kinds for buffer in kind]
    pointers = [buffer.data_ptr() for buffer in shared]
    tables = [
        torch.tensor([*pointers, own.data_ptr()], dtype=torch.int64, device=own.device)
        for own in states
    ]
    return [*shared, *states], tables


def _reach_each_other(devices: Sequence[torch.device]) -> None:
    """Let each GPU write to the memory of the others: PyTorch does it for a copy."""
    for one in devices:
        for other in devices:
            torch.zeros(1, device=one).to(other)


def _padded(rows: torch.Tensor, count: int) -> torch.Tensor:
    """Return [count, columns] with rows of zeros behind the given ones."""
    filled = rows.new_zeros((count, rows.shape[1]))
    filled[: len(rows)] = rows
    return filled


def _finish(devices: Sequence[torch.device]) -> None:
    for device in devices:
        torch.cuda.synchronize(device)


def _agreed(answers: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return what all ranks have. Raises AssertionError where they differ."""
    first = answers[0]
    for rank, other in enumerate(answers[1:], 1):
        same = torch.equal(first, other.to(first.device))
        assert same, f"rank {rank} has another answer than rank 0"
    return first
