"""List how published definitions differ from this dataset's of the same names.

    python tools/published_differences.py DIR     # a clone of the published dataset

A line for each difference of interfaces, constraints and tags, with how many definitions
have it and whether docs/dataset.md states it; texts are not compared, each side wrote its
own. Exit status 1 where one is not stated, or a definition can't be read, 2 where DIR has
no definition of a name that this dataset has.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    # Python put this script's folder on the path, not the repository.
    sys.path.insert(0, str(ROOT))

from generator.dataset.definition import LoadedDefinition
from generator.problems.messages import plural
from generator.review.definition_diff import compare
from generator.rules.load import load_definitions

PARTS = ("op_type", "axes", "inputs", "outputs", "constraints", "tags")
# part, definitions, what the difference says: those of docs/dataset.md
_PAGES = "gqa_paged_prefill_causal_*_ps64"
STATED = (
    ("axes", _PAGES, "*batch_size*"),
    ("inputs", _PAGES, "*kv_last_page_len*"),
    ("constraints", _PAGES, "*len_indptr == batch_size + 1*"),
    ("tags", "*", "*status:*"),
    ("tags", "*rmsnorm_h5376", "*fi_api:flashinfer.norm.*"),
    ("tags", "gdn_*", "*fi_api:flashinfer.gdn*"),
    ("inputs", "*", "* drawn from *"),
    ("inputs", "trtllm_*_moe_topk1_*", "*routing_bias*"),
)


def main(arguments: list[str]) -> int:
    """Print the differences and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="DIR")
    folder = parser.parse_args(arguments).folder
    ours = {d.name: d for d in load_definitions(ROOT).definitions}
    read = load_definitions(folder)
    for problem in read.problems:
        print(problem)
    both = [(one, ours[one.name]) for one in read.definitions if one.name in ours]
    if not both:
        print(f"{folder} has no definition of a name that this dataset has.")
        return 2
    lines: dict[tuple[str, str, bool], list[str]] = {}
    for published, own in both:
        for part, text in differences(published, own):
            key = part, text, is_stated(own.name, part, text)
            lines.setdefault(key, []).append(own.name)
    for (part, text, stated), names in lines.items():
        mark = "stated " if stated else "UNKNOWN"
        print(f"{mark} {part}: {text} ({plural(len(names), 'definition')}: {names[0]})")
    unknown = sum(not stated for _, _, stated in lines)
    print(
        f"{plural(len(both), 'definition')} of both, {plural(len(lines), 'difference')}, "
        f"{unknown} that docs/dataset.md does not state"
    )
    return 1 if unknown or read.problems else 0


def differences(
    published: LoadedDefinition, own: LoadedDefinition
) -> Iterator[tuple[str, str]]:
    """Yield part and words of each difference of interfaces, constraints and tags."""
    for one in compare(published, own):
        if one.part in PARTS:
            yield one.part, one.text


def is_stated(name: str, part: str, text: str) -> bool:
    """Return whether docs/dataset.md states a difference."""
    return any(
        part == of and fnmatch(name, names) and fnmatch(text, words)
        for of, names, words in STATED
    )


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
