"""Write docs/generated/flashinfer-templates.md from runs of tools/run_templates.py.

python tools/build_templates_page.py DIR [GPU_DIR]

Of the first folder are the import and the tests on a CPU, of the second what FlashInfer's
kernels gave on a GPU.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from generator.dataset.atomic_write import write_atomically
from generator.results.run_results import TestResult, read_all

PAGE = "docs/generated/flashinfer-templates.md"
_TESTS = (
    "test_contract",
    "test_output_shape",
    "test_output_dtype",
    "test_determinism",
)
_LIVE = "test_matches_flashinfer"
Runs = Mapping[str, Sequence[TestResult]]
_DRAWN = (
    "The template declares int64 tokens and its reference returns them, the kernel int32; "
    "no value was compared, and both draw"
)
_LIKELIEST = "The reference takes the likeliest token, where the kernel draws one"
NOTES = {
    "sampling.top_k_sampling_trace": _DRAWN,
    "sampling.top_p_sampling_trace": _DRAWN,
    "sampling.top_k_top_p_sampling_trace": _DRAWN,
    "sampling.sampling_from_probs_trace": _LIKELIEST,
    "sampling.sampling_from_logits_trace": _LIKELIEST,
    "sampling.min_p_sampling_trace": _LIKELIEST,
    "sampling.top_k_top_p_sampling_from_logits_trace": _LIKELIEST,
    "sampling.chain_speculative_sampling_trace": "The reference accepts a token where "
    "the target finds it as likely as the draft, the kernel at random by their ratio",
    "sampling.top_p_renorm_probs_trace": "In float64 the larger ones sum to 0.89999995, "
    "so this token belongs to p = 0.9: the kernel keeps it, the reference's float32 sum "
    "does not",
    "sampling.fused_topk_deepseek_trace": "All 64 weights of bfloat16 are equal: only ids "
    "whose weights round to one stand in another order",
    "attention.pod_with_paged_kv_cache_run_trace": "The reference's prefill is causal; "
    "init does not ask the kernel for that",
    "attention.single_prefill_with_kv_cache_trace": "init asks the kernel for a causal "
    "mask, which the template does not declare: on the CPU a float64 run with it is off "
    "from one without by NMSE 1.3e-02, with 25% of the elements outside the bound",
    "gemm.fp8_blockscale_gemm_sm90_trace": "The kernel reads the scales of the input "
    "column by column, init gives them row by row: on the CPU, scales read that way "
    "change the reference by NMSE 3.3e-02",
    "moe.mono_moe_trace": "The kernel applies SiLU to the first half of the up weights, "
    "the reference to the second: on random weights these differ by NMSE 1.0, cosine 0.50",
}
"""Template → why its reference and FlashInfer's kernel disagree."""


def main(arguments: list[str]) -> int:
    """Write the page of a folder of a CPU's run and one of a GPU's."""
    cpu, *gpu = (Path(argument) for argument in arguments)
    imports, *others = (imports_of(folder) for folder in (cpu, *gpu))
    # a kernel may want other sizes than a CPU has time for
    named = {
        found["source"]: found["definition"] for found in (others or [imports])[-1]
    }
    runs = [by_definition(folder) for folder in (cpu, *gpu)]
    live = {source: runs[-1].get(name, ()) for source, name in named.items()}
    text = "".join(page(imports, runs[0], live))
    write_atomically(ROOT / PAGE, text.encode("utf-8"))
    print(f"wrote {PAGE}")
    return 0


def imports_of(folder: Path) -> list[dict[str, Any]]:
    """Return what became of each template."""
    text = (folder / "import.json").read_text("utf-8")
    found: list[dict[str, Any]] = json.loads(text)["imports"]
    return found


def by_definition(folder: Path) -> Runs:
    """Return definition → its tests' results."""
    found: dict[str, list[TestResult]] = {}
    for results in read_all([folder / "results"]):
        for test in results.tests:
            found.setdefault(test.definition, []).append(test)
    return found


def compared(tests: Sequence[TestResult]) -> str:
    """Return with whom a definition was compared live, and how that ended."""
    said = []
    for test in tests:
        if test.function != _LIVE:
            continue
        ended = test.status
        worst = {
            str(c.get("output")): c.get("nmse")
            for c in test.comparisons
            if c.get("nmse") is not None
        }
        if worst:
            ended += ", NMSE " + ", ".join(f"{n} {v:.1e}" for n, v in worst.items())
        if test.status != "passed":
            findings = [
                f"{c['output']}: {'; '.join(c['findings'])}"
                for c in test.comparisons
                if c.get("findings")
            ]
            why = "; ".join(findings) or test.message
            ended += f": {' '.join(why.split())[:240]}"
        said.append(f"{test.source}: {ended}")
    return "; ".join(said) or "not run"


def page(imports: Sequence[Mapping[str, Any]], cpu: Runs, live: Runs) -> Iterable[str]:
    """Yield the page: counts, then a row a template; `live` is by template."""
    rows = []
    counts: Counter[str] = Counter()
    for found in imports:
        name = found["definition"]
        if name is None:
            counts["refused"] += 1
            counts["without a reference"] += found["reason"] == "it has no reference"
            rows.append((found["source"], "refused", "", found["reason"]))
            continue
        counts["imported"] += 1
        by_test = {t.function: t for t in cpu.get(name, ())}
        bad = [
            by_test[t] for t in _TESTS if t in by_test and by_test[t].status != "passed"
        ]
        asked = live.get(found["source"], ())
        said = compared(asked)
        if found["source"] in NOTES and "failed" in said:
            said += f". {NOTES[found['source']]}"
        ran = [t for t in asked if t.function == _LIVE and t.comparisons]
        counts["compared"] += bool(ran)
        counts["agreeing"] += bool(ran) and all(t.status == "passed" for t in ran)
        if bad:
            message = " ".join(bad[0].message.split())[:160]
            verdict = f"{bad[0].function} {bad[0].status}: {message}"
        elif not set(_TESTS) <= set(by_test):
            verdict = "not run on a CPU"
            counts["not run"] += 1
        else:
            verdict = "contract, shape, dtype and determinism pass"
            counts["passing on a CPU"] += 1
        changes = len(found["changes"])
        imported = f"{found['op_type']}/{name}, {changes} changes"
        rows.append((found["source"], imported, said, verdict))
    yield "# FlashInfer's templates as definitions\n\n"
    yield (
        f"Of FlashInfer {version('flashinfer-python')}, by "
        "`trace-dataset import --dialect flashinfer --from-installed`; this page is "
        "written by `tools/build_templates_page.py`.\n\n"
    )
    yield f"{len(rows)} templates: {counts['imported']} imported, {counts['refused']} "
    yield f"refused, {counts['without a reference']} of these for want of a reference. "
    yield f"{counts['passing on a CPU']} pass on a CPU, {counts['not run']} were not "
    yield f"run there to the end. {counts['compared']} were compared with FlashInfer's "
    yield f"kernel on a GPU, {counts['agreeing']} of these agree.\n\n"
    yield "| template | imported | compared with FlashInfer | verdict |\n|---|---|---|---|\n"
    for row in rows:
        cells = (cell.replace("|", "/").replace("<", "&lt;") for cell in row)
        yield f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
