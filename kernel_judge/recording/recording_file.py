"""A recording file: what production kernels returned for one definition's cases.

It is a safetensors file `blob/ground_truth/<op_type>/<definition>.safetensors` whose
one metadata entry, JSON, says how each tensor came about:

    sha256       of the JSON of `body` and of the bytes of all tensors
    body
      definition, op_type, interface (a hash)
      cases        name → size, axes, params, stream (its key), inputs (name → half a SHA-256)
      same         name of a tensor → that of another, which has its dtype, shape and bits
                   and alone is stored; where there are such
      recordings   label → provider, backend, symbol, route, versions, gpu, sm, date,
                   make_inputs (a hash), seed, `not_given` where the kernel
                   returns less than the interface has: these outputs; and
        cases        name → output → dtype, shape, and of what is stored `elements`;
                     `positions`, a hash, where it is not all; `parts` where a
                     policy chose what to store; `oracle`, how far it is from it

Recordings of several backends, versions and GPUs stand side by side; their label is
`<source>@<version>@<GPU>`. What is read is bounded, and safetensors judges the header; no
pickle is involved. torch is imported for the tensors alone: a description is read without it.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

FOLDER = Path("blob") / "ground_truth"
SUFFIX = ".safetensors"
METADATA_KEY = "ground_truth"
MAX_FILE_BYTES = 64 * 2**20
MAX_HEADER_BYTES = 8 * 2**20
Tensors = dict[str, "torch.Tensor"]


class Damaged(Exception):
    """Raised for a file that is not a recording as it was written."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"{path} {what}")


@dataclass(frozen=True)
class Recording:
    """A file's description and its tensors, by the name that the file has."""

    body: dict[str, Any]
    tensors: Tensors

    def stored(self, label: str, case: str, output: str) -> torch.Tensor:
        """Return the stored elements of an output: [elements], of the output's dtype.

        They are in the order of their positions.
        """
        return self.tensors[tensor_name(label, case, output)]

    def parts(self, label: str, case: str, output: str) -> Tensors:
        """Return what a policy stored of an output: tensors as the policy made them."""
        entry = self.body["recordings"][label]["cases"][case][output]
        return {
            part: self.tensors[tensor_name(label, case, output, part)]
            for part in entry["parts"]
        }


def recording_path(folder: Path, op_type: str, definition: str) -> Path:
    """Return where a definition's recording is, below the folder of recordings."""
    return folder / op_type / f"{definition}{SUFFIX}"


def tensor_name(label: str, case: str, output: str, part: str = "") -> str:
    """Return the name that a file has for what is stored of an output."""
    return "/".join(filter(None, (case, label, output, part)))


def read(path: Path) -> Recording:
    """Return the recording in a file. Raises Damaged, and OSError as open() does."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    with _opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        header = _read_header(path, file, size)
        body, announced = _description(path, header)
        file.seek(0)
        content = file.read(size)
    if len(content) != size:
        raise Damaged(path, "changed while it was read")
    data = content[8 + int.from_bytes(content[:8], "little") :]
    # as it was packed, digit by digit
    text = json.dumps(body, separators=(",", ":"))
    if content_digest(text, data) != announced:
        raise Damaged(path, "is damaged: its SHA-256 is not the one it announces")
    try:
        tensors = load(content)
    except (SafetensorError, KeyError, RuntimeError) as error:
        raise Damaged(path, f"is damaged: {str(error)[:200]}") from error
    _check_names(path, body, header)
    tensors |= {name: tensors[other] for name, other in body.pop("same", {}).items()}
    return Recording(body, tensors)


def read_description(path: Path) -> dict[str, Any]:
    """Return the body alone, from the header. Raises Damaged, and OSError."""
    with _opened(path) as file:
        header = _read_header(path, file, os.fstat(file.fileno()).st_size)
    return _description(path, header)[0]


def _opened(path: Path) -> IO[bytes]:
    """Return a regular file to be read; a pipe or a device is not waited for."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Damaged(path, "is no regular file")
    return os.fdopen(descriptor, "rb")


def content_digest(body: str, data: bytes) -> str:
    """Return the SHA-256 of a description's JSON and of the bytes of all tensors."""
    return hashlib.sha256(body.encode() + b"\0" + data).hexdigest()


def _read_header(path: Path, file: Any, size: int) -> dict[str, Any]:
    """Return the header, whose length was bounded before it is read."""
    if size > MAX_FILE_BYTES:
        raise Damaged(path, f"has {size} bytes, allowed are {MAX_FILE_BYTES}")
    start = file.read(8)
    if start == b"version ":
        raise Damaged(path, "is a Git LFS pointer, not the data: git lfs pull")
    length = int.from_bytes(start, "little")
    if len(start) < 8 or not 2 <= length <= min(MAX_HEADER_BYTES, size - 8):
        raise Damaged(path, f"is damaged: a header of {length} bytes in {size}")
    try:
        header = json.loads(file.read(length).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise Damaged(path, "is damaged: its header is not JSON") from error
    if not isinstance(header, dict):
        raise Damaged(path, "is damaged: its header is not a JSON object")
    return header


def _description(path: Path, header: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the body and the announced SHA-256."""
    try:
        value = json.loads(header["__metadata__"][METADATA_KEY])
        body, announced = value["body"], value["sha256"]
        _expected_names(body)
        assert isinstance(body["interface"], str)
        assert all(isinstance(name, str) for name in body.get("same", {}).values())
        assert all(isinstance(c["inputs"], dict) for c in body["cases"].values())
    except (KeyError, TypeError, ValueError, AttributeError, AssertionError) as error:
        raise Damaged(path, "is no recording: it has no description") from error
    except RecursionError as error:
        raise Damaged(path, "is damaged: its description is not JSON") from error
    return body, announced


def _expected_names(body: Mapping[str, Any]) -> dict[str, int | None]:
    """Return the tensors that a body describes, with the elements of each where told."""
    names: dict[str, int | None] = {}
    for label, recording in body["recordings"].items():
        for case, outputs in recording["cases"].items():
            for output, entry in outputs.items():
                if "parts" in entry:
                    parts = {
                        tensor_name(label, case, output, p): None
                        for p in entry["parts"]
                    }
                    names |= parts
                else:
                    names[tensor_name(label, case, output)] = int(entry["elements"])
    return names


def _check_names(
    path: Path, body: Mapping[str, Any], header: Mapping[str, Any]
) -> None:
    expected, same = _expected_names(body), body.get("same", {})
    present = set(header) - {"__metadata__"}
    for word, names in (
        ("lacks", {same.get(name, name) for name in expected} - present),
        ("has foreign", (present | set(same)) - set(expected)),
        ("has twice", present & set(same)),
    ):
        if names:
            raise Damaged(path, f"is damaged: it {word} tensors: {min(names)[:120]!r}")
    for name, elements in expected.items():
        stored = header[same.get(name, name)]
        if elements is not None and stored["shape"] != [elements]:
            raise Damaged(path, f"is damaged: {name[:120]!r} is not [{elements}]")
