"""Names that FlashInfer asks for: it finds solutions by a name made of a call's axes.

`trace_apply` makes the name of the function's trace template and the call's constant
axes, and runs the solution of the definition that is called so. Neither the dtype, nor
the tags, nor the definition's file plays a part.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

from generator.dataset.definition import LoadedDefinition
from generator.problems import Problem, note, warning
from generator.problems.messages import quote
from generator.rules.names import name_tokens

NAME_ROUTE = note("""name-route: FlashInfer asks for solutions of this function by
    another name.
    Fix: Give a new definition the name that is asked for, if it says what every such
    call computes; a published name stays, and its solutions are installed by hand.
    Finds: top_k_sampling_from_probs_v128256, where top_k_sampling_v128256 is asked
    for""")
NAME_ROUTE_OTHER = warning("""name-route-other: FlashInfer asks for this name where it
    calls another function.
    Fix: Name the definition after the function that it describes.
    Finds: rmsnorm_h5376 for gemma_rmsnorm: every plain norm of that size would get 1 +
    weight""")


AS_CALLED = ("residual", "return_lse")
"""Words of names that say: the interface is that of calls, the published one another.

The published definition has the name that is asked for; solutions of this one are
installed under it.
"""


def check(definition: LoadedDefinition) -> Iterator[Problem]:
    """Yield a Problem if solutions of a definition are not found by its name."""
    apis = definition.tag_values("fi_api")
    routes = _routes()
    asked = [name for api in apis for name in _names(routes.get(api, ()), definition)]
    if not asked or definition.name in asked:
        return
    others = [
        api
        for beginning in accumulate(definition.name.split("_"), "{}_{}".format)
        for api in _functions().get(beginning, ())
        if definition.name in _names(routes[api], definition)
    ]
    wanted = (
        f"calls of {apis[0]} ask for {' or '.join(map(quote, dict.fromkeys(asked)))}."
    )
    if others:
        yield NAME_ROUTE_OTHER.at(
            f"Calls of {others[0]} ask for this name; {wanted}", "name"
        )
    else:
        yield NAME_ROUTE.at(f"FlashInfer's {wanted}", "name")


def routes_to(definition: LoadedDefinition) -> Iterator[tuple[str, str]]:
    """Yield the functions, with the beginning of the name, whose calls ask for a name.

    It is the name under which solutions of the definition are installed.
    """
    name = installed_as(definition.name)
    for beginning in accumulate(name.split("_"), "{}_{}".format):
        for api in _functions().get(beginning, ()):
            of_prefix = [route for route in _routes()[api] if route[0] == beginning]
            if name in _names(of_prefix, definition):
                yield api, beginning


def is_function(api: str) -> bool:
    """Return whether FlashInfer has a function, by its trace templates."""
    return api in _routes()


def installed_as(name: str) -> str:
    """Return the name that solutions are installed under: without a word of AS_CALLED."""
    for word in AS_CALLED:
        name = name.replace(f"_{word}_", "_", 1)
    return name


def _names(
    templates: Iterable[tuple[str, Mapping[str, str]]], definition: LoadedDefinition
) -> Iterator[str]:
    """Yield the names that templates make of a definition's axes.

    An axis that the definition does not have (top_k, n_group) is read off its name; a
    template with an axis that neither has makes no name.
    """
    tokens = dict(name_tokens(definition.name))
    for prefix, axes in templates:
        values = {
            short: definition.const_axes.get(axis, tokens.get(short))
            for axis, short in axes.items()
        }
        if None not in values.values():
            yield "_".join([prefix, *(f"{a}{value}" for a, value in values.items())])


@cache
def _routes() -> Mapping[str, Any]:
    """Return public function → (beginning of the name, axis → its abbreviation)."""
    file = Path(__file__).parent / "data" / "flashinfer_names.json"
    routes: Mapping[str, Any] = json.loads(file.read_text("utf-8"))["routes"]
    return routes


@cache
def _functions() -> Mapping[str, list[str]]:
    """Return the beginning of a name → the functions whose calls ask for such names."""
    functions: dict[str, list[str]] = {}
    for api, templates in _routes().items():
        for beginning, _ in templates:
            functions.setdefault(beginning, []).append(api)
    return functions
