"""Mutants of a kernel's source: one token, argument, line or launch of it is another.

Triton and PyTorch sources are read by Python's tokenizer, CUDA and C++ ones by a
regular expression. Left alone are comments, texts, includes, names of modules, and what
steers speed alone (`num_warps`, `num_stages`). Each mutant is of a class: index, mask,
comparison, barrier, accumulator, tail, grid, stream, constant or operator.
"""

from __future__ import annotations

import ast
import io
import keyword
import re
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class KernelMutant:
    """Hold one change of a source: its class, the line (from 1) and both texts."""

    kind: str
    line: int
    before: str
    after: str
    source: str

    @property
    def name(self) -> str:
        """Return what changed, in a line."""
        return f"{self.kind} in line {self.line}: {self.before!r} -> {self.after!r}"


# token → its class and what it becomes
_TOKENS: dict[str, tuple[str, tuple[str, ...]]] = {
    "+": ("index", ("-",)),
    "-": ("index", ("+",)),
    "*": ("index", ("+",)),
    "//": ("index", ("*",)),
    "/": ("operator", ("*",)),
    "%": ("index", ("/",)),
    "<": ("comparison", ("<=", ">")),
    "<=": ("comparison", ("<",)),
    ">": ("comparison", (">=", "<")),
    ">=": ("comparison", (">",)),
    "==": ("comparison", ("!=",)),
    "!=": ("comparison", ("==",)),
    "&": ("mask", ("|",)),
    "&&": ("mask", ("||",)),
    "+=": ("accumulator", ("=", "-=")),
    "*=": ("accumulator", ("=",)),
    "/=": ("operator", ("-=",)),
    "maximum": ("operator", ("minimum",)),
    "max": ("operator", ("min",)),
    "sum": ("operator", ("max",)),
    "exp2": ("operator", ("exp",)),
    "exp": ("operator", ("exp2",)),
    "__expf": ("operator", ("exp2f",)),
    "rsqrt": ("operator", ("sqrt",)),
    "rsqrtf": ("operator", ("sqrtf",)),
    "float32": ("accumulator", ("float16", "bfloat16")),
    "float64": ("accumulator", ("float16",)),
    "int64": ("index", ("int16",)),
}
# whole pieces: pattern, class, what it becomes
_PIECES: tuple[tuple[str, str, str], ...] = (
    (r"__syncthreads\(\);", "barrier", ""),
    (r"__shfl_xor_sync\(~0u, (\w+), (\w+)\)", "barrier", r"\1"),
    (
        r"__shfl_xor_sync\(~0u, (\w+), (\w+)\)",
        "barrier",
        r"__shfl_up_sync(~0u, \1, \2)",
    ),
    (r"(lane|other) = 16", "barrier", r"\1 = 8"),
    (r"(lane|other) > 0", "barrier", r"\1 > 1"),
    (
        r"static_cast<cudaStream_t>\(TVMFFIEnvGetStream\(.+?\)\)",
        "stream",
        "[] { cudaStream_t s; cudaStreamCreateWithFlags(&s, 1); return s; }()",
    ),
    (r"static_cast<size_t>\(", "index", "static_cast<unsigned short>("),
    (r"const size_t (\w+) = ", "index", r"const unsigned short \1 = "),
    (r"const int64_t (\w+) = ", "index", r"const int16_t \1 = "),
    (r"threadIdx\.x", "index", "threadIdx.y"),
    (r"blockIdx\.x", "grid", "blockIdx.y"),
    (r"blockIdx\.y", "grid", "blockIdx.x"),
    (r"program_id\(0\)", "grid", "program_id(1)"),
    (r"program_id\(1\)", "grid", "program_id(0)"),
    (r"<<<rows,", "grid", "<<<rows - 1,"),
    (r"<<<(\w+), ([A-Z]+),", "grid", r"<<<\1, \2 / 2,"),
    (r"dim3 grid\((.+?), (.+)\);", "grid", r"dim3 grid(\1 - 1, \2);"),
    (r"dim3 grid\((.+?), (.+)\);", "grid", r"dim3 grid(\1, \2 - 1);"),
    (r"\((\w+) \+ (\w+(?: \* 8)?) - 1\) / ", "tail", r"(\1) / "),
    (r"triton\.cdiv\((.+?), (\w+)\)", "tail", r"((\1) // \2)"),
    (r"if \(\w+ >= \w+\) return;", "tail", ""),
    (r"if \([^()]+\) break;", "tail", ""),
    (r"if \(row < rows\) ", "mask", ""),
    (r"; (\w+) < ([A-Z]+); \1 \+= (\w+)\)", "tail", r"; \1 < \2 - \3; \1 += \3)"),
    (r"; (\w+) < (\w+); (\+\+)?\1", "tail", r"; \1 < \2 - 1; \3\1"),
    (r", mask=[^,)]+(\[[^\]]*\])*", "mask", ""),
    (r"other=0\.0", "mask", "other=1.0"),
    (r"tl\.where\((\w+\[[^\]]*\]), (\w+), [^)]*\)+", "mask", r"\2"),
    (r"range\((\w+), (\w+)\)", "tail", r"range(\1, \2 - 1)"),
    (r"range\((\w+), (\w+)\)", "tail", r"range(\1 + 1, \2)"),
    (r"range\((\d+), ([^,()]+), (\w+)\)", "tail", r"range(\1, \2 - \3, \3)"),
    (r"grid = \(([^,]+),", "grid", r"grid = (max(\1 - 1, 1),"),
    (r"\[\(([^,()]+(?:\([^()]*\))?[^,()]*),\)\]", "grid", r"[(max(\1 - 1, 1),)]"),
    (r"\.to\(tl\.(float32|int64)\)", "accumulator", ""),
    (r"\.float\(\)", "accumulator", ""),
    (r"\.double\(\)", "accumulator", ""),
    (
        r"__bfloat162float\(([\w\[\]]+)\)",
        "accumulator",
        r"__bfloat162float(__hmul(\1, \1))",
    ),
    (
        r"(const float \w+ = )([^;]+);",
        "accumulator",
        r"\1__bfloat162float(__float2bfloat16(\2));",
    ),
    (
        r"sum \+= ([^;]+);",
        "accumulator",
        r"sum = __bfloat162float(__float2bfloat16(sum + \1));",
    ),
    (
        r"(sums\[i\]\[j\]) \+= ([^;]+);",
        "accumulator",
        r"\1 = __half2float(__float2half(\1 + \2));",
    ),
    (r"float sum = 0\.0f", "accumulator", "float sum = 1.0f"),
    (r"\bkernel\[", "stream", "_aside(kernel)["),
)
_SIDE_STREAM = '''

class _aside:
    """Launch a kernel on a stream that nobody waits for."""

    def __init__(self, kernel):
        self.kernel = kernel

    def __getitem__(self, grid):
        import torch

        def launch(*arguments, **constants):
            torch.cuda._sleep(1)
            with torch.cuda.stream(torch.cuda.Stream()):
                torch.cuda._sleep(20_000_000)
                return self.kernel[grid](*arguments, **constants)

        return launch

'''
_LEFT_ALONE = re.compile(
    r"^\s*(#|//|import |from |@|PYBIND11|\"\"\"|num_warps|def |constexpr float EPS)"
)
_WHOLE = ("#include", "reinterpret_cast<const uint4")
_SPEED = re.compile(r"num_warps|num_stages")
_CPP_TOKEN = re.compile(
    r"//[^\n]*|\"[^\"\n]*\"|<<<|>>>|->|::|<<|>>|[<>=!+\-*/&|]=|&&|\|\||\+\+|--"
    r"|\d+\.\d*(?:e[+-]?\d+)?f?|\d+e[+-]?\d+f?|\w+|[<>+\-*/%&|]"
)


def kernel_mutants(text: str, language: str) -> list[KernelMutant]:
    """Return the mutants of a source; no two have the same text, and none is `text`."""
    is_python = language in ("python", "triton", "tilelang")
    made = [*_by_piece(text, is_python), *_by_token(text, is_python)]
    found: dict[str, KernelMutant] = {}
    for mutant in made:
        if mutant.source != text and (not is_python or _parses(mutant.source)):
            found.setdefault(mutant.source, mutant)
    return list(found.values())


def _by_piece(text: str, is_python: bool) -> Iterator[KernelMutant]:
    for pattern, kind, replacement in _PIECES:
        for match in re.finditer(pattern, text):
            line = text.count("\n", 0, match.start()) + 1
            column = match.start() - text.rfind("\n", 0, match.start()) - 1
            if _is_left(text.splitlines()[line - 1], column):
                continue
            after = match.expand(replacement)
            if "__float2bfloat16" in after and "<cuda_bf16.h>" not in text:
                continue
            source = text[: match.start()] + after + text[match.end() :]
            if after.startswith("_aside"):
                at = source.index("\n@triton") if "\n@triton" in source else 0
                source = source[:at] + _SIDE_STREAM + source[at:]
            yield KernelMutant(kind, line, match.group(), after, source)


def _by_token(text: str, is_python: bool) -> Iterator[KernelMutant]:
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    for row, column, token in _tokens(text, is_python):
        if _is_left(lines[row - 1], column):
            continue
        begin = starts[row - 1] + column
        # names of PyTorch's and Triton's functions are variables elsewhere
        if not is_python and token in ("sum", "max", "maximum", "exp", "exp2"):
            continue
        for kind, after in _others(token):
            source = text[:begin] + after + text[begin + len(token) :]
            yield KernelMutant(kind, row, token, after, source)


def _others(token: str) -> Iterator[tuple[str, str]]:
    """Return what a token may become, each with its class."""
    kind, others = _TOKENS.get(token, ("", ()))
    for other in others:
        yield kind, other
    if re.fullmatch(r"\d+", token):
        number = int(token)
        yield "constant", str(number + 1)
        if number > 1:
            yield "constant", str(number // 2)
        if number:
            yield "constant", str(number - 1)
    elif re.fullmatch(r"\d+\.\d*f?|\d+e-?\d+f?", token):
        value, suffix = token.rstrip("f"), "f" if token.endswith("f") else ""
        yield "constant", f"{float(value) * 1.02 or 0.01!r}{suffix}"


def _tokens(text: str, is_python: bool) -> Iterator[tuple[int, int, str]]:
    """Return row, column and text of the tokens that a mutant may change."""
    if is_python:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            wanted = token.type in (tokenize.OP, tokenize.NUMBER, tokenize.NAME)
            if wanted and not keyword.iskeyword(token.string):
                yield *token.start, token.string
        return
    for row, line in enumerate(text.splitlines(), 1):
        for match in _CPP_TOKEN.finditer(line):
            # the brackets of a template, and pointers, are no operators
            before = line[match.start() - 1] if match.start() else " "
            is_type = match.group() in "<>*&" and before != " "
            if not match.group().startswith(("//", '"')) and not is_type:
                yield row, match.start(), match.group()


def _is_left(line: str, column: int) -> bool:
    """Return whether what stands in a line, from a column on, is no computation."""
    speed = _SPEED.search(line)
    if speed is not None and column >= speed.start():
        return True
    return bool(_LEFT_ALONE.match(line)) or any(word in line for word in _WHOLE)


def _parses(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


def mutated(
    solution: Mapping[str, Any],
) -> Sequence[tuple[KernelMutant, dict[str, Any]]]:
    """Return the mutants of a solution's JSON value, each with the value that it makes."""
    found: list[tuple[KernelMutant, dict[str, Any]]] = []
    language = solution["spec"]["language"]
    for place, source in enumerate(solution["sources"]):
        for mutant in kernel_mutants(source["content"], language):
            sources = [dict(one) for one in solution["sources"]]
            sources[place]["content"] = mutant.source
            name = f"{solution['name']}-{len(found)}"
            found.append((mutant, {**solution, "name": name, "sources": sources}))
    return found
