"""What a dataset has recorded, read from headers and without torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from generator.ground_truth.recordings import Recorded, Replay, replay_of, why_damaged
from kernel_judge.obstacle import Kind
from tests.builders import ROOT

FOLDER = ROOT / "blob" / "ground_truth"
NAME = "gqa_paged_prefill_causal_h20_kv4_d128_ps1"


def test_recordings_name_kernel_version_and_gpu() -> None:
    found = replay_of(FOLDER, "gqa_paged", NAME)
    assert [r.source for r in found.recordings] == ["flashinfer/fa2", "flashinfer/fa3"]
    first = found.recordings[0]
    assert (first.version, first.gpu) == ("0.6.18.post1", "NVIDIA H200")
    assert first.cases > 0
    assert found.summary == (
        "replays flashinfer/fa2 and flashinfer/fa3, recorded on an NVIDIA H200"
    )
    assert found.as_dict()["recordings"][0]["source"] == "flashinfer/fa2"


def test_a_recording_of_pytorch_has_torch_s_version() -> None:
    (found,) = replay_of(FOLDER, "gemm", "gemm_n256_k3072").recordings
    assert (found.source, found.version) == ("pytorch/cublas", "2.11.0+cu130")


@pytest.mark.parametrize(
    ("reasons", "reason"),
    [
        (None, "not recorded"),
        ("{", "not recorded"),
        ({"d": "needs SM100"}, "needs SM100"),
    ],
)
def test_what_is_not_recorded_says_why(
    tmp_path: Path, reasons: object, reason: str
) -> None:
    if reasons is not None:
        text = reasons if isinstance(reasons, str) else json.dumps(reasons)
        (tmp_path / "unrecorded.json").write_text(text)
    found = replay_of(tmp_path, "gemm", "d")
    assert found.summary == ""
    assert found.as_dict() == {
        "recordings": [],
        "kind": "not-recorded",
        "reason": reason,
    }


@pytest.mark.parametrize("content", [b"", b"version https://git-lfs", b"\xff" * 99])
def test_a_damaged_recording_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "gemm").mkdir()
    (tmp_path / "gemm" / "d.safetensors").write_bytes(content)
    found = replay_of(tmp_path, "gemm", "d")
    assert found.recordings == ()
    assert found.obstacle is not None
    assert found.obstacle.kind is Kind.BROKEN


def test_gpus_and_sources_are_named_once() -> None:
    def recorded(source: str, version: str, gpu: str) -> Recorded:
        return Recorded(source, version, gpu, "2026-11-22", 1)

    several = Replay(
        (
            recorded("flashinfer/fa2", "1", "NVIDIA H200"),
            recorded("flashinfer/fa2", "2", "NVIDIA H100"),
            recorded("sglang/native", "2", "CPU"),
        )
    )
    assert several.summary == (
        "replays flashinfer/fa2 and sglang/native, recorded on a CPU, an NVIDIA H100 "
        "and an NVIDIA H200"
    )


def test_torch_is_not_imported() -> None:
    text = (
        "import sys; from pathlib import Path\n"
        "from generator.ground_truth.recordings import replay_of\n"
        f"assert replay_of(Path({str(FOLDER)!r}), 'gqa_paged', {NAME!r}).recordings\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", text], cwd=ROOT, check=True)


def test_the_recordings_of_this_repository_are_as_they_were_written() -> None:
    contents = [p.read_bytes() for p in FOLDER.glob("*/*.safetensors")]
    assert len(contents) > 100
    assert {why_damaged(content) for content in contents} == {None}
    one = contents[0]
    for damaged in (one[:-1], one + b"\0", one[:-1] + bytes([one[-1] ^ 1])):
        assert why_damaged(damaged) == "its SHA-256 is not the one it announces"
    for damaged in (b"", b"x", b"[" * 9000, one[:100]):
        assert why_damaged(damaged) == "it has no description of a recording"
