"""All rules by group: an explicit list of those that the checks declare."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from generator.dataset import (
    artifacts,
    json_file,
    paths,
    schema,
)
from generator.dataset import (
    blobs as blob_files,
)
from generator.dataset.paths import UnknownName
from generator.problems import (
    Problem,
    limit,
)
from generator.problems.rule import Rule
from generator.rules import (
    audits,
    axes,
    blobs,
    constants,
    constraints,
    cross,
    execution,
    figures,
    loadable,
    made_up,
    names,
    reference,
    rendered,
    returns,
    solutions,
    static,
    structure,
    tags,
    traces,
    undefined_names,
    workloads,
)

GROUPS: Mapping[str, tuple[Rule, ...]] = {
    "layout": (
        paths.DATASET_MISSING,
        paths.DATASET_EMPTY,
        paths.DIRECTORY_UNREADABLE,
        paths.PATH_DEPTH,
        paths.PATH_EXTENSION,
        paths.PATH_OUTSIDE,
        paths.PATH_CASE,
        paths.PATH_UNPORTABLE,
    ),
    "files": (
        json_file.FILE_UNREADABLE,
        json_file.FILE_NOT_REGULAR,
        json_file.FILE_TOO_LARGE,
        json_file.FILE_LFS_POINTER,
        json_file.JSON_ENCODING,
        json_file.JSON_BOM,
        json_file.JSON_SYNTAX,
        json_file.JSON_DEPTH,
        json_file.JSON_DUPLICATE_KEY,
        json_file.JSON_NAN,
        json_file.JSON_NUMBER,
        json_file.JSON_SURROGATE,
        json_file.JSONL_BLANK_LINE,
    ),
    "schema": (
        schema.SCHEMA_MISSING_FIELD,
        schema.SCHEMA_UNKNOWN_FIELD,
        schema.SCHEMA_TYPE,
        schema.SCHEMA_VALUE,
        limit.TOO_MANY_PROBLEMS,
    ),
    "definitions": (
        schema.NAME_UNSAFE,
        names.NAME_FILE,
        names.NAME_OP_TYPE,
        names.NAME_TOKEN,
        names.NAME_DUPLICATE,
        names.NAME_CASE,
        axes.AXIS_UNDECLARED,
        axes.AXIS_CASE,
        axes.AXIS_UNUSED,
        axes.AXIS_UNUSED_CONST,
        axes.INPUT_OUTPUT_OVERLAP,
        constraints.CONSTRAINT_SYNTAX,
        constraints.CONSTRAINT_NAME,
        loadable.LOADER_DTYPE,
    ),
    "reference": (
        reference.REFERENCE_SYNTAX,
        reference.REFERENCE_NO_RUN,
        reference.REFERENCE_RUN_KIND,
        reference.REFERENCE_PARAMETERS,
        returns.REFERENCE_RETURNS,
        reference.REFERENCE_IMPORT,
        undefined_names.REFERENCE_UNDEFINED_NAME,
        static.REFERENCE_ASSERT,
        static.REFERENCE_IN_PLACE,
        static.REFERENCE_GLOBAL,
        static.REFERENCE_TOKEN_LOOP,
    ),
    "execute": (
        execution.EXECUTE_BLOCKED,
        execution.EXECUTE_RAISED,
        execution.EXECUTE_GUESSED,
        execution.EXECUTE_OUTPUTS,
        execution.EXECUTE_SHAPE,
        execution.EXECUTE_DTYPE,
        execution.EXECUTE_DEVICE,
        execution.EXECUTE_WRITES,
        execution.EXECUTE_TIME,
        execution.EXECUTE_KILLED,
        execution.EXECUTE_NOT_RUN,
    ),
    "constants": (
        constants.CONSTANT_DISAGREES,
        constants.CONSTANT_MODELS_DISAGREE,
        constants.CONSTANT_NOT_INDEPENDENT,
    ),
    "workloads": (
        workloads.WORKLOAD_MISSING,
        artifacts.WORKLOAD_ORPHAN,
        workloads.WORKLOAD_DEFINITION,
        workloads.WORKLOAD_DUPLICATE_UUID,
        workloads.WORKLOAD_AXIS,
        workloads.WORKLOAD_INPUT,
        workloads.WORKLOAD_INPUT_KIND,
        workloads.WORKLOAD_SCALAR,
        blob_files.WORKLOAD_PATH,
        blob_files.WORKLOAD_BLOB_MISSING,
        blob_files.WORKLOAD_BLOB_LFS,
        blobs.WORKLOAD_SIZE,
        blob_files.BLOB_FORMAT,
        blobs.BLOB_KEY,
        blobs.BLOB_SHAPE,
        blobs.BLOB_DTYPE,
        blobs.BLOB_UNREAD,
        artifacts.BLOB_UNUSED,
        structure.WORKLOAD_INDPTR,
        structure.WORKLOAD_INDICES,
        structure.WORKLOAD_LAST_PAGE,
        constraints.WORKLOAD_CONSTRAINT,
        constraints.CONSTRAINT_UNCHECKED,
        made_up.WORKLOAD_NO_KEYS,
        made_up.WORKLOAD_DUPLICATE_CONTENT,
        made_up.WORKLOAD_SWEEP,
        made_up.WORKLOAD_BATCH_ONE,
        made_up.WORKLOAD_EQUAL_LENGTHS,
    ),
    "tags": (
        tags.TAG_FORM,
        tags.TAG_UNKNOWN,
        tags.TAG_SYNONYM,
        tags.TAG_VALUE,
        tags.TAG_DUPLICATE,
        tags.TAG_CONFLICT,
        tags.TAG_MODEL,
        cross.TAG_FI_API,
        cross.TAG_EVIDENCE,
    ),
    "solutions": (
        artifacts.SOLUTION_ORPHAN,
        solutions.SOLUTION_PATH,
        solutions.SOLUTION_DUPLICATE,
        solutions.SOLUTION_SOURCE_PATH,
        solutions.SOLUTION_SYNTAX,
        solutions.SOLUTION_ENTRY_POINT,
        solutions.SOLUTION_PARAMETERS,
        solutions.BASELINE_REPEATS_REFERENCE,
        solutions.BASELINE_NO_KERNEL,
        loadable.LOADER_SOLUTION,
    ),
    "traces": (
        artifacts.TRACE_PLACE,
        artifacts.TRACE_ORPHAN,
        traces.TRACE_DEFINITION,
        traces.TRACE_INCOMPLETE,
        traces.TRACE_WORKLOAD,
        traces.TRACE_SOLUTION,
        traces.TRACE_AUTHOR,
        traces.TRACE_DUPLICATE,
        traces.TRACE_COVERAGE,
        traces.TRACE_BASELINE_FAILED,
        traces.TRACE_NUMBERS,
        traces.TRACE_NO_MEASUREMENT,
        loadable.LOADER_TRACE,
    ),
    "cross": (
        cross.CROSS_CONSTANT,
        cross.CROSS_DUPLICATE,
        cross.CROSS_NEAR_DUPLICATE,
        cross.CROSS_MODEL,
        figures.MODEL_FIGURES,
        figures.MODEL_CONFIG,
    ),
    "audit": (
        audits.AUDIT_FILE,
        audits.AUDIT_MISSING,
        audits.AUDIT_STALE,
        audits.AUDIT_SURVIVORS,
    ),
    "rendered": (rendered.RENDERED_FILE_EDITED, rendered.CUSTOM_INPUTS_UNFIT),
}
"""Group of rules → its rules; `--checks` takes a group or an id."""

RULES: Mapping[str, Rule] = {r.id: r for group in GROUPS.values() for r in group}
"""Id → rule, in the order of the groups."""


def is_blocked(problems: Iterable[Problem]) -> bool:
    """Return whether any of the problems makes a definition unfit to be rendered."""
    return any(RULES[p.rule].blocks for p in problems)


def group_of(rule: str) -> str:
    """Return the group that a rule belongs to; raises KeyError."""
    return next(g for g, rules in GROUPS.items() if RULES[rule] in rules)


def select_rules(asked: Collection[str]) -> frozenset[str]:
    """Return the ids of the rules and groups in `asked`; of all rules if it is empty.

    Raises UnknownName.
    """
    chosen: set[str] = set()
    for name in asked:
        if name in GROUPS:
            chosen |= {rule.id for rule in GROUPS[name]}
        elif name in RULES:
            chosen.add(name)
        else:
            raise UnknownName("rule or group", name, [*GROUPS, *RULES])
    return frozenset(chosen) if asked else frozenset(RULES)
