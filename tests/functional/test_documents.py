"""README and CONTRIBUTING say what is true: help texts, commands, rendered lines."""

from __future__ import annotations

import json
import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from generator import api
from generator.cli.gen_tests import cli as gen_tests
from generator.cli.trace_dataset import cli as trace_dataset
from kernel_judge.provider import providers
from tools import build_diagrams, build_pages, build_site

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
TUTORIAL = (ROOT / "docs/tutorial.md").read_text("utf-8")
TESTS = (ROOT / "docs/tests.md").read_text("utf-8")
COMMANDS = {"gen-tests": gen_tests, "trace-dataset": trace_dataset}


def fenced(text: str, language: str) -> list[str]:
    """Return the contents of the fenced blocks of a language."""
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def shown_commands() -> list[str]:
    """Return every line of the pages' shell blocks, comments and pipes cut off."""
    pages = [
        README,
        *(p.read_text("utf-8") for p in sorted((ROOT / "docs").glob("*.md"))),
    ]
    lines = [
        line.strip()
        for text in pages
        for block in fenced(text, "sh")
        for line in block.replace("\\\n", " ").splitlines()
    ]
    return list(
        dict.fromkeys(re.sub(r"\s+(#|\||;).*", "", line) for line in lines if line)
    )


def test_help_is_the_real_one() -> None:
    options = {"prog_name": "gen-tests", "terminal_width": 78}
    text = CliRunner().invoke(gen_tests, ["--help"], **options).output
    assert text.strip() in [block.strip() for block in fenced(TESTS, "text")]


@pytest.mark.parametrize(
    "line", [c for c in shown_commands() if c.split()[0] in COMMANDS]
)
def test_shown_commands_have_real_options(line: str) -> None:
    program, *arguments = shlex.split(line)
    command: click.Command = COMMANDS[program]
    if isinstance(command, click.Group):
        command = command.commands[arguments.pop(0)]
    known = {option for p in command.params for option in p.opts}
    assert {a for a in arguments if a.startswith("-")} <= known


@pytest.mark.parametrize("text", [README, CONTRIBUTING])
def test_shown_files_exist(text: str) -> None:
    named = re.findall(r"(?:tools|generator|docs|tests)/[\w/]+(?:\.\w+)+", text)
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_shown_python_is_in_the_rendered_file() -> None:
    rendered = (ROOT / "tests/references/test_rmsnorm.py").read_text("utf-8")
    blocks = fenced(README, "python")
    assert len(blocks) == 2
    assert all(block in rendered for block in blocks)


def test_the_place_of_a_failure_is_where_the_harness_fails() -> None:
    file, number, name = re.findall(r"(\S+\.py):(\d+): in (\w+)", README)[0]
    lines = (ROOT / file).read_text("utf-8").splitlines()[: int(number)]
    assert "self._settle(" in lines[-1]
    assert re.findall(r"def (\w+)", "\n".join(lines)).pop() == name


def test_the_table_of_op_types_is_up_to_date() -> None:
    assert build_pages.readme() == README


def test_the_readme_is_read_in_some_minutes() -> None:
    head, _, rest = README.partition(build_pages.START)
    # the table has a row for each op_type, and grows with them
    assert len(head) + len(rest.partition(build_pages.END)[2]) <= 6_700


def test_test_names_are_the_harness_s() -> None:
    source = (ROOT / "generator/running/harness.py").read_text("utf-8")
    named = set(re.findall(r"`(test_\w+)`", TESTS))
    defined = set(re.findall(r"def (test_\w+)", source))
    assert named == defined | {f"test_matches_{name}" for name in providers()}


def test_the_relations_of_the_document_are_the_ops() -> None:
    text = (ROOT / "docs/metamorphic.md").read_text("utf-8")
    told = re.findall(r"^\| `([\w-]+)`", text, re.MULTILINE)
    sources = (ROOT / "generator/ops").glob("**/*relations.py")
    calls = r'(?:Relation|reordered|in_two_parts)\(\s*"([\w-]+)"'
    named = {n for source in sources for n in re.findall(calls, source.read_text())}
    assert told
    assert set(told) <= named
    assert len(told) == len(set(told))


def anchors(text: str) -> set[str]:
    """Return the anchors of a Markdown text's headings, as code hosts make them."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    heads = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in heads}


def broken_links(page: Path) -> list[str]:
    """Return the relative links of a page that lead nowhere."""
    links = re.findall(r"\]\((?!\w+:)([^)\s]+)\)", page.read_text("utf-8"))
    broken = []
    for link in links:
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if not target.exists() or (
            anchor and anchor not in anchors(target.read_text("utf-8"))
        ):
            broken.append(f"{page.name}: {link}")
    return broken


def test_links_lead_somewhere() -> None:
    pages = [
        *(ROOT / "docs").rglob("*.md"),
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
    ]
    assert [link for page in pages for link in broken_links(page)] == []


def test_broken_links_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# An `op_type`\n[a](page.md#an-op_type) [b](no.md) [c](#none) [d](https://e.f)\n"
    )
    assert broken_links(page) == ["page.md: no.md", "page.md: #none"]


def test_the_site_has_every_page() -> None:
    listed = re.findall(
        r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE
    )
    pages = {p.relative_to(ROOT / "docs").as_posix() for p in ROOT.glob("docs/**/*.md")}
    assert {name for name in listed if not name.startswith("reference/")} == pages
    assert len(listed) == len(set(listed))


def test_the_reference_has_a_page_for_every_command_with_all_that_help_says() -> None:
    pages = build_site.commands_pages()
    shown = {n: c for n, c in trace_dataset.commands.items() if not c.hidden}
    listed = pages["reference/commands.md"]
    for name, command in shown.items():
        assert f"[trace-dataset {name}](trace-dataset-{name}.md)" in listed
        page = " ".join(pages[f"reference/trace-dataset-{name}.md"].split())
        asked = CliRunner().invoke(
            trace_dataset, [name, "--help"], terminal_width=10_000
        )
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert option.opts[0] in page
                assert " ".join((option.help or "").split()) in page
        assert (
            " ".join((command.help or "").partition("\n\n")[0].split()) in asked.output
        )
    assert all(find_spec(name) for name in build_site.MODULES)


def test_the_solution_that_evaluate_shows_is_one() -> None:
    page = (ROOT / "docs/evaluate.md").read_text("utf-8")
    (text,) = fenced(page, "json")
    found = api.as_solution(api.open_dataset(ROOT), json.loads(text))
    assert (found.name, found.definition) == ("rmsnorm_mine", "rmsnorm_h4096")
    assert "def run(x, weight)" in str(found.value["sources"])


def test_each_diagram_is_drawn_and_the_site_asks_no_other_host() -> None:
    texts = list(build_diagrams.diagrams())
    assert len(texts) >= 3
    for text in texts:
        page = build_diagrams.drawn(f"a\n```mermaid\n{text}```\nb\n")
        assert "<svg" in page
        assert "mermaid\n" not in page
        labels = re.findall(r"[\[(]+([\w ]+)[\])]", text)
        assert all(word in page for label in labels for word in label.split())
    drawings = {path.name for path in (ROOT / "docs/images").glob("diagram-*.svg")}
    assert drawings == {build_diagrams.name_of(text) for text in texts}
    with pytest.raises(FileNotFoundError, match="build_diagrams"):
        build_diagrams.drawn("```mermaid\nflowchart LR\n    a --> new\n```\n")
    settings = (ROOT / "mkdocs.yml").read_text()
    assert "font: false" in settings
    assert not re.search(r"^extra_(css|javascript): .*//", settings, re.MULTILINE)


def test_the_tutorial_s_definition_is_valid_but_wrong(tmp_path: Path) -> None:
    """Its files pass validation; swapping the halves is the mistake it tells of."""
    files = re.findall(r"cat > (\S+) <<'EOF'\n(.*?)EOF\n", TUTORIAL, re.DOTALL)
    assert len(files) == 2
    for name, text in files:
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    options = ["validate", "--dataset", str(tmp_path)]
    ran = CliRunner().invoke(trace_dataset, options)
    assert ran.exit_code == 0
    assert ran.output.strip() in [b.strip() for b in fenced(TUTORIAL, "text")]
    assert "up, gate = " in files[0][1]


def test_no_page_has_the_software_installed_from_pypi() -> None:
    """It is not there, and its name is free for anybody to take."""
    pages = [
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("skills/*/SKILL.md"),
        ROOT / "README.md",
    ]
    lines = (line for page in pages for line in page.read_text("utf-8").splitlines())
    assert [line for line in lines if re.search(r"pip install '?gen-tests", line)] == []
