"""Gated delta nets of Qwen3-Next: decode, drafts to verify (mtp), and prefill."""

from __future__ import annotations

from collections.abc import Mapping

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.op_types.gdn import SPEC, workloads
from generator.ops.reference_text import reference_text

# Query and key heads, value heads, tensor parallelism.
SHARDS = ((16, 32, 1), (8, 16, 2), (4, 8, 4))
HEAD_SIZE = 128

# Rows of one token a sequence, and of all tokens one after another.
BATCH = ("batch_size", "seq_len")
TOKENS = ("total_seq_len",)
STATE = ("num_v_heads", "head_size", "head_size")
K_LAST = "keys along the last axis"
RULE = (
    "With g = exp(-exp(A_log) * softplus(a + dt_bias)) and beta = sigmoid(b), each token"
    " makes the state S of its value head g S, then adds beta (v - S k) k^T, and the"
    " output is scale * S q. States are [values, keys]; k is meant to have length 1."
)
# as engines call the kernels
L2NORM = (
    "Each query and each key x is first divided by sqrt(sum(x^2) + 1e-6). With g ="
    " exp(-exp(A_log) * softplus(a + dt_bias)) and beta = sigmoid(b), each token makes the"
    " state S of its value head g S, then adds beta (v - S k) k^T, and the output is"
    " scale * S q. States are [values, keys]."
)
HEADS_AGREE = (
    "num_v_heads >= num_q_heads",
    "num_v_heads % num_q_heads == 0",
    "num_k_heads == num_q_heads",
)
# Small ones among the captured batches, and the prefills of Qwen3-30B-A3B.
DECODE_FROM = ("rmsnorm", "fused_add_rmsnorm_h4096", workloads.DECODE_AXES)
PREFILL_FROM = (
    "gqa_paged",
    "gqa_paged_prefill_causal_h32_kv4_d128_ps1",
    workloads.PREFILL_AXES,
)


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    stages = (decode_spec, mtp_spec, prefill_spec)
    return tuple(
        stage(*shard, l2norm=l2norm)
        for l2norm in (False, True)
        for stage in stages
        for shard in SHARDS
    )


def decode_spec(qk_heads: int, v_heads: int, tp: int, *, l2norm: bool = False) -> Spec:
    """Return the definition of one token a sequence."""
    state = ("batch_size", *STATE)
    before = "Each sequence's state before, " + K_LAST + "; None is zeros."
    return _spec(
        "decode",
        (qk_heads, v_heads, tp),
        l2norm,
        description=f"Gated delta net, one token a sequence. {L2NORM if l2norm else RULE}",
        tags=("fi_api:flashinfer.gdn_decode.gated_delta_rule_decode_pretranspose",),
        axes={
            "batch_size": Axis("Number of sequences."),
            "seq_len": Axis("Tokens of each sequence.", 1),
        },
        inputs={
            **_tokens(BATCH, l2norm),
            "state": Tensor(state, "float32", before, optional=True),
            **_gates(BATCH),
            "scale": _SCALE,
        },
        outputs={
            "output": _output(BATCH),
            "new_state": Tensor(state, "float32", "Each sequence's state after."),
        },
        constraints=HEADS_AGREE,
        captured=DECODE_FROM,
    )


def mtp_spec(qk_heads: int, v_heads: int, tp: int, *, l2norm: bool = False) -> Spec:
    """Return the definition of several draft tokens a sequence."""
    pool = ("pool_size", *STATE)
    buffer = ("pool_size", "seq_len", *STATE)
    return _spec(
        "mtp",
        (qk_heads, v_heads, tp),
        l2norm,
        description=(
            f"Gated delta net over the draft tokens of each sequence. {L2NORM if l2norm else RULE} States lie"
            " in a pool, which stays as it was until the drafts are verified: it is"
            " returned unchanged. If there is a buffer, the state after token t of"
            " sequence b is written to intermediate_states_buffer[b, t]: its rows are"
            " those of the batch, not slots of the pool, and others are left alone."
        ),
        tags=SPEC.kernel_tags("gdn_mtp_"),
        axes={
            "batch_size": Axis("Number of sequences."),
            "seq_len": Axis("Tokens of each sequence."),
            "pool_size": Axis("Slots of the pool, used or not; rows of the buffer."),
        },
        inputs={
            **_tokens(BATCH, l2norm),
            "initial_state": Tensor(pool, "float32", f"Pool of states, {K_LAST}."),
            "initial_state_indices": Tensor(
                ("batch_size",), "int32", "Each sequence's slot of the pool."
            ),
            **_gates(BATCH),
            "scale": _SCALE,
            "intermediate_states_buffer": Tensor(
                buffer, "float32", "Written to: states after each token.", optional=True
            ),
        },
        outputs={
            "output": _output(BATCH),
            "final_state": Tensor(pool, "float32", "The pool, unchanged."),
        },
        constraints=(*HEADS_AGREE, "seq_len > 1"),
        captured=DECODE_FROM,
    )


def prefill_spec(qk_heads: int, v_heads: int, tp: int, *, l2norm: bool = False) -> Spec:
    """Return the definition of sequences of different lengths."""
    state = ("num_seqs", *STATE)
    before = "Each sequence's state before, " + K_LAST + "; None is zeros."
    return _spec(
        "prefill",
        (qk_heads, v_heads, tp),
        l2norm,
        description=(
            "Gated delta net over whole sequences, which lie one after another."
            f" {L2NORM if l2norm else RULE} An empty sequence keeps its state."
        ),
        tags=("fi_api:flashinfer.gdn_prefill.chunk_gated_delta_rule",),
        axes={
            "total_seq_len": Axis("Tokens of all sequences."),
            "num_seqs": Axis("Number of sequences."),
            "len_cu_seqlens": Axis("Number of sequences + 1."),
        },
        inputs={
            **_tokens(TOKENS, l2norm),
            "state": Tensor(state, "float32", before, optional=True),
            **_gates(TOKENS),
            "cu_seqlens": Tensor(
                ("len_cu_seqlens",),
                "int64",
                "Sequence b's tokens: cu_seqlens[b]:cu_seqlens[b + 1].",
            ),
            "scale": _SCALE,
        },
        outputs={
            "output": _output(TOKENS),
            "new_state": Tensor(state, "float32", "Each sequence's state after."),
        },
        constraints=(
            "len_cu_seqlens == num_seqs + 1",
            "total_seq_len == cu_seqlens[-1].item()",
        ),
        captured=PREFILL_FROM,
    )


_SCALE = Tensor(
    None, "float32", "Factor of the output; None and 0 stand for 1/sqrt(head_size)."
)


def _spec(
    stage: str,
    shard: tuple[int, int, int],
    l2norm: bool,
    *,
    description: str,
    tags: tuple[str, ...],
    axes: Mapping[str, Axis],
    inputs: Mapping[str, Tensor],
    outputs: Mapping[str, Tensor],
    constraints: tuple[str, ...],
    captured: tuple[str, str, tuple[str, ...]],
) -> Spec:
    qk_heads, v_heads, tp = shard
    heads = {
        "num_q_heads": Axis("Query heads.", qk_heads),
        "num_k_heads": Axis("Key heads, each one query head's.", qk_heads),
        "num_v_heads": Axis(
            "Value heads, each with a state. Neighbours share a key head.", v_heads
        ),
        "head_size": Axis("Length of queries, keys and values.", HEAD_SIZE),
    }
    # The pool's axis comes last in the published interface, and lengths of sequences.
    late = {n: axis for n, axis in axes.items() if n in ("pool_size", "len_cu_seqlens")}
    early = {name: axis for name, axis in axes.items() if name not in late}
    op_type, captured_from, kept_axes = captured
    return Spec(
        name=(
            f"gdn_{stage}{'_l2norm' * l2norm}_qk{qk_heads}_v{v_heads}_d{HEAD_SIZE}_k_last"
        ),
        description=description,
        op_type="gdn",
        tags=(
            f"stage:{stage}",
            f"model:{'qwen3-next-80b-a3b' if l2norm else 'qwen3-next'}",
            "layout:k-last",
            *tags,
            f"tp:{tp}",
        ),
        axes={**early, **heads, **late},
        inputs=inputs,
        outputs=outputs,
        constraints=constraints,
        reference=reference_text("gdn", f"gdn_{stage}", ["l2norm"] * l2norm),
        captured_from=captured_from,
        captured_op_type=op_type,
        kept_axes=kept_axes,
        structure=workloads.states,
        fits=workloads.states_fit,
        sm_scale=HEAD_SIZE**-0.5,
    )


def _tokens(rows: tuple[str, ...], l2norm: bool) -> dict[str, Tensor]:
    keys = "Keys." if l2norm else "Keys, of length 1."
    return {
        "q": Tensor((*rows, "num_q_heads", "head_size"), "bfloat16", "Queries."),
        "k": Tensor((*rows, "num_k_heads", "head_size"), "bfloat16", keys),
        "v": Tensor((*rows, "num_v_heads", "head_size"), "bfloat16", "Values."),
    }


def _gates(rows: tuple[str, ...]) -> dict[str, Tensor]:
    return {
        "A_log": Tensor(("num_v_heads",), "float32", "Logarithm of the decay's rate."),
        "a": Tensor((*rows, "num_v_heads"), "bfloat16", "Step, before its bias."),
        "dt_bias": Tensor(("num_v_heads",), "float32", "Bias of the step."),
        "b": Tensor(
            (*rows, "num_v_heads"), "bfloat16", "Share to replace, before the sigmoid."
        ),
    }


def _output(rows: tuple[str, ...]) -> Tensor:
    return Tensor((*rows, "num_v_heads", "head_size"), "bfloat16", "What was read.")
