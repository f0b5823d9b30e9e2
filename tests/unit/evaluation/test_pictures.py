"""Pages of times: every curve is drawn, and no name can leave its place."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from generator.dataset.paths import DatasetFile
from generator.evaluation.pictures import LIGHT, REFERENCE, write_pictures

FILE = DatasetFile("gemm", "g", "definitions/gemm/g.json")


def trace(solution: str, m: int, latency: Any) -> dict[str, Any]:
    return {
        "definition": "g",
        "solution": solution,
        "workload": {"uuid": str(m), "axes": {"M": m, "fixed": 7}},
        "evaluation": {
            "status": "PASSED",
            "environment": {"hardware": "NVIDIA H100"},
            "performance": {
                "latency_ms": latency,
                "reference_latency_ms": 3.0 * m,
                "fraction_of_light": 0.5,
            },
        },
    }


def page(tmp_path: Path, *values: Any, results: Any = None) -> str:
    path = tmp_path / "traces/a/gemm/g.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(v) + "\n" for v in values) + "broken\n")
    if results is not None:
        (tmp_path / "results.json").write_text(json.dumps(results))
    (written,) = write_pictures(tmp_path, [FILE], tmp_path / "out")
    assert written.name == "gemm.html"
    return written.read_text()


def test_curves_are_solutions_reference_and_light(tmp_path: Path) -> None:
    values = [trace("one", m, 0.1 * m) for m in (1, 10, 100)]
    text = page(tmp_path, *values, trace("two", 10, 2.0))
    for name in ("one", "two", REFERENCE, LIGHT):
        assert f"</span>{name}</li>" in text
    lines = re.findall(r'<polyline points="([^"]*)"[^>]*>', text)
    assert sorted(len(line.split()) for line in lines) == [1, 3, 3, 3]
    # the axis that varies is the one below
    assert ">M</text>" in text
    assert "<script" not in text
    assert "nan" not in text.lower()


def test_production_kernels_come_from_results(tmp_path: Path) -> None:
    timing = {"latency_ms": 1.0, "rivals": {"pytorch/cublas": 0.9, "bad": None}}
    workload = {"uuid": "1", "axes": {"M": 4}}
    case = {"verdict": "PASSED", "workload": workload, "timing": timing}
    results = {
        "environment": {"hardware": "NVIDIA H100"},
        "solutions": [{"definition": "g", "solution": "one", "cases": [case]}],
    }
    text = page(tmp_path, trace("one", 1, 0.5), results=results)
    assert "</span>pytorch/cublas</li>" in text
    assert "</span>bad</li>" not in text


def test_names_are_text(tmp_path: Path) -> None:
    text = page(tmp_path, trace("<script>alert(1)</script>", 1, 1.0))
    assert "<script" not in text
    assert "&lt;script&gt;" in text


def test_figures_that_are_no_times_are_left_out(tmp_path: Path) -> None:
    bad = [trace("bad", 1, v) for v in (None, "1", -1.0, 0.0, True)]
    text = page(tmp_path, *bad, trace("good", 1, 1.0))
    assert "</span>bad</li>" not in text
    assert "</span>good</li>" in text
