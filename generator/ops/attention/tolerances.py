"""Tolerances of attention, derived from the arithmetic of its kernels."""

from __future__ import annotations

import math

from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import Case, Definition
from kernel_judge.source_names import METAMORPHIC

_GROWS = (
    "Logits of a larger deviation are as many times as far off, and so is atol: 20 times "
    "in extreme-logits, sqrt(512) times with sm_scale 1 and keys of 512"
)
# with sinks, fa2-plain has its sum from fa2, and the sinks make it larger
_SUM_SHRINKS = (
    "tensor cores add it up, 16 keys at a time, and cut off what lies below float32: half "
    "a last place, 2^-24, of each partial sum, so that a sum over n keys shrinks by n/32 "
    "times 2^-24, of 2^15 keys by 6.1e-5, and an LSE of 15 by 5.9e-6 of itself"
)
_SHRUNK = 2.0**-17
_LSE_FROM_BF16_SUM = tuple(
    Override(
        "lse",
        Tolerance(rtol=0.0, atol=math.log2(1.0 + 2.0**-8), nmse=1e-6, bias=_SHRUNK),
        "fa2 sums the probabilities after rounding them to bfloat16, whose unit roundoff "
        "is 2^-8: the base-2 logarithm of the sum is off by log2(1 + 2^-8) = 5.6e-3 at "
        f"most. {_SUM_SHRINKS}",
        source=f"flashinfer/{backend}",
    )
    for backend in ("fa2", "fa2-plain")
)
_LSE_OF_CAPPED_LOGITS = tuple(
    Override(
        "lse",
        Tolerance(rtol=2.0**-11, atol=1e-5, nmse=2.0**-22),
        f"{backend} caps a logit by tanh.approx.f32, whose relative error PTX's manual "
        "bounds by 2^-11: where one key is all that a query sees, its logit is the LSE, "
        "off by that",
        source=f"flashinfer/{backend}",
        constant="logits_soft_cap",
    )
    for backend in ("fa3", "cuda-cores")
)

# equal to the default of bfloat16; written out because the reasons differ
_OF_CAPPED_LOGITS = Override(
    "output",
    Tolerance(rtol=1e-2, atol=8e-3, nmse=2e-5),
    "cuda-cores caps a logit by tanh.approx.f32, off by 2^-11 of itself: a logit of 50 by "
    "0.024, and its weight by 2.4 %; recorded on an H200, outputs are off by 7.9e-3 at "
    "most, a step of bfloat16 at 1",
    source="flashinfer/cuda-cores",
    constant="logits_soft_cap",
)
_WITH_SINKS_AFTERWARDS = tuple(
    Override(
        "output",
        Tolerance(rtol=1e-2, atol=8e-3, nmse=2e-5),
        "the plain kernel's output, of weights in bfloat16, is rounded, multiplied by "
        "the share that the sinks leave and rounded again, and run() rounds once: with "
        "the weights four times 2.4e-6 (2^-8/sqrt(3)/1.44, squared), 1e-5 of the power",
        source=f"flashinfer/{backend}",
    )
    for backend in ("fa2-plain", "fa3-plain")
)
_FROM_BF16_WEIGHTS = tuple(
    Override(
        "output",
        Tolerance(rtol=1e-2, atol=8e-3, nmse=2e-5),
        "the kernel multiplies weights in bfloat16: but for a row's largest, which is 1, "
        "they are off by 2^-8/sqrt(3)/1.44 = 1.6e-3 of themselves, root mean square, and "
        "make up half of the row at most; with values of deviation 1 an output near 0 is "
        "off by 8e-4, of which atol is 10. Both sides round: rtol is above 2^-7",
        source=f"flashinfer/{backend}",
    )
    for backend in ("fa2", "fa3")
)


_MANY_KEYS = 65_536
LSE_OF_MANY_KEYS = Override(
    "lse",
    Tolerance(rtol=1e-5, atol=1e-5, nmse=1e-7, bias=2.0**-18),
    "a thread of fa3 adds a quarter of a row's exponentials in float32, one after another: "
    "what is below half a unit of the sum's last place is lost. Of 131,072 keys whose "
    "logits have a deviation of 3.6 a simulation loses 4.6e-5 of the sum, 6.6e-5 of a "
    "log-sum-exp of 26; an H100's fa3 lost 6.8e-5, its factor 2.6e-6, of which the bias "
    "is 1.5 times",
    source="flashinfer/fa3",
    where=lambda axes: axes.get("total_kv", 0) >= _MANY_KEYS,
)


def growth(definition: Definition, case: Case) -> float:
    """Return the factor of a case's logits, as `logits.growth` does.

    That is imported when a case is judged: the renderer reads bounds without torch.
    """
    from generator.ops.attention import logits

    return logits.growth(definition, case)


def growth_of_values(definition: Definition, case: Case) -> float:
    """Return the factor of a case's outputs before they are rounded, as `logits` has it."""
    from generator.ops.attention import logits

    return logits.growth_of_values(definition, case)


def values_moved(definition: Definition, case: Case) -> float:
    """Return the factor of a case's values, as `logits` has it.

    What a kernel rounds to 8 bits or bfloat16 are weights: logits don't make that worse.
    """
    from generator.ops.attention import logits

    return logits.values_moved(definition, case)


def attention_tolerances(products: int, total: int) -> tuple[Override, ...]:
    """Return the overrides of an attention op.

    A logit is the sum of `products` products. `total` is the largest
    Σ|q·k|·sm_scale·log2(e) of the case extreme-logits; it bounds fa3's LSE there.
    """
    lse_of_extreme_logits = Override(
        "lse",
        Tolerance(rtol=1e-5, atol=round(total * 2.0**-22, 5), nmse=1e-7),
        f"the {products} products of a logit cancel from Σ|q·k|·sm_scale·log2(e) = "
        f"{total}, and tensor cores add them in float32 by truncation: by 2^-22 of that",
        source="flashinfer/fa3",
        case="extreme-logits",
    )
    return (
        *_OF_FLOAT16,
        *_OF_8_BITS,
        _LSE_OF_ALIBI,
        *_TO_ORACLE,
        *_LSE_OF_TWO_CALLS,
        *_FROM_BF16_WEIGHTS,
        *_WITH_SINKS_AFTERWARDS,
        *_LSE_FROM_BF16_SUM,
        # capped logits are below the cap, in extreme-logits too
        *_LSE_OF_CAPPED_LOGITS,
        _OF_CAPPED_LOGITS,
        lse_of_extreme_logits,
    )


# queries, weights and output have three bits more than in bfloat16: roundings are by an
# eighth, and their mean square by a 64th; the errors of logits stay as they are
_FLOAT16_OUTPUT = (
    "one rounding to float16: half an ulp is 2^-11 at most, and its mean square 2^-20/12 "
    "of the output's at most, 8e-8, taken twice"
)
_OF_FLOAT16 = (
    Override(
        "output",
        Tolerance(rtol=2.0**-11, atol=2e-4, nmse=2e-7),
        f"{_FLOAT16_OUTPUT}. Logits of extreme-logits are off by 1.6e-5 root mean square, "
        "which two equal weights of values 4.9 apart make 1.7e-4 at most",
        source="oracle",
        case="extreme-logits",
        constant="fp16",
    ),
    Override(
        "output",
        Tolerance(rtol=2.0**-11, atol=1e-5, nmse=1.6e-7),
        f"{_FLOAT16_OUTPUT}. Logits' errors make 8.4e-6 of it before, as in bfloat16",
        source="oracle",
        constant="fp16",
        growth=growth,
    ),
    *(
        Override(
            "output",
            Tolerance(rtol=1.25e-3, atol=1e-3, nmse=4e-7),
            "the kernel multiplies weights in float16, off by 2^-11/sqrt(3)/1.44 = 2e-4 "
            "of themselves, root mean square: an output near 0 of values of deviation 1 "
            "is off by 1e-4, of which atol is 10. Both sides round: rtol is above 2^-10. "
            "The NMSE is a 64th of bfloat16's",
            source=f"flashinfer/{backend}",
            constant="fp16",
        )
        for backend in ("fa2", "fa3")
    ),
    Override(
        "lse",
        Tolerance(rtol=0.0, atol=math.log2(1.0 + 2.0**-11), nmse=1e-7, bias=_SHRUNK),
        "fa2 sums the probabilities after rounding them to float16: the base-2 logarithm "
        f"of the sum is off by log2(1 + 2^-11) = 7e-4 at most. {_SUM_SHRINKS}",
        source="flashinfer/fa2",
        constant="fp16",
    ),
)
# PQuantize in hopper/variants.cuh multiplies by 448, and mma_fp8 in
# hopper/quantization/mainloop_mma.cuh converts to e4m3 (FlashInfer 0.6.18)
_PROBABILITIES_IN_8_BITS = (
    "fa3 rounds 448 times each probability to e4m3: but for a row's largest, which is "
    "exact, they are off by 2^-4/sqrt(3)/1.44 = 2.5e-2 of themselves, root mean square, "
    "and so is an output of the root mean square of its row, however many keys make that "
    "small: with the largest exact 1 of 40 is off by more than 5e-2 of it, and the NMSE is "
    "6.3e-4 at most. Roundings have no direction: the norm is off by half the NMSE, 3e-4, "
    "and of 2,000 elements by 2.5e-2/sqrt(2000) = 6e-4; five times that is allowed"
)
_LOGITS_OF_8_BITS = (
    "tensor cores add the products of e4m3 by 13 bits below the largest: 132 of them "
    "make 2^-13/sqrt(3)·sqrt(132) = 8.1e-4 of a partial sum of up to 12 in base 2, 1e-2, "
    "three times which are allowed. What is below is cut off: a logit loses half of that, "
    "2^-14 of itself, in the mean, of which the bias is twice"
)
_OF_8_BITS = (
    Override(
        "output",
        Tolerance(
            1e-2,
            1e-5,
            1.5e-3,
            0.95,
            cosine=0.999,
            norm_ratio=(0.995, 1.005),
            of_row=5e-2,
        ),
        _PROBABILITIES_IN_8_BITS,
        source="flashinfer",
        constant="qe4m3",
        growth=values_moved,
    ),
    Override(
        "lse",
        Tolerance(rtol=0.0, atol=3e-2, nmse=1e-4, bias=2.0**-13),
        f"{_LOGITS_OF_8_BITS}. {_GROWS}",
        source="flashinfer",
        constant="qe4m3",
        growth=growth,
    ),
    Override(
        "output",
        Tolerance(rtol=1.2e-2, atol=8e-3, nmse=2e-5),
        "the wrappers round the output to bfloat16, multiply it by v_scale and round it "
        "again, and the reference rounds once: by half an ulp, 2^-8 at most, each time, "
        "1.2e-2 in all; weights in bfloat16 as elsewhere. Four times 2.4e-6 of the power "
        "(2^-8/sqrt(3)/1.44, squared) are 1e-5",
        source="flashinfer",
        constant="kve4m3",
        growth=values_moved,
    ),
)
_LSE_OF_ALIBI = Override(
    "lse",
    Tolerance(rtol=1e-5, atol=1e-3, nmse=1e-7),
    "the kernel's ALiBi grows with a key's place, where run()'s falls with its distance "
    "from the query: at key 4,095 the logit of the largest slope, "
    "0.84, is 3,440, in base 2 4,963, which its sum, its product with log2(e) and the "
    "LSE round by 2^-12 each, half an ulp; what it is more than ours is taken off it",
    source="flashinfer/cuda-cores",
    constant="alibi",
)

# A logit is the sum of n = 576 products at most, and its deviation is 2, or as many times
# that as `growth` says: 20 times in extreme-logits. An addition rounds a partial sum by
# 0.4·2^-24 of it, root mean square.
# Errors of random sign grow as a random walk (Higham and Mary, "A new approach to
# probabilistic rounding error analysis", SIAM J. Sci. Comput. 41, 2019): the sum is off
# by sqrt(n/2)·0.4·2^-24 of the deviation, and by less if a CPU adds it in parts.
_LOGITS = (
    "the float32 sum of a logit's 576 products is off by sqrt(576/2)·0.4·2^-24 of their "
    "deviation of 2, 8.1e-7 root mean square and 4.9e-6 at most, which is 6 times that"
)
# how a logit's error reaches weights and LSE: Blanchard, Higham and Higham, "Accurately
# computing the log-sum-exp and softmax functions", IMA J. Numer. Anal. 41, 2021
_OUTPUT = (
    "one rounding to bfloat16: half an ulp is 2^-8 at most, and its mean square 2^-14/12 "
    "of the output's at most, 5.1e-6, taken twice. Before it, a weight has its logit's "
    f"error, relative to it: {_LOGITS}; two equal weights make sqrt(2)/4·4.9 times that "
    f"of values 4.9 apart, 8.4e-6. Weights in bfloat16 would be off by up to 2^-9. {_GROWS}"
)
_LSE = (
    f"{_LOGITS}, 7e-6 in base 2; the scale, the logarithm of the sum, the peak added to "
    "it and the change of base round by 2^-24 each. The NMSE is 1.6e-13 where one key's "
    f"logit is all, and more where a few such happen to be small. {_GROWS}"
)
_TO_ORACLE = (
    Override(
        "output",
        Tolerance(rtol=2.0**-8, atol=1e-5, nmse=1e-5),
        _OUTPUT,
        source="oracle",
        growth=growth_of_values,
    ),
    Override(
        "lse",
        Tolerance(rtol=2.0**-22, atol=1e-5, nmse=1e-11),
        _LSE,
        source="oracle",
        growth=growth,
    ),
)
_LSE_OF_TWO_CALLS = tuple(
    Override(
        "lse",
        Tolerance(rtol=2.0**-21, atol=2e-5, nmse=1e-7),
        "a CPU and a GPU add the products of a logit in different orders, as a GPU does for "
        f"rows that are views; they differ by twice what one is off by: {_LSE}",
        source=f"{METAMORPHIC}{call}",
        growth=growth,
    )
    for call in ("cpu", "strided")
)
