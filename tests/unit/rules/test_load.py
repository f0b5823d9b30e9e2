"""From a folder to Definitions: what is found, selected, loaded and left out."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import generator
from generator.dataset.artifacts import discover_artifacts
from generator.dataset.definition import LoadedAxis, LoadedTensor
from generator.dataset.paths import discover_definitions
from generator.rules.load import load_definitions
from generator.validation.validate import Counts, make_plan, run_plan
from tests.unit.rules.made import tensor_file

ROOT = Path(generator.__file__).parent.parent


def test_a_definition_holds_what_its_file_says(dataset: Any) -> None:
    (loaded,) = load_definitions(dataset.root).definitions
    path = "definitions/gemm/gemm_n8_k4.json"
    assert (loaded.name, loaded.op_type, loaded.path) == ("gemm_n8_k4", "gemm", path)
    digest = hashlib.sha256((dataset.root / path).read_bytes()).hexdigest()
    assert loaded.sha256 == digest
    assert loaded.axes["K"] == LoadedAxis("K", 4, "Depth.")
    assert loaded.const_axes == {"N": 8, "K": 4}
    assert loaded.var_axes == ("M",)
    assert list(loaded.inputs) == ["A", "B", "alpha"]
    assert loaded.inputs["alpha"] == LoadedTensor("alpha", None, "float32", "", True)
    assert loaded.outputs["C"].shape == ("M", "N")
    assert loaded.tag_values("model") == ("qwen3-14b",)
    assert loaded.constraints == ("M >= 1",)


def test_definitions_are_sorted_by_op_type_and_name(dataset: Any) -> None:
    for name in ("zeta", "alpha"):
        dataset.definition(name=name, op_type="other")
    dataset.definition(name="beta")
    loaded = load_definitions(dataset.root)
    assert [(d.op_type, d.name) for d in loaded.definitions] == [
        ("gemm", "beta"),
        ("gemm", "gemm_n8_k4"),
        ("other", "alpha"),
        ("other", "zeta"),
    ]
    assert loaded.names == ("alpha", "beta", "gemm_n8_k4", "zeta")
    assert loaded.op_types == ("gemm", "other")


def test_a_selection_is_the_union_and_reads_nothing_else(dataset: Any) -> None:
    dataset.definition(name="alpha", op_type="other")
    dataset.definition(name="beta", op_type="other")
    dataset.write("definitions/gemm/broken.json", "{")
    dataset.write("definitions/lost.json", "{")
    by_name = load_definitions(dataset.root, names=["beta"])
    assert [d.name for d in by_name.definitions] == ["beta"]
    assert by_name.problems == ()
    both = load_definitions(dataset.root, names=["gemm_n8_k4"], op_types=["other"])
    assert [d.name for d in both.definitions] == ["gemm_n8_k4", "alpha", "beta"]
    everything = load_definitions(dataset.root).problems
    assert {p.rule for p in everything} == {"json-syntax", "path-depth"}


def test_a_selection_still_notices_a_name_taken_elsewhere(dataset: Any) -> None:
    dataset.definition(op_type="other")
    loaded = load_definitions(dataset.root, op_types=["other"])
    assert loaded.definitions == ()
    assert [p.rule for p in loaded.problems] == ["name-duplicate"]
    assert "definitions/gemm/gemm_n8_k4.json" in loaded.problems[0].message


def test_a_file_that_lies_about_its_name_does_not_take_anothers(dataset: Any) -> None:
    dataset.definition("aaa/first", name="gemm_n8_k4", op_type="aaa")
    loaded = load_definitions(dataset.root)
    assert [d.path for d in loaded.definitions] == ["definitions/gemm/gemm_n8_k4.json"]
    assert [(p.rule, p.file) for p in loaded.problems] == [
        ("name-file", "definitions/aaa/first.json"),
        ("name-duplicate", "definitions/aaa/first.json"),
    ]


def test_an_error_that_does_not_block_leaves_the_definition(dataset: Any) -> None:
    source = "def run(A, B, alpha=1.0):\n    return A, B\n"
    dataset.definition(reference=source)
    loaded = load_definitions(dataset.root)
    assert [p.rule for p in loaded.problems] == ["reference-returns"]
    assert [d.name for d in loaded.definitions] == ["gemm_n8_k4"]


def test_an_unfit_definition_is_kept_apart(dataset: Any) -> None:
    dataset.definition(reference="x = 1\n")
    loaded = load_definitions(dataset.root)
    assert loaded.definitions == ()
    assert [d.name for d in loaded.unfit] == ["gemm_n8_k4"]


def test_names_and_text_may_say_anything(dataset: Any) -> None:
    text = '"""\n\\ {{ 1 }} {% x %} \u2028 import os'
    dataset.definition(description=text, tags=[text])
    (loaded,) = load_definitions(dataset.root).definitions
    assert loaded.description == text
    assert loaded.tags == (text,)


@pytest.mark.parametrize("group", ["axes", "inputs", "outputs"])
def test_keywords_are_no_names(dataset: Any, group: str, definition: Any) -> None:
    definition[group]["lambda"] = next(iter(definition[group].values()))
    dataset.definition(**{group: definition[group]})
    found = [p for p in dataset.problems() if p.rule == "name-unsafe"]
    assert [p.pointer for p in found] == [f"/{group}/lambda"]


@pytest.mark.parametrize(
    ("name", "op_type", "axes", "said"),
    [
        ("gqa_h8_kv2", "gqa_paged", {"num_qo_heads": 8, "num_kv_heads": 2}, []),
        ("gqa_h8_kv2", "gqa_paged", {"num_qo_heads": 8, "num_kv_heads": 4}, ["kv2"]),
        ("gqa_h8", "gqa_paged", {"num_qo_heads": None}, ["h8"]),
        ("gqa_ps64", "gqa_paged", {"M": None}, ["ps64"]),
        ("moe_topk8", "unheard_of", {"top_k": 8}, []),
        ("moe_h8", "unheard_of", {"num_qo_heads": 9}, []),
    ],
)
def test_name_tokens(
    dataset: Any, name: str, op_type: str, axes: dict[str, Any], said: list[str]
) -> None:
    made = {
        axis: {"type": "var"} if value is None else {"type": "const", "value": value}
        for axis, value in axes.items()
    }
    shape = {"shape": [axis for axis in axes if axis != "top_k"], "dtype": "bool"}
    dataset.definition(
        name=name,
        op_type=op_type,
        axes=made,
        inputs={"A": shape},
        outputs={"C": shape},
        constraints=[],
        reference="def run(A):\n    return A\n",
    )
    found = load_definitions(dataset.root, names=[name]).problems
    assert [p.rule for p in found] == ["name-token"] * len(said)
    assert [p.message.split()[3].rstrip(",") for p in found] == said


def test_unknown_axis_suggests_the_nearest(dataset: Any, definition: Any) -> None:
    definition["axes"]["batch_size"] = {"type": "var"}
    definition["inputs"]["B"]["shape"] = ["batchsize", "K"]
    definition["outputs"]["C"]["shape"] = ["batch_size", "N"]
    dataset.definition(**definition)
    (found,) = [p for p in dataset.problems() if p.rule == "axis-undeclared"]
    assert found.pointer == "/inputs/B/shape/0"
    assert found.message.endswith("not declared. Did you mean 'batch_size'?")


def test_an_axis_used_in_a_constraint_is_used(dataset: Any, definition: Any) -> None:
    definition["axes"]["extra"] = {"type": "var"}
    dataset.definition(axes=definition["axes"], constraints=["extra == M + 1"])
    rules = [p.rule for p in load_definitions(dataset.root).problems]
    assert rules == []


def test_no_dataset_at_all(tmp_path: Path) -> None:
    for root in (tmp_path, tmp_path / "nowhere"):
        loaded = load_definitions(root, names=["x"])
        assert [p.rule for p in loaded.problems] == ["dataset-missing"]
        assert loaded.definitions == ()


def test_what_discovery_ignores_and_what_it_reports(dataset: Any) -> None:
    dataset.write("definitions/.DS_Store", "")
    dataset.write("definitions/gemm/.hidden.json", "")
    dataset.write("definitions/gemm/deeper/x.json", "{}")
    dataset.write("definitions/README.md", "")
    dataset.write("definitions/gemm/x.JSON", "")
    dataset.write("workloads/gemm/x.json", "")
    (dataset.root / "elsewhere").mkdir()
    (dataset.root / "definitions/inside").symlink_to(dataset.root / "elsewhere")
    (dataset.root / "definitions/outside").symlink_to("/etc")
    found = discover_definitions(dataset.root)
    assert [(p.rule, p.file) for p in found.problems] == [
        ("path-depth", "definitions/README.md"),
        ("path-depth", "definitions/gemm/deeper"),
        ("path-extension", "definitions/gemm/x.JSON"),
        ("path-link", "definitions/inside"),
        ("path-link", "definitions/outside"),
    ]
    assert [file.name for file in found.files] == ["gemm_n8_k4"]
    assert found.op_types == ("gemm",)
    others = discover_artifacts(dataset.root, None)
    assert [p.rule for p in others.problems] == ["path-extension"]


def test_a_folder_that_cannot_be_listed(
    dataset: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.scandir

    def refuse(path: Any) -> Any:
        if os.readlink(f"/proc/self/fd/{path}").endswith("gemm"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    # Not chmod: the superuser may list everything.
    monkeypatch.setattr(os, "scandir", refuse)
    (problem,) = discover_definitions(dataset.root).problems
    assert (problem.rule, problem.file) == ("directory-unreadable", "definitions/gemm")
    assert "Permission denied" in problem.message


def test_names_that_break_lines_stay_on_one(dataset: Any) -> None:
    dataset.write("definitions/gemm/a\nb\x1b[31m.json", "{")
    dataset.write("definitions/gemm/c\nd.txt", "")
    for problem in dataset.problems():
        assert str(problem).isprintable()


@pytest.mark.parametrize(
    "path",
    [
        "/etc/x.safetensors",
        "C:/x.safetensors",
        "a\\b.safetensors",
        "../x.safetensors",
        "blob/../../x.safetensors",
        "blob/x\n.safetensors",
        "blob/x\0.safetensors",
        "blob/x.pt",
        "escape/x.safetensors",
    ],
)
def test_unsafe_blob_paths(dataset: Any, workload: Any, path: str) -> None:
    outside = dataset.root.parent / f"{dataset.root.name}-outside"
    outside.mkdir()
    (outside / "x.safetensors").write_bytes(b"data")
    (dataset.root / "escape").symlink_to(outside)
    blob = {"type": "safetensors", "path": path, "tensor_key": "A"}
    dataset.workloads(workload(inputs={"A": blob, "B": {"type": "random"}}))
    assert dataset.only("workload-path").pointer == "/workload/inputs/A/path"


def test_a_blob_that_is_there_is_fine(dataset: Any, workload: Any) -> None:
    tensors = {"A": ("F16", [3, 4], [0.5] * 12), "B": ("F16", [8, 4], [0.5] * 32)}
    dataset.write("blob/a.safetensors", tensor_file(tensors))
    inputs = {
        key: {"type": "safetensors", "path": "./blob/a.safetensors", "tensor_key": key}
        for key in tensors
    }
    dataset.workloads(workload(inputs=inputs))
    assert dataset.problems() == ()


def test_each_bad_line_is_reported_and_counted(dataset: Any, workload: Any) -> None:
    good = json.dumps(workload(uuid="two"))
    dataset.workloads("{", workload(axes={}), good, workload(inputs={}))
    counts = Counts()
    first, *problems = run_plan(make_plan(dataset.root), counts)
    assert first.rule == "reference-unproven"
    assert counts.workloads == 4
    assert [(p.rule, p.line) for p in problems] == [
        ("json-syntax", 1),
        ("workload-axis", 2),
        ("workload-duplicate-uuid", 4),
        ("workload-input", 4),
        ("workload-input", 4),
    ]


def test_lines_of_an_unreadable_definition_are_still_checked(
    dataset: Any, workload: Any
) -> None:
    dataset.definition(axes=1)
    dataset.workloads(workload(uuid=""))
    assert [p.rule for p in dataset.problems()] == ["schema-type", "schema-value"]


def test_an_empty_workload_file_is_none(dataset: Any) -> None:
    dataset.write("workloads/gemm/gemm_n8_k4.jsonl", "\n")
    assert dataset.only("workload-missing").file.startswith("definitions/")


@pytest.mark.parametrize(
    ("dtype", "value", "fits"),
    [
        ("float32", 1, True),
        ("float32", 0.5, True),
        ("float32", True, False),
        ("float32", -3.4e38, True),
        ("float32", 1e39, False),
        ("bfloat16", 3.4e38, False),
        ("float16", 65504, True),
        ("float16", 65505, False),
        ("int32", 1, True),
        ("int32", 1.5, False),
        ("uint8", True, False),
        ("bool", True, True),
        ("bool", 1, False),
    ],
)
def test_scalars_fit_their_dtype(
    dataset: Any, definition: Any, workload: Any, dtype: str, value: Any, fits: bool
) -> None:
    definition["inputs"]["alpha"]["dtype"] = dtype
    dataset.definition(**definition)
    inputs = {"A": {"type": "random"}, "B": {"type": "random"}}
    inputs["alpha"] = {"type": "scalar", "value": value}
    dataset.workloads(workload(inputs=inputs))
    expected = [] if fits else ["workload-scalar"]
    found = [p.rule for p in dataset.problems() if p.rule != "loader-dtype"]
    assert found == expected


def test_loading_executes_nothing_and_imports_no_torch(dataset: Any) -> None:
    marker = dataset.root / "executed"
    source = f"open({str(marker)!r}, 'w')\ndef run(A, B, alpha):\n    return A\n"
    dataset.definition(reference=source, constraints=[f"open({str(marker)!r}, 'w')"])
    code = (
        "import sys; from pathlib import Path;"
        "from generator.validation.validate import Counts, make_plan, run_plan;"
        "list(run_plan(make_plan(Path(sys.argv[1])), Counts()));"
        "print([m for m in ('torch', 'numpy', 'rich', 'jinja2') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(dataset.root)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    assert done.stdout == "[]\n"
    assert not marker.exists()


_CHECKS = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
FIELDS = ["name", "op_type", "axes", "inputs", "outputs", "constraints", "reference"]
VALUES = st.recursive(
    st.none() | st.integers() | st.text() | st.sampled_from(["M", "run", "const"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@settings(suppress_health_check=_CHECKS, max_examples=200)
@given(changes=st.dictionaries(st.sampled_from(FIELDS), VALUES, min_size=1))
def test_a_mutated_definition_never_raises(dataset: Any, changes: Any) -> None:
    dataset.definition("gemm/gemm_n8_k4", **changes)
    for problem in dataset.problems():
        assert str(problem).isprintable()
        assert problem.file.startswith(("definitions/", "workloads/"))


@settings(suppress_health_check=_CHECKS, max_examples=200)
@given(data=st.binary(max_size=40))
def test_any_bytes_never_raise(dataset: Any, data: bytes) -> None:
    dataset.write("definitions/gemm/gemm_n8_k4.json", data)
    dataset.write("workloads/gemm/gemm_n8_k4.jsonl", data)
    found = dataset.problems()
    assert {p.file for p in found} >= {"definitions/gemm/gemm_n8_k4.json"}
    assert all(str(problem).isprintable() for problem in found)
