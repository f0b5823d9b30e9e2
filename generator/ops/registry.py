"""Find the op_types: packages under `op_types/`, and those of other distributions.

Another distribution adds an op_type by an entry point of the group `gen_tests.op_types`
whose name is the op_type and whose value is the package, laid out as those here are.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType, ModuleType

from generator.dataset.plugins import OP_TYPES, plugins
from generator.ops.spec import OpSpec
from generator.problems import Failure

_OWN = "generator.ops.op_types"


class BadOpType(Failure):
    """Raised with one line for a distribution's op_type that can't be used."""


@cache
def op_packages() -> Mapping[str, str]:
    """Return op_type → the name of its package, sorted by op_type; nothing is imported.

    Raises BadOpType where two packages claim one op_type.
    """
    folder = Path(__file__).with_name("op_types")
    packages = {
        path.parent.name: f"{_OWN}.{path.parent.name}"
        for path in folder.glob("*/__init__.py")
    }
    for name, package in plugins(OP_TYPES).items():
        if packages.setdefault(name, package) != package:
            raise BadOpType(
                f"The op_type {name!r} is claimed by {packages[name]} and, as "
                f"an entry point of {OP_TYPES}, by {package}."
            )
    return MappingProxyType(dict(sorted(packages.items())))


@cache
def op_specs() -> Mapping[str, OpSpec]:
    """Return op_type → its OpSpec; imports each op_type's package, and no torch.

    Raises BadOpType where a package can't be imported, or has no fitting `SPEC` or no
    module `op`.
    """
    return MappingProxyType({name: _spec(name) for name in op_packages()})


def _spec(op_type: str) -> OpSpec:
    package = op_packages()[op_type]
    try:
        spec = getattr(importlib.import_module(package), "SPEC", None)
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise BadOpType(f"The op_type {op_type!r} of {package}: {what}") from error
    if not isinstance(spec, OpSpec) or spec.op_type != op_type:
        raise BadOpType(f"{package} has no SPEC, an OpSpec of the op_type {op_type!r}.")
    if not (op_folder(op_type) / "op.py").is_file():
        raise BadOpType(f"{package} has no module op.py.")
    return spec


def op_folder(op_type: str) -> Path:
    """Return the folder of a registered op_type's package, without importing it."""
    package = op_packages()[op_type]
    if package.startswith(f"{_OWN}."):
        return Path(__file__).with_name("op_types") / op_type
    module = importlib.util.find_spec(package)
    if module is None or module.origin is None:
        raise BadOpType(f"The op_type {op_type!r}: there is no package {package}.")
    return Path(module.origin).parent


def other_files() -> tuple[Path, ...]:
    """Return the modules and data of all op_types of other distributions.

    What is kept between runs depends on them as it does on the code of this package.
    """
    others = [o for o, p in op_packages().items() if not p.startswith(f"{_OWN}.")]
    paths = [path for op_type in others for path in op_folder(op_type).rglob("*")]
    return tuple(
        sorted(path for path in paths if path.suffix in (".py", ".json", ".jinja"))
    )


def op_module(op_type: str, name: str = "op") -> ModuleType:
    """Import a module of a registered op_type; `op` imports torch.

    Raises ModuleNotFoundError where the op_type has no such module.
    """
    return importlib.import_module(f"{op_packages()[op_type]}.{name}")


def optional_op_module(op_type: str, name: str) -> ModuleType | None:
    """Import a module that an op_type may have; None where it has none.

    None as well for an op_type that is not registered.
    """
    if op_type not in op_packages():
        return None
    if not (op_folder(op_type) / f"{name}.py").is_file():
        return None
    return op_module(op_type, name)
