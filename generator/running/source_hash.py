"""The hash of a function's source and of all of ours that it calls."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

from kernel_judge.recording.fingerprint import of_json

_OWN = ("generator.", "kernel_judge.", "reference_support.")


def source_hash(function: Callable[..., Any]) -> str:
    """Return the hash of a function's source and of all of ours that it calls.

    Constants that it names are hashed by their repr; torch and the standard library
    are none of ours.
    """
    texts: dict[str, str] = {}
    _collect(function, texts)
    return of_json(sorted(texts.items()))


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
