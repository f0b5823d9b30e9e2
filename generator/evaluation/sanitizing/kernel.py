"""Call a production kernel on the cases of a file, for compute-sanitizer.

`python -m generator.evaluation.sanitizing.kernel FILE` is trusted as the judge is: what it
runs are the adapters of this software.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from generator.dataset.paths import DatasetFile
from generator.evaluation.certification.kernel import adapted
from generator.evaluation.clock.rival import kernels
from generator.evaluation.sanitizing.calls import call_all


def main() -> None:
    """Import the kernel that the file names, and call it; its end writes the findings."""
    how = torch.load(sys.argv[1], weights_only=True)
    asked = how["solution"]
    root, file = asked["root"], asked["file"]
    calls = kernels(root, file, [asked["provider"]], how["device"])
    call = adapted(Path(root), DatasetFile(**file), calls[asked["kernel"]])
    call_all(call, how)


if __name__ == "__main__":
    main()
