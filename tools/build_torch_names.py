"""Write generator/rules/data/torch_names.json from the installed torch.

    python tools/build_torch_names.py

The file holds the names of each module of torch that references read, so that a rule
finds one that does not exist without importing torch.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from generator.dataset.atomic_write import write_atomically

OUTPUT = Path(__file__).parent.parent / "generator/rules/data/torch_names.json"
MODULES = """torch torch.amp torch.autograd torch.backends torch.backends.cuda
    torch.backends.cudnn torch.cuda torch.fft torch.linalg torch.nn torch.nn.functional
    torch.special"""


def main() -> int:
    """Write the file and say how many names it holds."""
    modules = {name: sorted(_names(name)) for name in MODULES.split()}
    lines = (f'    "{name}": {json.dumps(" ".join(modules[name]))}' for name in modules)
    body = ",\n".join(lines)
    version = torch.__version__.partition("+")[0]
    text = f'{{\n  "torch": "{version}",\n  "modules": {{\n{body}\n  }}\n}}\n'
    write_atomically(OUTPUT, text.encode())
    print(f"torch {version}: {sum(map(len, modules.values()))} names.")
    return 0


def _names(name: str) -> set[str]:
    """Return what a module has, and its submodules, which an import adds."""
    module = importlib.import_module(name)
    found = {n for n in dir(module) if not n.startswith("__")} | {"__version__"}
    return found | {
        m.name for m in pkgutil.iter_modules(getattr(module, "__path__", ()))
    }


if __name__ == "__main__":
    sys.exit(main())
