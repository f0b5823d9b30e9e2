"""Definitions needed by layers that keep a state instead of a cache."""

from __future__ import annotations

from collections.abc import Iterator

from generator.models.architectures import LINEAR
from generator.models.config import Config
from generator.models.deployed import Deployed
from generator.models.need import Need, exponent
from generator.problems.messages import show

_STATES = {"float32": "float32", "bfloat16": "bfloat16", "float16": "float16"}
_DELTA_INPUT = (
    "linear_attn.in_proj_qkvz",
    "linear_attn.in_proj_qkv",
    "linear_attn.in_proj_z",
)
_DELTA_GATES = (
    "linear_attn.in_proj_ba",
    "linear_attn.in_proj_b",
    "linear_attn.in_proj_a",
)
"""One product each in SGLang; Qwen3-Next's and Qwen3.5's modules of transformers."""
_SILU = {"silu": "silu", "swish": "silu"}


def delta_net(model: Deployed) -> Iterator[Need]:
    """Yield what gated delta nets need. Raises Failure as figures do."""
    config, deployment, norms = model.config, model.deployment, model.norms
    hidden = config.size("hidden_size")
    keys, values = (
        deployment.share(config, key, config.size(key))
        for key in ("linear_num_key_heads", "linear_num_value_heads")
    )
    key_dim = config.size("linear_key_head_dim")
    value_dim = config.size("linear_value_head_dim")
    if value_dim != key_dim:
        why = f"is {value_dim}, other than linear_key_head_dim = {key_dim}"
        config.refuse("linear_value_head_dim", why)
    # the convolution and the gated norm compute it
    config.word("hidden_act", known=_SILU, default="silu")
    of = model.projections(LINEAR)
    wide = values * value_dim
    parts = (keys * key_dim, keys * key_dim, wide, wide)
    channels, module = sum(parts) - wide, "delta net, input"
    yield from of.linear(
        module, sum(parts), hidden, *_DELTA_INPUT, parts=parts, divided="n"
    )
    yield from of.linear(
        "delta net, gates",
        2 * values,
        hidden,
        *_DELTA_GATES,
        parts=(values, values),
        divided="n",
    )
    dtypes = {"state": config.word("mamba_ssm_dtype", known=_STATES, default="float32")}
    width = config.size("linear_conv_kernel_dim", default=4)
    yield from _convolution("delta net", channels, width)
    shape = f"l2norm_qk{keys}_v{values}_d{key_dim}_k_last"
    for stage in ("decode", "prefill"):
        name = f"gdn_{stage}_{shape}"
        yield Need(f"delta net, {stage}", "gdn", name, dtypes=dtypes)
    at = ("linear_attn.norm",)
    sizes = f"h{value_dim}"
    yield _gated("delta net, gated norm", "gated_rmsnorm", sizes, norms["eps"], at)
    yield from of.linear(
        "delta net, output", hidden, wide, "linear_attn.out_proj", divided="k"
    )


def kimi_delta(model: Deployed) -> Iterator[Need]:
    """Yield what Kimi's delta attention needs. Raises Failure as figures do."""
    config, deployment, norms = model.config, model.deployment, model.norms
    hidden, dim = config.size("hidden_size"), config.size("linear_head_dim")
    key = "linear_num_heads"
    heads = deployment.share(config, key, config.size(key))
    config.word("hidden_act", known=_SILU, default="silu")
    of, wide = model.projections(LINEAR), heads * dim
    parts = (wide, wide, wide)
    at = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
    module = "delta attention, query, key and value"
    yield from of.linear(module, sum(parts), hidden, *at, parts=parts, divided="n")
    width = config.size("linear_conv_kernel_dim", default=4)
    yield from _convolution("delta attention", sum(parts), width)
    for gate, part in (("decay", "forget_gate.f"), ("output gate", "self_attn.g")):
        module = f"delta attention, {gate}"
        yield from of.linear(f"{module}, down", dim, hidden, f"{part}_a_proj")
        yield from of.linear(f"{module}, up", wide, dim, f"{part}_b_proj", divided="n")
    yield from of.linear("delta attention, beta", heads, hidden, "b_proj", divided="n")
    for stage in ("decode", "prefill"):
        name = f"kda_{stage}_h{heads}_d{dim}"
        yield Need(f"delta attention, {stage}", "kda", name)
    module, end = "delta attention, gated norm", ("self_attn.o_norm",)
    yield _gated(module, "gated_rmsnorm_sigmoid", f"h{dim}", norms["eps"], end)
    module = "delta attention, output"
    yield from of.linear(module, hidden, wide, "self_attn.o_proj", divided="k")


def mamba(model: Deployed) -> Iterator[Need]:
    """Yield what Mamba 2 needs. Raises Failure as figures do."""
    config, deployment, norms = model.config, model.deployment, model.norms
    hidden = config.size("hidden_size")
    heads = deployment.share(config, "mamba_num_heads", config.size("mamba_num_heads"))
    dim, state = config.size("mamba_head_dim"), config.size("ssm_state_size")
    groups = deployment.share(config, "n_groups", config.size("n_groups"))
    _check_steps(config)
    config.word("mamba_hidden_act", known=_SILU, default="silu")
    inner = heads * dim
    channels = inner + 2 * groups * state
    of = model.projections(LINEAR)
    bias = config.flag("use_bias")
    parts = (inner, inner, groups * state, groups * state, heads)
    yield from of.linear(
        "Mamba, input",
        sum(parts),
        hidden,
        "mixer.in_proj",
        parts=parts,
        divided="n",
        bias=bias,
    )
    word = "bias_" if config.flag("use_conv_bias", default=True) else ""
    width = config.size("conv_kernel", default=4)
    yield from _convolution("Mamba", channels, width, word)
    shape = f"h{heads}_d{dim}_s{state}_ng{groups}"
    # one state serves both stages: a definition with another dtype is another model's
    kind = config.word("mamba_ssm_cache_dtype", known=_STATES, default="float32")
    dtypes = {"state": kind}
    for stage, op_type in (("decode", "mamba_ssu"), ("prefill", "mamba_ssd")):
        name = f"{op_type}_{stage}_{shape}"
        yield Need(f"Mamba, {stage}", op_type, name, dtypes=dtypes)
    kernel, sizes = "gated_group_rmsnorm", f"h{inner}_ng{groups}"
    at = ("mixer.norm",)
    yield _gated("Mamba, gated norm", kernel, sizes, norms["eps"], at)
    yield from of.linear(
        "Mamba, output", hidden, inner, "mixer.out_proj", divided="k", bias=bias
    )


def _gated(
    module: str, kernel: str, sizes: str, eps: float, at: tuple[str, ...]
) -> Need:
    name, also = f"{kernel}_eps_{exponent(eps)}_{sizes}", (f"{kernel}_{sizes}",)
    return Need(module, "gated_rmsnorm", name, {"eps": eps}, also, at=at)


def _check_steps(config: Config) -> None:
    limit = config.get("time_step_limit")
    if limit and limit != [0.0, float("inf")] and limit != [0.0, _spelt_infinity()]:
        why = f"is {show(limit)}: definitions have no limit"
        config.refuse("time_step_limit", why)


def _spelt_infinity() -> dict[str, str]:
    """Return how transformers writes a number that JSON lacks, since 5.0."""
    return {"__float__": "Infinity"}


def _convolution(
    module: str, channels: int, width: int, bias: str = ""
) -> Iterator[Need]:
    for stage in ("fwd", "update"):
        name = f"causal_conv1d_{stage}_{bias}d{channels}_w{width}"
        label = f"{module}, convolution ({stage})"
        yield Need(label, "causal_conv1d", name, at=("conv1d",))
