"""The server: tools with schemas, one-line errors, over standard input and output."""

from __future__ import annotations

import logging
import os
import shutil
import signal
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field, ValidationError

from generator import __version__, api
from generator.evaluation.clock.offsets import MOST_STARTS
from generator.evaluation.evaluate import EvaluationRequest
from generator.mcp_server import tools
from generator.mcp_server.evaluations import Evaluations
from generator.problems import Failure
from generator.problems.messages import did_you_mean, one_line

_MOST = 500
_INSTRUCTIONS = """\
Judge kernels for the definitions of a trace dataset. list_definitions and show_definition say \
what a kernel computes: inputs, outputs, and `run()`, a reference in PyTorch. list_cases says at \
which sizes it is asked. evaluate_solution judges a solution in a sandbox; where it is refused, \
explain_failure says where the outputs are wrong, failing_inputs names a file with the inputs. \
times has the speed of light and the best known times."""

Name = Annotated[str, Field(description="Name of a definition, as rmsnorm_h4096.")]
_LONG = Field(max_length=8 << 20)


def _guess(name: str, known: Collection[str]) -> str:
    """Return what a wrong name was to be: the nearest one, else all that there are."""
    return did_you_mean(name, known) or f" There are: {', '.join(known)}."


class Server(MCPServer[Any]):
    """An MCP server whose errors are one line, for malformed arguments too."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Any = None
    ) -> Any:
        """Call a tool; raises ToolError, whose text is one line."""
        known = {tool.name: tool for tool in await self.list_tools()}
        if name not in known:
            guess = _guess(name, known)
            raise ToolError(f"No tool is named {one_line(name, 100)}.{guess}")
        parameters = known[name].input_schema.get("properties", {})
        for argument in arguments:
            if argument not in parameters:
                guess = _guess(argument, parameters)
                raise ToolError(
                    f"{name} has no argument {one_line(argument, 100)}.{guess}"
                )
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            cause = error.__cause__
            if isinstance(cause, ValidationError):
                first = cause.errors(include_url=False, include_input=False)[0]
                where = ".".join(str(part) for part in first["loc"])
                raise ToolError(one_line(f"{where}: {first['msg']}", 300)) from None
            if isinstance(cause, (Failure, OSError)):
                raise ToolError(one_line(str(cause), 600)) from None
            raise


def make_server(evaluations: Evaluations) -> Server:
    """Return the server of a dataset, that of its evaluations."""
    dataset, asks = evaluations.dataset, evaluations.asks

    @asynccontextmanager
    async def lifespan(server: Any) -> AsyncIterator[Evaluations]:
        try:
            yield evaluations
        finally:
            evaluations.close()

    server = Server(
        "trace-dataset",
        instructions=_INSTRUCTIONS,
        version=__version__,
        lifespan=lifespan,
        log_level="WARNING",
    )

    @server.tool(structured_output=True)
    def list_definitions(
        op_type: str = "",
        contains: str = "",
        limit: Annotated[int, Field(ge=1, le=_MOST)] = 100,
        offset: Annotated[int, Field(ge=0)] = 0,
    ) -> dict[str, Any]:
        """List the definitions, of an op_type or with a text in their name.

        Example: {"op_type": "rmsnorm", "limit": 5}
        """
        return tools.list_definitions(dataset, op_type, contains, limit, offset)

    @server.tool(structured_output=True)
    def show_definition(name: Name) -> dict[str, Any]:
        """Show a definition: axes, inputs, outputs, constraints, and the text of `run()`.

        Example: {"name": "rmsnorm_h4096"}
        """
        return tools.show_definition(dataset, name)

    @server.tool(structured_output=True)
    def ground_truth(name: Name) -> dict[str, Any]:
        """Say which production kernel is a definition's ground truth here, and why not others.

        Example: {"name": "rmsnorm_h4096"}
        """
        return tools.ground_truth(dataset, name)

    @server.tool(structured_output=True)
    def list_cases(name: Name) -> dict[str, Any]:
        """List the cases at which a definition's kernels are asked, and its workloads.

        An evaluation asks lengths beside these that are drawn anew each time.
        Example: {"name": "rmsnorm_h4096"}
        """
        return tools.list_cases(dataset, name)

    @server.tool(structured_output=True)
    def validate_definition(
        name: str = "", text: Annotated[str, _LONG] = ""
    ) -> dict[str, Any]:
        """Check a definition of the dataset by every rule, or the JSON text of a new one.

        Nothing of it is executed.
        Example: {"name": "rmsnorm_h4096"}, or {"text": "{\\"name\\": …}"}
        """
        return tools.validate(dataset, name, text)

    @server.tool(structured_output=True)
    async def evaluate_solution(
        definition: Name,
        source: Annotated[str, _LONG],
        language: Literal["python", "triton", "tilelang", "cpp", "cuda"] = "python",
        entry_point: Annotated[str, Field(max_length=200)] = "main.py::run",
        destination_passing_style: bool = False,
        binding: Literal["", "torch", "tvm-ffi"] = "",
        name: Annotated[str, Field(max_length=100)] = "solution",
        timing: bool = False,
        starts: Annotated[int, Field(ge=1, le=MOST_STARTS)] = 1,
        workloads: Literal["both", "cases", "dataset"] = "both",
    ) -> dict[str, Any]:
        """Judge a solution in a sandbox: PASSED, or why it is refused and where it is wrong.

        `source` is the text of the file before `::` in `entry_point`. Its function takes
        the inputs in the definition's order and returns the outputs; with
        `destination_passing_style` it fills outputs that follow. Times are means of
        `starts` with new processes. Evaluations run one after the other.
        Example: {"definition": "rmsnorm_h4096", "source": "import torch\\n\\ndef run(x, w):\\n    …"}
        """
        spec: dict[str, Any] = {
            "language": language,
            "target_hardware": [asks.device],
            "entry_point": entry_point,
            "destination_passing_style": destination_passing_style,
        }
        if binding:
            spec["binding"] = binding
        if source.lstrip().startswith("```"):
            raise Failure("source begins with ```: the code alone, without a fence.")
        file = entry_point.partition("::")[0]
        solution = {
            "name": name,
            "definition": definition,
            "author": "agent",
            "spec": spec,
            "sources": [{"path": file, "content": source}],
        }
        about: dict[str, Any] = {"timing": timing, "starts": starts}
        return await evaluations.evaluate(solution, workloads=workloads, **about)

    @server.tool(structured_output=True)
    def explain_failure(evaluation: str, case: str = "") -> dict[str, Any]:
        """Say where a refused case is wrong: elements, indices of each axis, likely cause.

        `evaluation` is what evaluate_solution returned; without `case` it is the first one.
        Example: {"evaluation": "evaluation-1"}
        """
        return evaluations.failure(evaluation, case)

    @server.tool(structured_output=True)
    def failing_inputs(evaluation: str, case: str = "") -> dict[str, Any]:
        """Name a safetensors file with a refused case's inputs and what was returned.

        Tensors are inputs.NAME and actual.NAME; numbers are in the answer, and the shapes
        of tensors that are too large for a file as left_out.
        Example: {"evaluation": "evaluation-1"}
        """
        failure = evaluations.failure(evaluation, case)
        keys = ("case", "axes", "inputs", "numbers", "left_out")
        return {key: failure[key] for key in keys if key in failure}

    @server.tool(structured_output=True)
    def times(name: Name, hardware: str = "NVIDIA H100 80GB HBM3") -> dict[str, Any]:
        """Show for each workload the speed of light on a GPU, and the best time known.

        Example: {"name": "rmsnorm_h4096", "hardware": "NVIDIA H200"}
        """
        return tools.times(dataset, name, hardware)

    return server


def serve(
    dataset: api.Dataset, asks: EvaluationRequest, *, secret: bool = False
) -> None:
    """Serve a dataset on standard input and output until that ends."""
    logging.disable(logging.INFO)
    with TemporaryDirectory(prefix="trace-dataset-mcp-") as folder:
        evaluations = Evaluations(dataset, Path(folder), asks, secret)

        def end(number: int, frame: object) -> None:
            evaluations.close()
            shutil.rmtree(folder, ignore_errors=True)
            # what reads standard input waits for a line, and the SDK for it
            os._exit(128 + number)

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, end)
        try:
            make_server(evaluations).run("stdio")
        except BaseException as error:
            if not is_client_gone(error):
                raise


def is_client_gone(error: BaseException) -> bool:
    """Return whether all that went wrong is that nobody reads the answers any more."""
    inner: tuple[BaseException, ...] = getattr(error, "exceptions", ())
    if inner:
        return all(map(is_client_gone, inner))
    return isinstance(error, BrokenPipeError)
