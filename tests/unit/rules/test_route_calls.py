"""What FlashInfer passes to solutions that it finds: route-interface, route-constant."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from fnmatch import fnmatch
from typing import Any

import pytest

from generator.rules.load import load_definitions
from generator.rules.route_calls import calls, check
from generator.rules.routes import installed_as, routes_to
from tests.builders import ROOT, loaded

NO_PLACE = (
    "writes in place, and its template names no place: trace_apply passes over every "
    "solution."
)


def found(definition: Any, rule: str = "route-interface") -> list[str]:
    """Return the messages of a rule about a definition."""
    return [p.message for p in check(definition) if p.rule == rule]


def without(definition: Any, *names: str) -> Any:
    """Return a definition without some inputs."""
    left = {n: t for n, t in definition.inputs.items() if n not in names}
    return replace(definition, inputs=left)


def test_an_interface_as_the_call_has_it_is_fine() -> None:
    assert found(loaded("rmsnorm_h4096")) == []
    assert found(loaded("merge_state_h16_d256")) == []


def test_a_sum_that_is_not_returned_is_lost_in_silence() -> None:
    fused = loaded("fused_add_rmsnorm_h4096")
    assert found(fused) == [
        (
            "flashinfer.norm.fused_add_rmsnorm updates 'residual' as well, which keeps its "
            "old value in silence."
        )
    ]
    both = replace(
        fused, outputs={**fused.outputs, "residual": fused.inputs["residual"]}
    )
    assert found(both) == []


def test_a_name_of_another_function() -> None:
    assert found(loaded("rmsnorm_h5376")) == [
        (
            "flashinfer.norm.rmsnorm asks for this name, and would get what "
            "flashinfer.norm.gemma_rmsnorm computes."
        )
    ]


def test_an_argument_that_is_not_taken_raises() -> None:
    (message,) = found(loaded("gqa_paged_decode_h32_kv4_d128_ps1"))
    assert "passes 'return_lse', which the definition does not take" in message
    (message,) = found(loaded("gqa_paged_decode_h32_kv8_d128_ps64"))
    assert "does not pass 'kv_last_page_len', which has no default" in message


def test_an_argument_with_a_default_may_be_missing() -> None:
    decode = loaded("gqa_paged_decode_h32_kv8_d128_ps64")
    last = replace(decode.inputs["kv_last_page_len"], optional=True)
    flag = replace(decode.inputs["sm_scale"], name="return_lse", optional=True)
    inputs = {**decode.inputs, "kv_last_page_len": last, "return_lse": flag}
    assert found(replace(decode, inputs=inputs)) == []


def test_another_order_breaks_what_is_called_by_position() -> None:
    norm = loaded("rmsnorm_h4096")
    turned = replace(norm, inputs=dict(reversed(norm.inputs.items())))
    (message,) = found(turned)
    assert "in this order to what is not Python" in message


def test_scales_that_a_call_has_by_column_are_no_rows() -> None:
    rows = loaded("fp8_blockscale_gemm_sm90_n16384_k512")
    (message,) = found(rows)
    assert "passes 'input_scale' column by column, each padded" in message
    scale = rows.inputs["input_scale"]
    by_column = replace(scale, shape=("num_k_blocks", "padded_m"))
    assert not found(replace(rows, inputs={**rows.inputs, "input_scale": by_column}))


def test_two_outputs_of_one_place() -> None:
    """The template names no place for the sum: it would go where the rows went."""
    assert found(loaded("rmsnorm_quant_h4096")) == []
    (message,) = found(loaded("fused_add_rmsnorm_quant_h4096"))
    assert "writes 'out', 'residual' to 'out' alone, one over the other" in message


def test_what_is_written_where_the_template_says_nothing() -> None:
    """trace_apply warns, and calls the function's own kernel."""
    append = loaded("append_paged_mla_kv_cache_ckv512_kpe64")
    assert found(append) == [f"flashinfer.page.append_paged_mla_kv_cache {NO_PLACE}"]


def test_counts_that_the_template_does_not_name() -> None:
    """Met on an H100: the caller unpacks three, and a solution returns one."""
    chain = loaded("chain_speculative_sampling_v129280")
    (message,) = found(chain)
    assert "returns 'output_accepted_token_num', 'output_emitted_" in message
    counts = dict.fromkeys(("accepted", "emitted"), chain.outputs["accepted_token_ids"])
    assert not found(replace(chain, outputs={**chain.outputs, **counts}))


def test_an_output_that_no_call_returns() -> None:
    norm = loaded("rmsnorm_h4096")
    more = {**norm.outputs, "rms": norm.outputs["output"]}
    (message,) = found(replace(norm, outputs=more))
    assert "does not return 'rms'" in message


def test_a_constant_that_is_no_part_of_the_name() -> None:
    norm = loaded("rmsnorm_h4096")
    (message,) = found(norm, "route-constant")
    assert message.startswith("eps is 1e-05; calls of flashinfer.norm.rmsnorm with any")
    # no call asks for a name that states it
    assert found(loaded("rmsnorm_eps_1em5_h5120"), "route-constant") == []


def test_a_name_that_is_not_asked_for_is_nobodys() -> None:
    definition = loaded("top_k_sampling_from_probs_v128256")
    assert not [*routes_to(definition)]
    assert not [*check(definition)]


def test_every_route_has_a_call() -> None:
    """The two files of FlashInfer's templates are of one version."""
    for definition in load_definitions(ROOT).definitions:
        for api, prefix in routes_to(definition):
            assert prefix in calls()[api], definition.name


@pytest.mark.parametrize("api", sorted(calls()))
def test_the_file_says_when_each_input_is_passed(api: str) -> None:
    for call in calls()[api].values():
        assert set(call["inputs"].values()) <= {"always", "maybe", "never"}
        assert not set(call["inputs"]) & set(call["dropped"])


@pytest.mark.parametrize(
    "name",
    [
        d.name
        for d in load_definitions(ROOT).definitions
        if installed_as(d.name) != d.name and "_eps_" not in d.name
    ],
)
def test_a_definition_with_the_interface_of_calls_is_held_to_it(name: str) -> None:
    definition = loaded(name)
    ((api, _),) = routes_to(definition)
    assert api.rpartition(".")[2] in "".join(definition.tags)
    # what no definition can mend
    left = [f"{api} {NO_PLACE}"] if "gemma" in name else []
    assert found(definition) == left
    (first, *_) = definition.outputs
    one = {first: definition.outputs[first]}
    spoilt = [without(definition, [*definition.inputs][-1])]
    if "residual" in definition.inputs:
        spoilt.append(replace(definition, outputs=one))
    for other in spoilt:
        assert found(other) not in ([], left)


def test_a_name_that_states_eps_is_no_name_of_a_call() -> None:
    named = [d for d in load_definitions(ROOT).definitions if "_eps_" in d.name]
    assert [d for d in named if installed_as(d.name) != d.name]
    assert not [d.name for d in named if [*routes_to(d)]]


def test_what_breaks_in_this_dataset() -> None:
    """Published interfaces stay; docs/interop.md says what is to be done about each.

    Decode at the shards of tensor parallelism has the interface of the whole model's.
    """
    definitions = load_definitions(ROOT).definitions
    broken = [definition for definition in definitions if found(definition)]
    routed = [definition for definition in definitions if [*routes_to(definition)]]
    told = (ROOT / "docs" / "interop.md").read_text(encoding="utf-8")
    before, after = told.split(f"The other {len(routed) - len(broken)}, as")
    run = [d for d in routed if d not in broken]
    for text, in_it in ((before, broken), (after, run)):
        rows = re.findall(r"^\| (`[^|]+`) \| (\d+) \|", text, re.MULTILINE)
        groups = [re.findall("`([^`]+)`", names) for names, _ in rows]
        places = [
            [
                place
                for place, patterns in enumerate(groups)
                if any(fnmatch(definition.name, pattern) for pattern in patterns)
            ]
            for definition in in_it
        ]
        assert all(len(each) == 1 for each in places)
        assert [int(count) for _, count in rows] == [
            places.count([place]) for place in range(len(rows))
        ]
    assert f"{len(routed)} names of this dataset are asked for" in told
    assert f"The calls of {len(broken)} can't" in told
    assert Counter(definition.op_type for definition in broken) == {
        "gemm_fp8": 14,
        "gqa_paged": 32,
        "mhc": 2,
        "mla_paged": 6,
        "moe": 6,
        "page_append": 10,
        "quantization": 4,
        "rmsnorm": 13,
        "speculative_sampling": 3,
        "topk_transform": 6,
    }
