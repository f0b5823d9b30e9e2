"""The rules on workloads and the blobs they point to."""

from __future__ import annotations

from generator.rules.rule import error, warning

WORKLOADS = (
    warning(
        "workload-missing",
        "The definition has no workload file.",
        "Add workloads/<op_type>/<name>.jsonl, captured from real inference.",
        "gemm_n8_k4.json without gemm_n8_k4.jsonl",
    ),
    error(
        "workload-orphan",
        "A workload file belongs to no definition.",
        "Rename the file to its definition's op_type and name, or remove it.",
        "workloads/gemm/gone.jsonl without definitions/gemm/gone.json",
    ),
    error(
        "workload-definition",
        "A workload names another definition than its file does.",
        "Move the line to its definition's file.",
        '`"definition": "gemm_n8_k5"` in gemm_n8_k4.jsonl',
    ),
    error(
        "workload-duplicate-uuid",
        "Two workloads of a file have the same uuid.",
        "Give each workload its own uuid.",
        "a line copied, its axes changed, its uuid not",
    ),
    error(
        "workload-axis",
        "A workload's axes are not the definition's variable axes.",
        "Give a value to every variable axis and to nothing else.",
        '`"axes": {"M": 3, "N": 8}` where N is a constant',
    ),
    error(
        "workload-input",
        "A workload's inputs are not the definition's inputs.",
        "Describe every input of the definition and nothing else.",
        "a line without the input `B`",
    ),
    error(
        "workload-input-kind",
        "A workload gives a tensor for a scalar input or a scalar for a tensor.",
        "Use scalar exactly for inputs whose shape is null.",
        '`"sm_scale": {"type": "random"}`',
    ),
    error(
        "workload-scalar",
        "A scalar's value does not fit the input's dtype.",
        "Write a value of that dtype.",
        '`{"type": "scalar", "value": 0.5}` for an int32',
    ),
    error(
        "workload-path",
        "A path to a blob leads out of the dataset or is not portable.",
        "Write the path relative to the dataset's root, with forward slashes.",
        '`"path": "../../etc/x.safetensors"`',
    ),
    warning(
        "workload-blob-missing",
        "A workload points to a file that is not there.",
        "Add the blob, or fetch it with `git lfs pull`.",
        "a path to a blob that was not committed",
    ),
    warning(
        "workload-blob-lfs",
        "A workload points to a blob of which only the Git LFS pointer is there.",
        "Fetch the blob with `git lfs pull`.",
        "a clone made without Git LFS",
    ),
)
