"""Products of models that are trained: what their backward passes multiply."""

from __future__ import annotations

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.reference_text import reference_text
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import MEMORY_LIMIT
from generator.ops.workloads.tokens import LLAMA, size_of

DGRAD, WGRAD, MAIN = "gemm_dgrad", "gemm_wgrad", "gemm_wgrad_f32"
# features out and in of qkv, o, gate-up (or up), down: models
PRODUCTS = {
    (2304, 768): ("gpt2",),
    (768, 768): ("gpt2",),
    (3072, 768): ("gpt2",),
    (768, 3072): ("gpt2",),
    (3072, 2048): ("llama-3.2-1b",),
    (2048, 2048): ("llama-3.2-1b",),
    (16384, 2048): ("llama-3.2-1b",),
    (2048, 8192): ("llama-3.2-1b",),
    (6144, 4096): ("llama-3.1-8b", "qwen3-8b"),
    (4096, 4096): ("llama-3.1-8b", "qwen3-8b"),
    (28672, 4096): ("llama-3.1-8b",),
    (4096, 14336): ("llama-3.1-8b",),
}
# weights whose gradient is added up in float32 over micro-batches
IN_FLOAT32 = ((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336))
_WHAT = {
    DGRAD: "Gradient of the activations of C = A @ B.T: grad_C @ B, rounded to bfloat16.",
    WGRAD: (
        "Gradient of the weight of C = A @ B.T: grad_C.T @ A, summed over all tokens and"
        " rounded to bfloat16."
    ),
    MAIN: (
        "Gradient of the weight of C = A @ B.T: grad_C.T @ A, summed over all tokens, in"
        " float32, as it is added up over micro-batches."
    ),
}


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return (
        *(
            gradient_spec(kind, n, k, models)
            for kind in (DGRAD, WGRAD)
            for (n, k), models in PRODUCTS.items()
        ),
        *(gradient_spec(MAIN, n, k, PRODUCTS[n, k]) for n, k in IN_FLOAT32),
    )


def gradient_spec(kind: str, n: int, k: int, models: tuple[str, ...]) -> Spec:
    """Return the definition of one gradient of one product."""
    gradient = Tensor(("M", "N"), "bfloat16", "Gradient of the product.")
    if kind == DGRAD:
        other = {"B": Tensor(("N", "K"), "bfloat16", "The weight.")}
        outputs = {"grad_A": Tensor(("M", "K"), "bfloat16", "Gradient of A.")}
    else:
        dtype = "float32" if kind == MAIN else "bfloat16"
        other = {"A": Tensor(("M", "K"), "bfloat16", "The activations.")}
        name = "main_grad" if kind == MAIN else "grad_B"
        outputs = {name: Tensor(("N", "K"), dtype, "Gradient of the weight.")}
    return Spec(
        name=f"{kind}_n{n}_k{k}",
        description=f"{_WHAT[kind]} Sums are float32.",
        op_type="gemm_backward",
        tags=(*(f"model:{model}" for model in models), "mode:training"),
        axes={
            "M": Axis("Tokens of a batch."),
            "N": Axis("Output features.", n),
            "K": Axis("Input features.", k),
        },
        inputs={"grad_C": gradient, **other},
        outputs=outputs,
        reference=reference_text("gemm_backward", kind),
        captured_from=LLAMA,
        captured_op_type="gemm",
        fits=rows_fit,
    )


def rows_fit(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether a float32 copy of each input and output fits in memory."""
    tensors = (*spec.inputs.values(), *spec.outputs.values())
    sizes = (size_of(spec, t.shape or (), captured.axes["M"]) for t in tensors)
    return all(4 * size <= MEMORY_LIMIT for size in sizes)
