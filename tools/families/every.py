"""All definitions of the dataset."""

from __future__ import annotations

from tools.families import (
    dsa_paged,
    gdn,
    gemm,
    gqa_paged,
    gqa_ragged,
    mamba_ssu,
    mla_paged,
    mla_ragged,
    moe,
    rmsnorm,
    rope,
    sampling,
)
from tools.families.spec import Spec


def every_spec() -> tuple[Spec, ...]:
    """Return the definitions of all families, in a fixed order."""
    families = (
        rmsnorm,
        gemm,
        gqa_paged,
        mla_paged,
        gqa_ragged,
        mla_ragged,
        rope,
        mamba_ssu,
        dsa_paged,
        gdn,
        sampling,
        moe,
    )
    return tuple(spec for family in families for spec in family.specs())
