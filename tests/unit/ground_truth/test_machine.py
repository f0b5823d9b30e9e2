"""What a machine has is found out without harm, whatever an import does."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from generator.ground_truth import machine
from generator.ground_truth.machine import Machine, this_machine
from tests.unit.execution.nvml import Library

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


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Machine]]:
    """Return what asks a library for this machine, and forgets it."""

    def ask(library: Library | None, visible: str | None = None) -> Machine:
        # None in its place is a module that is not installed
        monkeypatch.setitem(sys.modules, "pynvml", library)  # type: ignore[arg-type]
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        if visible is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        this_machine.cache_clear()
        return this_machine()

    yield ask
    this_machine.cache_clear()


FIRST = Machine(93, device="NVIDIA GPU-a111", memory=141 << 30, cuda="13.1")
SECOND = Machine(120, device="NVIDIA GPU-b222", memory=141 << 30, cuda="13.1")


@pytest.mark.parametrize(
    ("visible", "found"),
    [
        (None, FIRST),
        ("0", FIRST),
        (" 1 ,0", SECOND),
        ("GPU-b", SECOND),
        ("4", Machine(None)),
        ("", Machine(None)),
        ("-1", Machine(None)),
    ],
)
def test_the_device_is_the_first_that_cuda_sees(
    asked: Callable[..., Machine], visible: str | None, found: Machine
) -> None:
    assert asked(Library(), visible) == found


@pytest.mark.parametrize("silent", ["nvmlInit", "nvmlDeviceGetCudaComputeCapability"])
def test_without_a_driver_there_is_no_device(
    asked: Callable[..., Machine], silent: str
) -> None:
    found = asked(Library(silent))
    assert found == Machine(None)
    assert found.no_device == "no CUDA device here"


def test_what_the_library_does_not_say_is_left_out(
    asked: Callable[..., Machine],
) -> None:
    silent = "DeviceGetName", "DeviceGetMemoryInfo", "SystemGetCudaDriverVersion"
    assert asked(Library(*(f"nvml{name}" for name in silent))) == Machine(93)


def test_without_the_library_nothing_is_known(asked: Callable[..., Machine]) -> None:
    found = asked(None)
    assert found == Machine(None, is_known=False)
    assert found.no_device == "no CUDA device known without nvidia-ml-py"


def test_sglang_is_imported_by_its_loader(tmp_path: Path) -> None:
    loader = "def load():\n    import sglang\n"
    (tmp_path / "sglang.py").write_text("raise RuntimeError('as it does')\n")
    text = Path(machine._LOADERS["sglang"]).read_text("utf-8")
    assert "\ndef load(" in text
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
