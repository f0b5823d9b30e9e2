"""The process that builds models of transformers without weights and lists modules.

`python -m tests.unit.models.transformers_modules` with a folder on PYTHONPATH that has
transformers: configs on stdin, for each a list of modules on stdout, in JSON.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def main() -> None:
    """Answer a list of configs."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    # what libraries print goes to stderr
    with os.fdopen(os.dup(1), "w") as answer_to:
        os.dup2(2, 1)
        answers = []
        for figures in json.load(sys.stdin):
            config = AutoConfig.for_model(**figures)
            with torch.device("meta"):
                model = AutoModelForCausalLM.from_config(config)
            answers.append(modules(model))
        json.dump(answers, answer_to)


def modules(model: Any) -> list[dict[str, Any]]:
    """Return path, class and shapes of each module that has parameters of its own."""
    return [
        {
            "path": path,
            "class": type(module).__name__,
            "shapes": {
                name: [*tensor.shape]
                for name, tensor in module.named_parameters(recurse=False)
            },
        }
        for path, module in model.named_modules()
        if any(True for _ in module.parameters(recurse=False))
    ]


if __name__ == "__main__":
    main()
