"""Interfaces of attention that contradict themselves, or that no kernel takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from generator.dataset.definition import LoadedAxis, LoadedTensor
from generator.rules.interface import check
from generator.rules.load import load_definitions
from tests.builders import ROOT, loaded

DECODE = "gqa_paged_decode_h32_kv8_d128_ps1"
PREFILL = "gqa_paged_prefill_causal_h32_kv8_d128_ps1"
FP8 = "gqa_paged_decode_kve4m3_h32_kv8_d128_ps64"
HND = "gqa_paged_decode_hnd_h32_kv8_d128_ps64"
MASKED = "gqa_paged_prefill_custom_mask_h32_kv8_d128_ps64"
CHUNKED = "chunked_attention_prefill_c8192_h40_kv8_d128"
MLA = "mla_paged_decode_kve4m3_h16_ckv512_kpe64_ps64"


def found(definition: Any) -> list[tuple[str, str, str]]:
    """Return rule, pointer and message of the Problems of a definition."""
    return [(p.rule, p.pointer, p.message) for p in check(definition)]


def dtyped(definition: Any, **dtypes: str) -> Any:
    """Return a definition with inputs of other dtypes."""
    inputs = {
        name: replace(tensor, dtype=dtypes.get(name, tensor.dtype))
        for name, tensor in definition.inputs.items()
    }
    assert dtypes.keys() <= inputs.keys()
    return replace(definition, inputs=inputs)


def with_input(definition: Any, name: str, *shape: str, dtype: str = "float32") -> Any:
    """Return a definition with one input more."""
    inputs = {**definition.inputs, name: LoadedTensor(name, shape, dtype)}
    return replace(definition, inputs=inputs)


def without(definition: Any, *names: str) -> Any:
    """Return a definition without some inputs."""
    inputs = {n: t for n, t in definition.inputs.items() if n not in names}
    return replace(definition, inputs=inputs)


def named(definition: Any, old: str, new: str) -> Any:
    """Return a definition with another name."""
    assert old in definition.name
    return replace(definition, name=definition.name.replace(old, new))


def test_the_dataset_has_no_such_interface() -> None:
    every = load_definitions(ROOT).definitions
    assert len(every) > 500
    assert {d.name: found(d) for d in every if found(d)} == {}


def test_caches_of_two_dtypes() -> None:
    (problem,) = found(dtyped(loaded(FP8), v_cache="float8_e5m2"))
    message = "'k_cache' is float8_e4m3fn, 'v_cache' float8_e5m2."
    assert problem == ("op-unsupported", "/inputs/v_cache/dtype", message)
    (problem,) = found(dtyped(loaded(MLA), kpe_cache="float8_e5m2"))
    assert problem[1] == "/inputs/kpe_cache/dtype"


def test_a_quantised_cache_has_scales_and_a_word_in_the_name() -> None:
    definition = loaded(FP8)
    begins = "'q' is bfloat16, 'k_cache' float8_e4m3fn, but "
    unscaled = "no input is a scale of the values"
    unnamed = "the name says none of fp8, e4m3, bf16, bfloat16"
    silent = named(definition, "kve4m3_", "")
    bare = without(definition, "k_scale", "v_scale")
    for wrong, why in (
        (bare, unscaled),
        (silent, unnamed),
        (without(silent, "k_scale", "v_scale"), f"{unscaled} and {unnamed}"),
    ):
        place = "/inputs/k_cache/dtype"
        assert found(wrong) == [("op-unsupported", place, f"{begins}{why}.")]
    # bytes may hold the scales of their rows
    packed = dtyped(bare, k_cache="uint8", v_cache="uint8")
    assert found(named(packed, "kve4m3", "fp8")) == []
    # sm_scale is of the logits, and alone no scale of the values
    assert "sm_scale" in bare.inputs


def test_a_query_of_another_dtype() -> None:
    (problem,) = found(dtyped(loaded(DECODE), q="float16"))
    assert problem[:2] == ("op-unsupported", "/inputs/k_cache/dtype")


@pytest.mark.parametrize("name", ["kv_indptr", "kv_indices"])
def test_page_tables_that_are_not_int32(name: str) -> None:
    definition = loaded(DECODE)
    place = f"/inputs/{name}/dtype"
    (wrong,) = found(dtyped(definition, **{name: "float32"}))
    message = f"{quoted(name)} counts or numbers pages and is float32."
    assert wrong == ("op-interface", place, message)
    (wide,) = found(dtyped(definition, **{name: "int64"}))
    message = f"{quoted(name)} is int64; the kernels read int32."
    assert wide == ("op-unsupported", place, message)
    # SGLang's Triton kernels take it
    assert found(replace(dtyped(definition, **{name: "int64"}), tags=())) == []
    assert found(replace(dtyped(definition, **{name: "int16"}), tags=()))


def quoted(name: str) -> str:
    """Return a name as messages show it."""
    return f"'{name}'"


@pytest.mark.parametrize("name", ["block_table", "block_tables", "src_page_table"])
def test_page_tables_of_other_names(name: str) -> None:
    definition = with_input(loaded(DECODE), name, "batch_size", dtype="bool")
    assert [p[:2] for p in found(definition)] == [
        ("op-interface", f"/inputs/{name}/dtype")
    ]


def test_causal_beside_a_mask() -> None:
    assert found(loaded(MASKED)) == []
    (problem,) = found(named(loaded(MASKED), "custom_mask", "causal_custom_mask"))
    message = "The name says causal, but 'custom_mask' says which keys a query sees."
    assert problem == ("op-unsupported", "/name", message)
    assert found(named(loaded(MASKED), "custom_mask", "noncausal")) == []
    # a convolution's name says causal, and its mask is of the batch
    convolution = next(
        d for d in load_definitions(ROOT).definitions if d.op_type == "causal_conv1d"
    )
    assert found(with_input(convolution, "mask", dtype="bool")) == []


MESSAGE = "The definition has a sliding window and chunks of the positions."


@pytest.mark.parametrize("window", ["w4096", "swa", "swa4096", "window4096"])
def test_a_window_beside_a_chunk(window: str) -> None:
    wrong = named(loaded(CHUNKED), "c8192", f"c8192_{window}")
    assert found(wrong) == [("op-unsupported", "/name", MESSAGE)]
    wrong = named(loaded(PREFILL), "causal", f"causal_chunk8192_{window}")
    assert found(wrong) == [("op-unsupported", "/name", MESSAGE)]


def test_windows_and_chunks_in_the_interface() -> None:
    definition = with_input(loaded(CHUNKED), "window_left", dtype="int32")
    assert found(definition) == [("op-unsupported", "/name", MESSAGE)]
    axes: Mapping[str, LoadedAxis] = {"chunk_size": LoadedAxis("chunk_size", 64)}
    definition = named(loaded(PREFILL), "causal", "causal_w64")
    assert found(definition) == []
    definition = replace(definition, axes={**definition.axes, **axes})
    assert found(definition) == [("op-unsupported", "/name", MESSAGE)]
    # chunked prefill is how a server cuts a prompt, not what attention sees
    assert found(named(loaded(PREFILL), "prefill_causal", "chunked_prefill_w64")) == []


@pytest.mark.parametrize(
    ("function", "fits"),
    [
        ("flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper", True),
        ("flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper", True),
        ("flashinfer.decode.trtllm_batch_decode_with_kv_cache", True),
        ("flashinfer.decode.single_decode_with_kv_cache", False),
        ("flashinfer.pod.PODWithPagedKVCacheWrapper", False),
        ("flashinfer.not_known", True),
    ],
)
def test_sinks_beside_a_function_without_them(function: str, fits: bool) -> None:
    definition = replace(loaded(DECODE), tags=("stage:decode", f"fi_api:{function}"))
    assert found(definition) == []
    message = f"{function} has no parameter for 'sinks'."
    problem = ("op-unsupported", "/tags/1", message)
    assert found(with_input(definition, "sinks", "num_qo_heads")) == (
        [] if fits else [problem]
    )


def test_a_layout_that_the_shape_contradicts() -> None:
    assert found(loaded(HND)) == []
    first, second = found(named(loaded(HND), "hnd", "nhd"))
    message = "Name or tags say nhd, but 'k_cache' is ['num_pages', 'num_kv_heads', "
    message += "'page_size', 'head_dim'], which is hnd."
    assert first == ("op-interface", "/inputs/k_cache/shape", message)
    assert second[:2] == ("op-interface", "/inputs/v_cache/shape")
    plain = loaded(DECODE)
    tagged = replace(plain, tags=(*plain.tags, "layout:HND"))
    assert [p[0] for p in found(tagged)] == ["op-interface", "op-interface"]
    assert found(replace(plain, tags=(*plain.tags, "layout:NHD"))) == []


def test_what_is_no_attention_is_left_alone() -> None:
    definition = named(loaded("gemm_bf16_n128_k4096"), "gemm", "gemm_hnd_causal_swa")
    assert found(with_input(definition, "mask", dtype="bool")) == []
