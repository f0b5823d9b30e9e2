"""Definitions that families make for a model that needs them."""

from __future__ import annotations

import re
from dataclasses import replace

from generator.models.config import Config
from generator.models.need import Need
from generator.models.parallel import Deployment
from generator.ops.family import Spec
from generator.ops.reference_text import NoVariant
from generator.ops.registry import op_specs, optional_op_module

UNVERIFIED = "status:unverified"


def instance(config: Config, deployment: Deployment, need: Need) -> Spec | None:
    """Return the definition of a need, None where its family can't make it.

    A family makes one by `instance(name, sizes, constants, model)`: `sizes` are the
    numbers of the name by their tokens. It has the tag status:unverified.
    """
    family = optional_op_module(need.op_type, "family")
    make = getattr(family, "instance", None)
    if make is None:
        return None
    known = op_specs()[need.op_type].name_tokens
    words = re.findall(r"_([a-z]+)(\d+)(?=_|$)", need.name)
    sizes = {token: int(number) for token, number in words if token in known}
    try:
        spec: Spec | None = make(need.name, sizes, need.constants, config.name)
        if spec is None or spec.name != need.name:
            return None
        text = str(spec.reference)
    except (NoVariant, KeyError):
        # KeyError: a name of another kind, without a size or a constant of the family's
        return None
    others = [tag for tag in spec.tags if not tag.startswith(("status:", "tp:", "ep:"))]
    parallel = [f"tp:{deployment.tp}"] * (deployment.tp > 1)
    parallel += [f"ep:{deployment.ep}"] * (deployment.ep > 1)
    return replace(spec, reference=text, tags=(*others, *parallel, UNVERIFIED))
