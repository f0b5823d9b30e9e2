"""The modules of a model, and the definition that each one needs."""

from __future__ import annotations

from collections.abc import Iterator

from generator.models.architectures import CHUNKED, FULL, LINEAR, SLIDING
from generator.models.attention import grouped_query
from generator.models.config import Config
from generator.models.deployed import Deployed, deployed
from generator.models.keys import IRRELEVANT, OPTIONS, UNPLACED
from generator.models.latent import latent
from generator.models.mixture import feed_forward
from generator.models.need import Need, exponent, norm
from generator.models.parallel import Deployment
from generator.models.projections import Projections, unplaced_of_quantisation
from generator.models.recurrent import delta_net, kimi_delta, mamba
from generator.problems.messages import show

_SAMPLING = {
    "top_k": ("sampling", "top_k_sampling_from_probs"),
    "top_p": ("sampling", "top_p_sampling_from_probs"),
    "top_k, top_p": ("sampling", "top_k_top_p_sampling_from_probs"),
    "min_p": ("sampling", "min_p_sampling"),
    "softmax": ("probs", "softmax"),
    "top_k renormalised": ("probs", "top_k_renorm_probs"),
    "top_p renormalised": ("probs", "top_p_renorm_probs"),
}
_ATTENTION = {"gqa": grouped_query, "mla": latent, "dsa": latent}
_RECURRENT = {"gdn": delta_net, "kda": kimi_delta, "mamba": mamba}
_FIRST_NORMS = ("input_layernorm", "layers.0.norm")
_NORMS_BEHIND = (
    "post_attention_layernorm",
    "post_feedforward_layernorm",
    "post_self_attn_layernorm",
    "post_mlp_layernorm",
)
_NORMS = (
    "post_attention_layernorm",
    "pre_feedforward_layernorm",
    "model.norm",
    "norm_f",
    "norm",
)


def needs(config: Config, deployment: Deployment) -> list[Need]:
    """Return what one GPU runs, in the order of a forward pass: a row for each module.

    Raises Failure where a figure is missing, contradicts another or can't be divided.
    """
    rows: dict[tuple[str, str], Need] = {}
    for need in modules(config, deployment):
        rows.setdefault((need.module, need.name), need)
    return list(rows.values())


def unplaced(config: Config, deployment: Deployment) -> list[str]:
    """Return the modules for which this software names no definition.

    Keys that nothing is known of are among them: what they change is not in the answer.
    """
    needs(config, deployment)
    # of a number that multiplies, 1.0 changes nothing
    listed = [what for key, what in UNPLACED.items() if _changes(config.get(key))]
    if "text_config" in config.figures and not any(map(config.get, _TOWERS)):
        # transformers builds towers by its defaults where a file has no figures of them
        listed.append("what the model has beside its text model")
    listed += unplaced_of_quantisation(config)
    unread = config.figures.keys() - config.asked - IRRELEVANT.keys() - _WRAPPING
    listed += [
        f"what {show(key)} changes"
        for key in sorted(unread)
        if config.figures[key] is not None
        and not (key in OPTIONS and config.figures[key] is False)
    ]
    return list(dict.fromkeys(listed))


_WRAPPING = {"text_config"}
_TOWERS = ("vision_config", "audio_config")


def modules(config: Config, deployment: Deployment) -> Iterator[Need]:
    """Yield the need of each module, in the order of a forward pass.

    Several modules may need one definition. Raises Failure as `needs` does.
    """
    model = deployed(config, deployment)
    hidden = config.size("hidden_size")
    vocabulary, shard = config.size("vocab_size"), deployment.vocabulary(config)
    scaled = "gemma_" if config.architecture.scaled else ""
    name = f"{scaled}embedding_v{shard}_h{hidden}"
    # a shard gives zeros for the tokens of others: another interface
    sharded = {"sharded": shard < vocabulary}
    yield Need(
        "embedding", "embedding", name, sharded, at=("embed_tokens", "embeddings")
    )
    yield from deployment.reduced("all-reduce behind the embedding", hidden)
    if _multiple(config, "embedding_multiplier") != 1:
        yield Need("embeddings times a number", "activation", f"multiply_h{hidden}")
    if not config.architecture.post_norm:
        yield norm("norm before the first layer", hidden, model.norms, *_FIRST_NORMS)
    yield from _mixers(model)
    yield from _residual(model, hidden)
    yield from feed_forward(model)
    of = Projections(config, deployment)
    yield of.plain("lm_head", shard, hidden, "lm_head")
    yield from deployment.gathered("logits of all GPUs", vocabulary)
    if _multiple(config, "logits_scaling") != 1:
        yield Need("logits over a number", "activation", f"divide_v{vocabulary}")
    if config.get("final_logit_softcapping"):
        cap = config.get("final_logit_softcapping")
        if type(cap) not in (int, float) or cap < 0:
            config.refuse("final_logit_softcapping", f"is {show(cap)}, not above 0")
        name = f"soft_cap{cap:g}_v{vocabulary}"
        yield Need("soft cap of the logits", "activation", name)
    for what, (op_type, kernel) in _SAMPLING.items():
        yield Need(f"sampling, {what}", op_type, f"{kernel}_v{vocabulary}")


def _mixers(model: Deployed) -> Iterator[Need]:
    """Yield what mixes tokens, in the order in which the layers first have it."""
    architecture = model.config.architecture
    kinds = dict.fromkeys(
        LINEAR if layer.mixer == LINEAR else FULL
        for layer in model.layers
        if layer.mixer in (FULL, SLIDING, CHUNKED, LINEAR)
    )
    for kind in kinds:
        if kind == FULL:
            yield from _ATTENTION[architecture.mixer](model)
        elif architecture.linear not in _RECURRENT:
            model.config.refuse("layer_types", f"has {kind}, which the model has not")
        else:
            yield from _RECURRENT[architecture.linear](model)


def _residual(model: Deployed, hidden: int) -> Iterator[Need]:
    """Yield what stands between a layer's parts: sums over GPUs, norms, the residual."""
    norms, tp = model.norms, model.deployment.tp
    if model.config.architecture.post_norm:
        yield from _behind(model, hidden)
        return
    if _multiple(model.config, "residual_multiplier") != 1:
        where = "all-reduce behind attention and MLP"
        yield from model.deployment.reduced(where, hidden)
        module = "the residual and a multiple of what a layer adds"
        yield Need(module, "residual_add", f"residual_add_multiple_h{hidden}")
        yield norm("norms behind the residual", hidden, norms, *_NORMS)
        return
    if model.config.architecture.sandwich:
        module = "norms behind attention and MLP"
        where = "all-reduce behind attention and MLP"
        yield from model.deployment.reduced(where, hidden)
        yield norm(module, hidden, norms, *_NORMS_BEHIND)
    elif tp > 1:
        prefix = "gemma_" if norms["unit_offset"] else ""
        kernel, sizes = f"{prefix}allreduce_add_rmsnorm", f"tp{tp}_h{hidden}"
        name = f"{kernel}_eps_{exponent(norms['eps'])}_{sizes}"
        also = (f"{kernel}_{sizes}",)
        where = "all-reduce, residual and norm behind attention and MLP"
        yield Need(where, "comm", name, norms, also, at=_NORMS)
        return
    module = "norms that add the residual"
    yield norm(module, hidden, norms, *_NORMS, fused=True)


def _behind(model: Deployed, hidden: int) -> Iterator[Need]:
    """Yield what follows attention and MLP where norms stand behind these alone."""
    where = "all-reduce behind attention and MLP"
    yield from model.deployment.reduced(where, hidden)
    module = "norms behind attention and MLP, and the last"
    yield norm(module, hidden, model.norms, *_NORMS_BEHIND, "model.norm")
    yield Need("the residual", "residual_add", f"residual_add_h{hidden}")


def _multiple(config: Config, key: str) -> float:
    """Return a number that multiplies. Raises Failure where it is none."""
    value = config.get(key)
    if value is None:
        return 1
    if type(value) not in (int, float):
        config.refuse(key, f"is {show(value)}, not a number")
    return float(value)


def _changes(value: object) -> bool:
    return bool(value) and not (type(value) is float and value == 1.0)
