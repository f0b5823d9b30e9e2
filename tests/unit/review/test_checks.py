"""What tests check, before and after a definition joins its op_type."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from generator.rendering.generate import generate
from generator.rendering.plan import RenderOptions
from generator.review.checks import CheckChange, changes_of
from generator.rules.load import load_definitions

REPOSITORY = Path(__file__).parents[3]

JOINED = [
    # base class of both: the reference, the interface, axes and constants move into it
    ("mamba_ssd", "prefill_h64_d64_s128_ng4", "prefill_h128_d64_s128_ng8"),
    # the reference is named after another definition then
    ("topk_transform", "page_table_transform_k2048_ps64", "transform_k2048_ps1"),
    # the interface is
    ("rmsnorm", "fused_add_rmsnorm_eps_1em5_h5120", "fused_add_rmsnorm_h2048"),
    ("layernorm", "layernorm_eps_1em5_h4096", "layernorm_eps_1em5_h1280"),
]


@pytest.fixture
def render(tmp_path: Path) -> Callable[..., str]:
    """Return a function that renders an op_type's test of definitions, by name."""

    def rendered(op_type: str, *names: str) -> str:
        root = tmp_path / str(len(list(tmp_path.iterdir())))
        folder = root / "definitions" / op_type
        folder.mkdir(parents=True)
        for name in names:
            path = next((REPOSITORY / "definitions" / op_type).glob(f"*{name}.json"))
            shutil.copy(path, folder)
        output = root / "tests"
        options = RenderOptions()
        generate(root, load_definitions(root), output, options, everything=True)
        return (output / f"test_{op_type}.py").read_text("utf-8")

    return rendered


def changes(old: str, new: str) -> list[CheckChange]:
    """Return what two rendered files check differently."""
    return list(changes_of("tests/references/test_x.py", old, new))


@pytest.mark.parametrize(("op_type", "first", "second"), JOINED)
def test_what_a_definition_brings_takes_nothing_away(
    render: Callable[..., str], op_type: str, first: str, second: str
) -> None:
    both = render(op_type, first, second)
    for name in (first, second):
        alone = render(op_type, name)
        changed = changes(alone, both)
        assert [change for change in changed if change.is_weaker] == []
        assert {"tests of"} <= {c.kind for c in changed if c.effect == "new"}
        # and what leaves takes its own tests with it, no others
        gone = [c for c in changes(both, alone) if c.effect == "gone"]
        assert len([c for c in gone if c.kind == "tests of"]) == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"head_dim": 64,', '"head_dim": 65,'),
        ("    interface = INTERFACE_MAMBA_SSD_PREFILL\n", ""),
        ("reference = staticmethod(", "reference = unchecked("),
    ],
)
def test_what_a_shared_class_loses_is_named_for_each_definition(
    render: Callable[..., str], old: str, new: str
) -> None:
    text = render("mamba_ssd", *JOINED[0][1:])
    base = text.index("class MambaSsdPrefillBase")
    edited = text[:base] + text[base:].replace(old, new)
    assert edited != text
    weaker = {c.name.split(".")[0].split(":")[0] for c in changes(text, edited)}
    assert {n for n in weaker if "Mamba" in n} == {
        "TestMambaSsdPrefillH128D64S128Ng8",
        "TestMambaSsdPrefillH64D64S128Ng4",
    }
    assert all(c.is_weaker for c in changes(text, edited))


def test_a_reference_under_the_name_of_another_is_another_check(
    render: Callable[..., str],
) -> None:
    both = render("topk_transform", *JOINED[1][1:])
    one, other = (
        line.split("(")[1].rstrip(")")
        for line in both.splitlines()
        if line.startswith("    reference = staticmethod(")
    )
    swapped = both.replace(f"({one})", "(x)").replace(f"({other})", f"({one})")
    changed = changes(both, swapped.replace("(x)", f"({other})"))
    assert {(c.name, c.is_weaker) for c in changed} == {
        ("TestTopKPageTableTransformK2048Ps1.reference", True),
        ("TestTopKPageTableTransformK2048Ps64.reference", True),
    }


def test_a_name_that_tests_look_for_is_not_made_up() -> None:
    old = "def oracle(x):\n    return x\n"
    changed = changes(old, old.replace("oracle", "oracles"))
    assert [(c.effect, c.kind, c.name) for c in changed if c.is_weaker] == [
        ("gone", "function", "oracle"),
        ("gone", "code", "oracle"),
    ]
