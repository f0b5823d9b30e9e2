"""The catalogue of wrong solutions by class: how many each has, and what refuses them.

`table()` is the part of docs/evaluate.md that says so.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.functional.clock_lies import LIES, TAKES
from tests.functional.hacks import BY_VALUES, Hack
from tests.functional.hacks_of_corners import (
    BY_ANSWERS,
    BY_CALLS,
    BY_ERRORS,
)
from tests.functional.hacks_of_interpreters import BY_INTERPRETER
from tests.functional.hacks_of_machine import BY_KERNEL, BY_TENSORS
from tests.functional.hacks_of_objects import BY_OBJECTS
from tests.functional.hacks_of_parts import BY_PARTS
from tests.functional.hacks_of_processes import BY_PROCESSES
from tests.functional.hacks_of_signals import BY_SIGNALS
from tests.functional.hacks_of_state import BY_STATE
from tests.functional.test_evaluate_bad_input import BAD
from tests.functional.test_evaluate_cuda import HACKS as ON_A_GPU
from tests.unit.evaluation.test_known_inputs import KNOWN
from tests.unit.evaluation.test_left_out import LEFT_OUT
from tests.unit.evaluation.test_secrets_apart import GUESSES
from tests.unit.evaluation.test_wrong_by_a_sign import IN_ONE_DIRECTION
from tests.unit.evaluation.test_wrong_gates import OVERFLOWS
from tests.unit.evaluation.test_wrong_lengths import RIGHT_WHERE_PUBLISHED
from tests.unit.evaluation.test_wrong_samplers import WRONG as SAMPLERS
from tests.unit.evaluation.test_wrong_values import BENT, RIGHT_WHERE_USUAL

HACKS: tuple[Hack, ...] = (
    *BY_VALUES,
    *BY_PROCESSES,
    *BY_STATE,
    *BY_KERNEL,
    *BY_TENSORS,
    *BY_OBJECTS,
    *BY_ERRORS,
    *BY_ANSWERS,
    *BY_CALLS,
    *BY_PARTS,
    *BY_SIGNALS,
    *BY_INTERPRETER,
)


@dataclass(frozen=True)
class Kind:
    """A class of wrong solutions: its members, what closes it, and the tests."""

    name: str
    by: str
    members: tuple[str, ...]
    tests: str = "test_evaluate_hacks.py"


KINDS = (
    Kind(
        "wrong values",
        "compared with a float64 oracle in the judge's process, non-finite values first",
        (
            "zeros",
            "constant",
            "scaled by 1.01",
            "precision lowered",
            "NaN",
            "infinity",
            "NaN with a message, where it is right otherwise",
            "one row for all, by a stride of zero",
            "rounding upwards, and denormals flushed",
            "lengths written into it",
        ),
    ),
    Kind(
        "memory that is not written, or is not its own",
        "poisoned outputs, a pattern between arguments, inputs read back, storages compared",
        (
            "a row unwritten",
            "stale memory",
            "buffer untouched",
            "input returned",
            "view of an input",
            "inputs overwritten",
            "written beside its output",
            "holes in the memory of its arguments",
            "pages of its arguments made unreadable",
            "storage that is gone",
            "memory of a file that is cut off",
            "the memory of its arguments cut off",
            "memory of its own over its arguments",
        ),
    ),
    Kind(
        "answers kept from other calls",
        "a secret seed, other values at the same addresses, inputs that differ in one element",
        (
            "cache by address",
            "cache by id and version",
            "cache by shape",
            "cache by fingerprint of the weight",
            "cache by the first and the last values of its inputs",
            "cache by a sample of its inputs",
            "cache by the values of its first argument",
            "one call behind",
            "honest, then stale",
            "inputs predicted",
            "cache by magnitudes",
            "cache by the upper byte of each value",
            "cache by sums",
            "rows alike at their ends computed once",
            "every seventh call from before",
            "the weight of the first call",
        ),
    ),
    Kind(
        "earlier inputs known by a part of them",
        "inputs that agree with others in that part: in magnitudes, sums, upper bits, all but one",
        tuple(f"{name} {number}" for number, (name, _) in enumerate(KNOWN)),
        "test_known_inputs.py",
    ),
    Kind(
        "work after the answer",
        "every process is stopped until the outputs are read, and was seen to be",
        (
            "a thread fills later",
            "a fork goes on",
            "a daemon of its own session",
            "a zombie whose thread fills later",
            "a child fills shared memory later",
            "a daemon fills later",
            "two that continue each other",
            "a timer that continues it",
            "a parent that waits for vfork",
            "an alarm fills later",
            "forks without an end",
            "continued when its parent ends",
            "continued as an orphaned group",
            "a thread whose name is a state",
            "words that the kernel writes when a thread ends",
            "what the kernel does for a stopped process",
            "a process that has its memory",
            "a child whose end continues its parent",
            "a signal of a pipe fills later",
            "a timer of its processor's time fills later",
            "a chain of thirty forks fills later",
            "a process that shows nothing fills later",
        ),
    ),
    Kind(
        "something else than a tensor of the declared kind",
        "the exact type, then dtype, shape, layout and device; bytes are copied",
        (
            "tensor subclass",
            "a shape that broadcasts",
            "another dtype",
            "two values",
            "no tensor",
            "a dict",
            "a parameter",
            "sparse",
            "on no device",
            "a fake tensor",
            "quantised",
            "nested",
            "a shape that lies",
            "a bit that negates later",
            "hooks on an output that needs a gradient",
            "two outputs in one piece of memory",
            "a wrapper that computes when it is read",
            "a subclass that names itself torch.Tensor",
            "a list that is another one each time",
            "inside of a vmap that is never left",
            "a functional tensor around zeros",
            "zeros without memory",
            "what runs when it is unpickled",
            "a capsule",
            "a number that prints as an answer",
            "a generator",
            "an exabyte by a stride of zero",
            "float16 of the same bits",
            "elements that overlap",
        ),
    ),
    Kind(
        "the judge searched, patched or imitated",
        "no expected value, oracle or dataset is in its process or its view of files",
        (
            "patched comparisons",
            "patched torch of the worker",
            "stack and modules searched",
            "dataset and recordings read",
            "oracle imported",
            "harness recognised",
            "a verdict printed",
            "result files at exit",
            "operators of the judge's copy replaced",
            "a dispatch mode that is never left",
            "a function mode that answers for every tensor",
            "builtins that agree",
            "descriptors that it inherits",
            "functions of the worker replaced where they are held",
            "code of the worker's functions replaced",
            "JSON replaced",
            *(hack.name for hack in BY_INTERPRETER),
        ),
    ),
    Kind(
        "an answer that is none",
        "one frame of at most 1 MiB a question, with its nonce, parsed once into a checked value",
        (
            "written to every descriptor",
            "answers of its own",
            "another process answers",
            "an empty description",
            "no description",
            "numbers for values",
            "a shape of texts",
            "a dtype that is a list",
            "an axis of thirty digits",
            "a number of thirty digits",
            "a million dimensions",
            "an answer as if outputs were passed",
            "JSON ten thousand deep",
            "a frame of a terabyte",
            "half a frame",
            "descriptors beside an answer",
            "the channel closed",
            "two answers at once",
            "an error that is no text",
            "sixteen megabytes of brackets",
            "an integer of five thousand digits",
            "a child answers in its place",
            "an answer that is no UTF-8",
            "an answer in UTF-16, of other values",
            "names that come twice",
            "numbers that JSON has not",
            "signals that write to the channel",
            "descriptors with each byte of an answer",
            "a channel that is read no more",
            "all descriptors closed",
            "a socket of its own over the channel",
            "questions that it steals",
            "questions that it looks at before",
        ),
    ),
    Kind(
        "no answer, or too late",
        "limits from outside, seconds of a call and of all calls; each call needs its answer",
        (
            "exit with status 0",
            "sys.exit",
            "exit while imported",
            "endless loop",
            "fork bomb",
            "memory bomb",
            "megabytes printed in each call",
            "no such symbol",
            "no Python",
            "too few parameters",
            "slower with every call",
            "its process replaced by another program",
            "a list without an end",
            "stopped by itself",
            "an end behind its answer",
            "a limit of seconds of its own",
            "a million outputs",
        ),
    ),
    Kind(
        "errors that never end, or are something else",
        "an error is one short line, made in the solution's process and on its time",
        (
            "an error whose text never ends",
            "an error whose text is an error",
            "an error of halves of characters and commands",
            "an error with a name of two megabytes",
            "an error of twenty thousand frames",
            "an error in a line of a pipe",
            "an error that says there is no memory",
            "a dump of its threads that ends it",
            "a group of groups of errors",
            "an error that is its own cause",
            "an error whose text is no ordinary text",
            "an error whose class ends the process",
        ),
    ),
    Kind(
        "what outlives a solution",
        "namespaces, one tmpfs and a user of its own, and other values for each solution",
        (
            "files left for the next solution",
            "files of another solution read",
            "an accomplice leaves answers",
            "answers of an accomplice",
            "three thousand folders, one in another",
            "a hundred thousand files",
            "files without a name",
            "memory of no process",
            "a heap of locked and of huge pages",
            "the slowest of processes",
            "slower because of the one before",
            "modules and settings for what starts later",
            "modules and settings of the one before",
            "no room for what comes next",
            "pipes full of bytes",
        ),
    ),
    Kind(
        "the machine and the sandbox attacked",
        "a filter of system calls; the first process of the namespace handles no signal",
        (
            "judge killed",
            "worker frozen",
            "the first process of its namespace",
            "namespaces and mounts of its own",
            "every signal to the first process",
            "the first process slowed",
            "memory of the judge and of the keeper",
            "clocks set and slewed",
            "an own filter whose supervisor holds a call",
            "the first process by another number",
            "what the kernel keeps of the first process",
            "before all others",
            "calls of another table",
            "keys that the kernel keeps",
        ),
    ),
    Kind(
        "right for published lengths alone",
        "lengths drawn from the secret seed, by residue and beyond the limits of kernels",
        tuple(f"{name} {run.__name__}" for name, run in RIGHT_WHERE_PUBLISHED),
        "test_wrong_lengths.py",
    ),
    Kind(
        "right for usual values alone",
        "scales and codes far from the usual, and inputs times 2^17 and 2^-17",
        (*(f"{name} {change.__name__}" for name, change in RIGHT_WHERE_USUAL), *BENT),
        "test_wrong_values.py",
    ),
    Kind(
        "gates whose exponential overflows",
        "gates and steps of 100, which no published case has",
        tuple(f"{name} {overflow.__name__}" for name, _, overflow in OVERFLOWS),
        "test_wrong_gates.py",
    ),
    Kind(
        "what is hidden, worked out from what is shown",
        "a generator for each purpose, seeded by a hash; seeds of values are 62 bits long",
        tuple(guess.__name__ for guess in GUESSES),
        "test_secrets_apart.py",
    ),
    Kind(
        "a part that is left out",
        "where a share of elements may be wrong, no row, column or tile of them",
        tuple(leave.__name__ for leave in LEFT_OUT),
        "test_left_out.py",
    ),
    Kind(
        "a factor or an offset within the tolerance",
        "the least-squares factor and the mean error, bounded by what rounding explains",
        tuple(f"{name} {change.__name__}" for name, change in IN_ONE_DIRECTION),
        "test_wrong_by_a_sign.py",
    ),
    Kind(
        "random numbers of another law",
        "exact laws over many seeds, both tails, joint laws of rows and of calls",
        tuple(sampler.__name__ for sampler in SAMPLERS),
        "test_wrong_samplers.py",
    ),
    Kind(
        "streams, graphs and contexts of a GPU",
        "arguments behind a pause and outputs copied on the stream of the call",
        tuple(hack.name for hack in ON_A_GPU),
        "test_evaluate_cuda.py",
    ),
    Kind(
        "lies about time",
        "the judge's clock and memory, fresh values in each timed call ([clock.md](clock.md))",
        tuple(lie.name for lie in (*LIES, TAKES)),
        "test_clock_cuda.py",
    ),
    Kind(
        "files that are no solution",
        "checked when they are read: names, paths, sizes, text",
        tuple(BAD),
        "test_evaluate_bad_input.py",
    ),
)


def table() -> str:
    """Return the lines of the documentation: each class, its members, what closes it."""
    lines = ["| class | members | what refuses them, or makes them harmless | tests |"]
    lines.append("|---|---|---|---|")
    lines += [f"| {k.name} | {len(k.members)} | {k.by} | `{k.tests}` |" for k in KINDS]
    return "\n".join(lines)
