"""A production kernel's process that needs no GPU: products by torch, some of them wrong."""

from __future__ import annotations

import time
from typing import Any

import torch

from generator.evaluation.certification import kernel
from kernel_judge.obstacle import Kind
from kernel_judge.skipping import skip


def kernels(root: str, file: Any, providers: list[str], device: str) -> dict[str, Any]:
    """Return kernels by name, as `clock.rival` does."""

    def right(a: Any, b: Any) -> Any:
        # in float64, of which no bit of the order of its sums is left
        return (a.double() @ b.double().T).to(a.dtype)

    def by_batch(a: Any, b: Any) -> Any:
        # sums in other parts where rows are few
        if a.shape[0] > 2:
            return right(a, b)
        parts = zip(a.float().chunk(7, 1), b.float().chunk(7, 1), strict=True)
        total = sum((x @ y.T).half().float() for x, y in parts)
        assert isinstance(total, torch.Tensor)
        return total.to(a.dtype)

    def wrong(a: Any, b: Any) -> Any:
        return 1.1 * right(a, b)

    def of_few_rows(a: Any, b: Any) -> Any:
        if a.shape[0] > 4:
            skip(Kind.NO_CASE, "it takes four rows at most")
        return right(a, b)

    def fails(a: Any, b: Any) -> Any:
        raise RuntimeError("no kernel image")

    def compiles(a: Any, b: Any) -> Any:
        if not built:
            built.append(True)
            time.sleep(3.3)
        return right(a, b)

    built: list[bool] = []
    named = {"right": right, "by batch": by_batch, "wrong": wrong, "fails": fails}
    named |= {"of few rows": of_few_rows, "compiles": compiles}
    named["breaks the graph"] = lambda a, b: (
        torch._dynamo.graph_break(),  # type: ignore[no-untyped-call]
        right(a, b),
    )[1]
    named["by torch"] = lambda a, b: torch.matmul(a, b.T)
    return {f"pytorch/{name}": call for name, call in named.items()}


if __name__ == "__main__":
    kernel.kernels = kernels
    kernel.main()
