"""Identity of workloads in evidence: the uuid and a hash of the contents."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

_SHOWN = 8


def workload_identity(workload: Mapping[str, Any]) -> str:
    """Return 17 characters for a workload: of its uuid, and of a hash of its values.

    `workload` is the object of that name in a line of `workloads/`: the same axes and
    inputs under the same uuid give the same identity, whatever the order of their keys.
    """
    values = {name: workload[name] for name in ("axes", "inputs")}
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"{str(workload['uuid'])[:_SHOWN]}-{digest[:_SHOWN]}"
