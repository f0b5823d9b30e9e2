"""Write generator/rules/data/flashinfer_names.json from the installed FlashInfer.

    python tools/build_flashinfer_names.py

Needs torch and FlashInfer 0.7 or later; no GPU. FlashInfer asks for solutions by the
name that a function's trace template makes of a call's constant axes: the file holds,
for each public function, the beginning of the name and the abbreviation of each axis.
Modules that can't be imported here are counted and left out.
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from pathlib import Path
from typing import Any

from generator.dataset.atomic_write import write_atomically
from generator.dialects.registered import registered

OUTPUT = Path(__file__).parent.parent / "generator/rules/data/flashinfer_names.json"


def main() -> int:
    """Import all of FlashInfer, write the file, and say what could not be read."""
    warnings.simplefilter("ignore")
    functions, failed = registered()
    flashinfer: Any = importlib.import_module("flashinfer")
    const = importlib.import_module("flashinfer.trace.template").Const
    routes: dict[str, list[list[Any]]] = {}
    for function, template in functions:
        axes = {
            name: name if axis.abbrev is None else axis.abbrev
            for name, axis in template.axes.items()
            if isinstance(axis, const) and axis.abbrev != ""
        }
        route = [template.name_prefix or template.op_type, axes]
        known = routes.setdefault(public_name(function), [])
        if route not in known:
            known.append(route)
    lines = (f'    "{name}": {json.dumps(routes[name])}' for name in sorted(routes))
    body = ",\n".join(lines)
    version = flashinfer.__version__
    text = f'{{\n  "flashinfer": "{version}",\n  "routes": {{\n{body}\n  }}\n}}\n'
    OUTPUT.parent.mkdir(exist_ok=True)
    write_atomically(OUTPUT, text.encode())
    print(f"FlashInfer {version}: {len(routes)} functions; {failed} modules left out.")
    return 0


def public_name(function: Any) -> str:
    """Return the shortest dotted name that leads to a function, or to its class."""
    owner, _, method = function.__qualname__.rpartition(".")
    name = owner if method in ("run", "forward") else function.__qualname__
    parts = function.__module__.split(".")
    found = getattr(sys.modules[function.__module__], name.split(".")[0], None)
    for end in range(2, len(parts)):
        module = sys.modules.get(".".join(parts[:end]))
        if getattr(module, name.split(".")[0], None) is found:
            return ".".join([*parts[:end], name])
    return ".".join([*parts, name])


if __name__ == "__main__":
    sys.exit(main())
