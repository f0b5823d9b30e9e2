"""Calls that FlashInfer makes of a solution that it finds by name.

`trace_apply` calls with the inputs of the function's trace template: by name if the
solution is in Python, by position else; outputs go by position into what the API returns
or writes. A definition of the name that is asked for but of another interface breaks the
engine that calls, or is applied to calls of other constants.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from generator.dataset.definition import LoadedDefinition
from generator.ops.registry import op_specs
from generator.problems import Problem, error, warning
from generator.problems.messages import quote
from generator.rules.constants import resolve_constants
from generator.rules.routes import routes_to

ROUTE_INTERFACE = error("""route-interface: FlashInfer finds solutions of this name, and
    calls them by another interface.
    Fix: Give the definition the inputs and outputs of the function's trace template; of a
    published one, which stays as it is, say why in accepted.toml.
    Finds: fused_add_rmsnorm_h4096, which returns one tensor where calls update residual
    as well""")
# scales that a kernel reads column by column, whatever the template says of their shape
_BY_COLUMN = {"flashinfer.gemm.fp8_blockscale_gemm_sm90": "input_scale"}
# what a function returns behind the outputs that its template names
_RETURNED_AS_WELL = {
    "flashinfer.sampling.chain_speculative_sampling": {
        "output_accepted_token_num": "",
        "output_emitted_draft_token_num": "",
    }
}
ROUTE_CONSTANT = warning("""route-constant: A constant of the definition is a parameter of
    the function, and no part of the name that FlashInfer asks for.
    Fix: Install solutions for models of this value alone, or take it as an input.
    Finds: rmsnorm_h4096 with eps 1e-05, which calls with eps 1e-06 get as well""")


def check(definition: LoadedDefinition) -> Iterator[Problem]:
    """Yield a Problem if solutions are called otherwise than the definition says.

    Those of `fused_add_rmsnorm_residual_h4096` are called by `fused_add_rmsnorm_h4096`.
    """
    for api, prefix in routes_to(definition):
        call = calls().get(api, {}).get(prefix)
        if call is None:
            continue
        taken = {**call["outputs"], **_RETURNED_AS_WELL.get(api, {})}
        tagged = definition.tag_values("fi_api")
        if tagged and api not in tagged:
            yield ROUTE_INTERFACE.at(
                f"{api} asks for this name, and would get what {tagged[0]} computes.",
                "name",
            )
        broken = [*_inputs(definition, call), *_layouts(definition, api)]
        broken += _outputs(definition, taken, call["in_place"])
        if broken:
            yield ROUTE_INTERFACE.at(f"{api} {'; '.join(broken)}.", "inputs")
        yield from _constants(definition, api, call["dropped"])


def _inputs(definition: LoadedDefinition, call: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the arguments of a call."""
    passed: Mapping[str, str] = call["inputs"]
    foreign = [
        name
        for name, when in passed.items()
        if when == "always" and name not in definition.inputs
    ]
    if foreign:
        yield f"passes {_names(foreign)}, which the definition does not take: TypeError"
    lacking = [
        name
        for name, tensor in definition.inputs.items()
        if not tensor.optional and passed.get(name, "never") == "never"
    ]
    if lacking:
        yield f"does not pass {_names(lacking)}, which has no default: TypeError"
    if foreign or lacking:
        return
    order = [name for name in passed if name in definition.inputs]
    if order != [name for name in definition.inputs if name in passed]:
        yield (
            f"passes {_names(order)} in this order to what is not Python, the definition "
            "has another"
        )


def _layouts(definition: LoadedDefinition, api: str) -> Iterator[str]:
    """Yield what lies otherwise in a call than the definition says."""
    name = _BY_COLUMN.get(api, "")
    if name in definition.inputs:
        rows = (next(iter(definition.inputs.values())).shape or ("",))[0]
        if (definition.inputs[name].shape or ("",))[0] == rows:
            yield (
                f"passes {quote(name)} column by column, each padded to a multiple of four "
                "rows, the definition has a row a token: other values, or RuntimeError"
            )


def _outputs(
    definition: LoadedDefinition, outputs: Mapping[str, str], in_place: bool
) -> Iterator[str]:
    """Yield what is wrong with what a call takes: outputs, and where each goes."""
    wanted = [name for name, to in outputs.items() if to != "optional"]
    missing = wanted[len(definition.outputs) :]
    written = [outputs[name] or name for name in missing]
    if missing and in_place:
        yield f"updates {_names(written)} as well, which keeps its old value in silence"
    elif missing:
        yield f"returns {_names(missing)} as well: whoever unpacks it fails"
    surplus = list(definition.outputs)[len(outputs) :]
    if surplus:
        yield f"does not return {_names(surplus)}: whoever unpacks it fails"
    if in_place:
        yield from _places(outputs)


def _places(outputs: Mapping[str, str]) -> Iterator[str]:
    """Yield what has no place in a call that writes in place, or one with another."""
    if not any(outputs.values()):
        yield (
            "writes in place, and its template names no place: trace_apply passes over "
            "every solution"
        )
    for place, count in Counter(filter(None, outputs.values())).items():
        if count > 1:
            both = _names([name for name, to in outputs.items() if to == place])
            yield f"writes {both} to {quote(place)} alone, one over the other"


def _constants(
    definition: LoadedDefinition, api: str, dropped: list[str]
) -> Iterator[Problem]:
    spec = op_specs().get(definition.op_type)
    if spec is None:
        return
    for constant in resolve_constants(definition, spec)[0]:
        if constant.name in dropped and constant.value is not None:
            yield ROUTE_CONSTANT.at(
                f"{constant.name} is {constant.value!r}; calls of {api} with any other "
                "ask for this name too.",
                "name",
            )


def _names(names: list[str]) -> str:
    return ", ".join(map(quote, names))


@cache
def calls() -> Mapping[str, Any]:
    """Return public function → beginning of a name → what trace_apply passes and takes."""
    file = Path(__file__).parent / "data" / "flashinfer_calls.json"
    table: Mapping[str, Any] = json.loads(file.read_text("utf-8"))["calls"]
    return table
