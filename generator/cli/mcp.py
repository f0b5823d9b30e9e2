"""The command `trace-dataset mcp`: serve a dataset to agents."""

from __future__ import annotations

from pathlib import Path

from generator.cli import options
from generator.cli.output import require_modules, say

_NEEDED = ("torch", "numpy", "pytest", "safetensors", "mcp")


@options.command()
def mcp(
    dataset: Path = options.dataset,
    device: str = options.value("Where solutions run.", ["cpu", "cuda"], default="cpu"),
    timeout: float = options.value(
        "For one call.",
        options.Seconds(0.1, 3600.0),
        metavar="SECONDS",
        default=60.0,
    ),
    secret: bool = options.flag(
        "For contests: of a refused solution print the verdict alone, no value and no length."
    ),
) -> int:
    """Serve a dataset to agents, by the Model Context Protocol over stdin and stdout.

    Tools list and show definitions, ground truths, cases and workloads, validate a
    definition, evaluate a solution in the sandbox, explain a failure, name a file with its
    inputs, and show the speed of light and the best known times. None returns an expected
    value. docs/mcp.md shows how to add it to an agent.
    """
    require_modules("The server needs", _NEEDED, "mcp")
    from generator import api
    from generator.evaluation.evaluate import EvaluationRequest
    from generator.mcp_server.server import serve
    from generator.mcp_server.tools import count_line

    opened = api.open_dataset(dataset)
    api.require_sandbox(device)
    say(f"Serving {count_line(opened)} on stdin and stdout")
    serve(opened, EvaluationRequest(device, timeout=timeout), secret=secret)
    return 0
