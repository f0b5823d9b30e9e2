"""The process that imports transformers: requests on stdin, answers on stdout, in JSON.

`python -m generator.parity.worker` with a folder on PYTHONPATH that has transformers.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import torch

from generator.parity import levels
from generator.parity.chain import Chain
from generator.parity.recipe import from_plain
from generator.parity.site import Call
from generator.parity.subject import make
from generator.parity.training import train
from generator.problems import Failure

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def main() -> None:
    """Answer a list of requests: `{"found": …}`, `{"failed": why}` each, or why not."""
    # what libraries print goes to stderr
    with os.fdopen(os.dup(1), "w") as answer_to:
        os.dup2(2, 1)
        json.dump(_answers(json.load(sys.stdin)), answer_to)


def _answers(requests: list[dict[str, Any]]) -> Any:
    try:
        import transformers  # noqa: F401
    except ImportError as error:
        return {"no_transformers": str(error)}
    return [_answer(request) for request in requests]


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"found": _found(request)}
    except Failure as failure:
        return {"failed": str(failure)}


def _found(request: dict[str, Any]) -> dict[str, Any]:
    family = from_plain(request["recipe"])
    if request["threads"]:
        torch.set_num_threads(request["threads"])
    weights = request["weights"] and Path(request["weights"])
    subjects = make(request["figures"], weights, request["seed"])
    truth = subjects[0]
    generator = torch.Generator().manual_seed(request["seed"])
    vocabulary = truth.config.vocab_size
    tokens = torch.randint(vocabulary, (request["tokens"],), generator=generator)
    found: dict[str, Any] = {}
    sequence = None
    for name, own in zip(_DTYPES, subjects, strict=True):
        if name not in request["dtypes"]:
            continue
        calls = {
            key: {
                role: Call(b, _DTYPES[name]) for role, b in roles.items() if b["name"]
            }
            for key, roles in request["bound"].items()
        }
        run = levels.Run(
            Chain(own, family, calls), truth, own, tokens, request["decoded"]
        )
        of: dict[str, Any] = {}
        for level in request["levels"]:
            if level == "decode":
                with torch.no_grad():
                    of[level] = levels.decode(run, sequence)
                sequence = torch.tensor(of[level].pop("tokens"))
            elif level == "train":
                of[level] = train(run, request["steps"])
            else:
                with torch.no_grad():
                    of[level] = getattr(levels, level)(run)
        found[name] = of
    return found


if __name__ == "__main__":
    main()
