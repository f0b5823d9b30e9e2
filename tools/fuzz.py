"""Fuzz readers, validator, renderer and review for a number of minutes; print what broke.

`python tools/fuzz.py MINUTES [SEED]`. Each round bends a small good dataset in a few
random places (bytes, JSON values, links, pipes, names, modes) and runs `validate`,
`gen-tests` and `review` on it in a process of its own. A traceback, more than 10 s,
more than 1 GiB, an exit status that is none of theirs, or a file that was written
outside counts as broken. `tests/functional/test_fuzz.py` runs some rounds with fixed
seeds.
"""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[1]
SECONDS, MEMORY = 10.0, 1 << 30
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("trace_dataset", "validate", "--notes"),
    ("trace_dataset", "validate", "--format", "github"),
    ("gen_tests", "--all"),
    ("gen_tests", "--all", "--check"),
    ("trace_dataset", "review", "--format", "text"),
)
NASTY: tuple[Any, ...] = (
    *(
        "",
        "\0",
        "\x1b[31m",
        "##[set-output name=x;]y",
        "::error::x",
        "../../x",
        "/etc/passwd",
    ),
    *("a" * 5000, "\ud800", "\u202e", "${x}", "{{7*7}}", "]]>", "x\r\ny", "con", "é"),
    *(-1, 0, 2**63, 10**39, 1e308, float("nan"), None, True, [], {}, [[[[]]]]),
    *(["M"] * 2000, {f"k{i}": i for i in range(2000)}, "(" * 3000 + ")" * 3000),
    *("import os\nos.system('x')", "def run(", "def run(A, B):\n    return A @ B.T\n"),
    *("9**9**9 > M", "M" * 3000, "[x for x in range(10**9)]", "M.__class__"),
)


def bend(root: Path, chance: random.Random, secret: Path) -> list[str]:
    """Bend a dataset in one to four places; return what was done."""
    done = []
    for _ in range(chance.randint(1, 4)):
        # what was bent into a pipe or an endless file can't be read to be bent again
        files = sorted(
            p
            for p in root.rglob("*")
            if ".git" not in p.parts and not (p.is_symlink() or p.is_fifo())
        )
        place = chance.choice(files)
        how = chance.choice(_WAYS)
        try:
            how(place, chance, secret)
        # a line that is no object has no member to bend
        except (OSError, ValueError, TypeError, IndexError):
            continue
        done.append(f"{how.__name__[1:]} {place.relative_to(root)}")
    return done


def _bytes(place: Path, chance: random.Random, secret: Path) -> None:
    data = bytearray(place.read_bytes())
    for _ in range(chance.randint(1, 20)):
        at = chance.randrange(len(data) + 1)
        data[at : at + chance.randint(0, 3)] = chance.randbytes(chance.randint(0, 3))
    place.write_bytes(data)


def _value(place: Path, chance: random.Random, secret: Path) -> None:
    lines = place.read_text().splitlines()
    at = chance.randrange(len(lines))
    whole = json.loads(lines[at])
    spot: Any = whole
    while True:
        keys = list(spot) if isinstance(spot, dict) else list(range(len(spot)))
        key = chance.choice(keys)
        inner = spot[key]
        if not isinstance(inner, (dict, list)) or not inner or chance.random() < 0.3:
            break
        spot = inner
    match chance.randrange(4):
        case 0 if isinstance(spot, dict):
            spot[str(chance.choice(NASTY))[:6000]] = spot.pop(key)
        case 1:
            del spot[key]
        case _:
            spot[key] = chance.choice(NASTY)
    lines[at] = json.dumps(whole)
    place.write_text("\n".join(lines) + "\n")


def _link(place: Path, chance: random.Random, secret: Path) -> None:
    away = place.with_name(f".moved{chance.randrange(10**6)}")
    place.rename(away)
    targets = ("/dev/zero", str(secret), str(secret.parent), "..", place.name, "/proc")
    place.symlink_to(chance.choice(targets))


def _pipe(place: Path, chance: random.Random, secret: Path) -> None:
    place.unlink()
    os.mkfifo(place)


def _folder(place: Path, chance: random.Random, secret: Path) -> None:
    place.unlink()
    place.mkdir()


def _cut(place: Path, chance: random.Random, secret: Path) -> None:
    os.truncate(place, chance.choice((0, 1, place.stat().st_size // 2, 1 << 33)))


def _rename(place: Path, chance: random.Random, secret: Path) -> None:
    name = str(chance.choice(NASTY))[:200].replace("/", "_") or "x"
    place.rename(place.with_name(name + chance.choice(("", place.suffix))))


def _copy(place: Path, chance: random.Random, secret: Path) -> None:
    others = [p for p in place.parents[1].rglob("*") if p.is_dir()]
    (chance.choice(others) / place.name).write_bytes(place.read_bytes())


_WAYS: tuple[Callable[[Path, random.Random, Path], None], ...] = (
    *(_bytes, _value, _value, _value, _value, _link, _pipe, _folder, _cut, _rename),
    _copy,
)


def make(root: Path) -> None:
    """Write a small good dataset out of this repository's, rendered, in a repository."""
    for name in ("rmsnorm/rmsnorm_h4096", "layernorm/layernorm_h128"):
        for path in (f"definitions/{name}.json", f"workloads/{name}.jsonl"):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes((ROOT / path).read_bytes())
    for path in ("verification/audit.json",):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes((ROOT / path).read_bytes())
    (root / "custom_inputs/rmsnorm").mkdir(parents=True)
    (root / "custom_inputs/rmsnorm/rmsnorm_h4096.py").write_text("CALL = {}\n")
    run(("gen_tests", "--all"), root)
    for command in (
        ("init", "-q", "-b", "main"),
        ("add", "-A"),
        (*("-c", "user.name=a", "-c", "user.email=a@b"), "commit", "-q", "-m", "x"),
    ):
        subprocess.run(["git", "-C", str(root), *command], check=True)


def run(command: tuple[str, ...], root: Path) -> str:
    """Run a command on a dataset; return what is wrong with how it ended, or nothing."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (3 * MEMORY, 3 * MEMORY))

    words = [sys.executable, "-m", f"generator.cli.{command[0]}", *command[1:]]
    begun = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    try:
        done = subprocess.run(
            [*words, "--dataset", str(root)],
            cwd=ROOT,
            capture_output=True,
            check=False,
            timeout=12 * SECONDS,
            preexec_fn=limit,
        )
    except subprocess.TimeoutExpired:
        return "it did not end"
    # CPU, since other work shares the machine
    took = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - begun
    if took > SECONDS:
        return f"it took {took:.0f} s of CPU"
    if b"Traceback" in done.stderr or b"MemoryError" in done.stderr:
        return done.stderr.decode(errors="replace")[-600:]
    if done.returncode not in (0, 1, 2, 3):
        return f"it ended with {done.returncode}"
    if b"##[" in done.stdout + done.stderr or b"\x1b" in done.stdout + done.stderr:
        return "a command of a runner or a terminal came through"
    return ""


def one(seed: int) -> list[str]:
    """Run one round; return what broke, each with what had been done to the dataset."""
    chance = random.Random(seed)
    with TemporaryDirectory(prefix="fuzz-") as name:
        root, secret = Path(name, "dataset"), Path(name, "mine/secret")
        root.mkdir()
        secret.parent.mkdir()
        secret.write_text("TOP-SECRET\n")
        make(root)
        done = bend(root, chance, secret)
        broken = []
        for command in COMMANDS:
            if wrong := run(command, root):
                broken.append(f"seed {seed}: {' '.join(command)} after {done}: {wrong}")
        there = sorted(p.name for p in Path(name).rglob("mine/*"))
        if there != ["secret"] or secret.read_text() != "TOP-SECRET\n":
            broken.append(f"seed {seed}: written outside after {done}: {there}")
    return broken


def main(arguments: list[str]) -> int:
    """Run rounds until the minutes are over; return 1 if anything broke."""
    minutes, seed = float(arguments[0]), int((*arguments[1:], "0")[0])
    until, rounds, broken = time.monotonic() + 60 * minutes, 0, 0
    while time.monotonic() < until:
        for line in one(seed):
            print(line, flush=True)
            broken += 1
        seed, rounds = seed + 1, rounds + 1
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"{rounds} rounds, {broken} broken; the largest process had {most:.0f} MiB")
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
