"""Render the tests of the head again, with the software of the base, and compare.

What rendered them must not come out of the change: where the base holds the software and
it is not the one that runs, the base's is written into a folder and started there.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from generator.dataset.paths import is_written_by_rendering
from generator.execution.processes import run_python, safe_environment
from generator.problems import Failure, Problem
from generator.problems.messages import one_line, quote
from generator.rendering.files import SUMS, format_sums
from generator.rendering.generate import generate
from generator.rendering.plan import SIZES, RenderOptions
from generator.review.checks import CheckChange, changes_of
from generator.review.findings import OWN_SOFTWARE, UNCOMPARED, UNRENDERED, WEAKER
from generator.review.scratch import scratch
from generator.review.software import running, software_of
from generator.review.sources import (
    SUPPORT,
    TESTS,
    Sources,
    left_tests,
    op_types_to_render,
)
from generator.review.treatment import SOFTWARE, is_compared
from generator.review.tree import Tree, write_tree
from generator.rules.load import load_definitions

_HEADER = '"""Reference tests of op_type '
_LARGE = re.compile(r"^    sizes = \(.*'?\"?large", re.MULTILINE)
_MAX_BYTES = 16 * 1024 * 1024
_SECONDS = 600.0


@dataclass(frozen=True)
class RenderedChange:
    """Changes of the rendered tests, and of what tests check.

    `equal` are files of the head that are what the base's software renders. `stale` are
    those that the change left as they were, and that definitions of it render otherwise:
    a description or a tag is printed there.
    """

    problems: tuple[Problem, ...] = ()
    changes: tuple[CheckChange, ...] = ()
    equal: frozenset[str] = frozenset()
    stale: frozenset[str] = frozenset()


def check_tests(sources: Sources) -> RenderedChange:
    """Compare the changed tests with what is rendered, and say what they check now.

    Raises Failure where the base's software renders nothing.
    """
    sides = sources.sides
    changed = sorted(p for p in sides.changed if is_written_by_rendering(p))
    software = sorted(p for p, t in sides.treatments.items() if t is SOFTWARE)
    left = {*left_tests(sides).values()}
    if not changed and not software and not left:
        return RenderedChange()
    base = _Base(sources)
    problems: list[Problem] = []
    if software and base.is_changed_by_the_change:
        message = (
            "The software that made this review has this file as the change has it."
        )
        problems += [OWN_SOFTWARE.problem(path, message) for path in base.mine[:1]]
    equal = set()
    rendered = base.render(op_types_to_render(sides)) if changed or left else {}
    as_left = {path: sources.read(path, _MAX_BYTES) for path in left & {*rendered}}
    stale = {path for path, data in as_left.items() if data != rendered[path]}
    for path in changed:
        if path == f"{TESTS}{SUMS}" or path not in sides.head:
            continue
        data = sources.read(path, _MAX_BYTES)
        if data is not None and data == rendered.get(path):
            equal.add(path)
        else:
            problems.append(_unequal(path, data, rendered, sources, bool(software)))
    if f"{TESTS}{SUMS}" in sides.head and changed:
        problems += _sums(sources, equal)
    changes = list(_changes([*changed, *software], sources))
    weaker = _weaker(changes, equal)
    return RenderedChange(
        (*problems, *weaker), tuple(changes), frozenset(equal), frozenset(stale)
    )


def _unequal(
    path: str,
    data: bytes | None,
    rendered: Mapping[str, bytes],
    sources: Sources,
    has_software: bool,
) -> Problem:
    old = sources.read(path, _MAX_BYTES, of_base=True)
    was_rendered = old is not None and _is_rendered(path, old)
    is_rendered = path in rendered or was_rendered
    if data is None:
        return UNRENDERED.problem(path, "The file can't be read, or is too large.")
    if not is_rendered:
        message = "This version renders no such file: whoever wrote it, pytest runs it."
        return UNCOMPARED.problem(path, message)
    if has_software:
        message = "It is not what the base's software renders; the change has another."
        return UNCOMPARED.problem(path, message)
    message = "It is not what is rendered from the definitions of the change."
    if path not in rendered:
        message = "It was rendered, and nothing of the change renders it any more."
    line = None
    if path in rendered:
        pairs = zip(data.splitlines(), rendered[path].splitlines(), strict=False)
        numbered = enumerate(pairs, 1)
        line = next((n for n, (now, wanted) in numbered if now != wanted), None)
    return UNRENDERED.problem(path, message, line=line)


def _is_rendered(path: str, data: bytes) -> bool:
    """Return whether a file says that gen-tests rendered it; helpers have no such line."""
    name = path.rsplit("/", 1)[1]
    return not name.startswith("test_") or data.startswith(_HEADER.encode())


def _sums(sources: Sources, equal: Iterable[str]) -> Iterator[Problem]:
    """Yield a Problem where SHA256SUMS is not the base's with what was rendered anew."""
    path = f"{TESTS}{SUMS}"
    data = sources.read(path, _MAX_BYTES)
    old = sources.read(path, _MAX_BYTES, of_base=True) or b""
    lines = (line.split("  ", 1) for line in old.decode("utf-8", "replace").split("\n"))
    wanted = {p[1]: p[0] for p in lines if len(p) == 2}
    wanted = {
        name: s for name, s in wanted.items() if TESTS + name in sources.sides.head
    }
    for rendered in equal:
        text = sources.read(rendered, _MAX_BYTES) or b""
        wanted[rendered.removeprefix(TESTS)] = hashlib.sha256(text).hexdigest()
    if data != format_sums(wanted):
        message = "It does not list the files that are rendered, with their hashes."
        yield UNRENDERED.problem(path, message)


def _changes(paths: Iterable[str], sources: Sources) -> Iterator[CheckChange]:
    for path in paths:
        if is_compared(path):
            sides = (sources.read(path, _MAX_BYTES, of_base=b) for b in (True, False))
            old, new = (
                text.decode("utf-8", "replace") if text else "" for text in sides
            )
            # a new module loosens nothing: what was tested before is what counts
            yield from changes_of(path, old, new) if old else ()


def _weaker(changes: Iterable[CheckChange], equal: set[str]) -> Iterator[Problem]:
    by_file: dict[str, list[CheckChange]] = {}
    for change in changes:
        # rendered by the base's software: what changed there are the definitions
        if change.is_weaker and change.file not in equal:
            by_file.setdefault(change.file, []).append(change)
    for path, weaker in by_file.items():
        first = weaker[0]
        more = f"; {len(weaker) - 1} more" if len(weaker) > 1 else ""
        message = f"{first.effect}: {first.kind} {first.name}"
        if first.before and first.after:
            message += f": {quote(first.before, 80)} becomes {quote(first.after, 80)}"
        yield WEAKER.problem(path, f"{message}{more}.")


class _Base:
    """The renderer of the base's software, which is what runs or lies in the base."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    @cached_property
    def _kept(self) -> Tree:
        return software_of(self._sources.sides.base)

    @cached_property
    def mine(self) -> list[str]:
        """Return the files of the base's software that are others in what runs."""
        return [p for p, entry in self._kept.items() if _git_id_of(p) != entry.oid]

    @property
    def is_changed_by_the_change(self) -> bool:
        """Return whether what runs has a file of the software as the head has it."""
        sides = self._sources.sides
        changed = (p for p in self.mine if p in sides.changed and p in sides.head)
        return any(_git_id_of(path) == sides.head[path].oid for path in changed)

    def render(self, chosen: set[str]) -> dict[str, bytes]:
        """Return path → content of what is rendered of op_types out of the head."""
        has_support = any(p.startswith(SUPPORT) for p in self._sources.sides.head)
        large = {op_type for op_type in chosen if self._has_large(op_type)}
        files: dict[str, bytes] = {}
        for some, sizes in ((chosen - large, SIZES[:2]), (large, SIZES)):
            files |= self._render(some, sizes, has_support) if some else {}
        return files

    def _has_large(self, op_type: str) -> bool:
        path = f"{TESTS}test_{op_type}.py"
        old = self._sources.read(path, _MAX_BYTES, of_base=True) or b""
        return bool(_LARGE.search(old.decode("utf-8", "replace")))

    def _render(
        self, op_types: set[str], sizes: tuple[str, ...], has_support: bool
    ) -> dict[str, bytes]:
        with scratch("trace-dataset-rendered-") as folder:
            output = folder / "tests"
            if self.mine:
                self._start(folder, output, op_types, sizes, has_support)
            else:
                root = self._sources.head
                loaded = load_definitions(root, op_types=sorted(op_types))
                options = RenderOptions(sizes, standalone=has_support)
                generate(root, loaded, output, options, force=True)
            paths = sorted(p for p in output.rglob("*") if p.is_file())
            return {
                f"{TESTS}{p.relative_to(output).as_posix()}": p.read_bytes()
                for p in paths
            }

    def _start(
        self,
        folder: Path,
        output: Path,
        op_types: set[str],
        sizes: tuple[str, ...],
        has_support: bool,
    ) -> None:
        """Run the base's gen-tests, which is trusted as the base is."""
        software = folder / "software"
        software.mkdir()
        write_tree(self._sources.blobs, self._kept, software)
        chosen = [f"--op-type={op_type}" for op_type in sorted(op_types)]
        code = "import sys; from generator.cli.gen_tests import main; main()"
        command = ["-c", code, *chosen, f"--output={output}"]
        command += [
            f"--dataset={self._sources.head.absolute()}",
            f"--sizes={','.join(sizes)}",
        ]
        command += ["--standalone"] if has_support else []
        environment = safe_environment(paths=[str(software)])
        done = run_python(command, environment=environment, timeout=_SECONDS)
        if not output.is_dir():
            last = (done.stderr or done.stdout).strip().splitlines()[-1:] or [""]
            raise Failure(
                f"The base's software renders nothing: {one_line(last[0], 300)}"
            )


def _git_id_of(path: str) -> str | None:
    """Return the name that git gives to a file of the software that runs."""
    try:
        data = running(path).read_bytes()
    except OSError:
        return None
    head = b"blob %d\0" % len(data)
    return hashlib.sha1(head + data, usedforsecurity=False).hexdigest()
