"""`trace-dataset mcp` by the SDK's own client over stdio: an agent's hour, and bad arguments."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from safetensors.torch import load_file

from generator.dataset.paths import discover_definitions
from generator.execution.sandbox import refusal
from generator.mcp_server.server import is_client_gone
from tests.builders import ROOT
from tests.functional.agent_solutions import DRAFTS

pytestmark = pytest.mark.skipif(
    refusal() is not None, reason=f"no sandbox: {refusal()}"
)
NAME = "rmsnorm_h128"
RIGHT = DRAFTS[NAME][-1]
# what the server may not say of a refused case
HIDDEN = ("expected", "allowed", "NMSE", "difference")
Call = Callable[..., Awaitable[Any]]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a dataset of the eight definitions that the agent works on."""
    root = tmp_path_factory.mktemp("dataset")
    for file in discover_definitions(ROOT).files:
        if file.name in DRAFTS:
            workloads = f"workloads/{file.op_type}/{file.name}.jsonl"
            for path in (file.path, workloads):
                if (ROOT / path).is_file():
                    (root / path).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(ROOT / path, root / path)
    assert len(discover_definitions(root).files) == len(DRAFTS)
    return root


def served(root: Path, script: Callable[[Call], Awaitable[None]], *more: str) -> None:
    """Run a script against a server; its `call` returns the value, or the error's text."""
    command = ["-m", "generator.cli.trace_dataset", "mcp", "--dataset", str(root)]
    server = StdioServerParameters(
        command=sys.executable, args=[*command, *more], cwd=ROOT
    )

    async def main() -> None:
        async with Client(stdio_client(server)) as client:

            async def call(tool: str, **arguments: Any) -> Any:
                found = await client.call_tool(tool, arguments)
                if found.is_error:
                    (content,) = found.content
                    return content.text
                return found.structured_content

            call.client = client  # type: ignore[attr-defined]
            await script(call)

    asyncio.run(main())


@pytest.mark.slow
def test_an_agent_brings_eight_ops_to_passed(root: Path) -> None:
    seconds: list[float] = []

    async def script(call: Call) -> None:
        listed = await call("list_definitions")
        assert {one["name"] for one in listed["definitions"]} == {*DRAFTS}
        for name, drafts in DRAFTS.items():
            shown = await call("show_definition", name=name)
            assert "def run(" in shown["reference"]
            cases = await call("list_cases", name=name)
            assert {"name", "size", "axes"} <= cases["cases"][0].keys()
            for draft in drafts:
                begun = time.monotonic()
                found = await call("evaluate_solution", definition=name, source=draft)
                seconds.append(time.monotonic() - begun)
                assert found["verdict"] in ("PASSED", "INCORRECT_NUMERICAL"), found
                if draft is drafts[-1]:
                    assert found["verdict"] == "PASSED", found["reason"]
                    continue
                assert found["verdict"] == "INCORRECT_NUMERICAL", name
                told = await call("explain_failure", evaluation=found["evaluation"])
                (output, *_) = told["outputs"]
                assert output["wrong"] > 0
                assert output["wrong_by_axis"]
                assert not any(word in json.dumps([found, told]) for word in HIDDEN)
                kept = await call("failing_inputs", evaluation=found["evaluation"])
                tensors = load_file(kept["inputs"])
                assert any(n.startswith("inputs.") for n in tensors)
                assert not any(n.startswith("expected") for n in tensors)

    served(root, script)
    # the first one imports torch; figures are of a busy machine, the bound is generous
    warm = sorted(seconds[1:])

    assert warm[len(warm) // 2] < 30.0


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("list_definitions", {"op_type": "rmsnrom"}, "Did you mean 'rmsnorm'?"),
    ("list_definitions", {"limit": 10**9}, "limit: "),
    ("list_definitions", {"limit": "\x1b[31m"}, "limit: "),
    ("list_definitions", {"contians": "x"}, "Did you mean 'contains'?"),
    ("show_definition", {}, "name: Field required"),
    ("show_definition", {"name": "rmsnorm_h129"}, "Did you mean 'rmsnorm_h128'?"),
    ("show_definition", {"name": "../../etc/passwd"}, "No definition is named"),
    ("show_definition", {"name": "a\n::error::b"}, "No definition is named"),
    ("show_definition", {"name": ["x"]}, "name: "),
    ("ground_truth", {"name": ""}, "No definition is named"),
    ("list_cases", {"name": "x" * 10_000}, "No definition is named"),
    ("validate_definition", {}, "give the name of a definition, or the text"),
    ("validate_definition", {"name": NAME, "text": "{}"}, "give the name"),
    ("validate_definition", {"text": "[" * 100_000}, "no JSON object"),
    ("validate_definition", {"text": '{"op_type": "..", "name": "x"}'}, "can't be"),
    ("validate_definition", {"text": '{"op_type": "a/b", "name": "x"}'}, "can't be"),
    ("validate_definition", {"text": '{"op_type": "a", "name": ".x"}'}, "a dot"),
    ("evaluate_solution", {"definition": NAME}, "source: Field required"),
    (
        "evaluate_solution",
        {"definition": "nothing", "source": RIGHT},
        "the dataset has no definition",
    ),
    (
        "evaluate_solution",
        {"definition": NAME, "source": RIGHT, "entry_point": "../x.py::run"},
        "leads upwards",
    ),
    (
        "evaluate_solution",
        {"definition": NAME, "source": RIGHT, "entry_point": "run"},
        "the right form, as 'main.py::run' has",
    ),
    (
        "evaluate_solution",
        {"definition": NAME, "source": RIGHT, "name": "../x"},
        "can't be the name",
    ),
    (
        "evaluate_solution",
        {"definition": NAME, "source": RIGHT, "language": "perl"},
        "language: ",
    ),
    (
        "evaluate_solution",
        {"definition": NAME, "source": f"\n```python\n{RIGHT}```"},
        "without a fence",
    ),
    (
        "evaluate_solution",
        {"definition": NAME, "source": RIGHT, "timing": True},
        "--device cuda",
    ),
    *(
        (
            "evaluate_solution",
            {"definition": NAME, "source": RIGHT, "starts": count},
            said,
        )
        for count, said in ((0, "starts: "), (10**9, "starts: "), (2, "for timing"))
    ),
    ("explain_failure", {"evaluation": "../x"}, "No evaluation is named"),
    ("failing_inputs", {"evaluation": "evaluation-1"}, "No evaluation is named"),
    ("times", {"name": NAME, "hardware": "Abacus"}, "has no known peaks"),
    (
        "no_such_tool",
        {},
        "No tool is named no_such_tool. There are: list_definitions, ",
    ),
    ("times", {"qqqq": 1}, "times has no argument qqqq. There are: name, hardware"),
]


def test_bad_arguments_are_one_line(root: Path) -> None:
    async def script(call: Call) -> None:
        for tool, arguments, said in BAD:
            found = await call(tool, **arguments)
            assert isinstance(found, str), (tool, arguments, found)
            assert said in found, (tool, arguments, found)
            assert found.isprintable()
            assert len(found) < 1000
            assert "Traceback" not in found
        # and it still serves
        found = await call("evaluate_solution", definition=NAME, source=RIGHT)
        assert found["verdict"] == "PASSED"

    served(root, script)


ODD = [None, True, -1, 10**30, 1.5, [], {"a": 1}, "", "\0", "%s", "../..", "x" * 10**5]


def test_any_value_of_any_argument_is_answered_and_so_is_a_burst(root: Path) -> None:
    # what is right of each tool, so that the odd one alone is at fault
    right = {"name": NAME, "source": RIGHT, "text": ""}
    right |= {"evaluation": "evaluation-1", "hardware": "NVIDIA H200"}

    async def script(call: Call) -> None:
        listed = await call.client.list_tools()  # type: ignore[attr-defined]
        count = 0
        for tool in listed.tools:
            known = tool.input_schema["properties"]
            usual = {k: v for k, v in right.items() if k in known}
            if tool.name == "evaluate_solution":
                # so that none is judged
                usual = {"definition": "nothing", "source": right["source"]}
            for argument, value in itertools.product(known, ODD):
                answer = await call(tool.name, **usual | {argument: value})
                count += isinstance(answer, str)
                if isinstance(answer, str):
                    assert answer.isprintable(), (tool.name, argument, answer)
                    assert len(answer) < 1000
                else:
                    assert not any(word in json.dumps(answer) for word in HIDDEN)
        assert count > 100
        answers = await asyncio.gather(
            *(call("show_definition", name=NAME) for _ in range(200))
        )
        assert all(answer["name"] == NAME for answer in answers)

    served(root, script)


def test_hostile_solutions_are_refused_and_harm_nobody(
    root: Path, tmp_path: Path
) -> None:
    secret, mark = tmp_path / "secret", tmp_path / "mark"
    secret.write_text("TOP-SECRET")
    hostile = {
        f"def run(x, w):\n    raise OSError(open({str(secret)!r}).read())\n": "RUNTIME",
        f"open({str(mark)!r}, 'w').write('x')\ndef run(x, w):\n    return x\n": "",
        "import os\ndef run(x, w):\n    os._exit(0)\n": "RUNTIME",
        "import os, signal\ndef run(x, w):\n    os.kill(os.getppid(), 9)\n": "",
        'print(\'{"jsonrpc": "2.0"}\')\ndef run(x, w):\n    return x\n': "",
        "def run(x, w):\n    return [x] * 10**6\n": "",
        "def run(": "COMPILE",
    }

    async def script(call: Call) -> None:
        for source, verdict in hostile.items():
            found = await call("evaluate_solution", definition=NAME, source=source)
            assert found["verdict"] not in ("PASSED", "JUDGE_ERROR"), found
            assert verdict in found["verdict"]
            assert "TOP-SECRET" not in json.dumps(found)
        found = await call("evaluate_solution", definition=NAME, source=RIGHT)
        assert found["verdict"] == "PASSED"

    served(root, script)
    assert not mark.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_while_its_input_stays_open(
    root: Path, tmp_path: Path, number: int
) -> None:
    command = [sys.executable, "-m", "generator.cli.trace_dataset", "mcp"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [*command, "--dataset", str(root)],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as server:
        about = {"capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        first = {"id": 1, "method": "initialize"}
        first["params"] = {"protocolVersion": "2025-06-18", **about}
        line = json.dumps({"jsonrpc": "2.0", **first}) + "\n"
        server.stdin.write(line.encode())
        server.stdin.flush()
        assert b'"result"' in server.stdout.readline()
        assert list(tmp_path.iterdir())

        server.send_signal(number)

        assert server.wait(20) == 128 + number
        assert b"Traceback" not in server.stderr.read()
    assert not list(tmp_path.iterdir())


def test_a_closed_input_ends_it_without_a_traceback(root: Path) -> None:
    command = [sys.executable, "-m", "generator.cli.trace_dataset", "mcp"]
    shell = f"exec {shlex.join([*command, '--dataset', str(root)])} <&-"
    ended = subprocess.run(
        ["sh", "-c", shell],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 0
    (line,) = ended.stderr.splitlines()
    assert line.startswith("Serving 8 definitions")


@pytest.mark.slow
def test_several_calls_wait_for_each_other_and_one_is_given_up(root: Path) -> None:
    asleep = "import time\n\ndef run(x, w):\n    time.sleep(60)\n"

    async def script(call: Call) -> None:
        about = {"definition": NAME, "source": RIGHT, "workloads": "cases"}
        found = await asyncio.gather(
            *(call("evaluate_solution", **about) for _ in "abc")
        )
        assert [one["verdict"] for one in found] == ["PASSED"] * 3
        waited = sorted(one["waited_seconds"] for one in found)
        assert waited[0] < waited[1] < waited[2]
        assert len({one["evaluation"] for one in found}) == 3
        slow = call("evaluate_solution", definition=NAME, source=asleep)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(slow, 4.0)
        begun = time.monotonic()
        found = await call("evaluate_solution", **about)
        assert found["verdict"] == "PASSED"
        assert time.monotonic() - begun < 40.0

    served(root, script)


def test_a_contest_says_the_verdict_alone(root: Path) -> None:
    async def script(call: Call) -> None:
        wrong = DRAFTS[NAME][0]
        found = await call("evaluate_solution", definition=NAME, source=wrong)
        assert found["verdict"] == "INCORRECT_NUMERICAL"
        assert (found["reason"], found["case"], found["failures"]) == ("", "", [])
        assert not any(c["reason"] or ":" in c["case"] for c in found["cases"])
        told = await call("explain_failure", evaluation=found["evaluation"])
        assert "no refused case" in told

    served(root, script, "--secret")


def test_each_tool_has_a_schema_and_an_example(root: Path) -> None:
    async def script(call: Call) -> None:
        listed = await call.client.list_tools()  # type: ignore[attr-defined]
        assert len(listed.tools) == 9
        for tool in listed.tools:
            assert "Example: {" in tool.description
            assert tool.input_schema["type"] == "object"
            assert tool.output_schema is not None
        light = await call("times", name=NAME, hardware="NVIDIA H200")
        assert all(one["light_ms"] > 0 for one in light["workloads"])
        text = json.dumps(await call("show_definition", name=NAME))
        same = await call("validate_definition", text=text)
        named = await call("validate_definition", name=NAME)
        assert same["counts"]["errors"] == named["counts"]["errors"] == 0
        found = await call("ground_truth", name=NAME)
        assert found["status"] == "RESOLVED"

    served(root, script)


def test_a_client_that_goes_away_is_no_error_of_the_server() -> None:
    class Group(Exception):
        def __init__(self, *exceptions: BaseException) -> None:
            self.exceptions = exceptions

    gone = BrokenPipeError()
    assert is_client_gone(gone)
    assert is_client_gone(Group(gone, Group(gone)))
    assert not is_client_gone(Group(gone, ValueError()))
    assert not is_client_gone(KeyboardInterrupt())
