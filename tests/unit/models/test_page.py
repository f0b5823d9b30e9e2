"""The page of coverage: each module of each model in the colour of its state."""

from __future__ import annotations

import re

from generator.models.coverage import Covered, State
from generator.models.need import Need
from generator.models.page import coverage_html


def entry(module: str, state: State, name: str = "d", note: str = "") -> Covered:
    return Covered(Need(module, "gemm", name), state, note)


def cells(html: str) -> dict[str, list[str]]:
    """Return module → the kind of each model's cell, empty where there is none."""
    body = html.partition("<tbody>")[2].partition("</tbody>")[0]
    rows = re.findall(r'<th scope="row">(.*?)</th>(.*?)</tr>', body, re.DOTALL)
    return {
        module: re.findall(r'<td(?: class="(\w+)" title="[^"]*")?>', rest)
        for module, rest in rows
    }


def test_each_state_has_its_colour():
    first = [
        entry("norm", State.KERNEL, "rmsnorm_h8", "flashinfer"),
        entry("decode", State.ORACLE),
        entry("lm_head", State.MISSING),
    ]
    second = [
        entry("norm", State.UNVERIFIED),
        entry("experts", State.NO_FAMILY),
        # two definitions of one module: the worst counts
        entry("lm_head", State.KERNEL),
        entry("lm_head", State.ORACLE),
    ]
    html = coverage_html({"one": first, "two": second})
    assert cells(html) == {
        "norm": ["kernel", "unverified"],
        "experts": ["", "missing"],
        "decode": ["oracle", ""],
        "lm_head": ["missing", "oracle"],
    }
    assert "rmsnorm_h8: agrees with a kernel: flashinfer" in html
    assert "a kernel agreed: 2" in html
    assert "no definition: 2" in html


def test_text_is_escaped():
    html = coverage_html({"<m>": [entry('"<s>"', State.MISSING, "<d>", "<n>")]})
    assert not re.search(r"<[msdn]>", html)
