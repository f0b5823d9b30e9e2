"""A production library that misbehaves is red, or a skip that says how; never green."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
import torch

from generator.ops.op_types.gqa_paged import op as gqa_paged
from generator.ops.op_types.rmsnorm import op as rmsnorm
from kernel_judge import providers
from kernel_judge.checks import sources
from kernel_judge.definition import Backend
from tests.builders import (
    CPU,
    cases_of,
    class_of,
    ignore_property,
    known,
    loaded,
    run_of,
    sized,
    trial_of,
)


@pytest.fixture
def library(monkeypatch):
    """Return a `flashinfer` in which nothing is yet, callable on the CPU."""
    monkeypatch.setattr(sources, "backend_obstacle", lambda *_: None)
    package, norm = ModuleType("flashinfer"), ModuleType("flashinfer.norm")
    package.norm = norm
    monkeypatch.setitem(sys.modules, "flashinfer", package)
    monkeypatch.setitem(sys.modules, "flashinfer.norm", norm)
    return package


def right(x, weight, eps):
    x32 = x.float()
    inverse = torch.rsqrt(x32.pow(2).mean(-1, keepdim=True) + eps)
    return (x32 * inverse * weight.float()).to(x.dtype)


def match_norm(library, kernel):
    """Compare one batch of a norm with a kernel."""
    library.norm.rmsnorm = kernel
    name = "rmsnorm_h128"
    cls = class_of(rmsnorm, known(name), run_of(loaded(name).reference))
    trial = trial_of(cls, cases_of(cls)[0])
    cls().test_matches_flashinfer(trial, Backend(""), ignore_property)


def raises(error):
    def kernel(*given, **named):
        raise error

    return kernel


def test_a_right_kernel_is_green(library):
    match_norm(library, right)


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (lambda y: y * float("nan"), "expected has NaN in 128 of 128 elements"),
        (lambda y: y / 0.0, "infinities disagree in "),
        (lambda y: None, "flashinfer gave None as \\['output'\\]"),
        (lambda y: 0.5, "a tensor was to be expected, not float"),
        (lambda y: (y, y), "flashinfer gave 2 values"),
        (lambda y: (), "flashinfer gave 0 values"),
        (lambda y: y[:, 1:], r"shape \[1, 128\], expected \[1, 127\]"),
        (lambda y: y.double(), "dtype torch.bfloat16, expected torch.float64"),
        (lambda y: y * 1.02, "mismatched elements: "),
        (lambda y: y * 0, "zeros are expected, the largest value is "),
    ],
)
def test_a_kernel_that_returns_something_else_is_red(library, spoil, text):
    with pytest.raises(AssertionError, match=text):
        match_norm(library, lambda *given: spoil(right(*given)))


@pytest.mark.parametrize(
    "error", [RuntimeError("planted"), KeyError("planted"), SystemExit(0)]
)
def test_a_kernel_that_raises_is_red(library, error):
    # pytest reports SystemExit of a test as a failure, whatever its status
    with pytest.raises(type(error)):
        match_norm(library, raises(error))


def test_a_kernel_that_is_not_there_is_red(library):
    class Empty(ModuleType):
        def __setattr__(self, name, value):
            assert name == "rmsnorm"

    library.norm = Empty("flashinfer.norm")
    with pytest.raises(AttributeError, match="rmsnorm"):
        match_norm(library, right)


def nothing(*given, **named):
    """Plan, and be content."""


@pytest.mark.parametrize(
    ("plan", "run", "expected", "text"),
    [
        (raises(ValueError("in plan")), nothing, ValueError, "in plan"),
        (nothing, raises(KeyError("in run")), KeyError, "in run"),
        (nothing, nothing, AssertionError, r"gave None as \['output'\]"),
        (
            nothing,
            lambda _, q, *__, **___: (q, q[..., 0].float() * float("nan")),
            AssertionError,
            "expected has NaN in ",
        ),
        (
            nothing,
            lambda _, q, *__, **___: (q, q[..., 0].float(), q),
            AssertionError,
            "gave 3 values",
        ),
    ],
)
def test_a_wrapper_that_goes_wrong_is_red(library, plan, run, expected, text):
    members = {"__init__": nothing, "plan": plan, "run": run}
    library.BatchDecodeWithPagedKVCacheWrapper = type("Wrapper", (), members)
    name = "gqa_paged_decode_h32_kv8_d128_ps64"
    sizes = {"num_qo_heads": 4, "num_kv_heads": 2, "head_dim": 8, "page_size": 4}
    cls = class_of(gqa_paged, sized(name, **sizes), run_of(loaded(name).reference))
    trial = trial_of(cls, cases_of(cls)[0])
    backend = cls.subject().op.kernels["flashinfer"].backends(cls.definition())[0]
    with pytest.raises(expected, match=text):
        cls().test_matches_flashinfer(trial, backend, ignore_property)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("raise ValueError('no device')", "ValueError: no device"),
        ("raise AssertionError", "AssertionError: "),
        ("raise OSError('libcudart.so.13: missing')", "OSError: libcudart.so.13: mis"),
        ("raise SystemExit(0)", "SystemExit: 0"),
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_mo"),
        ("def broken(:", "SyntaxError: invalid syntax"),
    ],
)
def test_an_import_that_raises_is_the_reason(tmp_path, monkeypatch, text, reason):
    package = tmp_path / "flashinfer"
    package.mkdir()
    (package / "__init__.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "flashinfer", raising=False)
    providers.import_failure.cache_clear()
    try:
        found = providers.provider_obstacle("flashinfer", CPU)
    finally:
        providers.import_failure.cache_clear()
    assert found is not None
    assert str(found).startswith(f"import failed: {reason}")


def test_a_module_that_only_pretends_to_be_there_is_not_used(monkeypatch):
    monkeypatch.setitem(sys.modules, "flashinfer", ModuleType("flashinfer"))
    providers.import_failure.cache_clear()
    try:
        reason = providers.import_failure("flashinfer")
    finally:
        providers.import_failure.cache_clear()
    assert str(reason) == "import failed: ValueError: flashinfer.__spec__ is None"
