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
import re
import resource
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import isnan, nan
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from generator.dataset.python_source import parse_expression
from generator.dialects import without_init
from generator.dialects.registered import registered
from generator.rules.constraints import names_in
from generator.running import stand_ins
from kernel_judge.constraints import evaluate

_TEMPLATES = "flashinfer.trace.templates"
_LARGEST, _ROUNDS = 16_385, 3
"""The sizes that constraints are solved with, and how often each is looked at."""
_WORD = re.compile(r"[A-Za-z_]\w*")
_BYTES = 2**30
"""Memory that one `init` may take where it needs values."""
_ELEMENTS = 2**24
"""Elements of all inputs up to which the reference is called on real values."""
_SECONDS, _REFERENCE_SECONDS = 8, 2
"""What a call of an `init`, or of a reference, may take of a CPU."""


class BadReference(Exception):
    """Raised where a template's reference can't run on the values of its `init`."""


def main(request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a description of each template, of the op_types asked for or of all."""
    templates = importlib.import_module(_TEMPLATES)
    apis, silent = _functions()
    asked = set(request["op_types"])
    base = importlib.import_module("flashinfer.trace.template").TraceTemplate
    named: dict[int, tuple[str, Any]] = {}
    for info in pkgutil.iter_modules(templates.__path__):
        name = f"{_TEMPLATES}.{info.name}"
        try:
            module = importlib.import_module(name)
        except Exception as error:  # noqa: BLE001
            yield {"template": name, "failure": _said(error)}
            continue
        for attribute, template in vars(module).items():
            if isinstance(template, base):
                named.setdefault(id(template), (f"{info.name}.{attribute}", template))
    usual = _usual_sizes(template for _, template in named.values())
    for key, (where, template) in named.items():
        if not asked or template.op_type in asked:
            stated = {
                axis.rpartition(":")[2]: size
                for axis, size in request["axes"].items()
                if axis.partition(":")[0] in (axis, template.op_type)
            }
            described = _described(where, template, apis.get(key, []), stated, usual)
            yield {**described, "returns_nothing": key in silent}


def _usual_sizes(templates: Iterable[Any]) -> dict[str, int]:
    """Return axis → the size that most functions `init` have as its default."""
    counted: dict[str, Counter[int]] = {}
    for template in templates:
        if template.init is not None:
            for name, parameter in inspect.signature(template.init).parameters.items():
                if type(parameter.default) is int and parameter.default > 0:
                    counted.setdefault(name, Counter())[parameter.default] += 1
    return {name: sizes.most_common(1)[0][0] for name, sizes in counted.items()}


def _functions() -> tuple[dict[int, list[str]], set[int]]:
    """Return the id of a template → FlashInfer's functions that it describes.

    The second are the templates of functions that are annotated to return nothing.
    """
    names_of: dict[int, list[str]] = {}
    silent = set()
    for function, template in registered()[0]:
        name = f"{function.__module__}.{function.__qualname__}"
        names_of.setdefault(id(template), []).append(name)
        if inspect.signature(function).return_annotation in (None, "None"):
            silent.add(id(template))
    return {key: list(dict.fromkeys(names)) for key, names in names_of.items()}, silent


def _described(
    where: str,
    template: Any,
    apis: list[str],
    stated: Mapping[str, int],
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
    try:
        with stand_ins.on_cpu():
            made, call, why, returned = _initial(template, stated)
    except BadReference as error:
        return {**described, "failure": str(error)}
    described["why"] = why
    if made is None:
        sizes = without_init.sizes_of(template, stated, usual)
        described["stated"] = without_init.stated(template)
        described["returned"], needed = without_init.tried(
            template,
            sizes,
            stated,
            lambda made: _returned(template, made, or_fail=True),
        )
        described["needed"] = needed
        made, call = without_init.tensors(template, sizes, stated, needed), {}
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
    template: Any, stated: Mapping[str, int]
) -> tuple[dict[str, Any] | None, dict[str, int], str, list[Any] | None]:
    """Return what `init` makes, the sizes it was called with, and why it made nothing.

    The last is what the reference returns for it. Raises BadReference where it fails
    on that.
    """
    if template.init is None:
        return None, {}, "it has no init", None
    for required in without_init.REQUIRED:
        call = _call_of(template, stated, required)
        made, why = _made(template, call)
        if made is None:
            continue
        returned = _returned(template, made)
        elements = [
            value.numel()
            for name, value in made.items()
            if isinstance(value, torch.Tensor) and not name.startswith("workspace")
        ]
        if returned is None and template.reference and sum(elements) <= _ELEMENTS:
            try:
                with _limited(_SECONDS):
                    values = _merged(template.init(**call, device="cpu"))
                returned = _returned(template, values, or_fail=True)
            except TimeoutError:
                pass
            except Exception as error:  # noqa: BLE001
                why = _said(error)
                continue
        return made, call, "", returned
    if made is not None:
        raise BadReference(f"its reference fails on what its init makes: {why}")
    return None, {}, f"its init fails without a GPU: {why}", None


def _call_of(template: Any, stated: Mapping[str, int], required: int) -> dict[str, int]:
    """Return the arguments of `init`: those that it requires fit the constraints."""
    parameters = inspect.signature(template.init).parameters
    call: dict[str, int] = {}
    free = []
    for name, parameter in parameters.items():
        if name in stated:
            call[name] = stated[name]
        elif parameter.default is parameter.empty and parameter.kind in (
            parameter.KEYWORD_ONLY,
            parameter.POSITIONAL_OR_KEYWORD,
        ):
            call[name] = required + name.endswith("plus_1")
            free.append(name)
        elif parameter.kind is parameter.VAR_KEYWORD:
            call |= {axis: stated[axis] for axis in template.axes if axis in stated}
    defaults = {n: p.default for n, p in parameters.items() if type(p.default) is int}
    conditions = [
        (expression, [name for name in words if name in free])
        for constraint in template.constraints
        if names_in(constraint) <= {*call, *defaults}
        for expression in [parse_expression(constraint)]
        for words in [dict.fromkeys(_WORD.findall(constraint))]
    ]
    for expression, names in conditions * _ROUNDS:
        for name in names:
            known = {**defaults, **call}
            if evaluate(expression, known):
                break
            sizes = (*range(1, _LARGEST), 0)
            fitting = (n for n in sizes if evaluate(expression, {**known, name: n}))
            call[name] = next(fitting, call[name])
    return call


def _made(template: Any, call: Mapping[str, int]) -> tuple[dict[str, Any] | None, str]:
    """Return what `init` makes, without memory where it can; else why it does not."""
    why = ""
    for mode in (_fake_without_values(), _little_memory()):
        try:
            with mode, _limited(_SECONDS):
                made = _merged(template.init(**call, device="cpu"))
            if not any(isinstance(v, float) and isnan(v) for v in made.values()):
                return made, ""
        except Exception as error:  # noqa: BLE001
            why = _said(error)
    return None, why


def _fake() -> Any:
    return FakeTensorMode(allow_non_fake_inputs=True)


@contextlib.contextmanager
def _fake_without_values() -> Iterator[None]:
    """Let an element of a tensor without memory be NaN: no size is made of it."""
    with _fake(), mock.patch.object(FakeTensor, "item", return_value=nan, create=True):
        yield


@contextlib.contextmanager
def _little_memory() -> Iterator[None]:
    """Let what takes much memory raise: it would take minutes besides."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    limit = pages * resource.getpagesize() + _BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _returned(
    template: Any, made: Mapping[str, Any], or_fail: bool = False
) -> list[Any] | None:
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
    signature = inspect.signature(template.reference)
    passed = {n: v for n, v in known.items() if n in signature.parameters}
    try:
        signature.bind(**passed)
    except TypeError:
        return None
    fakes = any(isinstance(value, FakeTensor) for value in known.values())
    limit = _limited(_REFERENCE_SECONDS)
    try:
        with _fake() if fakes else contextlib.nullcontext(), limit:
            returned = template.reference(**passed)
    except Exception:
        if or_fail:
            raise
        return None
    if isinstance(returned, dict):
        returned = tuple(returned.values())
    several = isinstance(returned, (list, tuple))
    return [_shown(value) for value in (returned if several else [returned])]


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
    signal.setitimer(signal.ITIMER_PROF, seconds, 1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


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
    # small tensors: other threads wait for work at twice the CPU time
    torch.set_num_threads(1)
    write: Callable[[str], object] = sys.stdout.write
    sys.stdout = sys.stderr
    for line in main(json.loads(sys.argv[1])):
        write(json.dumps(line) + "\n")
