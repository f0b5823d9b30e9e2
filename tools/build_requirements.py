"""Write requirements/*.txt: every package that is installed, with its files' hashes.

`python tools/build_requirements.py` needs uv on PATH, and the network. It resolves the
extras of pyproject.toml under constraints.txt for Python 3.10 and all later ones. torch
and what its builds for CUDA bring are left out: the CPU build of pytorch.org and PyPI's
have one version and different files, and machines may have a wheel of their own.
tests/unit/test_requirements.py compares the files with pyproject.toml and
constraints.txt.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = {
    "action": ("review",),
    "execute": ("review", "execute"),
    "run": ("run",),
    "test": ("test",),
}
"""Name of a file → the extras that it installs."""

OF_TORCH = [
    "torch",
    "triton",
    "setuptools",
    "cuda-bindings",
    "cuda-pathfinder",
    "cuda-toolkit",
    "nvidia-cublas",
    "nvidia-cuda-cupti",
    "nvidia-cuda-nvrtc",
    "nvidia-cuda-runtime",
    "nvidia-cudnn-cu13",
    "nvidia-cufft",
    "nvidia-cufile",
    "nvidia-curand",
    "nvidia-cusolver",
    "nvidia-cusparse",
    "nvidia-cusparselt-cu13",
    "nvidia-nccl-cu13",
    "nvidia-nvjitlink",
    "nvidia-nvshmem-cu13",
    "nvidia-nvtx",
]


def main() -> int:
    """Write the files; return the exit status."""
    for name, extras in FILES.items():
        command = ["uv", "pip", "compile", "--quiet", "--universal", "--no-header"]
        # without them pip looks for the newest of a package that is asked for with an extra,
        # and stops at it, since its hashes are not here
        command += ["--no-strip-extras"]
        command += ["--python-version", "3.10", "--generate-hashes", "--no-annotate"]
        command += [f"--extra={extra}" for extra in extras]
        command += [f"--no-emit-package={package}" for package in OF_TORCH]
        command += ["-c", "constraints.txt", "pyproject.toml", "requirements/build.in"]
        command += ["-o", f"requirements/{name}.txt"]
        if status := subprocess.call(command, cwd=ROOT):
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
