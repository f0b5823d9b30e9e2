"""Whether a definition's constraints hold for the inputs of a trial."""

from __future__ import annotations

import builtins
from collections.abc import Mapping

from .trial import Trial

_NAMES = "abs all any bool float int len max min range round sorted sum zip"
_BUILTINS = {name: getattr(builtins, name) for name in _NAMES.split()}


def holds(constraint: str, axes: Mapping[str, int], trial: Trial) -> bool:
    """Return whether a constraint, an expression over axes and inputs, is true.

    The expression is the definition's, as trusted as its `run()`, which is called
    beside it. Axes that no tensor of the interface has are not known here: a constraint
    on them raises NameError.
    """
    names = {**axes, **trial.inputs}
    return bool(eval(constraint, {"__builtins__": _BUILTINS, **names}))
