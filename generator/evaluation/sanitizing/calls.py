"""Call a function on the cases of a file, in a process that compute-sanitizer watches.

`python calls.py FILE` is how the sandbox calls a solution: it imports the standard library
and torch, and of ours `building` alone. No answer is judged: the solution passed before.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any


def call_all(call: Callable[..., Any], how: Mapping[str, Any]) -> None:
    """Call with the arguments of each case, tensors on its device; raises what it raises."""
    torch: Any = importlib.import_module("torch")
    device = how["device"]

    def placed(value: Any) -> Any:
        return value.to(device) if isinstance(value, torch.Tensor) else value

    for case in how["cases"]:
        arguments = [placed(value) for value in case["inputs"]]
        if how["passes_outputs"]:
            arguments += [
                torch.empty(
                    one["shape"], dtype=getattr(torch, one["dtype"]), device=device
                )
                for one in case["outputs"]
            ]
        torch.manual_seed(case["seed"])
        with torch.no_grad():
            call(*arguments)
        if device == "cuda":
            torch.cuda.synchronize()


def main() -> None:
    """Build the solution of a file and call it."""
    torch: Any = importlib.import_module("torch")
    how = torch.load(sys.argv[1], weights_only=True)
    building: Any = importlib.import_module("building")
    call_all(building.build(how["solution"], os.getcwd()), how)


if __name__ == "__main__":
    main()
