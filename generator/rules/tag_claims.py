"""Claims of tags about production: the function, the model's share, the scale layout."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from generator.dataset.definition import LoadedDefinition
from generator.dataset.model_figures import model_figures, usual_spelling
from generator.ops.registry import op_specs
from generator.problems import Problem, warning
from generator.problems.messages import quote

TAG_KERNEL = warning("""tag-kernel: FlashInfer has a function for what the definition
    computes, its tests call it, and no fi_api: tag names it.
    Fix: Add the tag: searches, and the rules of calls, know a function by it alone.
    Finds: gemm_bf16_n128_k4096 without fi_api:flashinfer.gemm.mm_bf16""")
TAG_PARALLEL = warning("""tag-parallel: A tag of parallelism contradicts the shapes.
    Fix: Remove the tag, or divide the axis by it.
    Finds: tp:8 on experts of intermediate_size 8192, which is the whole of
    llama-4-scout's""")
TAG_SPELLING = warning("""tag-spelling: A model has two names in tags, so that a search for
    one misses the other.
    Fix: Use the usual name.
    Finds: model:qwen3-next where others say model:qwen3-next-80b-a3b""")
TAG_LAYOUT = warning("""tag-layout: A quantiser gives scales row by row; production's
    matrix products read the layout 128x4, which FlashInfer's function gives by default.
    Fix: Give the scales in that layout (rows padded to 128, columns to 4), or say that
    they are row by row with the tag layout:linear.
    Finds: nvfp4_quantize_k4096 with scales [M, num_blocks] and no such tag""")

_SWIZZLED = (
    "flashinfer.quantization.fp4_quantize",
    "flashinfer.quantization.mxfp4_quantize",
    "flashinfer.quantization.mxfp8_quantize",
    "flashinfer.quantization.nvfp4_quantize",
)
"""Functions whose scales have the layout 128x4 unless another one is asked for."""

_EXPERTS = ("moe_intermediate_size", "intermediate_size")


def check(definition: LoadedDefinition) -> Iterator[Problem]:
    """Yield a Problem for each claim of the tags that the definition contradicts."""
    yield from _kernel(definition)
    yield from _spelling(definition)
    yield from _parallel(definition)
    if definition.tag_values("fi_api") and not definition.tag_values("layout"):
        yield from _layout(definition)


def _kernel(definition: LoadedDefinition) -> Iterator[Problem]:
    """Yield a Problem without the tag that the op_type has for such names."""
    spec = op_specs().get(definition.op_type)
    symbol = None if spec is None else spec.kernel_of(definition.name)
    named = definition.tag_values("fi_api")
    if symbol is not None and not named:
        yield TAG_KERNEL.at(f"The tag {quote(f'fi_api:{symbol}')} is missing.", "tags")


def _spelling(definition: LoadedDefinition) -> Iterator[Problem]:
    for index, tag in enumerate(definition.tags):
        key, _, value = tag.partition(":")
        usual = usual_spelling(value) if key == "model" else value
        if usual != value:
            yield TAG_SPELLING.at(
                f"{quote(value)} is {quote(usual)} elsewhere.", "tags", index
            )


def _layout(definition: LoadedDefinition) -> Iterator[Problem]:
    if not any(api in _SWIZZLED for api in definition.tag_values("fi_api")):
        return
    scales = list(definition.outputs.items())[1:2]
    for name, tensor in scales:
        if tensor.shape is not None and "num_blocks" in tensor.shape:
            yield TAG_LAYOUT.at(
                f"{quote(name)} is {list(tensor.shape)}, one row a token.",
                "outputs",
                name,
            )


def _parallel(definition: LoadedDefinition) -> Iterator[Problem]:
    """Yield a Problem for each tp: or ep: that no model's figure explains.

    Of experts that ep does not divide, tp divides the intermediate size.
    """
    spec = op_specs().get(definition.op_type)
    models = [
        figures
        for model in definition.tag_values("model")
        if (figures := model_figures().get(model))
    ]
    if spec is None or not models:
        return
    axes = definition.const_axes
    stated = {
        key: [
            int(v) for v in definition.tag_values(key) if v.isdecimal() and len(v) < 6
        ]
        for key in ("tp", "ep")
    }
    for key, counts in stated.items():
        for axis, figure in spec.figures.items():
            if figure.parallel != key or axis not in axes or len(counts) < 2:
                continue
            for count in counts:
                wholes = {_first(f, figure.names) for f in models} - {None}
                shares = {max(1, w // count) for w in wholes if w and count}
                if shares and axes[axis] not in shares:
                    yield TAG_PARALLEL.at(
                        f"{key}:{count} says {' or '.join(map(str, sorted(shares)))} of "
                        f"{axis}, which is {axes[axis]}.",
                        "tags",
                    )
    size = axes.get("intermediate_size")
    is_expert = definition.op_type in ("moe", "moe_experts")
    if not is_expert or size is None or any(count > 1 for count in stated["ep"]):
        return
    wholes = {_first(figures, _EXPERTS) for figures in models}
    for count in stated["tp"]:
        if count > 1 and size in wholes:
            yield TAG_PARALLEL.at(
                f"tp:{count} divides intermediate_size, which is the whole {size}.",
                "tags",
            )


def _first(figures: Mapping[str, object], names: tuple[str, ...]) -> int | None:
    """Return the first of some figures that a model has."""
    values = (figures.get(name) for name in names)
    return next((v for v in values if isinstance(v, int) and v > 0), None)
