"""Describe the trace templates of an installed FlashInfer, one JSON line each.

`python -m generator.dialects.template_child REQUEST` runs as a process of its own: it
imports FlashInfer, and calls the templates' `init` on tensors without memory, so that
the dtypes and shapes that they make are known. What is written is text and numbers.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import json
import pkgutil
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

_TEMPLATES = "flashinfer.trace.templates"
_REQUIRED = 8
"""The size of an axis that `init` requires: batches of four divide it."""
_UNKNOWN = torch.complex32
"""What stands for a dtype that a template does not say; no kernel takes it."""
_SECONDS = 8
"""What one call of an `init` may take of a CPU, all threads together."""


def main(request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a description of each template, of the op_types asked for or of all."""
    templates = importlib.import_module(_TEMPLATES)
    apis = _registered()
    asked = set(request["op_types"])
    base = importlib.import_module("flashinfer.trace.template").TraceTemplate
    found: dict[int, tuple[str, Any]] = {}
    for info in pkgutil.iter_modules(templates.__path__):
        name = f"{_TEMPLATES}.{info.name}"
        try:
            module = importlib.import_module(name)
        except Exception as error:  # noqa: BLE001
            yield {"template": name, "failure": _said(error)}
            continue
        for attribute, template in vars(module).items():
            if isinstance(template, base):
                found.setdefault(id(template), (f"{info.name}.{attribute}", template))
    usual = _usual_sizes(template for _, template in found.values())
    for key, (where, template) in found.items():
        if not asked or template.op_type in asked:
            yield _described(where, template, apis.get(key, []), request["axes"], usual)


def _usual_sizes(templates: Iterable[Any]) -> dict[str, int]:
    """Return axis → the size that most functions `init` have as its default."""
    counted: dict[str, Counter[int]] = {}
    for template in templates:
        if template.init is not None:
            for name, parameter in inspect.signature(template.init).parameters.items():
                if type(parameter.default) is int and parameter.default > 0:
                    counted.setdefault(name, Counter())[parameter.default] += 1
    return {name: sizes.most_common(1)[0][0] for name, sizes in counted.items()}


def _registered() -> dict[int, list[str]]:
    """Return the id of a template → FlashInfer's functions that it describes."""
    root = Path(str(importlib.import_module("flashinfer").__file__)).parent
    for path in sorted(root.rglob("*.py")):
        if "@flashinfer_api(trace=" in path.read_text("utf-8", "replace"):
            parts = path.relative_to(root.parent).with_suffix("").parts
            name = ".".join(parts).removesuffix(".__init__")
            with contextlib.suppress(Exception, SystemExit):
                importlib.import_module(name)
    logging = importlib.import_module("flashinfer.api_logging")
    found: dict[int, list[str]] = {}
    for function, template, _ in logging._TRACE_REGISTRY:
        name = f"{function.__module__}.{function.__qualname__}"
        found.setdefault(id(template), []).append(name)
    return {key: list(dict.fromkeys(names)) for key, names in found.items()}


def _described(
    where: str,
    template: Any,
    apis: list[str],
    given: Mapping[str, int],
    usual: Mapping[str, int],
) -> dict[str, Any]:
    described: dict[str, Any] = {
        "template": where,
        "op_type": template.op_type,
        "apis": apis,
        "reference": getattr(template.reference, "__name__", None),
        "module": getattr(inspect.getmodule(template.reference), "__file__", None),
        "init_module": getattr(inspect.getmodule(template.init), "__file__", None),
        "inputs": {name: _facts(d) for name, d in template.inputs.items()},
        "outputs": {name: _facts(d) for name, d in template.outputs.items()},
        "init": None,
    }
    made, call, why, returned = _initial(template, given)
    described["why"] = why
    if made is None:
        made, call = _without_init(template, given, usual), {}
    else:
        described["init"] = {
            "call": call,
            "defaults": {
                name: parameter.default
                for name, parameter in inspect.signature(
                    template.init
                ).parameters.items()
                if type(parameter.default) is int
            },
            "made": {name: _shown(value) for name, value in made.items()},
            "returned": returned,
        }
    try:
        dump = template.build_fi_trace_fn(apis[0] if apis else "")(**made)
        for spec in (*dump["inputs"].values(), *dump["outputs"].values()):
            if spec["dtype"] == "complex32":
                spec["dtype"] = "unknown"
        described["dump"] = dump
        extractors = template._build_axis_extractors()
        described["axes"] = {n: extractors[n](made) for n in template.axes}
    except Exception as error:  # noqa: BLE001
        described["failure"] = _said(error)
    return described


def _facts(descriptor: Any) -> dict[str, Any]:
    fields = ("param", "tuple_idx", "dtype", "dtype_from", "dim_names")
    return {field: getattr(descriptor, field, None) for field in fields}


def _initial(
    template: Any, given: Mapping[str, int]
) -> tuple[dict[str, Any] | None, dict[str, int], str, list[Any] | None]:
    """Return what `init` makes, the sizes it was called with, and why it made nothing.

    The last is what the reference returns for it, where that needs no values.
    """
    if template.init is None:
        return None, {}, "it has no init", None
    parameters = inspect.signature(template.init).parameters
    call: dict[str, int] = {}
    for name, parameter in parameters.items():
        if name in given:
            call[name] = given[name]
        elif parameter.default is parameter.empty and parameter.kind in (
            parameter.KEYWORD_ONLY,
            parameter.POSITIONAL_OR_KEYWORD,
        ):
            call[name] = _REQUIRED + name.endswith("plus_1")
    why = ""
    for without_memory in (True, False):
        mode: Any = contextlib.nullcontext()
        if without_memory:
            mode = FakeTensorMode(allow_non_fake_inputs=True)
        try:
            with mode, _limited(_SECONDS):
                made = _merged(template.init(**call, device="cpu"))
                returned = _returned(template, made) if without_memory else None
            if returned is None and template.reference and _has_own_axes(template):
                with contextlib.suppress(Exception), _limited(_SECONDS):
                    values = _merged(template.init(**call, device="cpu"))
                    returned = _returned(template, values)
            return made, call, "", returned
        except Exception as error:  # noqa: BLE001
            why = _said(error)
    return None, {}, f"its init fails without a GPU: {why}", None


def _returned(template: Any, made: Mapping[str, Any]) -> list[Any] | None:
    """Return what the reference returns, described; None where it needs values."""
    if template.reference is None:
        return None
    known = dict(made)
    for key, descriptor in template.inputs.items():
        value = made.get(descriptor.param or key)
        place = getattr(descriptor, "tuple_idx", None)
        if place is not None and isinstance(value, (list, tuple)):
            value = value[place] if place < len(value) else None
        if value is not None:
            known[key] = value
    parameters = inspect.signature(template.reference).parameters
    try:
        returned = template.reference(
            **{name: value for name, value in known.items() if name in parameters}
        )
    except TimeoutError:
        raise
    except Exception:  # noqa: BLE001
        return None
    if isinstance(returned, dict):
        returned = tuple(returned.values())
    several = isinstance(returned, (list, tuple))
    return [_shown(value) for value in (returned if several else [returned])]


def _has_own_axes(template: Any) -> bool:
    """Return whether an output has an axis that no input has."""
    known = {n for d in template.inputs.values() for n in getattr(d, "dim_names", ())}
    own = {n for d in template.outputs.values() for n in getattr(d, "dim_names", ())}
    return not own <= known


def _merged(made: Any) -> dict[str, Any]:
    """Return the arguments of a call; those of `plan` and `run` are one call here."""
    if not isinstance(made, dict):
        raise TypeError(f"init returns a {type(made).__name__}")
    if set(made) <= {"plan", "run", "init"} and made:
        return {name: value for part in made.values() for name, value in part.items()}
    return made


@contextlib.contextmanager
def _limited(seconds: int) -> Iterator[None]:
    def stop(number: int, frame: object) -> None:
        raise TimeoutError(f"it takes more than {seconds} s of a CPU")

    # CPU time: a busy machine imports the same as an idle one
    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _without_init(
    template: Any, given: Mapping[str, int], usual: Mapping[str, int]
) -> dict[str, Any]:
    """Return tensors without memory of the dtypes that the template names."""
    names = [n for d in template.inputs.values() for n in getattr(d, "dim_names", ())]
    sizes = {}
    for name in (*template.axes, *names):
        axis = template.axes.get(name)
        fixed = given.get(name) or getattr(axis, "value", None)
        constant = usual.get(name, 128)
        free = _REQUIRED + name.endswith("plus_1")
        sizes[name] = fixed or (constant if hasattr(axis, "abbrev") else free)
    made: dict[str, Any] = {}
    for key, descriptor in template.inputs.items():
        dims = getattr(descriptor, "dim_names", None)
        param = descriptor.param or key
        if descriptor.optional:
            continue
        if dims is None:
            if key in sizes:
                made[param] = sizes[key]
            continue
        dtype = getattr(torch, descriptor.dtype or "", _UNKNOWN)
        tensor = torch.empty([sizes[d] for d in dims], dtype=dtype, device="meta")
        if descriptor.tuple_idx is None:
            made[param] = tensor
        else:
            held = made.setdefault(param, [])
            held += [None] * (descriptor.tuple_idx + 1 - len(held))
            held[descriptor.tuple_idx] = tensor
    return {**{n: v for n, v in sizes.items() if n in given}, **made}


def _shown(value: Any) -> Any:
    """Return what an argument is: shape and dtype of a tensor, a plain value, or text."""
    if isinstance(value, torch.Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        return {"tensor": list(value.shape), "dtype": dtype}
    if isinstance(value, (list, tuple)):
        return {"items": [_shown(item) for item in value]}
    if value is None or isinstance(value, (bool, int, float, str)):
        return {"value": value}
    if isinstance(value, torch.dtype):
        return {"torch": str(value)}
    return {"object": type(value).__name__}


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"


if __name__ == "__main__":
    write: Callable[[str], object] = sys.stdout.write
    sys.stdout = sys.stderr
    for line in main(json.loads(sys.argv[1])):
        write(json.dumps(line) + "\n")
