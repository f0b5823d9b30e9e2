"""One GPU a rank within one process: sums over ranks by FlashInfer and by NCCL.

Kernels of a rank write to the memory of the others. Serving maps that into the process
of each rank; here all ranks are of this process, and a pointer is enough.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import torch

# what FlashInfer's kernel reads: flags of its barrier, for each rank; data that come in
# parts, of which three are in turn; state of its own, with the size of such a part
_FLAGS, _PARTS, _STATE = 256, 3, 5


def devices_of(first: torch.device, ranks: int) -> list[torch.device]:
    """Return the GPUs of the ranks: that of the inputs, then the others in order."""
    own = first.index or 0
    others = (n for n in range(torch.cuda.device_count()) if n != own)
    chosen = [own, *others][:ranks]
    return [torch.device("cuda", n) for n in chosen]


def nccl_sum(parts: torch.Tensor) -> torch.Tensor:
    """Return the sum over ranks, [tokens, columns], of [ranks, tokens, columns]."""
    devices = devices_of(parts.device, len(parts))
    spread = [part.to(device) for part, device in zip(parts, devices, strict=True)]
    totals = [torch.empty_like(part) for part in spread]
    torch.cuda.nccl.all_reduce(spread, totals)  # type: ignore[no-untyped-call]
    _finish(devices)
    return _agreed(totals)


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
    from flashinfer.comm import AllReduceFusionPattern, trtllm_allreduce_fusion

    ranks, tokens, columns = parts.shape
    devices = devices_of(parts.device, ranks)
    rows = tokens if oneshot else max(tokens, ranks + 1)
    _reach_each_other(devices)
    given = [
        [_padded(part, rows).to(d), _padded(residual, rows).to(d), weight.to(d)]
        for part, d in zip(parts, devices, strict=True)
    ]
    outputs = [[torch.empty_like(own[0]) for _ in range(3)] for own in given]
    buffers, tables = _workspace(devices, rows * columns)
    # nothing is allocated from here on: it could wait for a kernel that waits for another
    _finish(devices)
    with warnings.catch_warnings():
        # the same kernel has a wrapper that makes its workspace by processes
        warnings.simplefilter("ignore", DeprecationWarning)
        for rank, device in enumerate(devices):
            own, (total, out, normed) = given[rank], outputs[rank]
            with torch.cuda.device(device):
                trtllm_allreduce_fusion(
                    allreduce_in=own[0],
                    world_size=ranks,
                    world_rank=rank,
                    token_num=rows,
                    hidden_dim=columns,
                    workspace_ptrs=tables[rank],
                    launch_with_pdl=False,
                    trigger_completion_at_end=True,
                    fp32_acc=True,
                    pattern_code=AllReduceFusionPattern.kARResidualRMSNorm,
                    use_oneshot=oneshot,
                    allreduce_out=total,
                    residual_in=own[1],
                    residual_out=out,
                    norm_out=normed,
                    quant_out=None,
                    scale_out=None,
                    rms_gamma=own[2],
                    rms_eps=eps,
                    scale_factor=None,
                    layout_code=None,
                )
    _finish(devices)
    del buffers
    of_rows, of_norm = (_agreed([own[n] for own in outputs])[:tokens] for n in (1, 2))
    return of_norm, of_rows


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
    found = rows.new_zeros((count, rows.shape[1]))
    found[: len(rows)] = rows
    return found


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
