"""The rules on tags, and on definitions beside each other."""

from __future__ import annotations

from generator.rules.rule import error, note, warning

TAGS = (
    warning(
        "tag-form",
        "A tag is neither key:value nor one of the bare tags.",
        "Write it as key:value, without spaces or special characters.",
        '`"decode"` instead of `"stage:decode"`',
    ),
    warning(
        "tag-unknown",
        "A tag's key is not one of the vocabulary, so no search finds it.",
        "Use a key of the vocabulary: model, status, fi_api, stage, tp, ep and the like.",
        '`"stages:decode"`',
    ),
    note(
        "tag-synonym",
        "A tag's key is seldom used; another one means the same.",
        "Use the usual key.",
        '`"quant:fp8"` instead of `"quantization:..."`',
    ),
    warning(
        "tag-value",
        "A tag's value is not one that its key may have.",
        "Write one of the allowed values.",
        '`"tp:two"`, or `"status:tested"`',
    ),
    warning(
        "tag-duplicate",
        "A definition has the same tag twice.",
        "Remove one of them.",
        '`["tp:1", "tp:1"]`',
    ),
    warning(
        "tag-conflict",
        "Tags contradict each other or the definition's name.",
        "Keep the one that is right.",
        "stage:prefill on gqa_paged_decode_...",
    ),
    note(
        "tag-model",
        "The figures of a model that a tag names are not known here.",
        "Check the const axes with --model-config and the model's config.json.",
        '`"model:my-model"`',
    ),
    error(
        "tag-fi-api",
        "The installed FlashInfer does not have what a fi_api: tag names.",
        "Write the full dotted name that FlashInfer exports.",
        '`"fi_api:flashinfer.norm.rmsnrom"`',
    ),
    error(
        "tag-evidence",
        "A definition says status:verified, but no record of a passed run backs it.",
        "Record a run against the production kernel in verification/, or say unverified.",
        "status:verified on a definition that was edited after its last run",
    ),
)

CROSS = (
    warning(
        "cross-constant",
        "Two definitions have one geometry, but another constant (eps, say).",
        "Check which one is right; if both are, say the constant in name and tags.",
        "rmsnorm_h4096 with eps 1e-5 and rmsnorm_h4096_b with eps 1e-6",
    ),
    warning(
        "cross-duplicate",
        "Two definitions are the same but for their names and descriptions.",
        "Keep one of them, with the model: tags of both.",
        "gemm_n8_k4 and gemm_n8_k4_llama",
    ),
    note(
        "cross-near-duplicate",
        "Two definitions have one interface; only their references differ.",
        "Check that they are two operations and not one written twice.",
        "the same axes, inputs and outputs, another `run`",
    ),
    warning(
        "cross-model",
        "Two definitions of one model have different values of a figure of it.",
        "Find out from the model's config.json which one is right.",
        "model:toy with head_dim 64 in one definition and 128 in another",
    ),
    error(
        "model-figures",
        "A const axis is not what the published config of the tagged model says.",
        "Correct the axis, or the model: and tp: tags.",
        "num_qo_heads is 24 with model:llama-3.1-8b and tp:1, whose heads are 32",
    ),
    error(
        "model-config",
        "A const axis is not what the file given with --model-config says.",
        "Correct the axis, or the tp: and ep: tags.",
        "hidden_size is 4096 where config.json has 5120",
    ),
)
