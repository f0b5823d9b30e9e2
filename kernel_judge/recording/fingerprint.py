"""What a recording depends on, as hashes: inputs, interface, the source of the inputs."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import CodeType, FunctionType
from typing import Any

import torch

from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.lazy_weights import Tiled

_OWN = ("generator.", "kernel_judge.", "reference_support.")


def input_hashes(inputs: Mapping[str, Any]) -> dict[str, str]:
    """Return the SHA-256 of the bytes of each input, of a scalar that of its repr.

    hashlib lets go of the interpreter, so several inputs are hashed at a time.
    """
    with ThreadPoolExecutor(max_workers=4) as pool:
        return dict(zip(inputs, pool.map(_sha256, inputs.values()), strict=True))


def recorded_hashes(inputs: Mapping[str, Any]) -> dict[str, str]:
    """Return of the hash of each input what a recording keeps: 32 of its 64 digits."""
    return {name: digits[:32] for name, digits in input_hashes(inputs).items()}


def _sha256(value: Any) -> str:
    if isinstance(value, Tiled):
        # its stream and its shape say all of its bytes, which may be 64 GB
        return _of_json([list(value.shape), _sha256(value.base)])
    if not isinstance(value, torch.Tensor):
        return hashlib.sha256(repr(value).encode()).hexdigest()
    flat = value.detach().cpu().contiguous().reshape(-1)
    return hashlib.sha256(flat.view(torch.uint8).numpy().data).hexdigest()


def interface_hash(definition: Definition) -> str:
    """Return the hash of all that a kernel's call depends on but the inputs' values.

    The reference is none of it: a recording outlives the reference that it judges.
    """
    interface = definition.interface
    return _of_json(
        [
            definition.name,
            definition.op_type,
            list(interface.inputs.items()),
            list(interface.outputs.items()),
            list(interface.constraints),
            sorted(definition.axes.items()),
            sorted(definition.constants.items()),
        ]
    )


def case_value(case: Case) -> dict[str, Any]:
    """Return a case's size, axes and parameters as plain JSON values."""
    value = {"size": case.size, "axes": dict(case.axes), "params": dict(case.params)}
    plain: dict[str, Any] = json.loads(json.dumps(value, default=str))
    return plain


def source_hash(function: Callable[..., Any]) -> str:
    """Return the hash of a function's source and of all of ours that it calls.

    Constants that it names are hashed by their repr; torch and the standard library
    are none of ours.
    """
    texts: dict[str, str] = {}
    _collect(function, texts)
    return _of_json(sorted(texts.items()))


def _of_json(value: object) -> str:
    text = json.dumps(value, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _collect(function: Any, texts: dict[str, str]) -> None:
    function = inspect.unwrap(function)
    name = function.__qualname__
    if name in texts:
        return
    texts[name] = inspect.getsource(function)
    methods = vars(function).values() if inspect.isclass(function) else [function]
    for method in methods:
        if not isinstance(method, FunctionType):
            continue
        for word in _names(method.__code__):
            _collect_named(word, method, texts)


def _collect_named(word: str, method: FunctionType, texts: dict[str, str]) -> None:
    value: Any = method.__globals__.get(word)
    if _is_ours(value, method):
        _collect(value, texts)
    elif isinstance(value, (bool, int, float, str, tuple, list, dict)):
        texts[word] = re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def _is_ours(value: Any, method: FunctionType) -> bool:
    """Return whether a value is a function or a class of the op or of the support."""
    if not callable(value) or not hasattr(value, "__qualname__"):
        return False
    module = str(value.__module__)
    return module == method.__module__ or module.startswith(_OWN)


def _names(code: CodeType) -> Iterator[str]:
    """Yield the global names that code and the functions inside it read."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
