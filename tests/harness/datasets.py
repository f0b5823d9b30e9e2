"""Two small datasets: one in which all is right, and one of planted faults."""

from __future__ import annotations

from typing import Any

from tests.builders import replaced, resized_json

_MASK = "torch.arange(kv_len - q_len, kv_len, device"
NORM = "rmsnorm_h128"
DECODE = "gqa_paged_decode_h4_kv2_d8_ps4"
PREFILL = "gqa_paged_prefill_causal_h4_kv2_d8_ps4"
_SIZES = {"num_qo_heads": 4, "num_kv_heads": 2, "head_dim": 8, "page_size": 4}

# an op_type that has no module: its inputs are guessed
TWICE: dict[str, Any] = {
    "name": "twice_n4",
    "op_type": "twice",
    "axes": {"M": {"type": "var"}, "N": {"type": "const", "value": 4}},
    "inputs": {"x": {"shape": ["M", "N"], "dtype": "float32"}},
    "outputs": {"y": {"shape": ["M", "N"], "dtype": "float32"}},
    "reference": "def run(x):\n    return x * 2\n",
}


def norm(name: str = NORM) -> dict[str, Any]:
    """Return the shortest norm of the repository under a name."""
    return resized_json("rmsnorm_h128", name)


def decode() -> dict[str, Any]:
    """Return grouped-query decode over pages of 4 tokens."""
    return resized_json("gqa_paged_decode_h32_kv8_d128_ps64", DECODE, **_SIZES)


def prefill(name: str = PREFILL) -> dict[str, Any]:
    """Return grouped-query prefill over pages of 4 tokens."""
    source = "gqa_paged_prefill_causal_h32_kv8_d128_ps64"
    return resized_json(source, name, **_SIZES)


EVERY_CALL = {
    "test_output_shape",
    "test_output_dtype",
    "test_matches_oracle",
    "test_determinism",
    "test_inputs_unmodified",
    "test_strided_inputs",
    "test_metamorphic",
}
_RETURN = "return (x * inverse_rms * weight.float()).to(hidden_states.dtype)"
_KEPT = _RETURN.replace("return", "output =")
_RUN = "x = hidden_states.float()\n"
ORACLE = {"test_matches_oracle"}
RELATED = {"test_metamorphic"}
# what to replace in the norm, by what, and exactly which tests must be red
NORM_FAULTS: dict[str, tuple[str, str, set[str]]] = {
    "eps_tenfold": ("EPS = 1e-06", "EPS = 1e-05", ORACLE),
    "float_output": (".to(hidden_states.dtype)", "", {"test_output_dtype"}),
    "short_output": (
        ".to(hidden_states.dtype)",
        ".to(hidden_states.dtype)[:, :-1]",
        {"test_output_shape", *ORACLE, *RELATED},
    ),
    "two_outputs": (
        _RETURN,
        f"{_RETURN.replace('return ', 'outputs = [')}] * 2\n    return outputs",
        EVERY_CALL - {"test_inputs_unmodified"},
    ),
    "writes_input": (
        _RETURN,
        f"{_KEPT}\n    hidden_states.fill_(1.5)\n    return output",
        {"test_inputs_unmodified"},
    ),
    # it finds the rows of a slice where those of a contiguous tensor would be
    "takes_rows_for_contiguous": (
        _RUN,
        (
            "rows, length = hidden_states.shape\n"
            "    packed = hidden_states.as_strided((rows, length), (length, 1))\n"
            f"    {_RUN.replace('hidden_states', 'packed')}"
        ),
        {"test_strided_inputs"},
    ),
    # every second call is off by an ulp; a small case is called three times, so that the
    # first call of the next one does not agree with the oracle
    "second_call_differs": (
        _RUN,
        f"{_RUN}    CALLS.append(0)\n    weight = weight * (1 + len(CALLS) % 2 / 64)\n",
        {"test_determinism", *ORACLE, *RELATED},
    ),
    "nan_output": (_RETURN, f"{_RETURN} * float('nan')", ORACLE | RELATED),
    # at the top of the text: the other definitions of the file are tested all the same
    "fails_to_load": (
        "EPS = 1e-06",
        "EPS = int('planted') or 1e-06",
        {*EVERY_CALL, "test_contract"},
    ),
    "raises": (_RUN, f"{_RUN}    raise RuntimeError('planted')\n", EVERY_CALL),
}
_LSE = "lse[qo_start:qo_end] = lse_nat.T / math.log(2)"
PREFILL_FAULTS = {
    "natural_lse": lambda text: replaced(
        text, _LSE, _LSE.removesuffix(" / math.log(2)")
    ),
    "full_last_page": lambda text: replaced(
        text, "page_size + last_page_lens[b]", "page_size + page_size"
    ),
    "mask_top_left": lambda text: replaced(text, _MASK, "torch.arange(q_len, device"),
    "mask_missing": lambda text: replaced(
        text, _MASK, "torch.arange(kv_len, kv_len + q_len, device"
    ),
}


def faulty() -> list[dict[str, Any]]:
    """Return the definitions with one planted fault each, beside two right ones."""
    definitions = [norm(), prefill()]
    for fault, (old, new, _) in NORM_FAULTS.items():
        definition = norm(f"{NORM}_{fault}")
        text = replaced(definition["reference"], old, new)
        if "CALLS" in new:
            text = replaced(text, "EPS =", "CALLS = [0]\nEPS =")
        definitions.append({**definition, "reference": text})
    for fault, change in PREFILL_FAULTS.items():
        definition = prefill(f"{PREFILL}_{fault}")
        text = change(definition["reference"])
        definitions.append({**definition, "reference": text})
    return definitions


def class_name(definition: str) -> str:
    """Return the name of a definition's test class."""
    words = definition.split("_")
    return "Test" + "".join(word[:1].upper() + word[1:] for word in words)
