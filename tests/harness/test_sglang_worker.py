"""The worker serves rendered tests where no generator is installed, and can fail them."""

from __future__ import annotations

import pytest

from tests.harness.datasets import NORM, class_name, norm
from tests.harness.runs import NO_GENERATOR, render, run_pytest, table_of
from tests.unit.running.sglang_fake import MODULES, write

LAYER = """
import torch
class RMSNorm:
    def __init__(self, hidden_size, eps):
        self.eps = {eps}
    def forward_native(self, x):
        x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps)
        return x * self.weight.float()
GemmaRMSNorm = None
"""
IMPORTED = "open({!r}, 'a').write('x')"


@pytest.fixture
def rendered(tmp_path):
    """Return a rendered folder of one norm, and a function that writes its SGLang."""
    folder = render(tmp_path, [norm()])
    (tmp_path / "absent.py").write_text(NO_GENERATOR)

    def install(eps: str) -> None:
        layer = {"sglang/srt/layers/layernorm.py": LAYER.format(eps=eps)}
        counted = {"sglang/__init__.py": IMPORTED.format(str(tmp_path / "imports"))}
        write(tmp_path, {**MODULES, **layer, **counted})

    return folder, install


@pytest.mark.parametrize(
    ("eps", "options", "status", "colour"),
    [("eps", ("-n", "2"), 0, "passed"), ("10 * eps", (), 1, "failed")],
    ids=["by-two-workers", "that-is-wrong"],
)
def test_a_rendered_folder_asks_sglang(rendered, eps, options, status, colour):
    folder, install = rendered
    install(eps)
    run = run_pytest(folder, "--device", "cpu", *options)
    assert run.status == status, run.stdout + run.stderr
    rows = table_of(run)
    assert rows["rmsnorm", "oracle"][0] == "1/1"
    assert rows["rmsnorm", "sglang/native"][0] == "1/1"
    assert "test_matches_sglang" in run.functions(class_name(NORM), colour)
    # the workers of a run share one import
    assert (folder.parent / "imports").read_text() == "x"
    assert "imported SGLang itself" not in run.stdout
    if colour == "failed":
        assert run.functions(class_name(NORM), "failed") == {"test_matches_sglang"}


def test_an_import_that_fails_skips_with_the_reason(rendered):
    folder, install = rendered
    install("eps")
    broken = {"sglang/srt/utils.py": "raise OSError('libcuda.so.1: none')"}
    write(folder.parent, broken)
    run = run_pytest(folder, "--device", "cpu")
    assert run.status == 0, run.stdout + run.stderr
    asked = [o.detail for o in run.outcomes if o.function == "test_matches_sglang"]
    # a case past the limits of kernels is not asked for on a CPU
    details = [detail for detail in asked if "are for a GPU" not in detail]
    assert len(details) == len(asked) - 1
    assert details
    reason = "sglang: import failed: OSError: libcuda.so.1: none"
    assert all(reason in detail for detail in details)
