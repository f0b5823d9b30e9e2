"""One definition on one case: inputs made once, `run()` called as often as needed."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property
from typing import Any

import torch

from kernel_judge.constraints import Unsupported, evaluate
from kernel_judge.definition import LIMITS, WORKLOAD, Case, Definition
from kernel_judge.inputs.cpu_limit import cpu_limit
from kernel_judge.inputs.lazy_weights import Tiled, fresh, lazy
from kernel_judge.inputs.memory import give_back
from kernel_judge.inputs.seeded_inputs import PERIOD, SHORT_PERIOD, Stream
from kernel_judge.inputs.views import can_be_wider, is_poison_around, view_of_wider
from kernel_judge.obstacle import Kind
from kernel_judge.skipping import skip

Inputs = dict[str, Any]
# other draws for a production kernel than for the reference: where both draw the same
# way, equal seeds would make two samples one
RUN_SEED, PROVIDER_SEED = 20_240, 7_919
MakeInputs = Callable[[Definition, Case, Stream], Inputs]
# sizes of which no test but comparisons is made
_UNCHECKED = (WORKLOAD, LIMITS)


class Trial:
    """The inputs and outputs of one definition on one case while it is tested.

    `make_inputs` builds on the CPU from a seed of (definition, case); every callee gets
    a copy of its own on `device`, since some kernels write in place. `guessed` inputs
    were made without knowing the op: where `run()` rejects those, the tests skip.
    `error_maps` asks for where the error sits also of comparisons that pass, None of none.
    `shift` makes other inputs than those of every run, and other draws of `run()`.
    `cpu_seconds` is after how long a comparison is given up, None for never.
    """

    def __init__(
        self,
        definition: Definition,
        case: Case,
        device: torch.device,
        make_inputs: MakeInputs,
        run: Callable[..., Any],
        *,
        guessed: bool = False,
        error_maps: bool | None = False,
        shift: int | None = None,
        cpu_seconds: float | None = None,
    ) -> None:
        self.definition = definition
        self.case = case
        self.device = device
        self._make_inputs = make_inputs
        self._run = run
        self.guessed = guessed
        self.error_maps = error_maps
        self.shift = shift
        self.cpu_seconds = cpu_seconds
        self.took_too_long = False
        # whether a comparison may stop at the first element that fails it
        self.brief = False
        # what each provider's backend returned, once it was asked
        self.answers: dict[tuple[str, str], tuple[Any, ...]] = {}

    def release(self) -> None:
        """Drop all tensors, and give a GPU's memory back; the trial can be used again."""
        for name in [n for n in vars(self) if hasattr(type(self), n)]:
            delattr(self, name)
        self.answers.clear()
        give_back(self.device)

    @cached_property
    def inputs(self) -> Inputs:
        """Return the inputs as made, on the CPU; nobody writes to these."""
        period = SHORT_PERIOD if self.case.size in _UNCHECKED else PERIOD
        stream = Stream(self.definition.name, self.case.name, period=period)
        if self.shift is not None:
            stream = stream.child(f"seed {self.shift}")
        return self._make_inputs(self.definition, self.case, stream)

    @cached_property
    def run_seed(self) -> int:
        """Return what torch is seeded with before `run()`."""
        if self.shift is None:
            return RUN_SEED
        key = (self.definition.name, self.case.name, f"seed {self.shift}", "draws")
        return Stream(*key).integers(0, 2**31, 1)[0]

    @contextmanager
    def limited(self) -> Iterator[None]:
        """Let a comparison take `cpu_seconds`; skip a workload that can't be one.

        That is one whose values break the definition's constraints.
        """
        with cpu_limit(self.cpu_seconds, self._note):
            broken = self.broken_constraints() if self.case.size in _UNCHECKED else []
            if broken and self.case.size == WORKLOAD:
                skip(Kind.NO_CASE, f"the workload's inputs break {broken[0]}")
            if broken:
                raise AssertionError(f"the case's inputs break {broken[0]}")
            yield

    def _note(self) -> None:
        self.took_too_long = True

    def broken_constraints(self) -> list[str]:
        """Return the definition's constraints that the inputs as made don't obey.

        Skips the test where one can't be evaluated and none is broken. Raises Unknown
        for one that names an axis which no tensor of the interface has.
        """
        names = {**self.definition.axes, **self.case.axes, **self.inputs}
        broken, unchecked = [], []
        for constraint in self.definition.interface.constraints:
            try:
                tree = ast.parse(constraint.strip(), mode="eval")
                if not evaluate(tree.body, names):
                    broken.append(constraint)
            except Unsupported as error:
                unchecked.append(f"{constraint!r}: {error}")
        if unchecked and not broken:
            reason = f"UNRESOLVED: constraints that were not checked: {unchecked}"
            skip(Kind.UNRESOLVED, reason)
        return broken

    def fresh_inputs(self) -> Inputs:
        """Return a copy of the inputs on the device."""
        return {n: fresh(v, self.device) for n, v in self._originals.items()}

    def lazy_inputs(self) -> Inputs:
        """Return a copy of the inputs on the device in which stand-ins stay such."""
        return {n: lazy(v, self.device) for n, v in self._originals.items()}

    @cached_property
    def _originals(self) -> Inputs:
        """Return what callees' copies are made of: on a GPU, for the way there is long."""
        if self.device.type == "cpu":
            return self.inputs
        return {n: lazy(v, self.device) for n, v in self.inputs.items()}

    def _run_inputs(self) -> Inputs:
        """Return inputs for `run()`: on a CPU, tensors of stand-ins are made once.

        Making them again takes longer than all the rest, and `modified_inputs` shows
        that they are as they were.
        """
        whole, values = self._made_on_cpu, self._originals.items()
        return {n: whole[n] if n in whole else fresh(v, self.device) for n, v in values}

    @cached_property
    def _made_on_cpu(self) -> Inputs:
        if self.device.type != "cpu":
            return {}
        tiled = {n: v for n, v in self.inputs.items() if isinstance(v, Tiled)}
        return {n: v.tensor(self.device) for n, v in tiled.items()}

    @cached_property
    def outputs(self) -> tuple[Any, ...]:
        """Return what `run()` returns for the inputs, as a tuple."""
        return self._first_call[0]

    @cached_property
    def modified_inputs(self) -> tuple[str, ...]:
        """Return the names of the inputs that `run()` wrote to."""
        return tuple(self._first_call[1])

    def after(self, name: str) -> Any:
        """Return an input as `run()` left it."""
        return self._first_call[1].get(name, self.inputs[name])

    def joined_outputs(self, calls: int) -> tuple[Any, ...]:
        """Return the outputs of that many calls, one after the other along the rows.

        The first call is the one of `outputs`; the others follow from another seed, on
        one copy of the inputs.
        """
        if calls == 1:
            return self.outputs
        if calls not in self._joined:
            first, inputs = self.outputs, self.fresh_inputs()
            seed(self.run_seed + 1)
            self._joined[calls] = join(
                first, lambda: as_tuple(self._run(*inputs.values())), calls
            )
        return self._joined[calls]

    @cached_property
    def _joined(self) -> dict[int, tuple[Any, ...]]:
        return {}

    def repeat(self) -> tuple[Any, ...]:
        """Call `run()` once more on a fresh copy of the inputs, from the same seed."""
        seed(self.run_seed)
        return as_tuple(self._run(*self._run_inputs().values()))

    def on_views(self) -> tuple[tuple[Any, ...], tuple[str, ...]]:
        """Call `run()` on views of wider buffers, from the same seed as the first time.

        Return its outputs, with the inputs that it filled behind them, and the names of
        the inputs beside which it wrote: what lies between their rows is poison.
        """
        inputs = self._run_inputs()
        views = {n: view_of_wider(v) for n, v in inputs.items() if can_be_wider(v)}
        inputs |= views
        seed(self.run_seed)
        outputs = as_tuple(self._run(*inputs.values()))
        written = (inputs[name] for name in self.modified_inputs)
        beside = (name for name, view in views.items() if not is_poison_around(view))
        return (*outputs, *written), tuple(beside)

    @cached_property
    def _first_call(self) -> tuple[tuple[Any, ...], Inputs]:
        """Return the outputs, and the inputs that were written to, as they are now."""
        inputs = self._run_inputs()
        seed(self.run_seed)
        try:
            outputs = as_tuple(self._run(*inputs.values()))
        except Exception as error:
            if not self.guessed:
                raise
            kind = type(error).__name__
            reason = f"UNRESOLVED: run() rejects guessed inputs: {kind}: {error}"
            skip(Kind.UNRESOLVED, reason)
        originals = self._originals.items()
        return outputs, {
            n: inputs[n] for n, v in originals if not _untouched(v, inputs[n])
        }


def _untouched(value: Any, passed: Any) -> bool:
    """Return whether what a callee was given is still what was made."""
    if isinstance(value, Tiled):
        return value.same_bits(passed)
    if isinstance(value, torch.Tensor):
        return same_bits(passed, value.to(passed.device))
    return True


def seed(value: int) -> None:
    """Seed torch's generators, for references and kernels that draw samples."""
    # for a device that is not there torch itself takes two milliseconds, and memory
    (torch if _has_accelerator() else torch.default_generator).manual_seed(value)


@cache
def _has_accelerator() -> bool:
    accelerators = torch.cuda, torch.xpu, torch.backends.mps
    return any(one.is_available() for one in accelerators)


def join(
    first: tuple[Any, ...], call: Callable[[], tuple[Any, ...]], calls: int
) -> tuple[Any, ...]:
    """Return a first answer and those of more calls, joined along the rows."""
    if calls == 1:
        return first
    answers = [first, *(call() for _ in range(calls - 1))]
    return tuple(torch.cat(parts) for parts in zip(*answers, strict=True))


def as_tuple(returned: Any) -> tuple[Any, ...]:
    """Return a reference's outputs as a tuple, whether it returned one or several."""
    return tuple(returned) if isinstance(returned, (tuple, list)) else (returned,)


def same_bits(first: Any, second: Any) -> bool:
    """Return whether two values have the same type, shape and bits; NaN equals NaN."""
    if not isinstance(first, torch.Tensor) or not isinstance(second, torch.Tensor):
        return type(first) is type(second) and first == second
    if first.shape != second.shape or first.dtype != second.dtype:
        return False
    pair = _bytes(first), _bytes(second)
    # as words, where they lie so: to compare single bytes takes seven times as long
    if all(t.numel() % 8 == t.storage_offset() % 8 == 0 for t in pair):
        pair = pair[0].view(torch.int64), pair[1].view(torch.int64)
    return torch.equal(*pair)


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)
