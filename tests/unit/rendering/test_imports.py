"""The merged import block of a rendered file."""

from __future__ import annotations

import ast

from generator.rendering.imports import LINE_LENGTH, import_block


def nodes(text: str) -> list[ast.stmt]:
    return ast.parse(text).body


def test_imports_are_merged_and_sorted():
    block = import_block(
        nodes(
            "from __future__ import annotations\n"
            "import torch\n"
            "import math\n"
            "from typing import Any\n"
            "from kernel_judge.inputs.seeded_inputs import Stream\n"
            "from kernel_judge.definition import Case, Backend\n"
        ),
        [
            "import sys",
            "from kernel_judge.definition import Interface",
            "from generator.running.harness import main, Base, LIMIT",
        ],
    )
    assert block == (
        "from __future__ import annotations\n\n"
        "import math\nimport sys\nfrom typing import Any\n\n"
        "import torch\n\n"
        "from generator.running.harness import LIMIT, Base, main\n"
        "from kernel_judge.definition import Backend, Case, Interface\n"
        "from kernel_judge.inputs.seeded_inputs import Stream"
    )


def test_what_two_sides_import_is_imported_once():
    block = import_block(
        nodes("import torch\nfrom typing import Any, Callable\n"),
        ["import torch", "from typing import Any", "from generator.a import b"],
    )
    assert block.count("import torch") == 1
    assert "from typing import Any, Callable\n" in block


def test_aliases_are_kept():
    block = import_block(
        nodes("import numpy as np\nfrom math import floor as down\n"),
        ["from generator.a import b as c"],
    )
    assert "import numpy as np" in block
    assert "from math import floor as down" in block
    assert block.endswith("from generator.a import b as c")


def test_several_modules_of_one_statement_are_separated():
    block = import_block(nodes("import sys, math\n"), ["from generator.a import b"])
    assert block.startswith("import math\nimport sys\n")


def test_a_long_line_is_wrapped_one_name_a_line():
    names = [f"a_rather_long_name_{i}" for i in range(6)]
    block = import_block([], [f"from generator.a import {', '.join(names)}"])
    assert block.splitlines() == [
        "from generator.a import (",
        *(f"    {name}," for name in names),
        ")",
    ]
    assert all(len(line) <= LINE_LENGTH for line in block.splitlines())
