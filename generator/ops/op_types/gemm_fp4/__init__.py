"""Products of packed e2m1 codes with scales of blocks: NVFP4 and MXFP4."""

from __future__ import annotations

from generator.ops.spec import OpSpec

SPEC = OpSpec(
    "gemm_fp4",
    name_tokens={"n": "N"},
    name_constants={"k": "K"},
    constants={"K": None},
    kernels={"nvfp4_gemm_swizzled_": "flashinfer.gemm.mm_fp4"},
    absent={
        "sglang": "SGLang's products of fp4 are those of FlashInfer and of CUTLASS"
    },
    domains={"a_scale": "powers-of-two", "b_scale": "powers-of-two"},
    # its scales are float8
    without_domains=("nvfp4",),
)
