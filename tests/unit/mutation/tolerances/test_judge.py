"""Bounds that are planted too loose and too tight are Problems, with a value."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from generator.mutation.tolerances.judge import problems
from generator.mutation.tolerances.report import tolerances_pages, tolerances_report
from generator.mutation.tolerances.result import LAW, Floors, Measured, SourceFloor
from generator.reports import printed
from kernel_judge.comparison.tolerance import Tolerance

BOUND = Tolerance(rtol=1e-5, atol=1e-5, nmse=1e-7)
FITS = Measured(
    case="some",
    elements=8,
    allowed=1e-5,
    share=0.1,
    energy=0.1,
    least=0.3,
    least_nmse=9e-9,
    least_atol=3e-6,
    proposed=1.0,
    proposed_nmse=1e-7,
    floor=2.5e-8,
    source=0.0,
    reference=1e-6,
)


def row(*cases: Measured, **changes: object) -> SourceFloor:
    made = SourceFloor(
        "one", "rmsnorm", "lse", "float32", "oracle", tolerance=BOUND, cases=cases
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def floors(*rows: SourceFloor, **changes: object) -> Floors:
    made = Floors("one", "rmsnorm", "definitions/rmsnorm/one.json", rows)
    return replace(made, **changes)  # type: ignore[arg-type]


LOOSE = replace(FITS, share=1e-3, least=3e-3, proposed=1e-2)
TIGHT = replace(FITS, share=0.5, least=1.5, proposed=5.0, least_atol=1.6e-5)
LOOSE_NMSE = replace(FITS, energy=1e-3, least_nmse=9e-13, proposed_nmse=1.1e-11)
TIGHT_NMSE = replace(FITS, energy=0.5, least_nmse=2.2e-7, proposed_nmse=2.5e-6)


@pytest.mark.parametrize(
    ("case", "rule", "said", "fix"),
    [
        (
            LOOSE,
            "tolerance-loose",
            "1e-05 + 1e-05·|e|",
            "1e-07 + 1e-07·|e|, NMSE 1e-07",
        ),
        (TIGHT, "tolerance-tight", "is 2 times", "2e-05 + 1e-05·|e|, NMSE 1e-07"),
        (LOOSE_NMSE, "tolerance-loose", "NMSE ≤ 1e-07", "NMSE 2e-11 leaves 10 times"),
        (TIGHT_NMSE, "tolerance-tight", "NMSE ≤ 1e-07", "NMSE 3e-07 leaves 3 times"),
    ],
)
def test_a_default_that_does_not_fit_is_an_error(case, rule, said, fix) -> None:
    (found,) = problems([floors(row(case))])
    assert (found.rule, found.severity.value) == (rule, "error")
    assert found.file == "definitions/rmsnorm/one.json"
    assert said in found.message
    assert "(one, some)" in found.message
    assert fix in found.fix


def test_a_bound_that_fits_is_none() -> None:
    assert problems([floors(row(FITS))]) == []


def test_what_was_chosen_with_a_reason_is_a_warning() -> None:
    (found,) = problems([floors(row(LOOSE, chosen="the worst inputs need it"))])
    assert found.severity.value == "warning"


def test_a_bound_against_a_kernel_may_be_loose_and_not_tight() -> None:
    kernel = {"source": "flashinfer/fa3"}
    assert problems([floors(row(LOOSE, **kernel), row(LOOSE_NMSE, **kernel))]) == []
    (found,) = problems([floors(row(TIGHT, **kernel))])
    assert found.rule == "tolerance-tight"


def test_the_neediest_case_of_all_definitions_decides() -> None:
    other = row(FITS, definition="two")
    both = [floors(row(LOOSE, LOOSE_NMSE)), floors(other, definition="two")]
    assert problems(both) == []


def test_no_rtol_below_the_dtype_s_rounding_is_proposed() -> None:
    case = replace(LOOSE, proposed=1e-4)
    (found,) = problems([floors(row(case, dtype="bfloat16"))])
    assert "1e-09 + 0.004·|e|" in found.fix


def test_a_wrong_reference_says_nothing_of_tolerances() -> None:
    (found,) = problems([floors(row(TIGHT), off={"lse": 1e-3})])
    assert (found.rule, found.pointer) == ("float64-disagrees", "/reference")
    assert problems([floors(row(FITS), off={"lse": 2e-9})]) == []


def test_the_page_has_every_row_and_no_markup_of_a_dataset() -> None:
    name = "a|b<script>`\x1b"
    results = [
        floors(row(FITS, TIGHT, definition=name), definition=name),
        floors(row(why_none=LAW, tolerance=None, output="samples", source="")),
        floors(error="raised\n\x1b[2J", definition="gone"),
    ]
    found = problems(results)
    page = tolerances_report(results, found, is_page=True)
    made = "".join(printed(page, "markdown"))
    assert "| lse (float32) | oracle | 2.5e-08 | 40 | 0.00 | 400 |" in made
    assert "| 2.00 | 10 | a\\|b&lt;script>\\`\\x1b, some |" in made
    assert "| samples |  | - | - | - | - | judged by law |" in made
    assert "gone: not measured: raised\\n\\x1b[2J" in made
    assert "error tolerance-tight" in made
    assert "<script" not in made
    text = "".join(printed(tolerances_report(results, found), "text"))
    assert "\x1b" not in made + text


def test_the_summary_has_every_error_and_each_op_type_s_narrowest_bound() -> None:
    results = [floors(row(FITS), row(TIGHT))]
    pages = tolerances_pages(results, problems(results), "bounds")
    assert [*pages] == ["bounds.md", "bounds.html"]
    narrowest = pages["bounds.md"].partition("## The narrowest")[2]
    assert "| 1 | 2.00 | lse | oracle |" in narrowest
    assert "| error | tolerance-tight |" in narrowest
    assert "Warnings: none" in narrowest
    without = tolerances_pages(results, [], "bounds")["bounds.md"]
    assert "## Errors" not in without


def test_rows_survive_their_way_between_processes() -> None:
    ratio = replace(BOUND, norm_ratio=(0.9, 1.1))
    made = floors(row(FITS, tolerance=ratio), row(why_none=LAW, tolerance=None))
    assert Floors.from_dict(json.loads(json.dumps(made.as_dict()))) == made
