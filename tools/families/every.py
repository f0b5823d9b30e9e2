"""All definitions of the dataset."""

from __future__ import annotations

from tools.families import gemm, gqa_paged, mla_paged, rmsnorm
from tools.families.spec import Spec


def every_spec() -> tuple[Spec, ...]:
    """Return the definitions of all families, in a fixed order."""
    return rmsnorm.specs() + gemm.specs() + gqa_paged.specs() + mla_paged.specs()
