"""Write docs/findings/*.json: JSON Patches that mend published definitions, or check them.

    python tools/build_findings.py            # write
    python tools/build_findings.py --check    # write nothing; exit status 1 on drift

A file maps the name of a definition to its patch (RFC 6902). Texts and axes are those of
this dataset's definition of the name, which its tests compare with the kernel; a residual
that is lost, or a keyword that calls pass, is added to these. docs/findings.md says what
each is about.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from generator.dataset.atomic_write import write_atomically
from generator.ops.reference_text import reference_text

ROOT = Path(__file__).parent.parent
OUTPUT = ROOT / "docs/findings"
Patch = list[dict[str, Any]]

_NORMS = ("h2048", "h3072", "h4096", "h5120", "h5376", "h7168")
_PREFILL = (
    "h16_kv1 h16_kv2 h20_kv4 h24_kv4 h24_kv8 h32_kv16 h32_kv4 h32_kv8 h5_kv1 h6_kv1"
)
_DECODE_PS1 = "h16_kv2 h20_kv4 h24_kv8 h32_kv16 h32_kv4 h32_kv8 h48_kv8 h5_kv1 h6_kv1"
_VOCABULARIES = [
    "v128256",
    "v129280",
    "v151936",
    "v152064",
    "v200064",
    "v202048",
    "v262208",
]
_DELTA = ("qk16_v32", "qk4_v8", "qk8_v16")


def patches() -> Iterator[tuple[str, dict[str, Patch]]]:
    """Yield the name of each file and its patches."""
    fused = [f"fused_add_rmsnorm_{width}" for width in _NORMS]
    yield "fused-add-residual", {name: residual_returned(name) for name in fused}
    gemma = ("rmsnorm_h5376", "fused_add_rmsnorm_h5376")
    yield "gemma-unit-offset", of_texts(gemma, "tags")
    yield (
        "kv-last-page-len",
        {
            name: last_page_of_sequences(name)
            for sizes in _PREFILL.split()
            for name in [f"gqa_paged_prefill_causal_{sizes}_d128_ps64"]
        },
    )
    latent = ("h16_ckv512_kpe64_ps1", "h16_ckv512_kpe64_ps64", "h8_ckv512_kpe64_ps1")
    yield (
        "queries-without-keys",
        of_texts(f"mla_paged_prefill_causal_{sizes}" for sizes in latent),
    )
    yield (
        "top-p-crossing-token",
        of_texts(
            f"{kind}_sampling_from_probs_{size}"
            for kind in ("top_p", "top_k_top_p")
            for size in _VOCABULARIES
        ),
    )
    yield (
        "gdn-states",
        of_texts(
            f"gdn_{stage}_{heads}_d128_k_last"
            for stage in ("prefill", "mtp")
            for heads in _DELTA
        ),
    )
    yield (
        "decode-return-lse",
        {
            name: flag_taken(name)
            for sizes in _DECODE_PS1.split()
            for name in [f"gqa_paged_decode_{sizes}_d128_ps1"]
        },
    )

    plain = (
        "h128",
        "h512",
        "h1536",
        "h2048",
        "h3072",
        "h4096",
        "h5120",
        "h5376",
        "h7168",
    )
    yield (
        "eps-as-input",
        {name: eps_taken(name) for name in [*fused, *(f"rmsnorm_{w}" for w in plain)]},
    )
    yield (
        "prefix-pass",
        {
            name: without_mask(name)
            for sizes in _PREFILL.split()
            for name in [f"gqa_paged_prefill_causal_{sizes}_d128_ps64"]
        },
    )
    yield (
        "gdn-unit-length",
        {
            name: of_unit_length(name)
            for stage in ("decode", "mtp", "prefill")
            for heads in _DELTA
            for name in [f"gdn_{stage}_{heads}_d128_k_last"]
        },
    )
    yield (
        "names-asked-for",
        {
            f"{kind}_sampling_from_probs_{size}": renamed(f"{kind}_sampling_{size}")
            for kind in ("top_k", "top_p", "top_k_top_p")
            for size in _VOCABULARIES
        },
    )


def of_texts(names: Any, *fields: str) -> dict[str, Patch]:
    """Return patches that replace the reference, and other fields, by this dataset's."""
    return {
        name: [
            {"op": "replace", "path": f"/{field}", "value": ours(name)[field]}
            for field in ("reference", *fields)
        ]
        for name in names
    }


def last_page_of_sequences(name: str) -> Patch:
    """Return a patch for lengths that have the shape of an indptr."""
    value = ours(name)
    return [
        {
            "op": "test",
            "path": "/inputs/kv_last_page_len/shape",
            "value": ["len_indptr"],
        },
        {"op": "add", "path": "/axes/batch_size", "value": value["axes"]["batch_size"]},
        {
            "op": "replace",
            "path": "/inputs/kv_last_page_len/shape",
            "value": ["batch_size"],
        },
        {
            "op": "add",
            "path": "/constraints/-",
            "value": "len_indptr == batch_size + 1",
        },
        {"op": "replace", "path": "/reference", "value": value["reference"]},
    ]


def residual_returned(name: str) -> Patch:
    """Return a patch that gives the sum of a fused norm as a second output."""
    value = ours(name)
    residual = {**value["inputs"]["residual"], "description": "The sum, rounded once."}
    text = changed(
        value["reference"],
        (") -> torch.Tensor:\n", ") -> tuple[torch.Tensor, torch.Tensor]:\n"),
        ("    return (", "    output = ("),
        (
            ".to(hidden_states.dtype)\n",
            ".to(hidden_states.dtype)\n    return output, x.to(residual.dtype)\n",
        ),
    )
    return [
        # of the name that calls bind it to, which is an input's: it is updated in place
        {"op": "add", "path": "/outputs/new_residual", "value": residual},
        {"op": "replace", "path": "/reference", "value": text},
    ]


def flag_taken(name: str) -> Patch:
    """Return a patch that takes return_lse, which every call passes."""
    text = changed(
        ours(name)["reference"],
        (
            "    sm_scale: float,\n)",
            "    sm_scale: float,\n    return_lse: bool = True,\n)",
        ),
        (
            "    return output, lse\n",
            "    return (output, lse) if return_lse else output\n",
        ),
    )
    flag = {
        "shape": None,
        "dtype": "bool",
        "optional": True,
        "description": "Whether lse is returned.",
    }
    return [
        {"op": "add", "path": "/inputs/return_lse", "value": flag},
        {"op": "replace", "path": "/reference", "value": text},
    ]


def eps_taken(name: str) -> Patch:
    """Return a patch that takes eps, whose default is the value that it has."""
    text = ours(name)["reference"]
    head, _, rest = text.partition("\nEPS = ")
    value, _, rest = rest.partition("\n")
    text = changed(
        f"{head.rstrip()}\n{rest}",
        ("weight: torch.Tensor", f"weight: torch.Tensor, eps: float = {value}"),
        (" + EPS)", " + eps)"),
    )
    eps = {
        "shape": None,
        "dtype": "float32",
        "optional": True,
        "description": f"Added to the mean square; {value} where it is not passed.",
    }
    return [
        {"op": "add", "path": "/inputs/eps", "value": eps},
        {"op": "replace", "path": "/reference", "value": text},
    ]


def without_mask(name: str) -> Patch:
    """Return a patch that makes the definition of SGLang's pass over a prefix."""
    text = str(reference_text("gqa_paged", "gqa_paged_prefill", ("noncausal",)))
    return [
        {
            "op": "replace",
            "path": "/name",
            "value": name.replace("causal", "noncausal"),
        },
        {"op": "replace", "path": "/reference", "value": text},
    ]


def of_unit_length(name: str) -> Patch:
    """Return a patch that makes queries and keys unit length, as engines ask the kernel."""
    text: str = ours(name)["reference"]
    lines = []
    for line in text.splitlines(keepends=True):
        lines.append(line)
        for what in ("queries", "keys"):
            if line.startswith(f"    {what} = "):
                lines.append(
                    f"    squares = {what}.square().sum(dim=-1, keepdim=True)\n"
                )
                lines.append(f"    {what} = {what} * torch.rsqrt(squares + 1e-6)\n")
    made = "".join(lines)
    if made.count("squares = ") != 2:
        raise ValueError(f"{name}: queries and keys are not where they were")
    return [{"op": "replace", "path": "/reference", "value": made}]


def renamed(name: str) -> Patch:
    """Return a patch that gives a definition the name that calls ask for."""
    return [{"op": "replace", "path": "/name", "value": name}]


def changed(text: str, *pairs: tuple[str, str]) -> str:
    """Return a text with parts replaced, each of which must be there once."""
    for old, new in pairs:
        if text.count(old) != 1:
            raise ValueError(f"{old!r} is {text.count(old)} times in {text!r}")
        text = text.replace(old, new)
    return text


def ours(name: str) -> dict[str, Any]:
    """Return this dataset's definition of a name."""
    (path,) = (ROOT / "definitions").glob(f"*/{name}.json")
    value: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return value


def main(arguments: list[str]) -> int:
    """Write the files, or with --check name those that differ."""
    drifted = []
    write: Callable[[Path, bytes], object] = write_atomically
    for name, found in patches():
        path = OUTPUT / f"{name}.json"
        text = f"{json.dumps(found, indent=1, ensure_ascii=False)}\n".encode()
        if path.exists() and path.read_bytes() == text:
            continue
        drifted.append(path.name)
        if "--check" not in arguments:
            path.parent.mkdir(exist_ok=True)
            write(path, text)
    print(f"{len(drifted)} files {'differ' if '--check' in arguments else 'written'}")
    return 1 if drifted and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
