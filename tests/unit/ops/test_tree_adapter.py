"""SGLang's kernel for trees of drafts, as the adapter calls it: a stand-in that loops."""

import math
import sys
from types import ModuleType

import pytest
import torch

from generator.ops.op_types.mla_paged import op
from generator.ops.op_types.mla_paged.sglang import sglang_ground_truth
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.skipping import Skip
from tests.builders import sized

NAME = "mla_paged_prefill_custom_mask_h8_ckv512_kpe64_ps64"


def looped(
    q,
    k,
    v,
    out,
    k_cache,
    v_cache,
    rows,
    before,
    slots,
    mask,
    causal,
    starts,
    *rest,
    **more,
):
    """Attend query by query: keys before the tree by slot, then those of the tree."""
    assert not more["skip_prefix_custom_mask"]
    assert not causal
    for b in range(len(rows) - 1):
        own = slice(int(rows[b]), int(rows[b + 1]))
        past = slots[int(before[b]) : int(before[b + 1])]
        keys = torch.cat((k_cache[past], k[own]))[:, 0].double()
        values = torch.cat((v_cache[past], v[own]))[:, 0].double()
        for i, row in enumerate(range(own.start, own.stop)):
            at = int(starts[b]) + i * len(keys)
            seen = mask[at : at + len(keys)].bool()
            logits = q[row].double() @ keys.T * more["sm_scale"]
            logits = logits.masked_fill(~seen, -math.inf)
            out[row] = (logits.softmax(1) @ values).to(out.dtype)
            more["lse_extend"][row] = logits.logsumexp(1)


@pytest.fixture
def answer(monkeypatch):
    path = "sglang.kernels.ops.attention.extend_attention"
    names = path.split(".")
    for end in range(1, len(names) + 1):
        monkeypatch.setitem(
            sys.modules, ".".join(names[:end]), ModuleType(names[end - 1])
        )
    sys.modules[path].extend_attention_fwd = looped

    def call(case_name):
        definition = sized(NAME, num_qo_heads=2, head_dim_ckv=32, head_dim_kpe=16)
        (case,) = (c for c in op.cases(definition) if c.name == case_name)
        inputs = op.make_inputs(definition, case, Stream(case_name))
        return sglang_ground_truth(definition, inputs, "triton"), op.oracle(
            definition, inputs
        )

    return call


@pytest.mark.parametrize("name", ["whole-prompt", "chunked", "other-scale"])
def test_the_kernel_gets_the_keys_of_the_tree_beside_the_cache(answer, name):
    (output, lse), (expected, expected_lse) = answer(name)
    torch.testing.assert_close(output.double(), expected, rtol=8e-3, atol=1e-3)
    torch.testing.assert_close(lse.double(), expected_lse, rtol=1e-5, atol=1e-5)


def test_a_sequence_of_fewer_keys_than_queries_is_skipped(answer):
    with pytest.raises(Skip, match="no more queries than keys"):
        answer("more-queries-than-keys")
