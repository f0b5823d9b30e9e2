"""Const axes against a model's config.json: heads, widths and counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from generator.definition import Definition
from generator.models import model_figures
from generator.pointer import pointer
from generator.problems import Problem
from generator.rules.table import finding
from generator.wording import one_line, quote

Figures = Mapping[str, Any]
_Expected = Callable[[Figures], int | None]


def _figure(*names: str) -> _Expected:
    """Return what reads the first of the names that a config has."""

    def read(figures: Figures) -> int | None:
        found = (figures[name] for name in names if type(figures.get(name)) is int)
        return next((value for value in found if value > 0), None)

    return read


def _sum(*names: str) -> _Expected:
    def read(figures: Figures) -> int | None:
        values = [figures.get(name) for name in names]
        return sum(v for v in values if type(v) is int) if all(values) else None

    return read


_HEADS = _figure("num_attention_heads")
_MLA = frozenset(("mla_paged", "mla_ragged", "dsa_paged"))
_ATTENTION = frozenset(("gqa_paged", "gqa_ragged", *_MLA))

# (op_types, axis, what the config says, the parallelism that divides it)
_TABLE: tuple[tuple[frozenset[str], str, _Expected, str], ...] = (
    (_ATTENTION, "num_qo_heads", _HEADS, "tp"),
    (
        frozenset(("gqa_paged", "gqa_ragged")),
        "num_kv_heads",
        _figure("num_key_value_heads"),
        "tp",
    ),
    (frozenset(("gqa_paged", "gqa_ragged")), "head_dim", _figure("head_dim"), ""),
    (_MLA, "head_dim_ckv", _figure("kv_lora_rank"), ""),
    (_MLA, "head_dim_kpe", _figure("qk_rope_head_dim"), ""),
    (
        frozenset(("mla_ragged",)),
        "qk_dim",
        _sum("qk_nope_head_dim", "qk_rope_head_dim"),
        "",
    ),
    (frozenset(("mla_ragged",)), "vo_dim", _figure("v_head_dim"), ""),
    (
        frozenset(("moe",)),
        "num_experts",
        _figure("num_experts", "n_routed_experts", "num_local_experts"),
        "ep",
    ),
    (frozenset(("moe",)), "top_k", _figure("num_experts_per_tok"), ""),
    (frozenset(("moe",)), "hidden_size", _figure("hidden_size"), ""),
    (frozenset(("sampling",)), "vocab_size", _figure("vocab_size"), "tp"),
    (frozenset(("mamba_ssu",)), "nheads", _figure("mamba_num_heads"), "tp"),
    (frozenset(("mamba_ssu",)), "ngroups", _figure("n_groups"), "tp"),
    (frozenset(("mamba_ssu",)), "dstate", _figure("ssm_state_size"), ""),
    (frozenset(("mamba_ssu",)), "head_dim", _figure("mamba_head_dim"), ""),
)
_NORM_WIDTHS = (
    "hidden_size",
    "head_dim",
    "kv_lora_rank",
    "q_lora_rank",
    "mamba_head_dim",
)
_OF_ONE_MODEL = frozenset(
    ("head_dim", "head_dim_ckv", "head_dim_kpe", "num_experts", "qk_dim", "vo_dim")
)


def check(definition: Definition) -> list[Problem]:
    """Return Problems where an axis is not what the tagged model's figures say."""
    problems: list[Problem] = []
    for model in definition.tag_values("model"):
        figures = model_figures().get(model, {})
        problems += against(definition, figures, "model-figures", model)
    return problems


def against(
    definition: Definition, figures: Figures, rule: str, source: str
) -> Iterator[Problem]:
    """Yield a Problem under `rule` for each const axis that `figures` contradict."""
    axes = definition.const_axes
    for op_types, axis, expected, parallel in _TABLE:
        whole = expected(figures)
        if definition.op_type not in op_types or axis not in axes or whole is None:
            continue
        allowed = _shares(whole, parallel, definition)
        if axes[axis] not in allowed:
            said = " or ".join(str(a) for a in sorted(allowed)) if allowed else "less"
            yield _problem(rule, definition, axis, said, source)
    if definition.op_type == "rmsnorm" and "hidden_size" in axes:
        read = {figures.get(name) for name in _NORM_WIDTHS}
        widths = {width for width in read if type(width) is int}
        if "hidden_size" in figures and axes["hidden_size"] not in widths:
            said = f"one of {', '.join(map(str, sorted(widths)))}"
            yield _problem(rule, definition, "hidden_size", said, source)


def facts(definition: Definition) -> Iterator[tuple[str, int]]:
    """Yield (model and axis, value) that must be the same in all of a model's."""
    for model in definition.tag_values("model"):
        for axis, value in definition.const_axes.items():
            if axis in _OF_ONE_MODEL:
                yield f"{model} {definition.op_type} {axis}", value


def _shares(whole: int, parallel: str, definition: Definition) -> set[int]:
    """Return the sizes that an axis may have on one of several GPUs.

    Heads fewer than GPUs are replicated: one of them is on each. Some interfaces count
    the experts of one GPU, some those of all.
    """
    if not parallel:
        return {whole}
    stated = [
        int(v) for v in definition.tag_values(parallel) if v.isdecimal() and len(v) < 6
    ]
    counts = [n for n in stated if n > 0] or [1, 2, 4, 8, 16, 32]
    shares = {max(1, whole // n) for n in counts}
    return shares | {whole} if parallel == "ep" else shares


def _problem(
    rule: str, definition: Definition, axis: str, said: str, source: str
) -> Problem:
    message = (
        f"The axis {quote(axis)} is {definition.const_axes[axis]}; "
        f"{one_line(source, 100)} says {said}."
    )
    where = pointer(("axes", axis, "value"))
    return finding(rule, definition.path, message, pointer=where)
