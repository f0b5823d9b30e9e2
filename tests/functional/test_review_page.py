"""The HTML page of a review in a real browser: Chromium without a window."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.functional.pages import make_hostile_page, make_page

PHONE = {"width": 360, "height": 740}
# what is painted behind a text, and the text's contrast with it by WCAG 2
CONTRAST = """
() => {
  const canvas = new OffscreenCanvas(1, 1);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const rgba = (color) => {
    if (!known.has(color)) known.set(color, paint(color));
    return known.get(color);
  };
  const paint = (color) => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = color;
    context.fillRect(0, 0, 1, 1);
    return Array.from(context.getImageData(0, 0, 1, 1).data);
  };
  const light = (color) => {
    const [r, g, b] = rgba(color).slice(0, 3).map((v) => {
      const c = v / 255;
      return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const color = getComputedStyle(e).backgroundColor;
      if (rgba(color)[3] === 255) return color;
    }
    return "white";
  };
  const found = [];
  for (const e of document.querySelectorAll("body *")) {
    const own = Array.from(e.childNodes).some(
      (n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.checkVisibility() || e.tagName === "OPTION") continue;
    const isDrawn = e.namespaceURI.endsWith("svg");
    if (isDrawn && e.tagName !== "text") continue;
    const style = getComputedStyle(e);
    const a = light(isDrawn ? style.fill : style.color);
    const b = light(behind(e));
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    found.push([contrast, e.tagName, e.textContent.slice(0, 40)]);
  }
  return found;
}
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an ordinary page."""
    return make_page(tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a page of which every text is hostile."""
    return make_hostile_page(tmp_path_factory.mktemp("hostile"))


class Seen:
    """Open a page and remember what it says to the console and asks for."""

    def __init__(self, browser: Any, file: Path, **options: Any) -> None:
        self.said: list[str] = []
        self.asked: list[str] = []
        options = {"reduced_motion": "reduce", **options}
        self.page = browser.new_page(**options)
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: self.said.append(dialog.message))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(file.as_uri())

    def rows(self) -> list[str]:
        """Return the texts of the rows that the filter leaves."""
        rows = self.page.locator("#rows tbody tr").filter(visible=True)
        return list(rows.all_inner_texts())

    def close(self, file: Path) -> None:
        """Close the page; it has said nothing and asked for nothing but itself."""
        self.page.close()
        assert self.said == []
        assert self.asked == [file.as_uri()]


@pytest.fixture
def seen(browser: Any, file: Path) -> Iterator[Seen]:
    """Open the ordinary page; in the end nothing was said, and nothing loaded."""
    opened = Seen(browser, file)
    yield opened
    opened.close(file)


def test_the_table_is_filtered(seen: Seen) -> None:
    page = seen.page
    everything = seen.rows()
    assert len(everything) > 5
    page.get_by_role("button", name="Failed").click()
    (row,) = seen.rows()
    assert "gemm_n8_k4" in row
    assert "oracle" in row
    assert page.locator("#count").inner_text() == f"1 of {len(everything)} rows"
    page.locator("button[data-kind='']").click()
    page.get_by_label("Search").fill("GEMM_N9 orac")
    (row,) = seen.rows()
    assert "gemm_n9_k4" in row
    page.get_by_label("Search").fill("no such thing")
    assert seen.rows() == []
    assert page.locator("#nothing").is_visible()
    page.get_by_label("Search").fill("")
    page.get_by_role("combobox").select_option("recorded")
    (row,) = seen.rows()
    assert "recorded" in row
    page.get_by_role("combobox").select_option("")
    assert seen.rows() == everything


def test_the_table_is_sorted(seen: Seen) -> None:
    page = seen.page
    head = page.get_by_role("columnheader", name="Worst NMSE")

    def values() -> list[float]:
        cells = page.locator("#rows tbody tr td:nth-child(6)")
        found = cells.evaluate_all("cells => cells.map((c) => c.dataset.value)")
        return [float(value) if value else -1.0 for value in found]

    for order, descending in (("descending", True), ("ascending", False)):
        head.get_by_role("button").click()
        assert head.get_attribute("aria-sort") == order
        assert len(set(values())) > 2
        assert values() == sorted(values(), reverse=descending)
    page.get_by_role("columnheader", name="Definition").get_by_role("button").click()
    assert head.get_attribute("aria-sort") is None
    names = page.locator("#rows tbody th").all_inner_texts()
    assert names == sorted(names)
    assert len(set(names)) == 2


@pytest.mark.parametrize("way", ["link", "filter"])
def test_a_failing_comparison_is_two_clicks_away(seen: Seen, way: str) -> None:
    page = seen.page
    # folded as it is where there are many: a click leads to what is folded away
    page.evaluate("document.querySelectorAll('details').forEach((d) => d.open = false)")
    drawing = page.get_by_role("img", name="Heat map of the error").first
    assert not drawing.is_visible()
    if way == "link":
        page.get_by_role("link", name="Go to the worst failed comparison").click()
    else:
        page.get_by_role("button", name="Failed").click()
        page.locator("#rows tbody a").filter(visible=True).first.click()
    drawing.wait_for(state="visible")
    shown = page.locator("article", has=drawing)
    assert shown.locator("h4").inner_text() == "failed batch: C"
    assert "mismatched elements: 8 / 64" in shown.inner_text()
    box = drawing.bounding_box()
    assert 0 <= box["y"] < page.viewport_size["height"]


def test_the_same_link_opens_again(seen: Seen) -> None:
    link = seen.page.locator("#rows tbody a").first
    group = seen.page.locator("details.group").first
    for _ in range(2):
        link.click()
        seen.page.locator("details.group[open]").first.wait_for()
        group.evaluate("(d) => { d.open = false; }")


def test_the_keyboard_is_enough(seen: Seen) -> None:
    page = seen.page
    page.keyboard.press("Tab")
    focused = page.locator(":focus")
    assert focused.inner_text() == "Skip to the review"
    assert focused.bounding_box()["x"] >= 0
    page.keyboard.press("Enter")
    page.locator("main:focus").wait_for()
    reached = []
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.textContent.trim()"))
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineWidth")
        assert outline == "3px"
        if page.locator("#rows tbody tr:first-child a:focus").count():
            break
    assert "Failed 1" in reached
    assert reached[-1] == "gemm_n8_k4"
    page.keyboard.press("Enter")
    page.locator("summary:focus").wait_for()
    assert "oracle" in page.locator(":focus").inner_text()
    assert page.locator("details.group").first.get_attribute("open") is not None
    page.keyboard.press("Space")
    assert page.locator("details.group").first.get_attribute("open") is None


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_and_the_switch(browser: Any, file: Path, scheme: str) -> None:
    seen = Seen(browser, file, color_scheme=scheme)
    page = seen.page
    button = page.locator("#theme")
    for clicks in range(2):
        is_dark = (scheme == "dark") != bool(clicks)
        assert button.get_attribute("aria-pressed") == str(is_dark).lower()
        page.evaluate(
            "document.querySelectorAll('details').forEach((d) => d.open = true)"
        )
        found = page.evaluate(CONTRAST)
        assert len(found) > 100
        assert [one for one in found if one[0] < 4.5] == []
        back = page.evaluate(
            "getComputedStyle(document.documentElement).backgroundColor"
        )
        assert back == ("rgb(13, 17, 23)" if is_dark else "rgb(255, 255, 255)")
        button.click()
    seen.close(file)


@pytest.mark.parametrize("which", ["file", "hostile"])
def test_a_phone_needs_no_scrolling_sideways(
    browser: Any, which: str, request: pytest.FixtureRequest
) -> None:
    path = request.getfixturevalue(which)
    seen = Seen(browser, path, viewport=PHONE, has_touch=True)
    page = seen.page
    page.evaluate("document.querySelectorAll('details').forEach((d) => d.open = true)")
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= PHONE["width"]
    outside = page.evaluate(
        "(w) => Array.from(document.querySelectorAll('#rows tbody *'))"
        ".filter((e) => e.getBoundingClientRect().right > w + 1).length",
        PHONE["width"],
    )
    assert outside == 0
    seen.close(path)


def test_without_scripts_everything_is_there(browser: Any, file: Path) -> None:
    seen = Seen(browser, file, java_script_enabled=False)
    page = seen.page
    assert len(seen.rows()) > 5
    assert not page.locator("#filter").is_visible()
    assert not page.locator("#theme").is_visible()
    assert page.get_by_role("img", name="Heat map of the error").first.is_visible()
    seen.close(file)


def test_hostile_texts_are_inert(browser: Any, hostile: Path) -> None:
    seen = Seen(browser, hostile)
    page = seen.page
    page.get_by_label("Search").fill("<script>")
    assert seen.rows() != []
    page.get_by_role("columnheader", name="Case").get_by_role("button").click()
    page.evaluate("document.querySelectorAll('details').forEach((d) => d.open = true)")
    for link in page.get_by_role("link").all()[-3:]:
        link.click()
    assert page.title() == "changes needed: dataset review"
    assert page.locator("img, iframe, object, embed, form, base").count() == 0
    assert page.locator("script").count() == 1
    assert page.locator("[onload], [onerror], [href^='javascript:']").count() == 0
    seen.close(hostile)


def test_the_policy_stops_what_would_come_through(browser: Any, tmp_path: Path) -> None:
    text = make_page(tmp_path).read_text("utf-8")
    planted = (
        "<script>document.title = 'OWNED'</script>"
        "<img src=https://x.example/p.png onerror=\"document.title = 'OWNED'\">"
        "<p id=styled style='color: red'>x</p>"
    )
    path = tmp_path / "planted.html"
    path.write_text(text.replace("<main", f"{planted}<main", 1), "utf-8")
    seen = Seen(browser, path)
    assert seen.page.title() == "changes needed: dataset review"
    assert len(seen.said) >= 3
    assert all("Content Security Policy" in said for said in seen.said)
    seen.page.close()
