"""Origin of a workload, by the contents of its line."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

DERIVED = "derived (the uuid is of version 5)"
RANDOM = "captured or typed (a random uuid, values in blobs or scalars)"
GENERATED = "with random values alone (generated inputs)"
TYPED = "typed (the uuid is none)"


def origin_of(workload: Mapping[str, Any]) -> str:
    """Return one of the four: a derived uuid is of version 5; that a server ran, none shows."""
    try:
        version = uuid.UUID(str(workload.get("uuid"))).version
    except ValueError:
        return TYPED
    if version == 5:
        return DERIVED
    inputs = workload.get("inputs")
    values = inputs.values() if isinstance(inputs, dict) else ()
    kinds = {value.get("type") for value in values if isinstance(value, dict)}
    return GENERATED if kinds <= {"random"} else RANDOM
