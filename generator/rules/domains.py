"""Domains: where the values of inputs lie that workloads leave to chance."""

from __future__ import annotations

from collections.abc import Iterator

from generator.dataset.definition import LoadedDefinition, LoadedTensor
from generator.ops.serving import spec_of
from generator.problems import Problem, warning
from generator.problems.messages import quote

INPUT_DOMAIN = warning("""input-domain: Where the values of an input may lie is not
    stated, or what is stated can't be.
    Fix: State the domain beside the dtype, so that runners that draw `random` from the
    normal distribution draw valid values, not NaN.
    Finds: the keys of gdn_prefill without `"domain": "unit"`: a state of 1e23 after 42
    tokens""")

_BYTES = ("int8", "uint8")
_POWERS = "powers-of-two"


def check(definition: LoadedDefinition) -> Iterator[Problem]:
    """Yield a Problem for each input whose domain is not the op's, or is none of its dtype."""
    spec = spec_of(definition)
    for name, tensor in definition.inputs.items():
        wanted = spec and spec.domain_of(definition.name, name, tensor.dtype)
        if wanted is not None and tensor.domain != wanted:
            stated = quote(tensor.domain) if tensor.domain else "not stated"
            message = f"The domain of {quote(name)} is {wanted}; here it is {stated}."
            yield INPUT_DOMAIN.at(message, "inputs", name)
        elif tensor.domain:
            yield from _of_dtype(tensor, "inputs")
    for tensor in definition.outputs.values():
        if tensor.domain:
            message = f"{quote(tensor.name)} is an output, which nobody draws."
            yield INPUT_DOMAIN.at(message, "outputs", tensor.name, "domain")


def _of_dtype(tensor: LoadedTensor, group: str) -> Iterator[Problem]:
    """Yield a Problem where no value of the dtype, or no draw, has the domain."""
    is_of_bytes = tensor.dtype in _BYTES
    why = ""
    if tensor.shape is None:
        why = "a scalar, whose value a workload states"
    elif is_of_bytes != (tensor.domain == _POWERS):
        why = f"{tensor.dtype}, which has no values of {quote(tensor.domain)}"
    if why:
        message = f"{quote(tensor.name)} is {why}."
        yield INPUT_DOMAIN.at(message, group, tensor.name, "domain")
