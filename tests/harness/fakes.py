"""Rendered tests whose providers run anywhere: what a GPU would say is pretended.

Every adapter returns the float64 oracle's outputs, cast to the dtypes that the
definition declares. All else is as rendered: workers, files, the replay.
"""

from __future__ import annotations

import re
from pathlib import Path

_USABLE = """

def backend_obstacle(provider: str, backend: Backend, device: torch.device) -> Obstacle | None:
    return Obstacle(Kind.NO_KERNEL, backend.limit) if backend.limit else None
"""
_FAKE = '''
def _pretended(definition, inputs, backend):
    """Return what a kernel would."""
    import os

    from reference_support.kernel_judge.inputs.memory import dtype_of

    if os.environ.get("REFERENCE_PRETENDS") == f"crash {definition.name}":
        os._exit(17)
    if os.environ.get("REFERENCE_PRETENDS") == f"raise {definition.name} {backend}":
        raise RuntimeError("pretended")
    returned = oracle(definition, inputs)
    returned = returned if isinstance(returned, tuple) else (returned,)
    factor = float(os.environ.get("REFERENCE_PRETENDS_FACTOR", "1"))
    specs = definition.interface.output_specs.values()
    return tuple(
        (value * factor).to(dtype_of(spec.dtype))
        for value, spec in zip(returned, specs, strict=True)
    )

'''
# the op is declared of its functions, so these are replaced before
_MARK = "\nOP = Op(\n"


def pretend(folder: Path) -> Path:
    """Change rendered tests so that every provider's backends can be called here."""
    providers = folder / "reference_support" / "kernel_judge" / "providers.py"
    providers.write_text(providers.read_text("utf-8") + _USABLE, "utf-8")
    for file in folder.glob("test_*.py"):
        text = file.read_text("utf-8")
        names = re.findall(r"^def (\w+_ground_truth)\(", text, re.MULTILINE)
        assigned = "".join(f"{name} = _pretended\n" for name in names)
        file.write_text(text.replace(_MARK, f"{_FAKE}\n{assigned}{_MARK}", 1), "utf-8")
    return folder
