"""Tests of a definition whose inputs come from its own file of custom inputs.

The file has the source of an `init` that returns the arguments of FlashInfer's function,
or those of a wrapper's `plan` and `run`, and says which argument each input is. So the
kernel is called live with all of them; nobody guesses.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from generator.running import stand_ins
from generator.running.automatch import backends_of
from generator.running.free_memory import is_exhaustion
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs import generic
from kernel_judge.inputs.memory import dtype_of, shape_of
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.inputs.trial import as_tuple
from kernel_judge.obstacle import Kind
from kernel_judge.skipping import skip
from kernel_judge.subject import Kernel, Op

_PACKAGE = "flashinfer"
_WORKSPACE_BYTES = 256 * 2**20
# how an annotation of a list of tensors begins
_LISTS = ("List[torch.Tensor", "list[torch.Tensor", "typing.List[torch.Tensor")


class UnusableInputs(Exception):
    """Raised where a function can't be called with custom inputs."""


@dataclass(frozen=True)
class CustomInputs:
    """The contents of a definition's file of custom inputs.

    `init` returns the function of that name. `call` has its arguments, `case` the sizes
    of the variable axes that it makes. `arguments` gives for each input the kernel's
    argument, and its place where that is a tuple; `places` for each output its place in
    what the kernel returns, and the argument that it is written to.
    """

    init: Callable[[], Callable[..., Any]] | None
    call: Mapping[str, Any]
    case: Mapping[str, int]
    arguments: Mapping[str, tuple[str, int | None]]
    places: Mapping[str, tuple[int, str | None]]
    fi_apis: Sequence[str]

    def op(self) -> Op:
        """Return the op of the one case that `init` makes."""
        refusal = None if self.fi_apis else "no function is named for it"
        backends = partial(backends_of, self.fi_apis)
        return Op(
            cases=lambda definition: [Case("custom", "small", self.case)],
            make_inputs=self.make_inputs,
            kernels={_PACKAGE: Kernel(backends, self.ask, True, refusal)},
            guesses_inputs=self.init is None,
        )

    def make_inputs(
        self, definition: Definition, case: Case, stream: Stream
    ) -> dict[str, Any]:
        """Return the definition's inputs out of what `init` returns, on the CPU."""
        if self.init is None:
            return generic.make_inputs(definition, case, stream)
        made = merged(self._made(stream))
        axes = {**definition.axes, **case.axes}
        inputs: dict[str, Any] = {}
        left = [
            n for n in definition.interface.inputs if self.arguments[n][0] not in made
        ]
        guessed = generic.make_inputs(definition, case, stream) if left else {}
        for name, spec in definition.interface.input_specs.items():
            if name in left:
                # `run()` reads what the kernel does without
                inputs[name] = guessed[name]
                continue
            value = _argument(made, *self.arguments[name])
            if spec.shape is not None:
                value = as_bits(value, dtype_of(spec.dtype))
                shape, declared = tuple(value.shape), shape_of(spec, axes)
                assert shape == declared, f"init makes {name} {shape}, not {declared}"
            inputs[name] = value
        return inputs

    def _made(self, stream: Stream | None) -> dict[str, Any]:
        if self.init is None:
            return {}
        init = self.init()
        arguments = {**self.call, "device": "cpu"}
        if stream is not None and "seed" in inspect.signature(init).parameters:
            arguments["seed"] = stream.integers(0, 2**31, 1)[0]
        try:
            with stand_ins.on_cpu():
                made: dict[str, Any] = init(**arguments)
        except (ImportError, AttributeError) as error:
            skip(Kind.UNRESOLVED, f"custom inputs: {type(error).__name__}: {error}")
        return made

    def ask(self, definition: Definition, inputs: dict[str, Any], backend: str) -> Any:
        """Call the function with what `init` made, and with these inputs."""
        device = next(v.device for v in inputs.values() if isinstance(v, torch.Tensor))
        made = _moved(self._made(None), device)
        parts = list(_parts(made))
        for name, value in inputs.items():
            argument, place = self.arguments[name]
            # what `init` lacks goes wherever it is taken
            holders = [part for part in parts if argument in part] or parts
            for part in holders:
                _put(part, argument, place, value)
        outputs = definition.interface.output_specs
        try:
            returned = call_kernel(
                f"{_PACKAGE}.{backend}", made, return_lse="lse" in outputs
            )
        except UnusableInputs as error:
            skip(Kind.UNRESOLVED, f"flashinfer: UNRESOLVED: {error}")
        values = () if returned is None else as_tuple(returned)
        known = merged(made)
        returned = []
        for name, spec in outputs.items():
            index, written = self.places[name]
            buffer = known.get(written or name)
            if index < len(values):
                value = values[index]
            elif isinstance(buffer, (list, tuple)) and index < len(buffer):
                value = buffer[index]
            elif isinstance(buffer, torch.Tensor):
                value = buffer
            else:
                reason = f"{backend} returns {len(values)} values, not {name}"
                skip(Kind.UNRESOLVED, f"flashinfer: UNRESOLVED: {reason}")
            is_tensor = isinstance(value, torch.Tensor)
            returned.append(
                as_bits(value, dtype_of(spec.dtype)) if is_tensor else value
            )
        return tuple(returned)


def load_init(lines: Sequence[str]) -> Callable[[], Callable[..., Any]]:
    """Return a function that executes a text as a module and returns its `init`."""

    def init() -> Callable[..., Any]:
        names: dict[str, Any] = {"__name__": "custom_inputs"}
        exec(compile("\n".join(lines) + "\n", "<init>", "exec"), names)  # noqa: S102
        init: Callable[..., Any] = names["init"]
        return init

    return init


def merged(made: Mapping[str, Any]) -> dict[str, Any]:
    """Return argument → value of a call, or of a wrapper's `plan` and `run` together."""
    return {name: value for part in _parts(made) for name, value in part.items()}


def _parts(made: Mapping[str, Any]) -> Iterator[Any]:
    # without an init there is a call that takes the inputs alone
    if made and set(made) <= {"init", "plan", "run"}:
        yield from made.values()
    else:
        yield made


def as_bits(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return a tensor as another dtype of the same bits, for dtypes that no format has."""
    carried = torch.uint8 in (value.dtype, dtype) or torch.int32 in (value.dtype, dtype)
    if value.dtype != dtype and carried and value.dtype.itemsize == dtype.itemsize:
        return value.view(dtype)
    return value


def _argument(made: Mapping[str, Any], name: str, place: int | None) -> Any:
    value = made[name]
    return value if place is None else value[place]


def _put(part: dict[str, Any], argument: str, place: int | None, value: Any) -> None:
    if argument not in part:
        part[argument] = value if place is None else [None] * place + [value]
        return
    if place is not None and place >= len(part[argument]):
        part[argument] = [*part[argument], value]
        return
    old = part[argument] if place is None else part[argument][place]
    if isinstance(old, torch.Tensor):
        value = as_bits(value, old.dtype)
    if place is None:
        part[argument] = value
    else:
        items = list(part[argument])
        items[place] = value
        part[argument] = tuple(items)


def _moved(value: Any, device: torch.device) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, dict):
        return {name: _moved(item, device) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_moved(item, device) for item in value)
    return "cuda" if value == "cpu" and device.type == "cuda" else value


def call_kernel(api: str, made: Mapping[str, Any], *, return_lse: bool = False) -> Any:
    """Return what a function returns, or a wrapper's method after `plan`.

    `return_lse` asks for the LSE too, of a function that has the option. Raises
    Unresolved where there is no such function, or it rejects the arguments.
    """
    owner, function = _find(api)
    known = merged(made)
    device = next(v.device for v in known.values() if isinstance(v, torch.Tensor))
    run = {**({"return_lse": True} if return_lse else {}), **made.get("run", known)}
    try:
        if owner is None:
            return function(**_taken(function, run, device))
        wrapper = owner(**_taken(owner, made.get("init", {}), device))
        if "plan" in made:
            wrapper.plan(**_taken(wrapper.plan, made["plan"], device))
        method = getattr(wrapper, function.__name__)
        return method(**_taken(method, run, device))
    except Exception as error:
        if is_exhaustion(error):
            raise
        kind, text = type(error).__name__, " ".join(str(error).split())[:200]
        raise UnusableInputs(f"{api} rejects custom inputs: {kind}: {text}") from error


def _find(api: str) -> tuple[Any, Callable[..., Any]]:
    """Return the class of a method, None of a function, and the function."""
    parts = api.split(".")
    if parts[0] != _PACKAGE or not all(part.isidentifier() for part in parts):
        raise UnusableInputs(f"{api} is no path below {_PACKAGE}")
    for count in range(len(parts) - 1, 0, -1):
        try:
            value: Any = importlib.import_module(".".join(parts[:count]))
            owner = None
            for part in parts[count:]:
                owner = value if inspect.isclass(value) else None
                value = getattr(value, part)
        except (Exception, SystemExit) as error:  # noqa: BLE001
            reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            continue
        return owner, value
    raise UnusableInputs(f"no {api}: {reason}")


def _taken(
    function: Callable[..., Any], known: Mapping[str, Any], device: torch.device
) -> dict[str, Any]:
    """Return the arguments that a function has parameters for.

    One that is missing is the only other whose name ends alike, `indptr` for
    `kv_indptr`; a workspace is made. Of lists with an item a level there is one level.
    """
    parameters = inspect.signature(function).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return dict(known)
    taken = {name: value for name, value in known.items() if name in parameters}
    others = [name for name in known if name not in parameters]
    for name, parameter in parameters.items():
        if name in taken or parameter.default is not parameter.empty:
            continue
        one = name.removesuffix("_arr")
        alike = [
            n for n in others if f"_{n}".endswith(f"_{one}") or one.endswith(f"_{n}")
        ]
        if len(alike) == 1:
            is_list = str(parameter.annotation).startswith(_LISTS)
            taken[name] = [known[alike[0]]] if is_list else known[alike[0]]
        elif name == "num_levels":
            taken[name] = 1
        elif name.endswith("workspace_buffer"):
            size = (_WORKSPACE_BYTES,)
            taken[name] = torch.zeros(size, dtype=torch.uint8, device=device)
    return taken
