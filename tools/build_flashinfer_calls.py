"""Write generator/rules/data/flashinfer_calls.json from the installed FlashInfer.

    python tools/build_flashinfer_calls.py

Needs torch and FlashInfer 0.7 or later; no GPU. `trace_apply` calls a solution with the
inputs of a function's trace template by name, and takes its outputs by position. The file
holds, for each public function and beginning of a name, what such a call passes: `always`
for what has a value in every call, `maybe` for what defaults to None, `never` for what a
wrapper's plan() is not asked for; the outputs, and
whether they are written to an argument; and the parameters that no solution gets.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from generator.dataset.atomic_write import write_atomically
from generator.dialects.registered import registered
from tools.build_flashinfer_names import public_name

OUTPUT = Path(__file__).parent.parent / "generator/rules/data/flashinfer_calls.json"


def main() -> int:
    """Import all of FlashInfer, write the file, and say what could not be read."""
    warnings.simplefilter("ignore")
    functions, failed = registered()
    flashinfer: Any = importlib.import_module("flashinfer")
    calls: dict[str, dict[str, Any]] = {}
    unread = []
    for function, template in functions:
        name = public_name(function)
        try:
            call = call_of(function, template)
        except (TypeError, ValueError) as error:
            unread.append(f"{name}: {error}")
            continue
        prefix = template.name_prefix or template.op_type
        calls.setdefault(name, {}).setdefault(prefix, call)
    lines = (f'    "{name}": {json.dumps(calls[name])}' for name in sorted(calls))
    body = ",\n".join(lines)
    version = flashinfer.__version__
    text = f'{{\n  "flashinfer": "{version}",\n  "calls": {{\n{body}\n  }}\n}}\n'
    write_atomically(OUTPUT, text.encode())
    print(f"FlashInfer {version}: {len(calls)} functions; {failed} modules left out.")
    for line in unread:
        print(f"signature not read: {line}", file=sys.stderr)
    return 1 if unread else 0


def call_of(function: Callable[..., Any], template: Any) -> dict[str, Any]:
    """Return what trace_apply passes to a solution of a template, and takes from it."""
    module = importlib.import_module("flashinfer.trace.template")
    signature = inspect.signature(function)
    planned = _planned(function) or set()
    inputs = {}
    for key, described in template.inputs.items():
        parameter = signature.parameters.get(getattr(described, "param", None) or key)
        if parameter is None:
            inputs[key] = "always" if key in planned else "never"
        else:
            inputs[key] = "maybe" if parameter.default is None else "always"
    annotation = signature.return_annotation
    in_place = annotation in (None, type(None), "None")
    written = {key: getattr(d, "param", None) for key, d in template.outputs.items()}
    if in_place:
        # a buffer of the usual name is where all go that the template gives no place
        for key, place in written.items():
            buffer = "lse" if key == "lse" else "out"
            if place is None and buffer in signature.parameters:
                written[key] = buffer
    outputs = {
        key: written[key] or ("optional" if getattr(d, "optional", False) else "")
        for key, d in template.outputs.items()
        if isinstance(d, module.Tensor)
    }
    passed = {getattr(d, "param", None) or key for key, d in template.inputs.items()}
    dropped = [
        name
        for name in signature.parameters
        if name not in passed
        and name not in ("self", "out", "lse", *written.values())
        and name not in template.axes
    ]
    return {
        "inputs": inputs,
        "outputs": outputs,
        "in_place": in_place,
        "dropped": dropped,
    }


def _planned(function: Callable[..., Any]) -> set[str] | None:
    """Return the inputs that trace_apply takes from a wrapper's plan(), None for none."""
    name = f"{function.__module__}.{function.__qualname__}"
    capture = importlib.import_module("flashinfer.trace_apply.plan_capture")
    adapter = capture.STATEFUL_ADAPTERS.get(name)
    if adapter is None:
        return None
    return {*adapter.plan_inputs, *adapter.self_attrs}


if __name__ == "__main__":
    sys.exit(main())
