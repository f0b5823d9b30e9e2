"""Text from a dataset can say anything: in a rendered file it stays only text."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import pytest

from generator.rendering.embedding import nest
from generator.rendering.python_text import assignment, class_line, literal
from tests.functional.gen_tests_command import DEFINITION, Dataset

ruff = pytest.importorskip("ruff.__main__")

# MARK is what to look for: as a comment or a string it is text, elsewhere code
NASTY = {
    "quotes": '"""\nimport MARK\nMARK()\n"""',
    "single quotes": "'''\nMARK()\n''' \" \\",
    "backslash": "MARK \\\nMARK()\\",
    "escapes": r"\N{BULLET} \x4d \u004d \777 MARK",
    "jinja": "{{ MARK }} {% for x in MARK %} {# MARK #} {{ 7 * 191 }} {% raw %}",
    "newlines": "a\nMARK()\r\nMARK()\rMARK()\n\n\n",
    "python": "class MARK:\n    pass\n\n\nraise SystemExit(MARK)",
    "separators": "a\u2028MARK()\u2029MARK()\x85MARK()\x0cMARK()\x0bMARK()\x1cMARK()",
    "controls": "\x00MARK\x01\x1b[31m\x7f\x08\ufeff\u202eMARK\u200b",
    "newer than Python": "MARK \U0001fae8 \U0001fa75 \u1c80",
    "unicode": "MARK \xd7 \xe9 漢字 \u00a0 \u3000 \U0001f600",
    "directives": "fmt: off\nfmt: on\nfmt: skip\nisort: skip_file\nruff: noqa MARK",
    "coding": "-*- coding: utf-7 -*- MARK\n# vim: set fileencoding=utf-7 :",
    "types": "type: ignore[MARK]\ntype: (int) -> MARK",
    "long word": "MARK" + "x" * 5000,
    "long line": "MARK " * 500,
    "blank": "  \t  \n\t\nMARK",
    "hashes": "#!MARK\n#: MARK\n#####",
}


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return Dataset(tmp_path)


def check_format(folder: Path) -> None:
    """Assert that ruff would not reformat any file of a folder."""
    done = subprocess.run(
        [ruff.find_ruff_bin(), "format", "--isolated", "--diff", str(folder)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def comments(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if line.startswith("#"))


def test_descriptions_and_tags_are_comments(dataset: Dataset) -> None:
    for number, text in enumerate(NASTY.values()):
        axes = {
            "M": {"type": "var", "description": text},
            "N": {"type": "const", "value": 4, "description": text},
        }
        tensor = {"shape": ["M", "N"], "dtype": "float32", "description": text}
        dataset.add(
            name=f"nasty_{number}",
            description=text,
            # a tag has at most 1,000 characters
            tags=[text[:900], f"model:{text[:900]}", "fused"],
            axes=axes,
            inputs={"x": tensor},
            outputs={"y": tensor},
        )
    dataset.render()
    text = dataset.text()
    tree = ast.parse(text)
    compile(text, "test_twice.py", "exec", dont_inherit=True)
    assert "MARK" not in ast.dump(tree), "text of a definition became code"
    assert comments(text).count("MARK") >= 3 * len(NASTY)
    assert "{{ MARK }} {% for x in MARK %} {# MARK #} {{ 7 * 191 }}" in text
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    # the file's base class, and that of the one reference
    assert len(classes) == 2 + len(NASTY)
    plain = text.replace("\n", "")
    assert all(char.isprintable() for char in plain), "a character that hides"
    assert max(len(line) for line in text.split("\n") if "MARK" in line) <= 88
    check_format(dataset.output)


@pytest.mark.parametrize("field", ["name", "op_type", "axis", "input", "output"])
@pytest.mark.parametrize("text", ['"""', "a\nMARK()", "{{ x }}", "a\\", "é", "../x"])
def test_names_that_are_no_names_are_refused(
    dataset: Dataset, field: str, text: str
) -> None:
    tensor = {"shape": ["M", "N"], "dtype": "float32"}
    changes = {
        "name": {"name": text},
        "op_type": {"op_type": text},
        "axis": {"axes": {**DEFINITION["axes"], text: {"type": "var"}}},
        "input": {"inputs": {text: tensor}},
        "output": {"outputs": {text: tensor}},
    }[field]
    dataset.add()
    broken = dataset.add(name="broken_n4")
    Dataset(dataset.root / "elsewhere").add(**{"name": "broken_n4", **changes})
    (made,) = (dataset.root / "elsewhere").rglob("*.json")
    made.replace(broken)
    done = dataset.run("--all")
    assert done.returncode == 1
    assert "definitions/twice/broken_n4.json" in done.stderr
    assert "class TestTwiceN4(" in dataset.text()
    assert "MARK" not in dataset.text()


CONSTRAINTS = (
    '"""x""" != "{{ M }}" and M >= 1',
    "'\\'' != '\"' and\\\n M >= 1",
    "(M >=\n 1)",
    "(M >=\r\n 1)",
    "M >= 1  # MARK() {% raw %}",
    "M != len('''\nMARK()\n''')",
    "M >= 1 or '\u2028\x0c'",
    "M" + " >= 1 and M" * 100 + " >= 1",
)


def test_constraints_are_strings(dataset: Dataset) -> None:
    dataset.add(constraints=list(CONSTRAINTS))
    dataset.render()
    tree = ast.parse(dataset.text())
    (found,) = [
        keyword.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "constraints"
    ]
    assert ast.literal_eval(found) == CONSTRAINTS
    dumped = ast.dump(tree)
    for constraint in CONSTRAINTS:
        dumped = dumped.replace(repr(constraint), "")
    assert "MARK" not in dumped
    check_format(dataset.output)


RUN = DEFINITION["reference"]
# (reference, whether it can stand in a function)
REFERENCES = {
    "plain": (RUN, True),
    "no last newline": (RUN.rstrip("\n"), True),
    "strings": (f"X = \"\"\"\n  MARK\n\n\"\"\"\nY = '''{{{{ }}}}'''\n{RUN}", True),
    "f-strings": (f'Z = 1\nX = f"""\n a{{Z}}\n  b"""\n{RUN}', True),
    "CRLF": (f'X = """\na\n"""\n{RUN}'.replace("\n", "\r\n"), True),
    "CR": (f'X = """\na\n"""\n{RUN}'.replace("\n", "\r"), True),
    "tabs": ("def run(x):\n\tif x is None:\n\t\tpass\n\treturn x * 2\n", True),
    "form feed": (f"X = 1\n\x0c\n{RUN}", True),
    "separators": (f"X = 'a\u2028b\u2029c\x0cd\x1ce\x85f'  # \u2028\n{RUN}", True),
    "comments": (f"# fmt: on\n{RUN}# fmt: off\n#MARK", True),
    "continued": (f"X = 1 + \\\n1\nY = 'a\\\nb'\n{RUN}", True),
    "docstring": (f'"""Says\n\n  MARK.\n"""\n{RUN}', True),
    "odd layout": (f"X=1;Y = [ 1,\n2 ]\n{RUN}", True),
    "raw": (f"X = r'\\d'\nY = b'\\x00'\n{RUN}", True),
    "coding": (f"# -*- coding: utf-7 -*-\nX = '+AGE-'\n{RUN}", True),
    "future": (
        f"from __future__ import annotations\nX = 'a\u2028\x0cb'\n{RUN}",
        False,
    ),
    "star": (f"from math import *\nX = '''\n{{{{ MARK }}}}\n'''\n{RUN}", False),
    "global": (f"def f():\n    global G\n    G = 1\n\n\n{RUN}", False),
    "class": (f"x = 1\n\n\nclass A:\n    x = x\n\n\n{RUN}", False),
    "builtin": (f"max = max\n{RUN}", False),
    "future, CRLF": (
        f"from __future__ import annotations\nX = '''\n'''\n{RUN}".replace(
            "\n", "\r\n"
        ),
        False,
    ),
}


def embedded(text: str) -> list[tuple[bool, ast.Module]]:
    """Return the references of a rendered file: nested or not, and the tree."""
    found = []
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("reference_"):
            *body, last = node.body
            assert ast.unparse(last) == "return run"
            found.append((True, ast.Module(body, [])))
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            assert ast.unparse(node.value.func) in ("load_reference", "Interface")
            if node.value.args:
                lines = ast.literal_eval(node.value.args[0])
                found.append((False, ast.parse("\n".join(lines) + "\n")))
    return found


@pytest.mark.parametrize(
    ("source", "nested"), list(REFERENCES.values()), ids=list(REFERENCES)
)
def test_a_reference_keeps_its_tree(
    dataset: Dataset, source: str, nested: bool
) -> None:
    dataset.add(reference=source)
    dataset.render()
    ((is_nested, tree),) = embedded(dataset.text())
    assert is_nested is nested
    assert ast.dump(tree) == ast.dump(ast.parse(source))
    check_format(dataset.output)


def test_references_side_by_side(dataset: Dataset) -> None:
    """What one text does to the formatter or to its names concerns no other one."""
    for number, (source, _) in enumerate(REFERENCES.values()):
        dataset.add(name=f"reference_n{number:02}", reference=source)
    dataset.add(name="same", reference=RUN)
    dataset.render()
    trees = [ast.dump(tree) for _, tree in embedded(dataset.text())]
    assert trees == [ast.dump(ast.parse(source)) for source, _ in REFERENCES.values()]
    nodes = ast.parse(dataset.text()).body
    bases = {n.name: ast.unparse(n.bases[0]) for n in nodes if hasattr(n, "bases")}
    assert bases["TestReferenceN00"] == bases["TestSame"] != bases["TestReferenceN01"]
    check_format(dataset.output)


def test_a_nested_reference_is_indented_and_no_more() -> None:
    assert nest("\nX = '''\n a\n'''\n\nY = 1\n") == (
        "    X = '''\n a\n'''\n\n    Y = 1"
    )


@pytest.mark.parametrize("length", [64, 72, 80, 120, 200])
def test_long_names_are_wrapped_as_a_formatter_would(
    dataset: Dataset, length: int
) -> None:
    long = "n" + "x" * (length - 1)
    for op_type, name in (("twice", long), (long, "plain")):
        dataset.add(
            op_type=op_type,
            name=name,
            axes={"M": {"type": "var"}, long: {"type": "const", "value": 10**18}},
            inputs={"x": {"shape": ["M", long], "dtype": "float32"}},
            outputs={"y": {"shape": ["M", long], "dtype": "float32"}},
            constraints=[f"{long} >= 1", f"M <= {long}"],
        )
    dataset.render()
    assert f'"{long}"' in dataset.text()
    check_format(dataset.output)


def test_lines_about_as_long_as_the_limit(tmp_path: Path) -> None:
    classes = []
    for length in range(60, 100):
        long = "n" * length
        pairs = (
            (long, "12345678"),
            ("name", literal(long)),
            (long[:80], literal(long)),
        )
        body = "\n".join(assignment(*pair) for pair in pairs)
        classes.append(f"{class_line(long, long)}\n{body}\n")
    (tmp_path / "lines.py").write_text("\n\n".join(classes))
    check_format(tmp_path)
