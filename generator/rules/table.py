"""Every rule of the loading stage: its id, severity, what it means and the usual fix.

Rule ids are an interface: people filter by them. Add, never rename.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from generator.problems import Problem, Severity
from generator.wording import one_line


@dataclass(frozen=True)
class Rule:
    """Declare one rule.

    `blocks` says that a definition which breaks it can't be rendered: the rendered
    file would not be valid Python, or would test something else than what was meant.
    """

    id: str
    severity: Severity
    explanation: str
    fix: str
    blocks: bool = False


def _blocking(id: str, explanation: str, fix: str) -> Rule:
    return Rule(id, Severity.ERROR, explanation, fix, blocks=True)


def _error(id: str, explanation: str, fix: str) -> Rule:
    return Rule(id, Severity.ERROR, explanation, fix)


def _warning(id: str, explanation: str, fix: str) -> Rule:
    return Rule(id, Severity.WARNING, explanation, fix)


_DATASET = (
    _error(
        "dataset-missing",
        "The folder has no definitions/ that can be read: it is not a dataset's root.",
        "Pass the dataset's root with --dataset.",
    ),
    _error(
        "dataset-empty",
        "There is not a single definition to work on.",
        "Add a definition as definitions/<op_type>/<name>.json.",
    ),
    _error(
        "directory-unreadable",
        "A folder of the dataset can't be listed, so what is in it goes unchecked.",
        "Give the folder read permission.",
    ),
    _error(
        "path-depth",
        "A file or folder lies at a depth where nothing reads it.",
        "Move it to <kind>/<op_type>/<name>.<extension>, or remove it.",
    ),
    _warning(
        "path-extension",
        "A file has an extension that nothing reads.",
        "Give it the right extension, or move it out of the dataset.",
    ),
    _blocking(
        "path-outside",
        "A symbolic link leads out of the dataset.",
        "Put the file itself into the dataset.",
    ),
)

_FILES = (
    _blocking(
        "file-unreadable",
        "The operating system refuses to open or read the file.",
        "Check that the file exists and that you may read it.",
    ),
    _blocking(
        "file-not-regular",
        "There is a folder or a device where a file should be.",
        "Replace it with a file.",
    ),
    _blocking(
        "file-too-large",
        "The file is larger than any real one; it is not read.",
        "Move large data into blob/ and point to it.",
    ),
    _blocking(
        "file-lfs-pointer",
        "The file is a Git LFS pointer, not the data itself.",
        "Fetch the data with `git lfs pull`.",
    ),
    _blocking(
        "json-encoding",
        "The file's bytes are not UTF-8.",
        "Save the file as UTF-8 without a byte order mark.",
    ),
    _blocking(
        "json-bom",
        "The file begins with a byte order mark, which many JSON readers refuse.",
        "Save the file as UTF-8 without a byte order mark.",
    ),
    _blocking(
        "json-syntax",
        "The text is not JSON.",
        "Correct the text at that place.",
    ),
    _blocking(
        "json-depth",
        "The JSON is nested deeper than any real file.",
        "Flatten the value.",
    ),
    _blocking(
        "json-duplicate-key",
        "An object has one key twice; readers disagree about which one counts.",
        "Keep one of them.",
    ),
    _blocking(
        "json-nan",
        "NaN and Infinity are not JSON.",
        "Use a finite number, or null where the format allows it.",
    ),
    _blocking(
        "json-number",
        "A number is too large to be represented.",
        "Use a number that fits 64 bits.",
    ),
    _blocking(
        "json-surrogate",
        "A string has half of a surrogate pair, which is not a character.",
        "Write the whole character.",
    ),
    _warning(
        "jsonl-blank-line",
        "A JSON Lines file has an empty line between others.",
        "Remove the empty line.",
    ),
)

_SCHEMA = (
    _blocking(
        "schema-missing-field",
        "A required field is missing.",
        "Add the field.",
    ),
    _blocking(
        "schema-unknown-field",
        "A field is not one of the format's.",
        "Remove the field or correct its name.",
    ),
    _blocking(
        "schema-type",
        "A value has the wrong JSON type.",
        "Write a value of the right type.",
    ),
    _blocking(
        "schema-value",
        "A value is of the right type but not allowed.",
        "Write one of the allowed values.",
    ),
    _blocking(
        "too-many-problems",
        "One file has so many problems that the rest of them is not listed.",
        "Correct those listed and run again.",
    ),
)

_NAMES = (
    _blocking(
        "name-unsafe",
        "A name can't be used as an identifier.",
        "Use letters, digits and underscores, begin with a letter, at most 200.",
    ),
    _blocking(
        "name-file",
        "The definition's name is not the file's name.",
        "Make the two the same.",
    ),
    _blocking(
        "name-op-type",
        "The definition's op_type is not the folder's name.",
        "Make the two the same.",
    ),
    _error(
        "name-token",
        "The definition's name states a constant that its axes contradict.",
        "Correct the name or the axis.",
    ),
    _blocking(
        "name-duplicate",
        "Two files define the same name.",
        "Rename or remove one of them.",
    ),
    _blocking(
        "name-case",
        "Two names differ only by case: some file systems hold only one of them.",
        "Rename one of them.",
    ),
)

_INTERFACE = (
    _blocking(
        "axis-undeclared",
        "A shape names an axis that the definition does not declare.",
        "Declare the axis or correct the shape.",
    ),
    _blocking(
        "axis-case",
        "Two axes differ only by case; a rendered test writes them in capitals.",
        "Rename one of them.",
    ),
    _error(
        "axis-unused",
        "A variable axis appears in no shape and no constraint.",
        "Use the axis in a shape or remove it.",
    ),
    _warning(
        "axis-unused-const",
        "A constant axis appears in no shape, no constraint and not in the name.",
        "Use the axis or remove it.",
    ),
    _error(
        "input-output-overlap",
        "An output has the name of an input.",
        "Rename the output.",
    ),
    _blocking(
        "constraint-syntax",
        "A constraint is not a Python expression.",
        "Write one expression over axes and inputs, such as `n == m + 1`.",
    ),
    _blocking(
        "constraint-name",
        "A constraint uses a name that is no axis, input or known function.",
        "Use the names of axes and inputs.",
    ),
)

_REFERENCE = (
    _blocking(
        "reference-syntax",
        "The reference is not valid Python.",
        "Correct the source at that line.",
    ),
    _blocking(
        "reference-no-run",
        "The reference has no top-level function `run`.",
        "Define `def run(...)` at the top level, with the inputs as parameters.",
    ),
    _blocking(
        "reference-run-kind",
        "The reference's `run` is not a plain function.",
        "Write it as `def run(...)` that returns its outputs.",
    ),
    _blocking(
        "reference-parameters",
        "The parameters of `run` are not the inputs in their order.",
        "List the inputs as parameters, in the order of `inputs`.",
    ),
    _error(
        "reference-returns",
        "The reference's `run` does not return one value for each output.",
        "Return a tensor, or a tuple in the order of `outputs`.",
    ),
    _warning(
        "reference-import",
        "The reference imports more than torch, numpy, math and typing.",
        "Write the computation in plain PyTorch.",
    ),
)

_WORKLOADS = (
    _warning(
        "workload-missing",
        "The definition has no workload file.",
        "Add workloads/<op_type>/<name>.jsonl, captured from real inference.",
    ),
    _error(
        "workload-orphan",
        "A workload file belongs to no definition.",
        "Rename the file to its definition's op_type and name, or remove it.",
    ),
    _error(
        "workload-definition",
        "A workload names another definition than its file does.",
        "Move the line to its definition's file.",
    ),
    _error(
        "workload-duplicate-uuid",
        "Two workloads of a file have the same uuid.",
        "Give each workload its own uuid.",
    ),
    _error(
        "workload-axis",
        "A workload's axes are not the definition's variable axes.",
        "Give a value to every variable axis and to nothing else.",
    ),
    _error(
        "workload-input",
        "A workload's inputs are not the definition's inputs.",
        "Describe every input of the definition and nothing else.",
    ),
    _error(
        "workload-input-kind",
        "A workload gives a tensor for a scalar input or a scalar for a tensor.",
        "Use scalar exactly for inputs whose shape is null.",
    ),
    _error(
        "workload-scalar",
        "A scalar's value does not fit the input's dtype.",
        "Write a value of that dtype.",
    ),
    _error(
        "workload-path",
        "A path to a blob leads out of the dataset or is not portable.",
        "Write the path relative to the dataset's root, with forward slashes.",
    ),
    _warning(
        "workload-blob-missing",
        "A workload points to a file that is not there.",
        "Add the blob, or fetch it with `git lfs pull`.",
    ),
    _warning(
        "workload-blob-lfs",
        "A workload points to a blob of which only the Git LFS pointer is there.",
        "Fetch the blob with `git lfs pull`.",
    ),
)

RULES: Mapping[str, Rule] = {
    rule.id: rule
    for group in (
        _DATASET,
        _FILES,
        _SCHEMA,
        _NAMES,
        _INTERFACE,
        _REFERENCE,
        _WORKLOADS,
    )
    for rule in group
}


def finding(
    rule: str,
    file: str,
    message: str,
    *,
    pointer: str = "",
    line: int | None = None,
    fix: str | None = None,
) -> Problem:
    """Return a Problem of a declared rule, with the rule's severity.

    `fix` replaces the rule's general one where the place allows a better one. Message
    and fix are put on one line, whatever the names in them. Raises KeyError for a rule
    that is not in RULES: that is a defect of the caller.
    """
    declared = RULES[rule]
    return Problem(
        rule=declared.id,
        severity=declared.severity,
        file=file,
        pointer=pointer,
        message=one_line(message, 1000),
        fix=one_line(declared.fix if fix is None else fix, 1000),
        line=line,
    )


def is_blocked(problems: list[Problem]) -> bool:
    """Return whether any of the problems makes a definition unfit to be rendered."""
    return any(RULES[p.rule].blocks for p in problems)
