"""Reference tests of op_type probs.

Rendered: don't edit. `gen-tests --op-type probs` renders this file anew.

Each class tests one definition: what its `run()` returns for the inputs of each case in
`cases`, and of the dataset's workloads, is compared with
- FlashInfer's kernels, live, on a CUDA device
- SGLang's layers, live, in a process of their own
- what these kernels returned when they were recorded, anywhere
- an independent float64 implementation in PyTorch, `oracle`, anywhere
- what it returns for related inputs, `relations`, anywhere
A recorded output has the tolerance of its kernel.

Begin at `# ---- the tests`: there stands each reference, with its tolerances above it and
the definitions that have it below. Before that stand the op (cases, inputs, oracle, how
kernels are called) and the interfaces. docs/tests.md of gen-tests lists the tests of a
class; kernel_judge/comparison/tolerance.py has the default tolerance of each dtype.
"""

from __future__ import annotations

import sys
from typing import Any

import torch

from generator.ops.op_types.probs.inputs import row_inputs
from generator.ops.op_types.probs.relations import row_relations
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.comparison.tolerance import EXACT, Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition, Interface
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# relations: generator.ops.op_types.probs.relations

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


# ---- the interfaces

INTERFACE_SOFTMAX = Interface(
    inputs={
        "logits": "float32[batch_size, vocab_size]",
        "temperature": "float32[batch_size]",
    },
    outputs={"probs": "float32[batch_size, vocab_size]"},
)
INTERFACE_TOP_K_MASK_LOGITS = Interface(
    inputs={"logits": "float32[batch_size, vocab_size]", "top_k": "int32[batch_size]"},
    outputs={"masked_logits": "float32[batch_size, vocab_size]"},
)
INTERFACE_TOP_K_RENORM_PROBS = Interface(
    inputs={"probs": "float32[batch_size, vocab_size]", "top_k": "int32[batch_size]"},
    outputs={"renorm_probs": "float32[batch_size, vocab_size]"},
)
INTERFACE_TOP_P_RENORM_PROBS = Interface(
    inputs={"probs": "float32[batch_size, vocab_size]", "top_p": "float32[batch_size]"},
    outputs={"renorm_probs": "float32[batch_size, vocab_size]"},
)

# ---- the tests


class ProbsTests(
    GroundTruthsAgree, matches("flashinfer", "sglang"), MatchesRecorded, Metamorphic
):
    """What the tests of probs share."""

    op_type = "probs"
    sizes = ("small", "medium")
    op = OP


# fmt: off
# ruff: noqa: RUF012 - axes are read, never changed
# Each reference with its tags, then a class for each definition that has it.
# How to read its tolerances:
# - |actual - expected| <= atol + rtol * |expected| for each element, and the squared errors
#   are at most NMSE of the squared expected values. An atol* grows with the case's values.
# - The first row counts that fits the output, the source (the oracle, or a kernel as
#   provider/backend) and, after `in`, the case. Some definitions do not call all kernels.
# - Errors of one sign, a factor or an offset, are bounded beside that: "Errors with a sign"
#   in docs/evaluate.md of gen-tests.
# Reasons in short; `TOLERANCES`, or the module of bounds named above, derives them in full:
# (1) the quotient of logit and temperature, and its product with log2(e), round by
# 2^-24 of themselves.
# (2) logits are kept as they are, or left out.
# (3) a float32 sum has at most 300 roundings of 2^-24 in a kernel's threads and the
# tree above them, 1.8e-5, and one division.


# Divides each row's logits by its temperature and returns the softmax. In float32.
# fi_api:flashinfer.sampling.softmax
# Tolerances:
#   output  source                      rtol   atol   NMSE   reason
#   probs   oracle, flashinfer, sglang  2e-05  1e-30  1e-10  (1)
def reference_softmax():
    import torch


    @torch.no_grad()
    def run(logits: torch.Tensor, temperature: torch.Tensor) -> torch.Tensor:
        exponents = logits / temperature.unsqueeze(1)
        powers = (exponents - exponents.amax(dim=1, keepdim=True)).exp()
        # torch.softmax() adds a row up one after the other, sum() in pairs: more precise.
        return powers / powers.sum(dim=1, keepdim=True)

    return run


class SoftmaxBase(ProbsTests):
    reference = staticmethod(reference_softmax)
    interface = INTERFACE_SOFTMAX

class TestSoftmaxV100352(SoftmaxBase):
    name = "softmax_v100352"  # model:granite-4.1-8b, model:phi-4-14b
    axes = {"vocab_size": 100352}
    sha256 = "2f9d9f5b8b4f99c548e3c97b450e2e2cab615c4782a9d93a35a4c477354da7dd"

# model:llama-3.1-8b, model:llama-3.1-70b, model:llama-3.1-405b, model:llama-3.2-3b,
# model:llama-3.3-70b
class TestSoftmaxV128256(SoftmaxBase):
    name = "softmax_v128256"
    axes = {"vocab_size": 128256}
    sha256 = "9be98d1cda414feb4b2f7f4a6f005f8d6b70b80202a517ea3bd9443df4a9ecc1"

class TestSoftmaxV129280(SoftmaxBase):
    name = "softmax_v129280"  # model:deepseek-v3, model:deepseek-r1
    axes = {"vocab_size": 129280}
    sha256 = "512f3149ece7c5d8f3859dbf3b8690a2eda1a32c6ce87b548ec330e4b7228f22"

# model:qwen3-8b, model:qwen3-14b, model:qwen3-30b-a3b, model:qwen3-32b,
# model:qwen3-235b-a22b
class TestSoftmaxV151936(SoftmaxBase):
    name = "softmax_v151936"
    axes = {"vocab_size": 151936}
    sha256 = "99667db3c33e161ac7c4e2bafa70ef1ff2be476ebde73de423d364c70b47a4f5"

class TestSoftmaxV152064(SoftmaxBase):
    name = "softmax_v152064"  # model:qwen2.5-7b, model:qwen2.5-72b
    axes = {"vocab_size": 152064}
    sha256 = "886dd841aaca241ee6cd53234a00ee666d7ce3a53e3e36b08dc431930c38f164"

class TestSoftmaxV200064(SoftmaxBase):
    name = "softmax_v200064"  # model:minimax-m2
    axes = {"vocab_size": 200064}
    sha256 = "9ab558134bf61fa0957fcbdcd630cb03a9ce16abdbba7df0fd99a3a7de708a05"

class TestSoftmaxV201088(SoftmaxBase):
    name = "softmax_v201088"  # model:gpt-oss-20b, model:gpt-oss-120b
    axes = {"vocab_size": 201088}
    sha256 = "b4542b72282bada1005a867aeb4aeb41e18c60300300f860b051d429e34faad3"

class TestSoftmaxV202048(SoftmaxBase):
    name = "softmax_v202048"  # model:llama-4-scout
    axes = {"vocab_size": 202048}
    sha256 = "eeb21ff5430914852c347740460374730b61a7250558315d868307fad2845c92"

class TestSoftmaxV262208(SoftmaxBase):
    name = "softmax_v262208"  # model:gemma-3-27b
    axes = {"vocab_size": 262208}
    sha256 = "1962f70ebb23da1ff1f83c3d0bb479b15ccee0b59bdca08a17135bd970b7af77"

# model:mistral-7b-v0.1, model:mixtral-8x7b, model:mixtral-8x22b
class TestSoftmaxV32000(SoftmaxBase):
    name = "softmax_v32000"
    axes = {"vocab_size": 32000}
    sha256 = "7fa4147918f91717064e569298fc337a0455bf1a1b2f155b2a2d950541c6fa14"


# Keeps each row's k largest logits as they are and returns minus infinity elsewhere.
# Tokens that tie with the last one kept are kept as well. In float32.
# fi_api:flashinfer.sampling.top_k_mask_logits
# Tolerances:
#   output         source                      rtol   atol  NMSE  reason
#   masked_logits  oracle, flashinfer, sglang  exact              (2)
def reference_top_k_mask_logits():
    import torch


    @torch.no_grad()
    def run(logits: torch.Tensor, top_k: torch.Tensor) -> torch.Tensor:
        # A k beyond the vocabulary leaves out nothing.
        k = top_k.long().clamp(max=logits.shape[1])
        largest = logits.topk(int(k.max()), dim=1).values
        least = largest.gather(1, k.unsqueeze(1) - 1)
        return logits.masked_fill(logits < least, float("-inf"))

    return run


class TopKMaskLogitsBase(ProbsTests):
    reference = staticmethod(reference_top_k_mask_logits)
    interface = INTERFACE_TOP_K_MASK_LOGITS

# model:llama-3.1-8b, model:llama-3.1-70b, model:llama-3.1-405b, model:llama-3.2-3b,
# model:llama-3.3-70b
class TestTopKMaskLogitsV128256(TopKMaskLogitsBase):
    name = "top_k_mask_logits_v128256"
    axes = {"vocab_size": 128256}
    sha256 = "db804c3de3ab8b2839b24edecbd201742949b7408514d1e0a5369fbcb1ada664"

# model:qwen3-8b, model:qwen3-14b, model:qwen3-30b-a3b, model:qwen3-32b,
# model:qwen3-235b-a22b
class TestTopKMaskLogitsV151936(TopKMaskLogitsBase):
    name = "top_k_mask_logits_v151936"
    axes = {"vocab_size": 151936}
    sha256 = "d3bf528d92b4585f99beba0749c77445f5f52bcc3e67a99d3092248f7aea1842"


# Keeps each row's k most probable tokens, divides their probabilities by their sum and
# returns 0 elsewhere. Tokens that tie with the last one kept are kept as well. In
# float32.
# fi_api:flashinfer.sampling.top_k_renorm_probs
# Tolerances:
#   output        source                      rtol   atol   NMSE   reason
#   renorm_probs  oracle, flashinfer, sglang  2e-05  1e-30  1e-10  (3)
def reference_top_k_renorm_probs():
    import torch


    @torch.no_grad()
    def run(probs: torch.Tensor, top_k: torch.Tensor) -> torch.Tensor:
        # A k beyond the vocabulary leaves out nothing.
        k = top_k.long().clamp(max=probs.shape[1])
        largest = probs.topk(int(k.max()), dim=1).values
        least = largest.gather(1, k.unsqueeze(1) - 1)
        kept = probs.masked_fill(probs < least, 0.0)
        return kept / kept.sum(dim=1, keepdim=True)

    return run


class TopKRenormProbsBase(ProbsTests):
    reference = staticmethod(reference_top_k_renorm_probs)
    interface = INTERFACE_TOP_K_RENORM_PROBS

class TestTopKRenormProbsV100352(TopKRenormProbsBase):
    name = "top_k_renorm_probs_v100352"  # model:granite-4.1-8b, model:phi-4-14b
    axes = {"vocab_size": 100352}
    sha256 = "4c17cec9d6ff1863854b236f2e71b358d7155e86f1cf1b6de75a32779cfebf74"

# model:llama-3.1-8b, model:llama-3.1-70b, model:llama-3.1-405b, model:llama-3.2-3b,
# model:llama-3.3-70b
class TestTopKRenormProbsV128256(TopKRenormProbsBase):
    name = "top_k_renorm_probs_v128256"
    axes = {"vocab_size": 128256}
    sha256 = "27b43446d3b571a8eb431b86e31ba2b619139d38571e7cf81e65c11bd72e85eb"

class TestTopKRenormProbsV129280(TopKRenormProbsBase):
    name = "top_k_renorm_probs_v129280"  # model:deepseek-v3, model:deepseek-r1
    axes = {"vocab_size": 129280}
    sha256 = "904044d903b25cde36c8e6b962d0404aa5a61681fb6e2fc2d2355585dade8e39"

# model:qwen3-8b, model:qwen3-14b, model:qwen3-30b-a3b, model:qwen3-32b,
# model:qwen3-235b-a22b
class TestTopKRenormProbsV151936(TopKRenormProbsBase):
    name = "top_k_renorm_probs_v151936"
    axes = {"vocab_size": 151936}
    sha256 = "060d7fc79f9b38dbf169bc209e1735517523e46bc5f8bb1c20e1fc89751a08a3"

class TestTopKRenormProbsV152064(TopKRenormProbsBase):
    name = "top_k_renorm_probs_v152064"  # model:qwen2.5-7b, model:qwen2.5-72b
    axes = {"vocab_size": 152064}
    sha256 = "ec74b117be9ce60fe70eaee29200d200013428f315d6e8641b8174bb01fb7566"

class TestTopKRenormProbsV200064(TopKRenormProbsBase):
    name = "top_k_renorm_probs_v200064"  # model:minimax-m2
    axes = {"vocab_size": 200064}
    sha256 = "ce1c6a52c900f194ec19e803f1b866665e0f0168bd66cc36d968f0077788880f"

class TestTopKRenormProbsV201088(TopKRenormProbsBase):
    name = "top_k_renorm_probs_v201088"  # model:gpt-oss-20b, model:gpt-oss-120b
    axes = {"vocab_size": 201088}
    sha256 = "3b15d7c85ba488bdf37a762c6f102530af56ea01c620b8d48af0304ef9d733ae"

class TestTopKRenormProbsV202048(TopKRenormProbsBase):
    name = "top_k_renorm_probs_v202048"  # model:llama-4-scout
    axes = {"vocab_size": 202048}
    sha256 = "f8c447c32ed3d7fa2ec94808972b33cffe7dba28f887c20389927de59a0ae1c7"

class TestTopKRenormProbsV262208(TopKRenormProbsBase):
    name = "top_k_renorm_probs_v262208"  # model:gemma-3-27b
    axes = {"vocab_size": 262208}
    sha256 = "eae1a6f5309f788431a8b675e79494f0b434d26276438913bdae71766b9dd155"

# model:mistral-7b-v0.1, model:mixtral-8x7b, model:mixtral-8x22b
class TestTopKRenormProbsV32000(TopKRenormProbsBase):
    name = "top_k_renorm_probs_v32000"
    axes = {"vocab_size": 32000}
    sha256 = "8c1c127a7738524c627f1720e65e5f3a7539ddfc11232c1a3394cdf0d3c0c386"


# Keeps each row's most probable tokens until they hold at least p, the one that crosses
# p included, divides their probabilities by their sum and returns 0 elsewhere. Tokens
# that tie with the last one kept are kept as well. In float32.
# fi_api:flashinfer.sampling.top_p_renorm_probs
# Tolerances: those of reference_top_k_renorm_probs.
def reference_top_p_renorm_probs():
    import torch


    @torch.no_grad()
    def run(probs: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
        falling = probs.sort(dim=1, descending=True).values
        # A token counts while those before it fall short of p: the one that reaches p does.
        before = falling.cumsum(dim=1) - falling
        count = (before < top_p.unsqueeze(1)).sum(dim=1, keepdim=True)
        least = falling.gather(1, count - 1)
        kept = probs.masked_fill(probs < least, 0.0)
        return kept / kept.sum(dim=1, keepdim=True)

    return run


class TopPRenormProbsBase(ProbsTests):
    reference = staticmethod(reference_top_p_renorm_probs)
    interface = INTERFACE_TOP_P_RENORM_PROBS

class TestTopPRenormProbsV100352(TopPRenormProbsBase):
    name = "top_p_renorm_probs_v100352"  # model:granite-4.1-8b, model:phi-4-14b
    axes = {"vocab_size": 100352}
    sha256 = "4d3521e49099be7a0b3bdc98f8fdd5fd597a9913b05ff0f1867d00ca4d3e67a9"

# model:llama-3.1-8b, model:llama-3.1-70b, model:llama-3.1-405b, model:llama-3.2-3b,
# model:llama-3.3-70b
class TestTopPRenormProbsV128256(TopPRenormProbsBase):
    name = "top_p_renorm_probs_v128256"
    axes = {"vocab_size": 128256}
    sha256 = "b27cd51c73cc33ff407a2a00836d4f4d40ac5ad7baf925bdc6e4153ad07791f3"

class TestTopPRenormProbsV129280(TopPRenormProbsBase):
    name = "top_p_renorm_probs_v129280"  # model:deepseek-v3, model:deepseek-r1
    axes = {"vocab_size": 129280}
    sha256 = "11df071356b210c6068041883cd69c6a597e55d0aa4551187aec0af12d850477"

# model:qwen3-8b, model:qwen3-14b, model:qwen3-30b-a3b, model:qwen3-32b,
# model:qwen3-235b-a22b
class TestTopPRenormProbsV151936(TopPRenormProbsBase):
    name = "top_p_renorm_probs_v151936"
    axes = {"vocab_size": 151936}
    sha256 = "dbe1088a795e4dbf52a36233939347081fcf412881da62cc76e0ab866acb1a85"

class TestTopPRenormProbsV152064(TopPRenormProbsBase):
    name = "top_p_renorm_probs_v152064"  # model:qwen2.5-7b, model:qwen2.5-72b
    axes = {"vocab_size": 152064}
    sha256 = "1f360cbe356dd3d992f0f7c6cbd1a539ad577bf48a6e4776865a9e8f1e88f924"

class TestTopPRenormProbsV200064(TopPRenormProbsBase):
    name = "top_p_renorm_probs_v200064"  # model:minimax-m2
    axes = {"vocab_size": 200064}
    sha256 = "e2a757d6c858026555674f8b52094922f801236a9c4f224881666de51679e0f9"

class TestTopPRenormProbsV201088(TopPRenormProbsBase):
    name = "top_p_renorm_probs_v201088"  # model:gpt-oss-20b, model:gpt-oss-120b
    axes = {"vocab_size": 201088}
    sha256 = "eae3761d2723400abacfa705ed8a9a3cd9c10147b99c0f5b6bcfdab9ccb339ae"

class TestTopPRenormProbsV202048(TopPRenormProbsBase):
    name = "top_p_renorm_probs_v202048"  # model:llama-4-scout
    axes = {"vocab_size": 202048}
    sha256 = "3e74c390847e7df24526660f2f4f418f2ce78dc2bbf902815e1fa9911a6fc789"

class TestTopPRenormProbsV262208(TopPRenormProbsBase):
    name = "top_p_renorm_probs_v262208"  # model:gemma-3-27b
    axes = {"vocab_size": 262208}
    sha256 = "4ce4480f0b9c8d14ae8124d852c3f3655aea6c7d11246006d75c6634b55e4acf"

# model:mistral-7b-v0.1, model:mixtral-8x7b, model:mixtral-8x22b
class TestTopPRenormProbsV32000(TopPRenormProbsBase):
    name = "top_p_renorm_probs_v32000"
    axes = {"vocab_size": 32000}
    sha256 = "531d6a217ca298960fdc356619d1b989b4d85525bb5f2aa94c374a8cf80dd6e6"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
