"""Each rule of the table is broken once, and only rules of the table are used."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import generator
from generator.problems import MAX_PROBLEMS, Severity
from generator.rules.catalogue import RULES
from generator.rules.load import load_definitions
from tests.unit.rules import solution_cases
from tests.unit.rules.met_elsewhere import ELSEWHERE
from tests.unit.rules.more_cases import MORE

ROOT = Path(generator.__file__).parent.parent

LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
BLOB = "blob/workloads/gemm/gemm_n8_k4/a.safetensors"
D = "definitions/gemm/gemm_n8_k4.json"
N = "definitions/rmsnorm/rmsnorm_h4.json"
W = "workloads/gemm/gemm_n8_k4.jsonl"
RUN = "def run(A, B, alpha=1.0):\n"

# One rule, how to break it (a function of the dataset and the workload maker), and the
# file, pointer and line of the Problem.
Case = tuple[Callable[[Any, Any], Any], str, str, int | None]


def _changed(field: str, value: Any) -> Callable[[Any, Any], Any]:
    return lambda d, w: d.definition(**{field: value})


def _misnamed(**changes: str) -> Callable[[Any, Any], Any]:
    return lambda d, w: d.definition("gemm/gemm_n8_k4", **changes)


def _text(content: bytes | str) -> Callable[[Any, Any], Any]:
    return lambda d, w: d.write(D, content)


def _reference(source: str) -> Callable[[Any, Any], Any]:
    return _changed("reference", source)


def _line(**parts: Any) -> Callable[[Any, Any], Any]:
    return lambda d, w: d.workloads(w(**parts))


def _axes(**more: Any) -> Callable[[Any, Any], Any]:
    axes = {
        "M": {"type": "var"},
        "N": {"type": "const", "value": 8},
        "K": {"type": "const", "value": 4},
    }
    return _changed("axes", {**axes, **more})


def _norm(eps: str, *tags: str) -> Callable[[Any, Any], Any]:
    """Return what writes an rmsnorm with this eps and these tags."""
    row = {"shape": ["M", "K"], "dtype": "bfloat16"}
    source = f"import torch\n\n\ndef run(x):\n    return norm(x, eps={eps})\n"
    source = source.replace("norm(x, eps=", "x * torch.rsqrt((x * x).mean(-1) + ")
    return lambda d, w: d.definition(
        op_type="rmsnorm",
        name="rmsnorm_h4",
        tags=list(tags),
        axes={"M": {"type": "var"}, "K": {"type": "const", "value": 4}},
        inputs={"x": row},
        outputs={"y": row},
        reference=source,
    )


def _blob(path: str) -> dict[str, Any]:
    blob = {"type": "safetensors", "path": path, "tensor_key": "A"}
    return {"A": blob, "B": {"type": "random"}}


def _with_lfs_blob(d: Any, w: Any) -> None:
    d.write(BLOB, LFS)
    d.workloads(w(inputs=_blob(BLOB)))


def _outside(d: Any, w: Any) -> None:
    (d.root / "definitions/gemm/x.json").symlink_to("/etc/hostname")


def _folder_for_file(d: Any, w: Any) -> None:
    (d.root / D).unlink()
    (d.root / D).mkdir()


def _too_large(d: Any, w: Any) -> None:
    with (d.root / D).open("wb") as stream:
        stream.truncate(200 * 1024 * 1024)


def _no_definition(d: Any, w: Any) -> None:
    (d.root / D).unlink()


def _no_definitions_folder(d: Any, w: Any) -> None:
    (d.root / D).unlink()
    (d.root / "definitions/gemm").rmdir()
    (d.root / "definitions").rmdir()


def _workloads_are_a_file(d: Any, w: Any) -> None:
    (d.root / W).unlink()
    (d.root / "workloads/gemm").rmdir()
    (d.root / "workloads").rmdir()
    d.write("workloads", "")


A_INPUT = {"A": {"shape": ["M", "K"], "dtype": "float16"}}
CASES: dict[str, Case] = {
    "dataset-missing": (_no_definitions_folder, "definitions", "", None),
    "dataset-empty": (_no_definition, "definitions", "", None),
    "directory-unreadable": (_workloads_are_a_file, "workloads", "", None),
    "path-depth": (
        lambda d, w: d.write("definitions/lost.json", "{}"),
        "definitions/lost.json",
        "",
        None,
    ),
    "path-extension": (
        lambda d, w: d.write("definitions/gemm/notes.txt", ""),
        "definitions/gemm/notes.txt",
        "",
        None,
    ),
    "path-link": (_outside, "definitions/gemm/x.json", "", None),
    "file-not-regular": (_folder_for_file, D, "", None),
    "file-too-large": (_too_large, D, "", None),
    "file-lfs-pointer": (_text(LFS), D, "", None),
    "json-encoding": (_text(b'{\n"name": "\xff"}'), D, "", 2),
    "json-bom": (
        lambda d, w: d.write(D, b"\xef\xbb\xbf" + (d.root / D).read_bytes()),
        D,
        "",
        None,
    ),
    "json-syntax": (_text('{\n"name": }'), D, "", 2),
    "json-depth": (_text('{"a": ' + "[" * 10_000 + "]" * 10_000 + "}"), D, "", None),
    "json-duplicate-key": (
        lambda d, w: d.write(
            D, (d.root / D).read_text().replace('"name"', '"name": "", "name"', 1)
        ),
        D,
        "/name",
        None,
    ),
    "json-nan": (
        lambda d, w: d.write(D, (d.root / D).read_text().replace("8", "NaN", 2)),
        D,
        "/axes/N/value",
        None,
    ),
    "json-number": (
        lambda d, w: d.write(
            D, (d.root / D).read_text().replace(": 4", ": " + "9" * 5000)
        ),
        D,
        "/axes/K/value",
        None,
    ),
    "json-surrogate": (_changed("description", "\ud800"), D, "/description", None),
    "jsonl-blank-line": (lambda d, w: d.workloads("", w()), W, "", 1),
    "schema-missing-field": (_axes(M={"type": "const"}), D, "/axes/M", None),
    "schema-unknown-field": (_changed("descriptoin", ""), D, "/descriptoin", None),
    "schema-type": (_changed("tags", "fused"), D, "/tags", None),
    "schema-value": (
        _changed("inputs", {"A": {"shape": None, "dtype": "bf16"}}),
        D,
        "/inputs/A/dtype",
        None,
    ),
    "too-many-problems": (_changed("tags", [0] * (MAX_PROBLEMS + 5)), D, "", None),
    "name-unsafe": (_axes(**{"../x": {"type": "var"}}), D, "/axes/..~1x", None),
    "name-file": (_misnamed(name="other"), D, "/name", None),
    "name-op-type": (_misnamed(op_type="other"), D, "/op_type", None),
    "name-token": (
        _axes(N={"type": "const", "value": 9}),
        D,
        "/axes/N/value",
        None,
    ),
    "name-duplicate": (
        lambda d, w: d.definition(op_type="other"),
        "definitions/other/gemm_n8_k4.json",
        "/name",
        None,
    ),
    "name-case": (
        lambda d, w: d.definition(name="Gemm_n8_k4", op_type="other"),
        "definitions/other/Gemm_n8_k4.json",
        "/name",
        None,
    ),
    "axis-undeclared": (
        _changed("outputs", {"C": {"shape": ["M", "Q"], "dtype": "float16"}}),
        D,
        "/outputs/C/shape/1",
        None,
    ),
    "axis-case": (_axes(m={"type": "var"}), D, "/axes/m", None),
    "axis-unused": (_axes(unused={"type": "var"}), D, "/axes/unused", None),
    "axis-unused-const": (
        _axes(unused={"type": "const", "value": 2}),
        D,
        "/axes/unused",
        None,
    ),
    "input-output-overlap": (_changed("outputs", A_INPUT), D, "/outputs/A", None),
    "constraint-syntax": (_changed("constraints", ["M =="]), D, "/constraints/0", None),
    "constraint-name": (
        _changed("constraints", ["M > 0", "MM > 0"]),
        D,
        "/constraints/1",
        None,
    ),
    "reference-syntax": (_reference("import torch\ndef run(:"), D, "/reference", 2),
    "reference-no-run": (_reference("x = 1\n"), D, "/reference", None),
    "reference-run-kind": (_reference("\nrun = print\n"), D, "/reference", 2),
    "reference-parameters": (
        _reference("def run(B, A, alpha):\n    return A\n"),
        D,
        "/reference",
        1,
    ),
    "reference-returns": (_reference(RUN + "    return A, B\n"), D, "/reference", 2),
    "reference-hidden": (
        _reference(RUN + "    # \u202e A nruter\n    return A\n"),
        D,
        "/reference",
        2,
    ),
    "text-hidden": (_changed("description", "a\u202eb"), D, "/description", None),
    "reference-import": (
        _reference("import flashinfer\n" + RUN + "    return A\n"),
        D,
        "/reference",
        1,
    ),
    "workload-missing": (lambda d, w: (d.root / W).unlink(), D, "", None),
    "workload-orphan": (
        lambda d, w: d.workloads(w("q"), name="gemm/q"),
        "workloads/gemm/q.jsonl",
        "",
        None,
    ),
    "workload-definition": (
        lambda d, w: d.workloads(w("other")),
        W,
        "/definition",
        1,
    ),
    "workload-duplicate-uuid": (
        lambda d, w: d.workloads(w(), w(uuid="two"), w()),
        W,
        "/workload/uuid",
        3,
    ),
    "workload-axis": (_line(axes={"M": 1, "N": 8}), W, "/workload/axes/N", 1),
    "workload-input": (
        _line(inputs={"A": {"type": "random"}}),
        W,
        "/workload/inputs",
        1,
    ),
    "input-domain": (
        lambda d, w: d.definition(
            inputs={
                "A": {"shape": ["M", "K"], "dtype": "float16", "domain": "unit"},
                "B": {
                    "shape": ["N", "K"],
                    "dtype": "float16",
                    "domain": "powers-of-two",
                },
            }
        ),
        D,
        "/inputs/B/domain",
        None,
    ),
    "workload-input-kind": (
        _line(inputs={"A": {"type": "random"}, "B": {"type": "scalar", "value": 1}}),
        W,
        "/workload/inputs/B",
        1,
    ),
    "workload-scalar": (
        _line(inputs={**_blob(BLOB), "alpha": {"type": "scalar", "value": True}}),
        W,
        "/workload/inputs/alpha/value",
        1,
    ),
    "workload-scale": (
        lambda d, w: (
            d.definition(
                tags=["model:kimi-k2"],
                inputs={
                    "A": {"shape": ["M", "K"], "dtype": "float16"},
                    "B": {"shape": ["N", "K"], "dtype": "float16"},
                    "sm_scale": {"shape": None, "dtype": "float32"},
                },
                reference="def run(A, B, sm_scale):\n    return A @ B.T * sm_scale\n",
            ),
            d.workloads(
                w(
                    inputs={
                        "A": {"type": "random"},
                        "B": {"type": "random"},
                        # 1 / sqrt(192)
                        "sm_scale": {"type": "scalar", "value": 0.0721688},
                    }
                )
            ),
        ),
        W,
        "/workload/inputs/sm_scale/value",
        1,
    ),
    "workload-path": (
        _line(inputs=_blob("blob/../../x.safetensors")),
        W,
        "/workload/inputs/A/path",
        1,
    ),
    "workload-blob-missing": (
        _line(inputs=_blob(BLOB)),
        W,
        "/workload/inputs/A/path",
        1,
    ),
    "workload-blob-lfs": (_with_lfs_blob, W, "/workload/inputs/A/path", 1),
    "constant-disagrees": (_norm("1e-5", "model:qwen3-14b"), N, "/reference", 5),
    "constant-models-disagree": (
        _norm("1e-6", "model:qwen3-14b", "model:llama-3.1-8b"),
        N,
        "/tags",
        None,
    ),
    "constant-not-independent": (_norm("1e-6"), N, "/reference", None),
    **MORE,
    **solution_cases.CASES,
}


def test_valid_dataset_has_no_problems(dataset: Any) -> None:
    assert dataset.problems() == ()


def test_every_rule_has_a_case() -> None:
    assert set(CASES) == set(RULES) - set(ELSEWHERE)
    for rule, test in ELSEWHERE.items():
        assert rule in (ROOT / test).read_text("utf-8")


@pytest.mark.parametrize("rule", CASES)
def test_rule_is_found(rule: str, dataset: Any, workload: Any) -> None:
    break_it, file, pointer, line = CASES[rule]
    break_it(dataset, workload)
    found = [p for p in dataset.problems() if p.rule == rule]
    assert [(p.file, p.pointer, p.line) for p in found] == [(file, pointer, line)]
    assert found[0].severity is RULES[rule].severity
    assert found[0].message.endswith((".", "?"))
    assert found[0].fix


@pytest.mark.parametrize("rule", [rule for rule in CASES if RULES[rule].blocks])
def test_blocking_rules_keep_a_definition_from_rendering(
    rule: str, dataset: Any, workload: Any
) -> None:
    CASES[rule][0](dataset, workload)
    loaded = load_definitions(dataset.root)
    file = CASES[rule][1]
    assert file not in [definition.path for definition in loaded.definitions]


def test_rules_are_kebab_case_with_one_sentence() -> None:
    for rule in RULES.values():
        assert rule.id.replace("-", "").isalpha()
        assert rule.id == rule.id.lower()
        assert rule.explanation.endswith(".")
        assert rule.fix.endswith((".", "`."))
        assert rule.example
        assert not rule.example.endswith(".") or rule.example.endswith("...")
        assert not (rule.blocks and rule.severity is not Severity.ERROR)
