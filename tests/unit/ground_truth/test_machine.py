"""What a machine has is found out without harm, whatever an import does."""

from __future__ import annotations

import ctypes
import importlib.metadata
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from generator.ground_truth import machine
from generator.ground_truth.machine import Machine, this_machine

# module → (its text, what is said of it)
MODULES = {
    "good": ("x = 1", ""),
    "noisy": ("print('hello\\n' * 3)", ""),
    "noisy_error": (
        "import sys; print('out'); print('err', file=sys.stderr); raise OSError('bad')",
        "import failed: OSError: bad",
    ),
    "asserts": ("assert False, 'no GPU'", "import failed: AssertionError: no GPU"),
    "exits": ("import sys; sys.exit(3)", "import failed: SystemExit: 3"),
    "interrupts": ("raise KeyboardInterrupt", "import failed: KeyboardInterrupt: "),
    "own_error": (
        "class Odd(BaseException): pass\nraise Odd('a\\n\\n  b')",
        "import failed: Odd: a b",
    ),
    "broken": ("def (:", "import failed: SyntaxError: "),
    "needs_more": (
        "import there_is_no_such_module",
        "import failed: ModuleNotFoundError: No module named 'there_is_no_such_module'",
    ),
    "dies": ("import os; os._exit(7)", "import ended the process with status 7"),
    "at_exit": ("import atexit; atexit.register(lambda: 1 / 0)", ""),
}


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a fresh interpreter find the modules above, and forget earlier verdicts."""
    for name, (text, _) in MODULES.items():
        (tmp_path / f"{name}_module.py").write_text(text + "\n")
    (tmp_path / "slow_module.py").write_text("import time; time.sleep(60)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    machine._import_failure.cache_clear()


@pytest.mark.parametrize("name", list(MODULES))
def test_import_failure(name: str) -> None:
    expected = MODULES[name][1]
    found = Machine(None).import_failure(f"{name}_module")
    if expected.endswith(": "):
        assert found.startswith(expected.strip())
    else:
        assert found == expected
    assert "\n" not in found
    assert f"{name}_module" not in sys.modules


def test_an_import_that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_IMPORT_SECONDS", 0.2)
    assert Machine(None).import_failure("slow_module") == "import took over 0.2 s"


def test_a_module_that_is_not_there() -> None:
    assert Machine(None).import_failure("there_is_no_such_module") == (
        "import failed: ModuleNotFoundError: No module named 'there_is_no_such_module'"
    )


def test_a_long_message_is_cut() -> None:
    text = "raise ValueError('x' * 5000)"
    folder = Path(_first_on_path())
    (folder / "long_module.py").write_text(text)
    found = Machine(None).import_failure("long_module")
    assert found == "import failed: ValueError: " + "x" * 200


def _first_on_path() -> str:
    import os

    return os.environ["PYTHONPATH"]


def test_an_import_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Machine(None).import_failure("good_module") == ""
    monkeypatch.setattr(machine.subprocess, "run", None)
    assert Machine(90).import_failure("good_module") == ""


def test_version() -> None:
    assert Machine(None).version("pytest") == importlib.metadata.version("pytest")
    assert Machine(None).version("there-is-no-such-distribution") is None


class Function:
    """A function of the CUDA driver: it may fill in a number, and returns a status."""

    def __init__(
        self, status: int = 0, value: dict[int, int] | bytes | int | None = None
    ) -> None:
        self.status = status
        self.value = value

    def __call__(self, *arguments: Any) -> int:
        if isinstance(self.value, bytes):
            arguments[0].value = self.value
            return self.status
        if isinstance(self.value, int):
            arguments[0]._obj.value = self.value
            return self.status
        if self.value is not None:
            arguments[0]._obj.value = self.value[arguments[1]]
        return self.status


def driver(**functions: Function) -> SimpleNamespace:
    good = {
        "cuInit": Function(),
        "cuDeviceGet": Function(),
        "cuDeviceGetAttribute": Function(value={75: 9, 76: 3}),
        "cuDeviceGetName": Function(value=b"NVIDIA H200"),
        "cuDeviceTotalMem_v2": Function(value=141 << 30),
        "cuDriverGetVersion": Function(value=13010),
    }
    return SimpleNamespace(**{**good, **functions})


@pytest.mark.parametrize(
    ("functions", "capability"),
    [
        ({}, 93),
        ({"cuInit": Function(100)}, None),
        ({"cuDeviceGet": Function(101)}, None),
        ({"cuDeviceGetAttribute": Function(1, {75: 9, 76: 0})}, None),
        ({"cuDeviceGetAttribute": Function(value={75: 12, 76: 0})}, 120),
    ],
    ids=["a device", "no driver", "no device", "no attribute", "two digits"],
)
def test_capability_is_the_drivers(
    monkeypatch: pytest.MonkeyPatch,
    functions: dict[str, Function],
    capability: int | None,
) -> None:
    loaded: list[str] = []

    def load(name: str) -> SimpleNamespace:
        loaded.append(name)
        return driver(**functions)

    monkeypatch.setattr(ctypes, "CDLL", load)
    found = machine._first_device()
    assert loaded == ["libcuda.so.1"]
    if capability is None:
        assert found is None
    else:
        assert found == Machine(
            capability, device="NVIDIA H200", memory=141 << 30, cuda="13.1"
        )


def test_what_the_driver_does_not_say_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    silent = driver(
        cuDeviceGetName=Function(1),
        cuDeviceTotalMem_v2=Function(1),
        cuDriverGetVersion=Function(1),
    )
    monkeypatch.setattr(ctypes, "CDLL", lambda name: silent)
    assert machine._first_device() == Machine(93)


def test_sglang_is_imported_by_its_loader(tmp_path: Path) -> None:
    loader = "def load():\n    import sglang\n"
    (tmp_path / "sglang.py").write_text("raise RuntimeError('as it does')\n")
    text = Path(machine._LOADERS["sglang"]).read_text("utf-8")
    assert "\ndef load() -> str:" in text
    (tmp_path / "loader.py").write_text(loader)
    machine._LOADERS["sglang"], kept = (
        tmp_path / "loader.py",
        machine._LOADERS["sglang"],
    )
    try:
        found = Machine(None).import_failure("sglang")
    finally:
        machine._LOADERS["sglang"] = kept
    assert found == "import failed: RuntimeError: as it does"


def test_missing() -> None:
    assert Machine(None).missing(["pytest", "no_such_module"]) == ("no_such_module",)


def test_no_driver_is_no_capability(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    this_machine.cache_clear()
    assert this_machine() == Machine(None)
    this_machine.cache_clear()
