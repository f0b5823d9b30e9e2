"""Interfaces of attention: caches, page tables, masks, windows, sinks and layouts.

An input's name says its part, whatever the op_type: that is how FlashInfer and SGLang
call it. Sources: FlashInfer 0.7.2 (`prefill.py`, `decode.py`, `mla/_core.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from generator.dataset.definition import LoadedDefinition, LoadedTensor
from generator.ops.registry import op_specs
from generator.problems import Problem, error, warning
from generator.problems.messages import quote
from generator.rules.names import name_tokens
from generator.rules.route_calls import calls

OP_INTERFACE = error("""op-interface: The interface of an attention definition
    contradicts itself.
    Fix: Correct the one that is wrong.
    Finds: hnd in the name of a cache [num_pages, page_size, num_kv_heads, head_dim], or
    page numbers in float32""")
OP_UNSUPPORTED = warning("""op-unsupported: No production kernel takes inputs like these,
    or one would leave a part of the definition out.
    Fix: Describe what a kernel does.
    Finds: k_cache in bfloat16 beside v_cache in float8_e4m3fn; an fp8 cache without
    scales; causal beside custom_mask; sinks beside a function that takes none""")

_PAIRS = (
    ("k_cache", "v_cache"),
    ("key_cache", "value_cache"),
    ("ckv_cache", "kpe_cache"),
)
_CACHES = (*(name for pair in _PAIRS for name in pair), "kv_cache")
_QUERIES = ("q", "query", "q_nope", "q_pe")
_MASKS = ("mask", "attn_mask", "attention_mask", "custom_mask", "packed_custom_mask")
_SINKS = ("sinks", "attention_sinks")
_OF_LOGITS = ("sm_scale", "softmax_scale", "scale")
_INDICES = re.compile(
    r"(paged_)?(kv|qo)_(indptr|indices|last_page_len)|(\w+_)?(page|block)_tables?"
)
_INTEGERS = re.compile(r"u?int\d+")
# bytes may hold scales beside the values, as FlashMLA's sparse cache does
_BYTES = ("int8", "uint8")
_WORDS = {
    "float8_e4m3fn": ("fp8", "e4m3"),
    "float8_e5m2": ("fp8", "e5m2"),
    "float4_e2m1": ("fp4", "e2m1"),
    "float16": ("fp16", "float16"),
    "bfloat16": ("bf16", "bfloat16"),
    "float32": ("fp32", "float32"),
    **dict.fromkeys(_BYTES, ("fp8", "fp4", "int8", "int4")),
}
"""Dtype → the words of a name that say it."""
_SINKS_ELSEWHERE = ("flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper",)
"""Functions that take sinks by a variant or `*args`, which no trace template names."""
_PAGE_AXES = ("page_size", "block_size", "tokens_per_block")
_HEAD_AXES = ("num_kv_heads", "num_heads_kv", "num_k_heads", "num_v_heads", "num_heads")
_WINDOW = re.compile(r"swa\d*|(sliding_?)?window\d*|w\d+")
_CHUNK = re.compile(r"chunk\d+")


def check(definition: LoadedDefinition) -> Iterator[Problem]:
    """Yield a Problem for what an interface of attention can't mean, or no kernel takes."""
    inputs = definition.inputs
    yield from _indices(definition)
    caches = [inputs[name] for name in _CACHES if name in inputs]
    if caches:
        yield from _pairs(definition)
        yield from _layouts(definition, caches)
    queries = [inputs[name] for name in _QUERIES if name in inputs]
    if queries:
        yield from _query_and_caches(definition, queries[0], caches)
        yield from _masks(definition)
        yield from _windows(definition)
        yield from _sinks(definition)


def _indices(definition: LoadedDefinition) -> Iterator[Problem]:
    """Yield Problems of page tables and indptr.

    SGLang's Triton kernels read int64 too, FlashInfer's do not.
    """
    wide = () if definition.tag_values("fi_api") else ("int64",)
    for name, tensor in definition.inputs.items():
        if tensor.dtype in ("int32", *wide) or not _INDICES.fullmatch(name):
            continue
        where = ("inputs", name, "dtype")
        if not _INTEGERS.fullmatch(tensor.dtype):
            message = f"{quote(name)} counts or numbers pages and is {tensor.dtype}."
            yield OP_INTERFACE.at(message, *where, fix="Make it int32.")
        else:
            message = f"{quote(name)} is {tensor.dtype}; the kernels read int32."
            yield OP_UNSUPPORTED.at(message, *where, fix="Make it int32.")


def _pairs(definition: LoadedDefinition) -> Iterator[Problem]:
    inputs = definition.inputs
    for one, other in _PAIRS:
        if one in inputs and other in inputs:
            dtypes = inputs[one].dtype, inputs[other].dtype
            if dtypes[0] != dtypes[1]:
                message = f"{quote(one)} is {dtypes[0]}, {quote(other)} {dtypes[1]}."
                where = ("inputs", other, "dtype")
                fix = "Give both the same dtype: kernels take one for the whole cache."
                yield OP_UNSUPPORTED.at(message, *where, fix=fix)


def _query_and_caches(
    definition: LoadedDefinition, query: LoadedTensor, caches: list[LoadedTensor]
) -> Iterator[Problem]:
    """Yield a Problem where the first cache of another dtype has no scales or no word."""
    cache = next((c for c in caches if c.dtype != query.dtype), None)
    if cache is None:
        return
    lacking = []
    scaled = (n for n in definition.inputs if "scale" in n and n not in _OF_LOGITS)
    if cache.dtype not in _BYTES and not any(scaled):
        lacking.append("no input is a scale of the values")
    words = (*_WORDS.get(cache.dtype, ()), *_WORDS.get(query.dtype, ()))
    if words and not any(word in definition.name.lower() for word in words):
        lacking.append(f"the name says none of {', '.join(words)}")
    if lacking:
        message = f"{quote(query.name)} is {query.dtype}, {quote(cache.name)} "
        message += f"{cache.dtype}, but {' and '.join(lacking)}."
        fix = "Make the dtypes one, or add the scales as inputs and the dtype's word "
        fix += "to the name."
        where = ("inputs", cache.name, "dtype")
        yield OP_UNSUPPORTED.at(message, *where, fix=fix)


def _layouts(
    definition: LoadedDefinition, caches: list[LoadedTensor]
) -> Iterator[Problem]:
    """Yield Problems where HND or NHD, in name or tags, is not the order of the axes."""
    tags = (value.lower() for value in definition.tag_values("layout"))
    stated = {*definition.name.lower().split("_"), *tags} & {"hnd", "nhd"}
    for cache in caches if stated else ():
        shape = cache.shape or ()
        pages = [i for i, axis in enumerate(shape) if axis in _PAGE_AXES]
        heads = [i for i, axis in enumerate(shape) if axis in _HEAD_AXES]
        if len(pages) != 1 or len(heads) != 1:
            continue
        layout = "hnd" if heads < pages else "nhd"
        for word in sorted(stated - {layout}):
            message = f"Name or tags say {word}, but {quote(cache.name)} is "
            message += f"{list(shape)}, which is {layout}."
            fix = f"Write {layout}, or put the axes in the order of {word}."
            where = ("inputs", cache.name, "shape")
            yield OP_INTERFACE.at(message, *where, fix=fix)


def _masks(definition: LoadedDefinition) -> Iterator[Problem]:
    mask = next((name for name in _MASKS if name in definition.inputs), None)
    if mask is not None and "causal" in definition.name.lower().split("_"):
        message = (
            f"The name says causal, but {quote(mask)} says which keys a query sees."
        )
        fix = (
            f"Write custom_mask for causal, or remove {mask}: of the two, kernels use "
        )
        fix += "the mask alone."
        yield OP_UNSUPPORTED.at(message, "name", fix=fix)


def _windows(definition: LoadedDefinition) -> Iterator[Problem]:
    """Yield a Problem for a window and a chunk, each by name, axis or input."""
    spec = op_specs().get(definition.op_type)
    constants = {} if spec is None else spec.name_constants
    tokens = (constants.get(token, "") for token, _ in name_tokens(definition.name))
    named = [*filter(None, tokens), *definition.axes, *definition.inputs]
    parts = definition.name.lower().split("_")
    window = any(map(_WINDOW.fullmatch, parts)) or any(
        name.startswith(("window", "sliding_window")) for name in named
    )
    chunk = any(map(_CHUNK.fullmatch, parts)) or any(
        name.endswith("chunk_size") for name in named
    )
    if window and chunk:
        message = "The definition has a sliding window and chunks of the positions."
        fix = "Keep one: models have layers of either kind, and no kernel does both."
        yield OP_UNSUPPORTED.at(message, "name", fix=fix)


def _sinks(definition: LoadedDefinition) -> Iterator[Problem]:
    sinks = next((name for name in _SINKS if name in definition.inputs), None)
    for index, tag in enumerate(definition.tags if sinks else ()):
        key, _, api = tag.partition(":")
        templates = calls().get(api, {}) if key == "fi_api" else {}
        arguments = [
            n for t in templates.values() for n in (*t["inputs"], *t["dropped"])
        ]
        if not templates or api in _SINKS_ELSEWHERE:
            continue
        if not any(name in _SINKS for name in arguments):
            message = f"{api} has no parameter for {quote(sinks or '')}."
            fix = "Tag the function that takes sinks, or remove the input."
            yield OP_UNSUPPORTED.at(message, "tags", index, fix=fix)
