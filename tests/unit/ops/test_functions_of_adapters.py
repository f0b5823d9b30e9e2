"""The FlashInfer function that an adapter calls is the one that the tag names."""

from __future__ import annotations

from typing import Any

import pytest

from generator.ops.registry import op_module
from kernel_judge.inputs.trial import Trial
from tests.builders import CPU, loaded, sized
from tests.unit.ops.handed import handed_by
from tests.unit.ops.origins import Watch
from tests.unit.ops.test_adapters_do_not_compute import REPRESENTATIVES, SUBJECTS

CALLED = [
    (name, backend)
    for name, provider, backend in SUBJECTS
    # ranks need GPUs
    if provider == "flashinfer" and not name.startswith("allreduce_")
]
OTHERS = {
    "xqa": "another kernel of the same attention, without LSE",
    "dsa_sparse_attention_": "latent attention over the tokens that were chosen",
    "dsa_topk_indexer_": "the last step alone is FlashInfer's",
    "gemm_": "a product of one segment",
    "trtllm_fp4_block_scale_moe_topk1_": "experts are chosen before, as rewrites says",
    "nvfp4_quantize_": "what nvfp4_quantize calls, which has no linear layout",
    "rope_backward_": "a rotation with other sines; none is a backward pass",
    "in-steps": "norm, rotation and append, none of which is the whole",
    "rope_grid": "a rotation by a cache that its callers make of the grid",
    "mxfp4_quantize_": "what mxfp4_quantize calls, which has no linear layout",
}
"""Backend, or beginning of a name, whose adapter calls another function, and why."""


def functions(name: str, backend: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the last part of each function of FlashInfer that an adapter calls."""
    called: list[str] = []
    hand = Watch.hand

    def listening(self: Watch, where: str, *values: Any, **keywords: Any) -> Any:
        called.append(where)
        return hand(self, where, *values, **keywords)

    monkeypatch.setattr(Watch, "hand", listening)
    definition = sized(name, **REPRESENTATIVES[name])
    op = op_module(definition.op_type)
    case = next(c for c in op.cases(definition) if c.size == "small")
    inputs = Trial(definition, case, CPU, op.make_inputs, lambda: None).fresh_inputs()
    handed_by(op.flashinfer_ground_truth, definition, inputs, backend)
    return [where.rpartition(".")[2] for where in called if "()" not in where]


@pytest.mark.parametrize(("name", "backend"), CALLED)
def test_an_adapter_calls_what_the_tag_names(
    name: str, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = functions(name, backend, monkeypatch)
    tags = loaded(name).tag_values("fi_api")
    # some work in place of copies that their adapters hand over
    wanted = {tag.rpartition(".")[2].removesuffix("_inplace") for tag in tags}
    met = [function for function in called if function in wanted]
    reason = OTHERS.get(backend) or next(
        (why for start, why in OTHERS.items() if name.startswith(start)), None
    )
    assert called
    assert met or reason is not None, f"{called}, and the tag names {wanted}"


def test_no_exception_is_left_that_nothing_needs() -> None:
    names = {name for name, _ in CALLED}
    backends = {backend for _, backend in CALLED}
    for other in OTHERS:
        assert other in backends or any(name.startswith(other) for name in names)
