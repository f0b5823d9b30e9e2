"""The rules on workloads and the blobs they point to."""

from __future__ import annotations

from generator.rules.rule import error, note, warning

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

CONTENTS = (
    error(
        "workload-size",
        "An input would take more memory than any machine has.",
        "Correct the workload's axes.",
        '`"axes": {"M": 9000000000000}`',
    ),
    error(
        "blob-format",
        "A blob is not a safetensors file, or its header contradicts its length.",
        "Write the blob again, with safetensors' own library.",
        "a file cut short while it was copied",
    ),
    error(
        "blob-key",
        "A workload names a tensor that its blob does not have.",
        "Correct tensor_key, or write the tensor into the blob.",
        '`"tensor_key": "indptr"` where the blob has only kv_indptr',
    ),
    error(
        "blob-shape",
        "A blob's tensor has another shape than the definition and the axes say.",
        "Correct the workload's axes, or write the right tensor.",
        "kv_indptr has 8 elements where len_indptr is 9",
    ),
    error(
        "blob-dtype",
        "A blob's tensor has another dtype than the definition says.",
        "Write the tensor with the definition's dtype.",
        "kv_indptr is I64 where the definition says int32",
    ),
    note(
        "blob-unread",
        "A tensor is too large for its values to be looked at.",
        "Nothing, if the tensor has to be that large.",
        "kv_indices of 100 MiB",
    ),
    warning(
        "blob-unused",
        "No workload points to the blob.",
        "Remove the blob, or add the workload that it belongs to.",
        "a blob left behind after its line was removed",
    ),
    error(
        "workload-indptr",
        "An indptr does not begin at 0, decreases, or ends at another number than its "
        "axis.",
        "Capture the workload again: such a tensor makes kernels read outside.",
        "qo_indptr is 0, 7, 5 where total_q is 5",
    ),
    error(
        "workload-indices",
        "An index leads out of the tensor that it is for.",
        "Capture the workload again: such an index makes kernels read outside.",
        "kv_indices has 512 where num_pages is 512",
    ),
    error(
        "workload-last-page",
        "A sequence's last page is empty or holds more tokens than a page.",
        "Write a length of 1 to page_size.",
        "kv_last_page_len has 65 where page_size is 64",
    ),
    error(
        "workload-constraint",
        "A workload breaks a constraint of its definition.",
        "Correct the workload, or the constraint if it demands too much.",
        "len_indptr is 8 and batch_size 8 under `len_indptr == batch_size + 1`",
    ),
    note(
        "constraint-unchecked",
        "A constraint is written so that it can't be checked without running it.",
        "Write it with comparisons, arithmetic, len, shapes and the like.",
        "`torch.all(a <= b)`",
    ),
    note(
        "workload-no-keys",
        "Some queries see no key at all, so their output is a convention (0, -inf).",
        "Check that the workload is meant so, and that the reference says what happens.",
        "a causal prefill of 5 queries over 3 keys",
    ),
)

MADE_UP = (
    warning(
        "workload-duplicate-content",
        "Two workloads of a file have the same axes and inputs.",
        "Keep one of them.",
        "the same line under two uuids",
    ),
    warning(
        "workload-sweep",
        "The axes of all workloads are one regular sweep, not what inference does.",
        "Capture workloads from real inference.",
        "batch_size is 1, 2, 4, 8, 16 and nothing else varies",
    ),
    warning(
        "workload-batch-one",
        "All workloads have a batch of one.",
        "Capture workloads from a server under load.",
        "batch_size is 1 in all 12 lines",
    ),
    warning(
        "workload-equal-lengths",
        "In each workload all sequences are equally long, unlike in real inference.",
        "Capture workloads from real inference.",
        "qo_indptr is 0, 128, 256, 384 and the like in all lines",
    ),
)
