"""The rules on folders, files, JSON and its schema."""

from __future__ import annotations

from generator.rules.rule import blocking, error, warning

DATASET = (
    error(
        "dataset-missing",
        "The folder has no definitions/ that can be read: it is not a dataset's root.",
        "Pass the dataset's root with --dataset.",
    ),
    error(
        "dataset-empty",
        "There is not a single definition to work on.",
        "Add a definition as definitions/<op_type>/<name>.json.",
    ),
    error(
        "directory-unreadable",
        "A folder of the dataset can't be listed, so what is in it goes unchecked.",
        "Give the folder read permission.",
    ),
    error(
        "path-depth",
        "A file or folder lies at a depth where nothing reads it.",
        "Move it to <kind>/<op_type>/<name>.<extension>, or remove it.",
    ),
    warning(
        "path-extension",
        "A file has an extension that nothing reads.",
        "Give it the right extension, or move it out of the dataset.",
    ),
    blocking(
        "path-outside",
        "A symbolic link leads out of the dataset.",
        "Put the file itself into the dataset.",
    ),
)

FILES = (
    blocking(
        "file-unreadable",
        "The operating system refuses to open or read the file.",
        "Check that the file exists and that you may read it.",
    ),
    blocking(
        "file-not-regular",
        "There is a folder or a device where a file should be.",
        "Replace it with a file.",
    ),
    blocking(
        "file-too-large",
        "The file is larger than any real one; it is not read.",
        "Move large data into blob/ and point to it.",
    ),
    blocking(
        "file-lfs-pointer",
        "The file is a Git LFS pointer, not the data itself.",
        "Fetch the data with `git lfs pull`.",
    ),
    blocking(
        "json-encoding",
        "The file's bytes are not UTF-8.",
        "Save the file as UTF-8 without a byte order mark.",
    ),
    blocking(
        "json-bom",
        "The file begins with a byte order mark, which many JSON readers refuse.",
        "Save the file as UTF-8 without a byte order mark.",
    ),
    blocking(
        "json-syntax",
        "The text is not JSON.",
        "Correct the text at that place.",
    ),
    blocking(
        "json-depth",
        "The JSON is nested deeper than any real file.",
        "Flatten the value.",
    ),
    blocking(
        "json-duplicate-key",
        "An object has one key twice; readers disagree about which one counts.",
        "Keep one of them.",
    ),
    blocking(
        "json-nan",
        "NaN and Infinity are not JSON.",
        "Use a finite number, or null where the format allows it.",
    ),
    blocking(
        "json-number",
        "A number is too large to be represented.",
        "Use a number that fits 64 bits.",
    ),
    blocking(
        "json-surrogate",
        "A string has half of a surrogate pair, which is not a character.",
        "Write the whole character.",
    ),
    warning(
        "jsonl-blank-line",
        "A JSON Lines file has an empty line between others.",
        "Remove the empty line.",
    ),
)

SCHEMA = (
    blocking(
        "schema-missing-field",
        "A required field is missing.",
        "Add the field.",
    ),
    blocking(
        "schema-unknown-field",
        "A field is not one of the format's.",
        "Remove the field or correct its name.",
    ),
    blocking(
        "schema-type",
        "A value has the wrong JSON type.",
        "Write a value of the right type.",
    ),
    blocking(
        "schema-value",
        "A value is of the right type but not allowed.",
        "Write one of the allowed values.",
    ),
    blocking(
        "too-many-problems",
        "One file has so many problems that the rest of them is not listed.",
        "Correct those listed and run again.",
    ),
)
