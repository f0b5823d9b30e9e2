"""What CUDA gets of a sandbox, on a machine that pretends to have a GPU."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from generator.execution.sandbox import cuda, refusal, run_confined, warnings
from generator.execution.sandbox.paths import added_paths
from generator.review.execute import why_not

ALL = ("nvidia0", "nvidiactl", "nvidia-uvm")


def dev(folder: Path, *names: str) -> str:
    for name in (*names, "null", "snd"):
        folder.joinpath(name).touch()
    return str(folder)


def test_every_file_of_the_driver_is_a_device(tmp_path: Path) -> None:
    found = cuda.devices(dev(tmp_path, *ALL, "nvidia-caps"))
    assert [os.path.basename(p) for p in found] == sorted((*ALL, "nvidia-caps"))
    assert cuda.devices(str(tmp_path / "no-such-folder")) == []


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ((), "there is no NVIDIA GPU"),
        (("nvidiactl", "nvidia-uvm", "nvidia-modeset"), "there is no NVIDIA GPU"),
        (("nvidia0", "nvidia-uvm"), "nvidiactl is not there: run nvidia-smi"),
        (("nvidia7", "nvidiactl"), "nvidia-uvm is not there: run nvidia-smi"),
    ],
)
def test_what_is_missing_is_said_in_one_line(tmp_path: Path, names, said) -> None:
    told = cuda.missing(dev(tmp_path, *names))
    assert told is not None
    assert said in told
    assert "\n" not in told


def test_nothing_is_missing_of_a_whole_driver(tmp_path: Path) -> None:
    assert cuda.missing(dev(tmp_path, *ALL)) is None


def test_without_a_gpu_the_review_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "generator.execution.sandbox.no_cuda", lambda: "there is no GPU"
    )
    assert why_not("cuda") == "--device cuda: there is no GPU."
    assert why_not("cpu") is None


def test_only_plain_settings_are_passed_on() -> None:
    given = {
        "CUDA_VISIBLE_DEVICES": "MIG-1c",
        "FLASHINFER_CUDA_ARCH_LIST": "9.0a",
        "TORCH_CUDA_ARCH_LIST": "9.0; rm -rf $(HOME)",
        "HF_TOKEN": "secret",
        "PATH": "",
    }
    told = cuda.environment(given, "/usr/bin")
    assert told["CUDA_VISIBLE_DEVICES"] == "MIG-1c"
    assert told["FLASHINFER_CUDA_ARCH_LIST"] == "9.0a"
    assert told["MAX_JOBS"] == "8"
    assert {"TORCH_CUDA_ARCH_LIST", "HF_TOKEN"} & set(told) == set()


@pytest.mark.parametrize("how", ["CUDA_HOME", "CUDA_PATH", "PATH"])
def test_the_toolkit_is_found_and_comes_first(tmp_path: Path, how: str) -> None:
    nvcc = tmp_path / "cuda" / "bin" / "nvcc"
    nvcc.parent.mkdir(parents=True)
    nvcc.touch(mode=0o755)
    home = str(tmp_path / "cuda")
    told = cuda.environment({how: f"{home}/bin" if how == "PATH" else home}, "/bin")
    assert told["CUDA_HOME"] == home
    assert told["PATH"] == f"{home}/bin:/bin"


def test_the_linker_looks_only_in_folders_of_the_system(tmp_path: Path) -> None:
    given = {"LD_LIBRARY_PATH": f"/usr/lib:{tmp_path}:lib::/usr/lib/../../etc:/no"}
    assert cuda.library_folders(given) == ["/usr/lib"]


def test_only_installed_packages_of_the_path_are_readable(tmp_path: Path) -> None:
    site, project = tmp_path / "site", tmp_path / "project"
    inner = site / "nvidia_cutlass_dsl" / "dsl_packages"
    for folder in (site / "torch-2.dist-info", inner, project):
        folder.mkdir(parents=True)
    (site / "torch-2.dist-info" / "METADATA").touch()
    path = os.pathsep.join(map(str, (project, site, inner, "", "relative")))
    assert added_paths(path) == [str(site), str(inner)]


PRETEND = """
set -e
mount -t tmpfs none /dev
for name in null zero full random urandom nvidia0 nvidiactl nvidia-uvm; do
    mknod -m 666 /dev/$name c 1 3
done
mkdir /dev/nvidia-caps /dev/shm
mknod -m 444 /dev/nvidia-caps/nvidia-cap1 c 1 3
chmod "$MODE" /dev/nvidiactl
mount --bind "$LIBRARY" /usr/bin/env
exec "$@"
"""
RUNS = """
import json, os, sys
from pathlib import Path
from generator.execution.sandbox import run_confined
done = run_confined(
    [sys.executable, "-c", sys.argv[1]], read_only=[], devices=True
)
print(json.dumps([done.status, done.stdout, done.stderr, done.detail]))
"""
INSIDE = """
import json, os, resource, socket
names = ("nvidia0", "nvidiactl", "nvidia-uvm", "nvidia-caps/nvidia-cap1", "kmsg")
seen = {"devices": [name for name in names if os.path.exists(f"/dev/{name}")]}
seen["caps"] = os.listdir("/dev/nvidia-caps")
os.close(os.open("/dev/nvidiactl", os.O_RDWR))
seen["mounted"] = open("/usr/bin/env").read()
seen["addresses"] = resource.getrlimit(resource.RLIMIT_AS)[0]
for name in ("AF_UNIX", "AF_INET", "AF_NETLINK"):
    try:
        with socket.socket(getattr(socket, name), socket.SOCK_DGRAM) as made:
            made.bind("\\0cuda") if name == "AF_UNIX" else None
        seen[name] = "made"
    except OSError as error:
        seen[name] = error.strerror
seen["pci"] = os.path.isdir("/sys/bus")
print(json.dumps(seen))
"""


def pretend(work: Path, mode: str = "666") -> list[str]:
    """Run a script confined with devices, where a GPU is pretended."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("to pretend a GPU takes root and unshare")
    for reason in (refusal(), *warnings()):
        if reason is not None:
            pytest.skip(reason)
    library = work.parent / "libcuda.so"
    library.write_text("the driver")
    done = subprocess.run(
        [
            "unshare",
            "-m",
            "sh",
            "-c",
            PRETEND,
            "sh",
            sys.executable,
            "-c",
            RUNS,
            INSIDE,
        ],
        cwd=work,
        env={
            **os.environ,
            "LIBRARY": str(library),
            "MODE": mode,
            "PYTHONPATH": str(Path(__file__).parents[4]),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    if "mount" in done.stderr or "mknod" in done.stderr:
        pytest.skip(f"a GPU cannot be pretended: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    answer: list[str] = json.loads(done.stdout)
    return answer


def test_devices_libraries_and_local_sockets_are_there(work: Path) -> None:
    status, out, err, detail = pretend(work)
    assert (status, err) == ("exited", ""), detail
    assert json.loads(out) == {
        "devices": [*ALL, "nvidia-caps/nvidia-cap1"],
        "caps": ["nvidia-cap1"],
        "mounted": "the driver",
        "addresses": -1,
        "AF_UNIX": "made",
        "AF_INET": "Operation not permitted",
        "AF_NETLINK": "Operation not permitted",
        "pci": True,
    }


def test_a_device_that_others_may_not_use_stops_the_run(work: Path) -> None:
    status, _, _, detail = pretend(work, mode="600")
    said = "PermissionError: /dev/nvidiactl: not readable and writable by others"
    assert (status, detail) == ("not started", said)


def test_installed_packages_and_their_programs_are_on_the_paths(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    (site / "x-1.dist-info").mkdir(parents=True)
    (site / "x-1.dist-info" / "METADATA").touch()
    (site / "only_there.py").write_text("here = 1\n")
    (site / "bin").mkdir()
    (site / "bin" / "ninja").write_text("#!/bin/sh\necho compiled\n")
    (site / "bin" / "ninja").chmod(0o755)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'project'}{os.pathsep}{site}")
    code = "import only_there, subprocess; subprocess.run(['ninja'])"
    done = run_confined([sys.executable, "-c", code], read_only=[])
    assert (done.stdout, done.stderr) == ("compiled\n", "")
