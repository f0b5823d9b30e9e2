"""Definitions compared with each other, and tags that make claims outside of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from generator.dataset.definition import LoadedDefinition
from generator.ops.registry import op_specs
from generator.problems import Problem, error, note, warning
from generator.problems.messages import quote
from generator.rules.basis import basis_of
from generator.rules.constants import read_constant
from generator.rules.figures import facts

TAG_FI_API = error("""tag-fi-api: The installed FlashInfer does not have what a fi_api:
    tag names.
    Fix: Write the full dotted name that FlashInfer exports.
    Finds: `"fi_api:flashinfer.norm.rmsnrom"`""")
TAG_EVIDENCE = error("""tag-evidence: A definition says status:verified, but no record
    of a passed run backs it.
    Fix: Record a run against the production kernel in verification/, or say unverified.
    Finds: status:verified on a definition that was edited after its last run""")
TAG_STALE = warning("""tag-stale: A definition says status:unverified, but a record shows
    that it agrees with its production kernel.
    Fix: Remove the tag, or say status:verified.
    Finds: status:unverified on a definition that passed against FlashInfer since""")
CROSS_CONSTANT = warning("""cross-constant: Two definitions have one geometry, but
    another constant (eps, say).
    Fix: Check which one is right; if both are, say the constant in name and tags.
    Finds: rmsnorm_h4096 with eps 1e-5 and rmsnorm_h4096_b with eps 1e-6""")
CROSS_DUPLICATE = warning("""cross-duplicate: Two definitions are the same but for their
    names and descriptions.
    Fix: Keep one of them, with the model: tags of both.
    Finds: gemm_n8_k4 and gemm_n8_k4_llama""")
CROSS_NEAR_DUPLICATE = note("""cross-near-duplicate: Two definitions have one interface;
    only their references differ.
    Fix: Check that they are two operations and not one written twice.
    Finds: the same axes, inputs and outputs, another `run`""")
CROSS_MODEL = warning("""cross-model: Two definitions of one model have different values
    of a figure of it.
    Fix: Find out from the model's config.json which one is right.
    Finds: model:toy with head_dim 64 in one definition and 128 in another""")

_MAX_BYTES = 4 * 1024 * 1024
_IMPORT = re.compile(r"^\s*from\s+\S+\s+import\s+(\([^)]*\)|[^\n]*)", re.MULTILINE)


@dataclass(frozen=True)
class Summary:
    """The facts that definitions are compared by: digests, figures and claims of tags.

    `constants` are those in the reference's source; `facts` are figures that all
    definitions of a model share; `fi_apis`, `verified` and `unverified` are places
    among tags.
    """

    name: str
    path: str
    basis: str
    geometry: str
    reference: str
    constants: tuple[tuple[str, float], ...] = ()
    facts: tuple[tuple[str, int], ...] = ()
    fi_apis: tuple[tuple[int, str], ...] = ()
    verified: int | None = None
    unverified: int | None = None


def summarise(definition: LoadedDefinition) -> Summary:
    """Return the summary of a definition."""
    spec = op_specs().get(definition.op_type)
    # a definition whose name states a constant is no mistaken twin of another
    stated = spec.stated(definition.name) if spec is not None else {}
    read = {
        name: read_constant(definition.reference, name)
        for name in (spec.constants if spec is not None else ())
        if name not in stated
    }
    tags = [
        (index, *tag.partition(":")[::2]) for index, tag in enumerate(definition.tags)
    ]
    places = {value: index for index, key, value in tags if key == "status"}
    return Summary(
        name=definition.name,
        path=definition.path,
        basis=basis_of(definition),
        geometry=_digest(_geometry(definition)),
        reference=_digest(_code(definition.reference)),
        constants=tuple((n, float(v)) for n, v in read.items() if v is not None),
        facts=tuple(facts(definition)),
        fi_apis=tuple((i, value) for i, key, value in tags if key == "fi_api"),
        verified=places.get("verified"),
        unverified=places.get("unverified"),
    )


def _geometry(definition: LoadedDefinition) -> Any:
    tensors = (definition.inputs.values(), definition.outputs.values())
    return (
        definition.op_type,
        [(axis.name, axis.value) for axis in definition.axes.values()],
        [[(t.name, t.shape, t.dtype) for t in group] for group in tensors],
        definition.constraints,
    )


def _code(reference: str) -> list[str]:
    """Return the lines that are not empty and not comments."""
    lines = (line.rstrip() for line in reference.splitlines())
    return [line for line in lines if line and not line.lstrip().startswith("#")]


def _digest(value: Any) -> str:
    text = repr(value).encode("utf-8", "backslashreplace")
    return blake2b(text, digest_size=12).hexdigest()


Evidence = Callable[[str, str], bool]


@dataclass
class Beside:
    """The last definition like each one, for comparison; keeps a few bytes of each.

    `flashinfer` is the folder of the installed package or None; `evidence` says
    whether a definition has passed against its production kernel.
    """

    flashinfer: Path | None
    evidence: Evidence
    _geometries: dict[str, Summary] = field(default_factory=dict)
    _facts: dict[str, tuple[int, str]] = field(default_factory=dict)

    def add(self, summary: Summary) -> Iterator[Problem]:
        """Yield the Problems that a definition has with those before it."""
        for index, symbol in summary.fi_apis:
            is_full = symbol.startswith("flashinfer.")
            if is_full and self.flashinfer and not has_symbol(self.flashinfer, symbol):
                message = f"The installed FlashInfer has no {quote(symbol, 200)}."
                yield TAG_FI_API.at(message, "tags", index)
        if summary.verified is not None and not self.evidence(
            summary.name, summary.basis
        ):
            message = "No run in verification/ shows this text of it agree with a "
            message += "production kernel."
            yield TAG_EVIDENCE.at(message, "tags", summary.verified)
        if summary.unverified is not None and self.evidence(
            summary.name, summary.basis
        ):
            message = "A run in verification/ shows this text of it agree with a "
            message += "production kernel."
            yield TAG_STALE.at(message, "tags", summary.unverified)
        alike = self._geometries.get(summary.geometry)
        if alike is not None:
            yield _compared(summary, alike)
        self._geometries[summary.geometry] = summary
        for key, value in summary.facts:
            known, path = self._facts.setdefault(key, (value, summary.path))
            if known != value:
                model, _, axis = key.split(" ")
                message = f"The axis {quote(axis)} of {model} is {value} here and "
                message += f"{known} in {quote(path, 200)}."
                yield CROSS_MODEL.at(message, "axes", axis, "value")


def _compared(summary: Summary, other: Summary) -> Problem:
    shown = quote(other.path, 200)
    if summary.reference == other.reference:
        return CROSS_DUPLICATE.at(f"Only name and texts differ from {shown}.")
    others = dict(other.constants)
    for name, value in summary.constants:
        if others.get(name, value) != value:
            message = f"The constant {name} is {value!r} here and {others[name]!r} in "
            message += f"{shown}, which has the same axes and tensors."
            return CROSS_CONSTANT.at(message)
    return CROSS_NEAR_DUPLICATE.at(f"Only the reference differs from {shown}.")


def installed_flashinfer() -> Path | None:
    """Return the folder of the installed package, or None."""
    spec = PathFinder.find_spec("flashinfer")
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(next(iter(spec.submodule_search_locations)))
    # a folder of that name in the current directory is no package
    return folder if (folder / "__init__.py").is_file() else None


@lru_cache(maxsize=4096)
def has_symbol(package: Path, symbol: str) -> bool:
    """Return whether the sources under `package` seem to export a dotted name.

    Where they can't tell (`import *`, a base class elsewhere) the answer is yes.
    """
    _, *parts = symbol.split(".")
    folder = package
    for index, part in enumerate(parts):
        if (folder / part / "__init__.py").is_file():
            folder = folder / part
            continue
        if (folder / f"{part}.py").is_file():
            module, rest = folder / f"{part}.py", parts[index + 1 :]
        else:
            module, rest = folder / "__init__.py", parts[index:]
        return not rest or _defines(_text(module), rest)
    return True


@lru_cache(maxsize=64)
def _text(module: Path) -> str:
    try:
        with module.open("rb") as stream:
            return stream.read(_MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _defines(text: str, names: list[str]) -> bool:
    """Return whether a module's text binds a name, and the method of it if given."""
    name = re.escape(names[0])
    bound = re.search(
        rf"^\s*(?:(async\s+)?def\s+{name}\b|{name}\s*[:=])", text, re.MULTILINE
    )
    kind = re.search(rf"^class\s+{name}\b(\([^)]*\))?[^\n]*", text, re.MULTILINE)
    if kind is not None and len(names) > 1:
        body = re.split(r"^\S", text[kind.end() :], maxsplit=1, flags=re.MULTILINE)[0]
        method = re.search(rf"\bdef\s+{re.escape(names[1])}\b", body)
        return method is not None or kind[1] not in (None, "()")
    if bound or kind:
        return True
    imports = [match[1] for match in _IMPORT.finditer(text)]
    word = re.compile(rf"\b{name}\b")
    return any(word.search(i) or i.strip().startswith("*") for i in imports)
