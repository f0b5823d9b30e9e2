"""How long an agent waits for a verdict: a scripted client of `trace-dataset mcp`.

    python benchmarks/bench_mcp.py [--device cpu|cuda] [--rounds N] [--transcript FILE]

The client lists eight small ops, writes drafts of each and brings all to PASSED, N times
over (1 if not given). The first verdict starts the judge; all further ones are warm. It prints
their median and 95th percentile in seconds, verdicts a minute, and the CPU seconds of a
verdict, which say more on a busy machine. --transcript writes what was asked and answered
in the first round. The exit status is 1 where the percentile is over 5 s, each draft by the
best of its rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import shutil
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from generator.dataset.paths import discover_definitions
from tests.functional.agent_solutions import DRAFTS

LIMIT_SECONDS = 5.0
_HEAD = """\
# An agent's session

A scripted agent brings eight small ops from a wrong draft to `PASSED`, with [the server](mcp.md)
alone. This is what `python benchmarks/bench_mcp.py --transcript FILE` asked and was answered on
a CPU, shortened to what an agent reads. Lengths are random, so
another run refuses a draft at others.
"""
# of a judge's answer, what the agent reads
_READ = ("verdict", "reason")
_OF_OUTPUT = ("output", "wrong", "elements", "wrong_by_axis", "likely")
_CLOCK = os.sysconf("SC_CLK_TCK")


def dataset(folder: Path) -> Path:
    """Copy the definitions of the eight ops and their workloads to a folder."""
    for file in discover_definitions(ROOT).files:
        if file.name in DRAFTS:
            workloads = f"workloads/{file.op_type}/{file.name}.jsonl"
            for path in filter(lambda p: (ROOT / p).is_file(), (file.path, workloads)):
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / path, folder / path)
    return folder


class Agent:
    """Ask the server, and write down what was asked and answered."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.seconds: list[float] = []
        self.cpu: list[float] = []
        self.lines: list[str] = []

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return a tool's answer. Raises RuntimeError for an error."""
        answer = await self._client.call_tool(tool, arguments)
        if answer.is_error:
            raise RuntimeError(f"{tool}: {answer.content}")
        assert answer.structured_content is not None
        return answer.structured_content

    async def session(self) -> None:
        """Bring all ops to PASSED, and explain each refusal on the way."""
        listed = (await self.call("list_definitions"))["definitions"]
        names = [one["name"] for one in listed]
        self._note("list_definitions", {}, {"definitions": names})
        for name in DRAFTS:
            shown = await self.call("show_definition", name=name)
            axes = {
                axis: value.get("value", "any") for axis, value in shown["axes"].items()
            }
            self._note("show_definition", {"name": name}, {"axes": axes})
            for number, draft in enumerate(DRAFTS[name], 1):
                await self._draft(name, number, draft)

    async def _draft(self, name: str, number: int, draft: str) -> None:
        begun, cpu = time.monotonic(), cpu_seconds(os.getpid())
        verdict = await self.call("evaluate_solution", definition=name, source=draft)
        self.seconds.append(time.monotonic() - begun)
        self.cpu.append(cpu_seconds(os.getpid()) - cpu)
        print(f"{name} {number}: {self.seconds[-1]:.2f} s, CPU {self.cpu[-1]:.2f} s")
        asked = {"definition": name, "source": f"draft {number}"}
        answer = {key: verdict[key] for key in _READ if verdict[key]}
        self._note("evaluate_solution", asked, answer, draft)
        is_last = draft is DRAFTS[name][-1]
        if is_last != (verdict["verdict"] == "PASSED"):
            raise RuntimeError(f"{name}, draft {number}: {verdict['verdict']}")
        if not is_last:
            which = {"evaluation": verdict["evaluation"]}
            why = await self.call("explain_failure", **which)
            outputs = [{k: o[k] for k in _OF_OUTPUT if k in o} for o in why["outputs"]]
            self._note("explain_failure", {}, {"case": why["case"], "outputs": outputs})

    def _note(
        self, tool: str, asked: dict[str, Any], answer: dict[str, Any], text: str = ""
    ) -> None:
        said = ", ".join(f"{key}: {value}" for key, value in asked.items())
        self.lines.append(f"\n`{tool}` {said}".rstrip() + "\n")
        if text:
            self.lines.append(f"```python\n{text.strip()}\n```\n")
        self.lines.append(f"```json\n{json.dumps(answer)}\n```")


def cpu_seconds(pid: int) -> float:
    """Return what a process and its children, those that ended too, took of the CPU.

    Linux alone says so; 0 elsewhere.
    """
    whole = 0.0
    children: dict[int, list[tuple[int, float]]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        used = sum(map(int, fields[11:15])) / _CLOCK
        children.setdefault(int(fields[1]), []).append((int(path.parent.name), used))
        if int(path.parent.name) == pid:
            whole = used
    waiting = [pid]
    while waiting:
        for child, used in children.get(waiting.pop(), ()):
            whole += used
            waiting.append(child)
    return whole


def percentile(values: Sequence[float], share: float) -> float:
    """Return the least value that so large a share of all does not exceed."""
    ordered = sorted(values)
    return ordered[max(math.ceil(share * len(ordered)) - 1, 0)]


async def measured(root: Path, device: str, rounds: int) -> tuple[Agent, float, float]:
    """Return the agent, the warm verdicts' wall time, and the CPU time of all."""
    command = ["-m", "generator.cli.trace_dataset", "mcp", "--dataset", str(root)]
    # the SDK hands on neither PYTHONPATH nor what names a GPU and its compilers
    server = StdioServerParameters(
        command=sys.executable,
        args=[*command, "--device", device],
        cwd=ROOT,
        env=dict(os.environ),
    )
    before = cpu_seconds(os.getpid())
    async with Client(stdio_client(server)) as client:
        agent = Agent(client)
        # starts the judge: cold
        first = next(iter(DRAFTS))
        await agent.call(
            "evaluate_solution", definition=first, source=DRAFTS[first][-1]
        )
        begun, warm = time.monotonic(), cpu_seconds(os.getpid())
        print(f"cold: {warm - before:.1f} s of the CPU", flush=True)
        for _ in range(rounds):
            await agent.session()
        return agent, time.monotonic() - begun, cpu_seconds(os.getpid()) - warm


def main() -> int:
    """Print the figures; the exit status says whether the percentile is within 5 s."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--transcript", type=Path, metavar="FILE")
    options = parser.parse_args()
    with TemporaryDirectory(prefix="bench-mcp-") as folder:
        root = dataset(Path(folder))
        found = asyncio.run(measured(root, options.device, options.rounds))
    agent, wall, cpu = found
    count, p95 = len(agent.seconds), percentile(agent.seconds, 0.95)
    each = count // options.rounds
    best = [min(agent.seconds[draft::each]) for draft in range(each)]
    print(
        f"{len(DRAFTS)} ops, {count} warm verdicts on {options.device}: median "
        f"{statistics.median(agent.seconds):.2f} s, 95% within {p95:.2f} s, longest "
        f"{max(agent.seconds):.2f} s; {60 * count / wall:.0f} a minute; "
        f"{cpu / count:.2f} s of the CPU each; by the best of {options.rounds} rounds "
        f"95% within {percentile(best, 0.95):.2f} s"
    )
    if options.transcript is not None:
        lines = agent.lines[: len(agent.lines) // options.rounds]
        options.transcript.write_text(_HEAD + "\n".join(lines) + "\n", "utf-8")
    return int(percentile(best, 0.95) > LIMIT_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
