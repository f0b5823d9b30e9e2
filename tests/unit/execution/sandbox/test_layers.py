"""What the machine has, and what is said and refused where it has less."""

from __future__ import annotations

import subprocess

import pytest

from generator.execution.sandbox import layers, refusal, seccomp, warnings
from generator.execution.sandbox import layers as layers_module
from generator.execution.sandbox.plan import NAMES, NETWORK, SECCOMP


def test_every_layer_is_listed_with_a_detail() -> None:
    found = layers()
    assert tuple(layer.name for layer in found) == NAMES
    assert all(layer.detail for layer in found)


@pytest.mark.parametrize("name", NAMES)
def test_a_layer_that_is_missing_is_said_loudly(name: str) -> None:
    (layer,) = (layer for layer in layers(without=[name]) if layer.name == name)
    assert not layer.active
    assert any(line.startswith(f"sandbox: no {name}: ") for line in warnings([name]))


def test_without_isolation_from_the_network_nothing_is_executed() -> None:
    said = refusal(without=[NETWORK, SECCOMP])
    assert said is not None
    assert "--trust" in said
    assert NETWORK in said
    assert SECCOMP in said
    assert refusal(trust=True, without=[NETWORK, SECCOMP]) is None


def test_landlock_alone_is_no_isolation_from_the_network() -> None:
    kept = [name for name in NAMES if not name.startswith("landlock")]
    assert refusal(without=kept) is not None


@pytest.mark.parametrize("kept", [NETWORK, SECCOMP])
def test_one_layer_against_the_network_is_enough(kept: str) -> None:
    (layer,) = (layer for layer in layers() if layer.name == kept)
    if not layer.active:
        pytest.skip(f"no {kept}: {layer.detail}")
    assert refusal(without=[name for name in NAMES if name != kept]) is None


@pytest.fixture
def _tried_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    from generator.execution.sandbox import layers as function

    module = __import__(function.__module__, fromlist=["_missing"])
    monkeypatch.setattr(module, "_missing", module._missing.__wrapped__)


@pytest.mark.usefixtures("_tried_anew")
def test_on_another_system_every_layer_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    assert {layer.detail for layer in layers_module()} == {"not on darwin"}
    assert refusal() is not None


@pytest.mark.usefixtures("_tried_anew")
def test_a_trial_that_cannot_run_counts_as_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise subprocess.TimeoutExpired("probe", 30)

    monkeypatch.setattr(subprocess, "run", fails)
    assert not any(layer.active for layer in layers_module())


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_of_each_machine_is_well_formed(machine: str) -> None:
    code = seccomp.program(machine)
    assert len(code) % 8 == 0
    count = len(code) // 8
    assert count < 4096
    for index in range(count):
        operation, yes, no = code[8 * index], code[8 * index + 2], code[8 * index + 3]
        if operation & 7 == 5:  # a jump lands inside
            assert index + 1 + max(yes, no) < count
    assert code[-8] == 6  # it ends by returning


def test_the_filter_names_the_calls_of_this_machine() -> None:
    headers = "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"
    try:
        with open(headers) as file:
            words = [line.split() for line in file]
    except FileNotFoundError:
        pytest.skip(f"no {headers} to compare with")
    numbers = {w[1]: int(w[2]) for w in words if len(w) == 3 and w[2].isdecimal()}
    for name, (number, _) in {**seccomp.DENIED, **seccomp.ABSENT}.items():
        assert numbers.get(f"__NR_{name}", number) == number, name


@pytest.mark.parametrize("name", NAMES)
def test_without_one_layer_the_others_still_run_it(hostile, name) -> None:
    """Each is shown to be missing; what is left must fit together."""
    outcome = hostile(
        "import os, tempfile; tempfile.mkstemp(); print(os.getcwd())",
        only=[other for other in NAMES if other != name],
    )
    assert outcome.ok, outcome


def test_no_layer_at_all_still_runs_and_watches(hostile) -> None:
    assert hostile("print(1)", only=()).stdout == "1\n"


def test_a_layer_that_fails_in_the_run_stops_it(
    hostile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trial said yes, the run says no: nothing is executed with less."""
    code = (
        "from generator.execution.sandbox import seccomp;"
        " seccomp.install = lambda **_: (_ for _ in ()).throw(OSError('refused'));"
        " from generator.execution.sandbox.launch import main; main()"
    )
    from generator.execution.sandbox import supervise

    command = supervise.own_command("launch")
    command[-1] = command[-1].split(" from ")[0] + " " + code
    monkeypatch.setattr(supervise, "own_command", lambda module: command)
    outcome = hostile("open('ran', 'w')")
    assert outcome.status == "not started"
    assert "refused" in outcome.detail
