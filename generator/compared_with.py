"""What the name of a source says of it: `flashinfer/fa2`, `recorded:flashinfer/fa2`.

A comparison of two sources has the names of both, `flashinfer/fa2 ~ sglang/triton`.
"""

from __future__ import annotations

ORACLE = "oracle"
OWN_TESTS = "its own tests"
# before the name of a relation, as the support module `available` has it
METAMORPHIC = "metamorphic:"

_PAIR = " ~ "
_PYTORCH = "pytorch"
_NO_KERNELS = (ORACLE, OWN_TESTS, METAMORPHIC.rstrip(":"))


def is_pair(source: str) -> bool:
    """Return whether two sources were compared, and the reference was not asked."""
    return _PAIR in source


def is_ground_truth(source: str) -> bool:
    """Return whether a source is a production kernel, or a recording of one."""
    return not is_pair(source) and _provider(source) not in _NO_KERNELS


def backs_verified(source: str) -> bool:
    """Return whether a reference that agrees with a source may be status:verified.

    Of the ground truths all but live PyTorch, though it is the one of a gemm: it runs on
    the CPU as well, where it is no production kernel. A recording of it is from a GPU.
    """
    return is_ground_truth(source) and _provider(source) != _PYTORCH


def _provider(source: str) -> str:
    """Return what stands before the backend: `flashinfer`, `recorded`, `oracle`."""
    return source.replace(":", "/").split("/")[0]
