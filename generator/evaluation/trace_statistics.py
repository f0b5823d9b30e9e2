"""Statistics of a dataset's traces: the best solutions, and traces that do not count.

DuckDB reads the JSON Lines into a database on disk and answers from there, so that
memory does not grow with the number of traces. Nothing of the dataset is executed, and
no text of it becomes a part of a query.
"""

from __future__ import annotations

import glob
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from generator.dataset.artifacts import Key, discover_artifacts
from generator.dataset.file_reading import opened
from generator.dataset.json_file import MAX_BYTES
from generator.evaluation.clock.offsets import error_of_one
from generator.problems import Failure
from generator.problems.messages import one_line, quote

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

LISTED = 1000
"""Doubtful traces that are listed; the rest is counted."""

STALE, CONTRADICTED = "stale", "contradicted"

# nothing is fetched; what has no room in memory goes to disk
_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "memory_limit": "256MB",
    "threads": 1,
    "autoload_known_extensions": False,
}


@dataclass(frozen=True)
class SolutionStatistics:
    """Statistics of a solution on one kind of hardware, of traces that count.

    `traced` workloads have a trace of it, of which `passed` are PASSED. `speedup` is the
    geometric mean of the speedups that its PASSED traces state. `contested` are the
    workloads that a solution of the definition passed with a latency; it `won` those
    where no latency is less by more than both may be off. Of each definition and hardware one solution is the best:
    one without a failure before others, then the one that passed most workloads, then
    the one with the greatest speedup.
    """

    op_type: str
    definition: str
    hardware: str
    solution: str
    author: str
    traced: int
    passed: int
    speedup: float | None
    won: int
    contested: int
    is_best: bool


@dataclass(frozen=True)
class AuthorStatistics:
    """Workloads won by an author's solutions, of those they competed in."""

    author: str
    solutions: int
    won: int
    contested: int


@dataclass(frozen=True)
class DoubtfulTrace:
    """A trace that does not count; `kind` is STALE or CONTRADICTED."""

    kind: str
    file: str
    solution: str
    workload: str
    reason: str


@dataclass(frozen=True)
class TraceStatistics:
    """Statistics of a dataset's traces.

    `unreadable` lines are no traces. `stale` traces and `contradicted` ones are counted;
    the first LISTED of both are in `doubtful`. `unread` are the first LISTED files with
    unreadable lines, and how many each has.
    """

    traces: int
    unreadable: int
    stale: int
    contradicted: int
    solutions: tuple[SolutionStatistics, ...]
    authors: tuple[AuthorStatistics, ...]
    doubtful: tuple[DoubtfulTrace, ...]
    unread: tuple[tuple[str, int], ...]

    @property
    def is_fine(self) -> bool:
        """Return whether every line is a trace that can be believed."""
        return not (self.unreadable or self.stale or self.contradicted)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON values."""
        return asdict(self)


def statistics_of(
    root: Path, definitions: Sequence[Key], *, is_part: bool = False
) -> TraceStatistics:
    """Return the statistics of a dataset's traces.

    `definitions` are those of the dataset; with `is_part` they are some of them, and no
    other traces are read. Raises Failure where there are no traces, where a file can't
    be read, and where DuckDB is not installed.
    """
    try:
        import duckdb
    except ImportError:
        message = "Statistics of traces need DuckDB: pip install 'gen-tests[traces]'."
        raise Failure(message) from None
    known = {*definitions}
    artifacts = discover_artifacts(root, known if is_part else None)
    if not any(artifacts.traces.values()):
        raise Failure(
            f"There are no traces in {quote(str(root), 200)}: they lie at "
            "traces/<author>/<op_type>/<definition>.jsonl."
        )
    traces = [
        (path, *key, _author(path), key in known)
        for key, paths in artifacts.traces.items()
        for path in paths
    ]
    workloads = [(path, *key) for key, (path,) in artifacts.workloads.items()]
    solutions = [
        (*key, Path(path).stem)
        for key, of in artifacts.solutions.items()
        for path in of
    ]
    with _database() as database:
        try:
            _fill(database, "solution", solutions)
            _read(database, "trace", root, traces)
            _read(database, "workload", root, workloads)
            for table, query in _JUDGING.items():
                database.execute(f"CREATE TABLE {table} AS {query}")
            return _answers(database)
        except duckdb.Error as error:
            text = one_line(str(error).partition("\n")[0], 200)
            raise Failure(f"The traces can't be read: {text}") from None


def _author(path: str) -> str:
    """Return the folder of a trace file's author; empty where it has none."""
    parts = path.split("/")
    return parts[1] if len(parts) == 4 else ""


@contextmanager
def _database() -> Iterator[DuckDBPyConnection]:
    """Yield an empty database on disk, which is removed after that."""
    import duckdb

    with tempfile.TemporaryDirectory(prefix="trace-dataset-traces-") as folder:
        settings = {**_SETTINGS, "temp_directory": folder}
        with duckdb.connect(f"{folder}/traces.duckdb", config=settings) as database:
            database.execute(_TABLES)
            yield database


def _fill(
    database: DuckDBPyConnection, table: str, rows: Sequence[Sequence[Any]]
) -> None:
    if rows:
        columns = [list(column) for column in zip(*rows, strict=True)]
        lists = ", ".join(["unnest(?)"] * len(columns))
        database.execute(f"INSERT INTO {table} SELECT {lists}", columns)


def _read(
    database: DuckDBPyConnection, table: str, root: Path, files: Sequence[Any]
) -> None:
    """Fill a table with the lines of files, and a second one with the files."""
    names = [str(root / file[0]) for file in files]
    for file in files:
        # DuckDB would follow a link, wait for a pipe, and read what validate does not
        try:
            with opened(root, str(file[0])) as descriptor:
                size = os.fstat(descriptor).st_size
        except OSError as error:
            why = one_line(error.strerror or str(error))
            raise Failure(f"{one_line(file[0])} can't be read: {why}.") from None
        if size > MAX_BYTES:
            raise Failure(
                f"{one_line(file[0])} has more than the {MAX_BYTES >> 20} MiB that are "
                "read: trace-dataset validate."
            )
    rows = [(name, *file) for name, file in zip(names, files, strict=True)]
    _fill(database, f"{table}_file", rows)
    if names:
        # DuckDB takes a name for a pattern
        patterns = [glob.escape(name) for name in names]
        query = f"INSERT INTO {table} SELECT filename, {_FIELDS[table]} FROM {_LINES}"
        database.execute(query, [patterns, MAX_BYTES])


_TABLES = """
    CREATE TABLE trace_file (
        filename TEXT, path TEXT, op_type TEXT, definition TEXT, author TEXT,
        is_known BOOLEAN
    );
    CREATE TABLE workload_file (
        filename TEXT, path TEXT, op_type TEXT, definition TEXT
    );
    CREATE TABLE solution (op_type TEXT, definition TEXT, solution TEXT);
    CREATE TABLE workload (filename TEXT, uuid TEXT, axes TEXT);
    CREATE TABLE trace (
        filename TEXT, uuid TEXT, axes TEXT, solution TEXT, status TEXT, hardware TEXT,
        timestamp TEXT, latency DOUBLE, reference DOUBLE, speedup DOUBLE, off DOUBLE,
        error DOUBLE
    );
"""

# nothing else of a line is kept: a log may be long. Of JSON itself, as any value may be
# there; a line that is no object, or whose evaluation is none, is all NULL
_LINES = """
    read_json(
        ?, format = 'newline_delimited', ignore_errors = true, filename = true,
        maximum_object_size = ?, columns = {
            solution: 'JSON',
            workload: 'JSON',
            evaluation: 'STRUCT(status JSON, environment JSON, timestamp JSON,
                correctness JSON, performance JSON)'
        }
    )
"""
# the same axes in another order are the same
_WORKLOAD = """
    workload->>'$.uuid',
    list_sort(map_entries(TRY_CAST(workload->'$.axes' AS MAP(TEXT, BIGINT))))::TEXT
"""
_FIELDS = {
    "workload": _WORKLOAD,
    # a line that is no trace has no solution, workload or status
    "trace": f"""
        {_WORKLOAD}, solution->>'$', evaluation.status->>'$',
        coalesce(evaluation.environment->>'$.hardware', ''),
        coalesce(evaluation.timestamp->>'$', ''),
        TRY_CAST(evaluation.performance->>'$.latency_ms' AS DOUBLE),
        TRY_CAST(evaluation.performance->>'$.reference_latency_ms' AS DOUBLE),
        TRY_CAST(evaluation.performance->>'$.speedup_factor' AS DOUBLE),
        -- more than a figure of one start is off by wins nothing
        greatest(least(coalesce(TRY_CAST(
            evaluation.performance->>'$.error_ms' AS DOUBLE
        ), {error_of_one()}), {error_of_one()}), 0.0),
        greatest(
            TRY_CAST(evaluation.correctness->>'$.max_relative_error' AS DOUBLE),
            TRY_CAST(evaluation.correctness->>'$.max_absolute_error' AS DOUBLE)
        )
    """,
}

_IS_TRACE = "solution IS NOT NULL AND uuid IS NOT NULL AND status IS NOT NULL"
_RUN = "op_type, definition, solution, uuid, hardware"
_JUDGING = {
    # the definition's text is not in a trace: that it changed can't be seen
    "aged": f"""
    SELECT trace.*, CASE
        WHEN NOT is_known THEN 'the dataset has no such definition'
        WHEN known.solution IS NULL THEN 'the dataset has no such solution'
        WHEN asked.uuid IS NULL THEN 'the definition has no such workload'
        WHEN asked.axes IS DISTINCT FROM trace.axes
            THEN 'the workload has other axes now'
        END AS stale
    FROM (FROM trace JOIN trace_file USING (filename) WHERE {_IS_TRACE}) AS trace
    LEFT JOIN (SELECT DISTINCT * FROM solution) AS known
        USING (op_type, definition, solution)
    LEFT JOIN (
        SELECT op_type, definition, uuid, any_value(axes) AS axes
        FROM workload JOIN workload_file USING (filename) GROUP BY ALL
    ) AS asked USING (op_type, definition, uuid)
    """,
    "disputed": f"""
    SELECT {_RUN}, string_agg(DISTINCT status, ' and ' ORDER BY status DESC) AS said
    FROM aged WHERE stale IS NULL
    GROUP BY {_RUN}
    HAVING bool_or(status = 'PASSED') AND bool_or(starts_with(status, 'INCORRECT'))
    """,
    "judged": f"""
    SELECT aged.*, CASE
        WHEN stale IS NOT NULL THEN NULL
        WHEN said IS NOT NULL
            THEN 'traces of this solution and workload say ' || said
        WHEN status = 'PASSED' AND NOT isfinite(error)
            THEN 'it is PASSED with an error of ' || error
        -- as the rule trace-numbers has it: latencies are often rounded
        WHEN abs(reference / latency - speedup) > 0.02 * speedup + 0.01
            THEN printf('it states a speedup of %.4g, and its latencies give %.4g',
                speedup, reference / latency)
        END AS contradicted
    FROM aged LEFT JOIN disputed USING ({_RUN})
    """,
    # of several traces of one run the last counts
    "latest": f"""
    SELECT {_RUN}, author, unnest(arg_max(
        {{'status': status, 'latency': latency, 'speedup': speedup, 'off': off}}, timestamp
    ))
    FROM judged WHERE stale IS NULL AND contradicted IS NULL
    GROUP BY {_RUN}, author
    """,
    "contest": """
    SELECT *, latency <= least + sqrt(off * off + least_off * least_off) AS is_won
    FROM latest JOIN (
        SELECT op_type, definition, hardware, uuid, min(latency) AS least,
            arg_min(off, latency) AS least_off
        FROM latest WHERE status = 'PASSED' AND latency > 0
        GROUP BY ALL
    ) USING (op_type, definition, hardware, uuid)
    """,
}

_SOLUTIONS = """
    SELECT *, passed > 0 AND row_number() OVER (
        PARTITION BY op_type, definition, hardware
        ORDER BY passed = traced DESC, passed DESC, speedup DESC NULLS LAST, solution
    ) = 1 AS is_best
    FROM (
        SELECT op_type, definition, hardware, solution, author, count(*) AS traced,
            count(*) FILTER (status = 'PASSED') AS passed,
            exp(avg(ln(speedup)) FILTER (status = 'PASSED' AND speedup > 0)) AS speedup,
            count(*) FILTER (status = 'PASSED'
                AND latency <= least + sqrt(off * off + least_off * least_off)) AS won,
            coalesce(any_value(contested), 0) AS contested
        FROM latest
        LEFT JOIN (SELECT DISTINCT op_type, definition, hardware, uuid, least,
            least_off FROM contest)
            USING (op_type, definition, hardware, uuid)
        LEFT JOIN (
            SELECT op_type, definition, hardware, count(DISTINCT uuid) AS contested
            FROM contest GROUP BY ALL
        ) USING (op_type, definition, hardware)
        GROUP BY op_type, definition, hardware, solution, author
    )
    ORDER BY op_type, definition, hardware, is_best DESC, passed DESC, speedup DESC,
        solution
"""
_AUTHORS = """
    SELECT author, count(DISTINCT (op_type, definition, solution)),
        count(DISTINCT (op_type, definition, hardware, uuid))
            FILTER (status = 'PASSED' AND is_won) AS won,
        count(DISTINCT (op_type, definition, hardware, uuid)) AS contested
    FROM contest GROUP BY author ORDER BY won / contested DESC, author
"""
_COUNTS = f"""
    SELECT count(*), count(*) FILTER (NOT ({_IS_TRACE})),
        (SELECT count(*) FROM judged WHERE stale IS NOT NULL),
        (SELECT count(*) FROM judged WHERE contradicted IS NOT NULL)
    FROM trace
"""
_DOUBTFUL = """
    SELECT CASE WHEN stale IS NULL THEN ? ELSE ? END, path, solution, uuid,
        coalesce(stale, contradicted)
    FROM judged WHERE stale IS NOT NULL OR contradicted IS NOT NULL
    ORDER BY ALL LIMIT ?
"""
_UNREAD = f"""
    SELECT path, count(*) FROM trace JOIN trace_file USING (filename)
    WHERE NOT ({_IS_TRACE}) GROUP BY path ORDER BY path LIMIT ?
"""


def _answers(database: DuckDBPyConnection) -> TraceStatistics:
    def rows(query: str, *values: Any) -> list[tuple[Any, ...]]:
        return database.execute(query, values).fetchall()

    ((traces, unreadable, stale, contradicted),) = rows(_COUNTS)
    return TraceStatistics(
        traces,
        unreadable,
        stale,
        contradicted,
        tuple(SolutionStatistics(*row) for row in rows(_SOLUTIONS)),
        tuple(AuthorStatistics(*row) for row in rows(_AUTHORS)),
        tuple(
            DoubtfulTrace(*row) for row in rows(_DOUBTFUL, CONTRADICTED, STALE, LISTED)
        ),
        tuple((file, lines) for file, lines in rows(_UNREAD, LISTED)),
    )
