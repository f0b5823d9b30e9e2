"""Stages that keep a state: convolutions, the gated delta rule, Mamba2's state space."""

from __future__ import annotations

from typing import Any

import torch

from generator.parity.stage_context import StageContext
from generator.problems import Failure

Tensor = torch.Tensor


def delta_convolution(site: StageContext, *mixed: Tensor) -> list[Tensor]:
    """Convolve queries, keys and values of a delta net, each channel over the tokens."""
    (net,) = site.modules
    parts = _split(net, mixed[0])[:3] if _is_mixed(net) else mixed
    return [_convolved(site, net.conv1d, torch.cat(parts, dim=1))]


def _is_mixed(net: Any) -> bool:
    """Return whether a projection has q, k, v and z by key head."""
    return hasattr(net, "in_proj_qkvz")


def _split(net: Any, mixed: Tensor) -> tuple[Tensor, ...]:
    """Return q, k, v and z."""
    shared = net.num_v_heads // net.num_k_heads
    of_value = shared * net.head_v_dim
    lengths = [net.head_k_dim, net.head_k_dim, of_value, of_value]
    parts = torch.split(mixed.view(len(mixed), net.num_k_heads, -1), lengths, dim=2)
    return tuple(part.flatten(1) for part in parts)


def mamba_convolution(site: StageContext, projected: Tensor) -> list[Tensor]:
    """Convolve what Mamba's state sees, each channel over the tokens."""
    (mixer,) = site.modules
    inner = mixer.intermediate_size
    seen = projected[:, inner : inner + mixer.conv_dim]
    return [_convolved(site, mixer.conv1d, seen.contiguous())]


def _convolved(site: StageContext, module: Any, x: Tensor) -> Tensor:
    weight = module.weight.squeeze(1)
    shape = (1, weight.shape[0], weight.shape[1] - 1)
    state = site.state("conv")
    slot = torch.zeros(1, dtype=torch.int32)
    more = {} if module.bias is None else {"bias": module.bias}
    if not site.steps(x):
        outputs = _call(site, "")(
            x=x,
            conv_states=x.new_zeros(shape) if state is None else state,
            weight=weight,
            cu_seqlens=torch.tensor([0, len(x)], dtype=torch.int32),
            cache_indices=slot,
            has_initial_state=torch.tensor([state is not None]),
            **more,
        )
        site.keep("conv", outputs["new_conv_states"])
        output: Tensor = outputs["output"]
        return output
    state = x.new_zeros(shape) if state is None else state
    rows = []
    for row in torch.split(x, 1):
        outputs = _call(site, "step")(
            x=row, conv_states=state, weight=weight, cache_indices=slot, **more
        )
        state = outputs["new_conv_states"]
        rows.append(outputs["output"])
    site.keep("conv", state)
    return torch.cat(rows)


def _call(site: StageContext, role: str) -> Any:
    if role not in site.calls:
        raise Failure(f"layer {site.layer}: no definition computes {site.at}, {role}.")
    return site.calls[role]


def delta_rule(site: StageContext, convolved: Tensor, *gates: Tensor) -> list[Tensor]:
    """Read and write a delta net's state; definitions divide queries and keys by
    their length. The gates b and a are one projection's, or two."""
    (net,) = site.modules
    rows = len(convolved)
    lengths = [net.key_dim, net.key_dim, net.value_dim]
    parts = torch.split(convolved, lengths, dim=1)
    q, k = (part.reshape(rows, -1, net.head_k_dim) for part in parts[:2])
    v = parts[2].reshape(rows, -1, net.head_v_dim)
    if _is_mixed(net):
        gates = gates[0].view(rows, net.num_k_heads, 2, -1).unbind(2)
    b, a = gates
    values = {"q": q, "k": k, "v": v, "a": a.flatten(1), "b": b.flatten(1)}
    fixed = {
        "A_log": net.A_log,
        "dt_bias": net.dt_bias,
        "scale": net.head_k_dim**-0.5,
    }
    state = site.state("delta")
    if state is None:
        shape = (1, net.num_v_heads, net.head_v_dim, net.head_k_dim)
        state = torch.zeros(shape)
    if not site.steps(convolved):
        bounds = torch.tensor([0, rows])
        stepped = _call(site, "")(**values, **fixed, state=state, cu_seqlens=bounds)
        site.keep("delta", stepped["new_state"])
        return [stepped["output"].flatten(1)]
    outputs = []
    for at in range(rows):
        row = {name: value[None, at : at + 1] for name, value in values.items()}
        stepped = _call(site, "step")(**row, **fixed, state=state)
        state = stepped["new_state"]
        outputs.append(stepped["output"].reshape(1, -1))
    site.keep("delta", state)
    return [torch.cat(outputs)]


def kimi_rule(
    site: StageContext, convolved: Tensor, a: Tensor, b: Tensor
) -> list[Tensor]:
    """Read and write the state of Kimi's delta attention: a gate for each channel."""
    (net,) = site.modules
    heads = (len(convolved), net.num_heads, net.head_dim)
    q, k, v = (part.reshape(heads) for part in convolved.chunk(3, dim=1))
    values = {"q": q, "k": k, "v": v, "a": a.reshape(heads), "b": b}
    gate = net.forget_gate
    fixed = {"A_log": gate.A_log.flatten(), "dt_bias": gate.dt_bias.view(heads[1:])}
    state = site.state("delta")
    if state is None:
        state = torch.zeros(1, net.num_heads, net.head_dim, net.head_dim)
    if not site.steps(convolved):
        bounds = torch.tensor([0, len(convolved)], dtype=torch.int32)
        stepped = _call(site, "")(**values, **fixed, state=state, cu_seqlens=bounds)
        site.keep("delta", stepped["new_state"])
        return [stepped["output"].flatten(1)]
    outputs = []
    for at in range(len(convolved)):
        row = {name: value[at : at + 1] for name, value in values.items()}
        stepped = _call(site, "step")(**row, **fixed, state=state)
        state = stepped["new_state"]
        outputs.append(stepped["output"].flatten(1))
    site.keep("delta", state)
    return [torch.cat(outputs)]


def state_space(
    site: StageContext, convolved: Tensor, projected: Tensor
) -> list[Tensor]:
    """Read and write the state of Mamba2."""
    (mixer,) = site.modules
    rows, heads = len(convolved), mixer.num_heads
    of_group = mixer.n_groups * mixer.ssm_state_size
    lengths = [mixer.intermediate_size, of_group, of_group]
    x, b, c = torch.split(convolved, lengths, dim=1)
    x = x.reshape(rows, heads, mixer.head_dim)
    b, c = (part.reshape(rows, mixer.n_groups, -1) for part in (b, c))
    dt = projected[:, -heads:].contiguous()
    decay = -torch.exp(mixer.A_log.float())
    if not site.calls:
        return [_own_scan(site, mixer, x, dt, decay, b, c)]
    state = site.state("space")
    if state is None:
        shape = (1, heads, mixer.head_dim, mixer.ssm_state_size)
        state = torch.zeros(shape)
    if not site.steps(convolved):
        stepped = _call(site, "")(
            x=x,
            dt=dt,
            A=decay,
            B=b,
            C=c,
            D=mixer.D,
            dt_bias=mixer.dt_bias,
            state=state,
            cu_seqlens=torch.tensor([0, rows], dtype=torch.int32),
        )
        site.keep("space", stepped["new_state"])
        return [stepped["output"].flatten(1)]
    by_head = (heads, mixer.head_dim)
    fixed = {
        "A": decay[:, None, None].expand(*by_head, mixer.ssm_state_size),
        "D": mixer.D[:, None].expand(by_head),
        "dt_bias": mixer.dt_bias[:, None].expand(by_head),
        "state_batch_indices": torch.zeros(1, dtype=torch.int32),
    }
    outputs = []
    for at in range(rows):
        one = slice(at, at + 1)
        stepped = _call(site, "step")(
            x=x[one],
            B=b[one],
            C=c[one],
            state=state,
            dt=dt[one, :, None].expand(1, *by_head),
            **fixed,
        )
        state = stepped["new_state"]
        outputs.append(stepped["output"].flatten(1))
    site.keep("space", state)
    return [torch.cat(outputs)]


def _own_scan(
    site: StageContext,
    mixer: Any,
    x: Tensor,
    dt: Tensor,
    decay: Tensor,
    b: Tensor,
    c: Tensor,
) -> Tensor:
    """Return what transformers' own function computes of a whole sequence."""
    scanned: Tensor = site.subject.modeling.mamba2_chunk_scan(
        *(x[None], dt[None], decay, b[None], c[None]),
        chunk_size=mixer.chunk_size,
        D=mixer.D,
        dt_bias=mixer.dt_bias,
        dt_softplus=True,
        dt_limit=mixer.time_step_limit,
    )
    return scanned[0].flatten(1)


def gated_norm(site: StageContext, read: Tensor, mixed: Tensor) -> list[Tensor]:
    """Normalise what a delta net reads, each head by itself, and gate it."""
    (module,) = site.modules
    net = site.subject.module(site.at.rpartition(".")[0], site.layer)
    z = _split(net, mixed)[3] if _is_mixed(net) else mixed
    size = module.weight.numel()
    rows, gates = read.reshape(-1, size), z.reshape(-1, size)
    if site.call is None:
        return [module(rows, gates).reshape(read.shape)]
    outputs = site.call(hidden_states=rows, gate=gates, weight=module.weight)
    return [outputs["output"].reshape(read.shape)]


def group_norm(site: StageContext, read: Tensor, projected: Tensor) -> list[Tensor]:
    """Gate what Mamba reads, and normalise it, each group by itself."""
    (module,) = site.modules
    gate = projected[:, : read.shape[1]].contiguous()
    if site.call is None:
        return [module(read, gate)]
    weight = module.weight.view(-1, module.group_size)
    return [site.call(hidden_states=read, gate=gate, weight=weight)["output"]]


def output_gate(
    site: StageContext, attended: Tensor, query_gate: Tensor
) -> list[Tensor]:
    """Gate what attention gives: the gate stands behind the query in each head."""
    dim = site.attention.head_dim
    gate = query_gate.view(len(attended), -1, 2, dim)[:, :, 1].flatten(1)
    return [attended * torch.sigmoid(gate)]


def gated_sum(
    site: StageContext, routed: Tensor, shared: Tensor, share: Tensor
) -> list[Tensor]:
    """Add the shared expert, by its share of each token."""
    return [routed + torch.sigmoid(share) * shared]
