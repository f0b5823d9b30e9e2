"""The rules on folders, files, JSON and its schema."""

from __future__ import annotations

from generator.rules.rule import blocking, error, warning

DATASET = (
    error(
        "dataset-missing",
        "The folder has no definitions/ that can be read: it is not a dataset's root.",
        "Pass the dataset's root with --dataset.",
        "`--dataset ~/Downloads`, a folder without definitions/",
    ),
    error(
        "dataset-empty",
        "There is not a single definition to work on.",
        "Add a definition as definitions/<op_type>/<name>.json.",
        "definitions/gemm/ without any file in it",
    ),
    error(
        "directory-unreadable",
        "A folder of the dataset can't be listed, so what is in it goes unchecked.",
        "Give the folder read permission.",
        "workloads/gemm/ with the permissions 000",
    ),
    error(
        "path-depth",
        "A file or folder lies at a depth where nothing reads it.",
        "Move it to <kind>/<op_type>/<name>.<extension>, or remove it.",
        "definitions/gemm_n8_k4.json, without a folder for the op_type",
    ),
    warning(
        "path-extension",
        "A file has an extension that nothing reads.",
        "Give it the right extension, or move it out of the dataset.",
        "definitions/gemm/notes.txt",
    ),
    blocking(
        "path-outside",
        "A symbolic link leads out of the dataset.",
        "Put the file itself into the dataset.",
        "definitions/gemm/x.json -> /etc/passwd",
    ),
    warning(
        "path-case",
        "Two files or folders differ only by case: some file systems hold only one.",
        "Rename one of them.",
        "blob/workloads/gemm/ and blob/workloads/GEMM/",
    ),
    warning(
        "path-unportable",
        "A file's name has characters that some systems can't hold or show.",
        "Rename it: letters, digits, hyphens, underscores and dots.",
        "`gemm?.json`, or `con.json`",
    ),
)

FILES = (
    blocking(
        "file-unreadable",
        "The operating system refuses to open or read the file.",
        "Check that the file exists and that you may read it.",
        "a definition that another user owns, with the permissions 600",
    ),
    blocking(
        "file-not-regular",
        "There is a folder or a device where a file should be.",
        "Replace it with a file.",
        "a folder that is named gemm_n8_k4.json",
    ),
    blocking(
        "file-too-large",
        "The file is larger than any real one; it is not read.",
        "Move large data into blob/ and point to it.",
        "a definition of 200 MiB",
    ),
    blocking(
        "file-lfs-pointer",
        "The file is a Git LFS pointer, not the data itself.",
        "Fetch the data with `git lfs pull`.",
        "`version https://git-lfs.github.com/spec/v1` instead of JSON",
    ),
    blocking(
        "json-encoding",
        "The file's bytes are not UTF-8.",
        "Save the file as UTF-8 without a byte order mark.",
        "a description saved as Latin-1",
    ),
    blocking(
        "json-bom",
        "The file begins with a byte order mark, which many JSON readers refuse.",
        "Save the file as UTF-8 without a byte order mark.",
        "a file saved by an editor as UTF-8 with signature",
    ),
    blocking(
        "json-syntax",
        "The text is not JSON.",
        "Correct the text at that place.",
        '`{"name": "gemm_n8_k4",}`, a comma too many',
    ),
    blocking(
        "json-depth",
        "The JSON is nested deeper than any real file.",
        "Flatten the value.",
        "`[[[[...]]]]`, 10,000 levels of it",
    ),
    blocking(
        "json-duplicate-key",
        "An object has one key twice; readers disagree about which one counts.",
        "Keep one of them.",
        '`{"N": {...}, "N": {...}}` in axes',
    ),
    blocking(
        "json-nan",
        "NaN and Infinity are not JSON.",
        "Use a finite number, or null where the format allows it.",
        '`{"type": "scalar", "value": NaN}`',
    ),
    blocking(
        "json-number",
        "A number is too large to be represented.",
        "Use a number that fits 64 bits.",
        '`{"value": 1e999}`',
    ),
    blocking(
        "json-surrogate",
        "A string has half of a surrogate pair, which is not a character.",
        "Write the whole character.",
        '`"\\ud800"` without the other half',
    ),
    warning(
        "jsonl-blank-line",
        "A JSON Lines file has an empty line between others.",
        "Remove the empty line.",
        "an empty line between two workloads",
    ),
)

SCHEMA = (
    blocking(
        "schema-missing-field",
        "A required field is missing.",
        "Add the field.",
        "a definition without `reference`",
    ),
    blocking(
        "schema-unknown-field",
        "A field is not one of the format's.",
        "Remove the field or correct its name.",
        '`"descriptoin": "..."`',
    ),
    blocking(
        "schema-type",
        "A value has the wrong JSON type.",
        "Write a value of the right type.",
        '`"tags": "fused"`, not an array',
    ),
    blocking(
        "schema-value",
        "A value is of the right type but not allowed.",
        "Write one of the allowed values.",
        '`"dtype": "bf16"`',
    ),
    blocking(
        "too-many-problems",
        "One file has so many problems that the rest of them is not listed.",
        "Correct those listed and run again.",
        "a definition with 5,000 unknown fields",
    ),
)
