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
from generator.parity.calls import Maker, StageCall, kernels_of, solution_of
from generator.parity.chain import Chain
from generator.parity.decode import decode
from generator.parity.model_factory import make
from generator.parity.process import DTYPES
from generator.parity.recipe import from_plain
from generator.parity.subject import ParityModel
from generator.parity.training import train
from generator.problems import Failure


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
    torch.set_default_device(request["device"])
    # else convolutions in float32 have 10 bits
    torch.backends.cudnn.allow_tf32 = False
    makers = _makers(request)
    if request["threads"]:
        torch.set_num_threads(request["threads"])
    weights = request["weights"] and Path(request["weights"])
    family = from_plain(request["recipe"])
    subjects = make(request["figures"], weights, request["seed"], family)
    truth = subjects[0]
    generator = torch.Generator(truth.model.device).manual_seed(request["seed"])
    vocabulary = truth.config.vocab_size
    tokens = torch.randint(vocabulary, (request["tokens"],), generator=generator)
    tokens = truth.senses.placed(tokens)
    by_dtype: dict[str, Any] = {}
    sequence = None
    for name, subject in zip(DTYPES, subjects, strict=True):
        if name not in request["dtypes"]:
            continue
        for label, maker in makers.items():
            if label and name != "bfloat16":
                continue
            run = _run(request, subject, truth, tokens, maker)
            of: dict[str, Any] = {}
            for level in request["levels"]:
                if level == "decode":
                    with torch.no_grad():
                        of[level] = decode(run, sequence)
                    sequence = torch.tensor(of[level].pop("tokens"))
                elif level == "train":
                    # kernels have no backward
                    if not label:
                        of[level] = train(run, request["steps"])
                else:
                    with torch.no_grad():
                        of[level] = getattr(levels, level)(run)
            by_dtype[f"{name} with {label}" if label else name] = of
    return by_dtype


def _makers(request: dict[str, Any]) -> dict[str, Maker]:
    """Return what makes calls: of references, and what is to take their place."""
    makers: dict[str, Maker] = {"": StageCall}
    if request["kernels"]:
        makers[request["kernels"]] = kernels_of(request["kernels"])
    if request["solution"]:
        makers[request["solution"]["name"]] = solution_of(request["solution"])
    return makers


def _run(
    request: dict[str, Any],
    own: ParityModel,
    truth: ParityModel,
    tokens: torch.Tensor,
    maker: Maker,
) -> levels.DtypeRun:
    calls = {
        key: {
            role: maker(bound, own.model.dtype)
            for role, bound in roles.items()
            if bound["name"]
        }
        for key, roles in request["bound"].items()
    }
    chain = Chain(own, from_plain(request["recipe"]), calls)
    more = request["decoded"], request["lengths"]
    return levels.DtypeRun(chain, truth, own, tokens, *more)


if __name__ == "__main__":
    main()
