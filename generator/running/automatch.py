"""FlashInfer's function for an op_type without a module, matched by names alone.

A `fi_api:` tag names the function. Its parameters are held against the definition's
inputs, by inspect.signature, when the test runs. What can't be matched for certain is a
skip that says why: UNRESOLVED. Nobody read either side, so a test that is red here may
also mean that the match is wrong.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from generator.running.free_memory import is_exhaustion
from kernel_judge.definition import Backend, Definition
from kernel_judge.inputs.trial import Trial, as_tuple
from kernel_judge.obstacle import Kind
from kernel_judge.skipping import skip
from kernel_judge.subject import Kernel, Op

# names that mean the same thing in definitions and in FlashInfer; equal names come first
SYNONYMS = (
    ("hidden_states", "input", "x"),
    ("q", "query"),
    ("k", "key"),
    ("v", "value"),
    ("weight", "w"),
    ("eps", "epsilon"),
    ("sm_scale", "softmax_scale", "scale"),
    ("state", "initial_state"),
    ("A", "a"),
    ("B", "b"),
)
_PACKAGE = "flashinfer"


class UnmatchedFunction(Exception):
    """Raised where a function can't be called for a definition."""


def op_by_name(apis: Sequence[str]) -> Op:
    """Return the op whose kernels are FlashInfer's functions at these dotted paths.

    Its inputs are guessed. Without any path FlashInfer is not asked.
    """
    refusal = None if apis else "the definition has no fi_api tag"
    kernel = Kernel(
        partial(backends_of, apis), _called, True, refusal, _check_guessed_inputs
    )
    return Op(kernels={_PACKAGE: kernel}, guesses_inputs=True)


def backends_of(apis: Sequence[str], definition: Definition) -> tuple[Backend, ...]:
    """Return a backend for each of FlashInfer's functions: `norm.rmsnorm`."""
    names = [api.removeprefix(f"{_PACKAGE}.") for api in apis]
    return tuple(map(Backend, names or ["no-fi_api"]))


def _called(definition: Definition, inputs: dict[str, Any], backend: str) -> Any:
    """Call the function, or skip with the reason."""
    try:
        return call_by_name(f"{_PACKAGE}.{backend}", definition, inputs)
    except UnmatchedFunction as error:
        skip(Kind.UNRESOLVED, f"flashinfer: UNRESOLVED: {error}")


def _check_guessed_inputs(trial: Trial) -> None:
    """Skip where the guessed inputs are not ones that the op allows."""
    broken = trial.broken_constraints()
    if broken:
        reason = f"guessed inputs break {broken}"
        skip(Kind.UNRESOLVED, f"flashinfer: UNRESOLVED: {reason}")
    names = trial.definition.interface.output_specs
    for name, output in zip(names, trial.outputs, strict=False):
        if isinstance(output, torch.Tensor) and bool(output.isnan().any()):
            reason = f"run() gives NaN in {name} for guessed inputs"
            skip(Kind.UNRESOLVED, f"flashinfer: UNRESOLVED: {reason}")


def call_by_name(
    api: str, definition: Definition, inputs: dict[str, Any]
) -> tuple[Any, ...]:
    """Return what a function returns for a definition's inputs, as a tuple.

    Raises Unresolved where it can't be found or matched, rejects the inputs, which are
    guessed, or returns another number of outputs.
    """
    function = find(api)
    positional, named = bind(api, function, inputs)
    try:
        returned = function(*positional, **named)
    except Exception as error:
        if is_exhaustion(error):
            raise
        kind, text = type(error).__name__, " ".join(str(error).split())[:200]
        raise UnmatchedFunction(
            f"{api} rejects guessed inputs: {kind}: {text}"
        ) from error
    if returned is None:
        raise UnmatchedFunction(
            f"{api} returns None: which input it writes to is not known"
        )
    outputs = as_tuple(returned)
    declared = len(definition.interface.output_specs)
    if len(outputs) != declared:
        raise UnmatchedFunction(
            f"{api} returns {len(outputs)} values, the definition declares {declared}"
        )
    return outputs


def find(api: str) -> Callable[..., Any]:
    """Return the function at a dotted path below flashinfer; else raise Unresolved."""
    module, _, name = api.rpartition(".")
    if api.split(".")[0] != _PACKAGE or not all(map(str.isidentifier, api.split("."))):
        raise UnmatchedFunction(f"{api} is no path below {_PACKAGE}")
    try:
        function = getattr(importlib.import_module(module), name)
    except (Exception, SystemExit) as error:
        kind, text = type(error).__name__, " ".join(str(error).split())[:200]
        raise UnmatchedFunction(f"no {api}: {kind}: {text}") from error
    if inspect.isclass(function):
        raise UnmatchedFunction(
            f"{api} is a class: how to plan and run it is not known"
        )
    if not callable(function):
        raise UnmatchedFunction(f"{api} is no function")
    callable_: Callable[..., Any] = function
    return callable_


def bind(
    api: str, function: Callable[..., Any], inputs: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return the positional and named arguments that inputs give to a function.

    Every input must be a parameter, and every parameter without a default an input.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise UnmatchedFunction(f"{api} has no signature: {error}") from error
    parameters = [
        parameter
        for parameter in signature.parameters.values()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    chosen = pair([parameter.name for parameter in parameters], list(inputs))
    left = [name for name in inputs if name not in chosen.values()]
    if left:
        raise UnmatchedFunction(f"{api} has no parameter for {', '.join(left)}")
    positional: list[Any] = []
    named = {}
    for parameter in parameters:
        known = parameter.name in chosen
        if not known and parameter.default is parameter.empty:
            raise UnmatchedFunction(f"{api} needs {parameter.name}, which is no input")
        if not known:
            continue
        value = inputs[chosen[parameter.name]]
        if parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(value)
        else:
            named[parameter.name] = value
    return positional, named


def pair(parameters: Sequence[str], inputs: Sequence[str]) -> dict[str, str]:
    """Return parameter → input: equal names, then synonyms where only one is left."""
    pairs = {name: name for name in parameters if name in inputs}
    for group in SYNONYMS:
        wanting = [p for p in parameters if p in group and p not in pairs]
        offered = [i for i in inputs if i in group and i not in pairs.values()]
        if len(wanting) == len(offered) == 1:
            pairs[wanting[0]] = offered[0]
    return pairs
