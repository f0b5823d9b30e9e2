"""Cases and inputs serve the interface of every definition that uses them."""

from __future__ import annotations

import json

import pytest
import torch

from generator.ops.op_values import op_of
from generator.ops.registry import op_specs
from generator.running.free_memory import needed_bytes
from kernel_judge.definition import LIMITS, Case
from kernel_judge.inputs.lazy_weights import Tiled, fresh
from kernel_judge.inputs.memory import dtype_of, shape_of
from kernel_judge.inputs.repeated import repeated_inputs
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.inputs.trial import same_bits
from tests.builders import CPU, ROOT, known, sized
from tests.golden.op_types import INTERFACES, kept

FILES = sorted((ROOT / "definitions").glob("*/*.json"))
# None stands for zeros, for a default, for no buffer
# the LSE of no key, and logits of tokens that are forbidden
MAY_BE_INFINITE = {"s", "s_a", "s_b", "logits", "mask"}
MAY_BE_NONE = {"state", "scale", "intermediate_states_buffer"}
# weights of so many experts are for a GPU
TOO_LARGE = kept("too_large")
# cases past limits are for a GPU, of which the largest that is used is one H200
H200_BYTES = 139e9
KINDS = {"bool": bool, "int32": int, "int64": int}
PAGED = [n for n in INTERFACES if "kv_indices" in known(n).interface.inputs]


def is_for_a_gpu(definition, case):
    """Return whether a case past limits takes more than a GiB to run."""
    peak_bytes = op_of(definition.op_type).peak_bytes
    needed = needed_bytes(definition, case, peak_bytes)
    return case.size == LIMITS and needed > 2**30


def made_inputs(definition, case):
    """Return a case's inputs as a test makes them: slices of some come in turn."""
    make_inputs = op_of(definition.op_type).make_inputs
    stream = Stream(definition.name, case.name)
    return repeated_inputs(make_inputs, definition, case, stream)


def test_every_interface_of_the_repository_is_among_these():
    def key(path):
        value = json.loads(path.read_text("utf-8"))
        if value["op_type"] not in op_specs():
            return None
        return value["op_type"], tuple(value["inputs"])

    covered = {(known(n).op_type, tuple(known(n).interface.inputs)) for n in INTERFACES}
    assert {key(path) for path in FILES} - {None} == covered


@pytest.mark.parametrize("op_type", op_specs())
def test_an_op_module_has_what_the_harness_asks_for(op_type):
    op = op_of(op_type)
    assert op.oracle is not None
    assert op.kernels
    for override in op.tolerances:
        assert len(override.reason) > 20, f"say why {override.output} has this bound"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_definition_has_cases_that_fit_a_laptop(path):
    definition = known(path.stem)
    cases = op_of(definition.op_type).cases(definition)
    names = [case.name for case in cases]
    assert len(set(names)) == len(names)
    sizes = {case.size for case in cases}
    assert sizes == {"small", "medium", "large", LIMITS}, "a case of each size"
    for case in cases:
        # every axis has a length, else a case's bytes could not be known
        peak_bytes = op_of(definition.op_type).peak_bytes
        needed = needed_bytes(definition, case, peak_bytes)
        if case.size == "small":
            assert (needed < 16 * 2**30) == (path.stem not in TOO_LARGE)
        if case.size == LIMITS:
            assert needed < H200_BYTES, case.name


@pytest.mark.parametrize("name", INTERFACES)
@pytest.mark.parametrize("size", ["small", "medium", LIMITS])
def test_inputs_are_those_of_the_interface(name, size):
    definition = sized(name, **INTERFACES[name])
    op = op_of(definition.op_type)
    for case in op.cases(definition):
        if case.size != size or is_for_a_gpu(definition, case):
            continue
        inputs = made_inputs(definition, case)
        assert list(inputs) == list(definition.interface.inputs)
        axes = {**definition.axes, **case.axes}
        for key, spec in definition.interface.input_specs.items():
            value = inputs[key]
            if value is None:
                assert key in MAY_BE_NONE
                continue
            if spec.shape is None:
                assert type(value) is KINDS.get(spec.dtype, float), key
                continue
            if isinstance(value, Tiled):
                value = fresh(value, CPU)
            assert tuple(value.shape) == shape_of(spec, axes), (case.name, key)
            assert value.dtype == dtype_of(spec.dtype), key
            assert value.is_contiguous(), key
            assert value.device.type == "cpu"
            assert not bool(value.double().isnan().any()), (case.name, key)
            assert key in MAY_BE_INFINITE or bool(torch.isfinite(value.double()).all())
        again = made_inputs(definition, case)
        for key in inputs:
            assert same_bits(fresh(inputs[key], CPU), fresh(again[key], CPU))


@pytest.mark.parametrize("name", PAGED)
def test_page_tables_are_structurally_valid(name):
    definition = sized(name, **INTERFACES[name])
    op = op_of(definition.op_type)
    for case in op.cases(definition):
        if case.size == "large":
            continue
        page_size = {**definition.axes, **case.axes}["page_size"]
        inputs = op.make_inputs(definition, case, Stream(name, case.name))
        indptr, pages = inputs["kv_indptr"], inputs["kv_indices"].tolist()
        assert indptr[0] == 0
        assert bool((indptr.diff() >= 0).all())
        assert indptr[-1] == len(pages)
        assert len(set(pages)) == len(pages)
        assert all(0 <= page < case.axes["num_pages"] for page in pages)
        if "qo_indptr" in inputs:
            queries = inputs["qo_indptr"]
            assert bool((queries.diff() >= 0).all())
            assert queries[-1] == case.axes["total_q"]
        if page_size > 1 and "kv_last_page_len" in inputs:
            last = inputs["kv_last_page_len"]
            assert bool(((last >= 1) & (last <= page_size)).all())
            partly = last[indptr.diff() > 0] < page_size
            assert bool(partly.any()), "no last page is partly filled"


def test_tiny_variances_are_about_eps_and_zero_rows_are_zero():
    definition = sized("fused_add_rmsnorm_h7168", hidden_size=512)
    op = op_of("rmsnorm")
    cases = {case.name: case for case in op.cases(definition)}

    def total(name):
        made = op.make_inputs(definition, cases[name], Stream(name))
        return made["hidden_states"].double() + made["residual"].double()

    eps = definition.constants["eps"]
    variance = total("tiny-variance").square().mean(dim=1)
    assert bool(((eps / 4 < variance) & (variance < 4 * eps)).all())
    rows = total("zero-rows")
    assert not rows[:2].any()
    assert bool(rows[2:].any(dim=1).all())


def test_the_products_of_gemm_are_about_one():
    definition, op = known("gemm_n128_k2048"), op_of("gemm")
    inputs = op.make_inputs(definition, op.cases(definition)[1], Stream("s"))
    assert op.oracle(definition, inputs).std().item() == pytest.approx(1.0, rel=0.2)


@pytest.mark.parametrize(
    "name",
    [
        "chain_speculative_sampling_v129280",
        "gdn_prefill_qk4_v8_d128_k_last",
        "mamba_ssd_prefill_h64_d64_s128_ng4",
        "mamba_ssu_decode_h64_d64_s128_ng4",
        "sampling_from_probs_v128256",
        "top_p_renorm_probs_v128256",
        "topk_sigmoid_e16_k1",
    ],
)
def test_a_workload_has_values_of_its_op(name):
    """It has axes and no parameters: of any values states explode, and no law is one."""
    definition = known(name)
    file = ROOT / "workloads" / definition.op_type / f"{name}.jsonl"
    lines = file.read_text("utf-8").splitlines()
    found = [json.loads(line)["workload"]["axes"] for line in lines]
    axes = min(found, key=lambda axes: sum(axes.values()))
    workload = Case("workload", "medium", axes)
    inputs = op_of(definition.op_type).make_inputs(definition, workload, Stream(name))
    assert set(inputs) == set(definition.interface.inputs)
    tensors = [v for v in inputs.values() if isinstance(v, torch.Tensor)]
    assert all(float(v.double().abs().max()) < 1e6 for v in tensors)
    for part in (n for n in inputs if n.endswith("probs")):
        assert torch.allclose(inputs[part].sum(-1), torch.ones(()))
