"""Every kernel is handed the definition's inputs, or its backend says what is rewritten."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from generator.ops import ranks
from generator.ops.attention import flashinfer as attention
from generator.ops.registry import op_module, op_specs
from generator.rules.load import load_definitions
from kernel_judge.definition import Backend, Definition, Interface
from kernel_judge.inputs.trial import Trial
from kernel_judge.skipping import Skip
from tests.builders import CPU, ROOT, known, sized
from tests.golden.op_types import INTERFACES
from tests.unit.ops.handed import Handed, handed_by

PROVIDERS = ("flashinfer", "sglang")


def representatives() -> dict[str, dict[str, int]]:
    """Return a definition of every op_type, reference and set of backends.

    Its axes are those of its interface's representative, which are short.
    """
    short = {
        (loaded.op_type, tuple(loaded.interface.inputs)): axes
        for name, axes in INTERFACES.items()
        for loaded in (known(name),)
    }
    found: dict[Any, str] = {}
    every = load_definitions(ROOT).definitions
    for definition in sorted(every, key=lambda one: one.name not in INTERFACES):
        text = definition.reference.splitlines()
        # constants at the top are what differs between definitions of one text
        body = tuple(line for line in text if not line[:1].isupper())
        found.setdefault((definition.op_type, body), definition.name)
    chosen = {}
    for name in (*INTERFACES, *found.values()):
        one = known(name)
        axes = short.get((one.op_type, tuple(one.interface.inputs)), {})
        chosen[name] = {a: n for a, n in axes.items() if a in one.axes}
    return chosen


def subjects() -> list[tuple[str, str, str]]:
    """Return the definition, provider and backend of each adapter that can be asked."""
    found = []
    for name, axes in representatives().items():
        definition = sized(name, **axes)
        for provider, kernel in op_module(definition.op_type).OP.kernels.items():
            if provider in PROVIDERS:
                backends = kernel.backends(definition)
                found += [(name, provider, b.name) for b in backends if not b.limit]
    return found


REPRESENTATIVES = representatives()
SUBJECTS = subjects()


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make scratch memory small, and ranks of one CPU."""
    monkeypatch.setattr(attention, "WORKSPACE_BYTES", 64)
    attention.workspace.cache_clear()
    monkeypatch.setattr(ranks, "devices_of", lambda first, count: [CPU] * count)
    monkeypatch.setattr(ranks, "_finish", lambda devices: None)
    monkeypatch.setattr(ranks, "_agreed", lambda answers: answers[0])
    monkeypatch.setattr(torch.cuda, "device", lambda device: nullcontext())


def handed(definition: Definition, provider: str, backend: str) -> Handed:
    """Return what an adapter computes in the small cases of a definition."""
    op = op_module(definition.op_type)
    adapter = op.OP.kernels[provider].call
    total = Handed()
    for case in op.cases(definition):
        if case.size != "small":
            continue
        trial = Trial(definition, case, CPU, op.make_inputs, lambda: None)
        lazy = provider == "sglang"
        given = trial.lazy_inputs() if lazy else trial.fresh_inputs()
        try:
            found = handed_by(adapter, definition, given, backend)
        except Skip:
            continue
        total.inputs |= found.inputs
        total.outputs |= found.outputs
        total.calls += found.calls
    return total


def backend_of(definition: Definition, provider: str, name: str) -> Backend:
    """Return a backend by its name."""
    kernel = op_module(definition.op_type).OP.kernels[provider]
    (found,) = (b for b in kernel.backends(definition) if b.name == name)
    return found


@pytest.mark.parametrize(("name", "provider", "backend"), SUBJECTS)
def test_a_kernel_is_handed_the_inputs_or_the_backend_says_what_is_rewritten(
    name: str, provider: str, backend: str
) -> None:
    definition = sized(name, **REPRESENTATIVES[name])
    found = handed(definition, provider, backend)
    said = backend_of(definition, provider, backend).rewrites
    assert found.calls, "the adapter calls nothing of its provider"
    for what, computed in (("inputs", found.inputs), ("outputs", found.outputs)):
        declared = f"{what} rewritten: " in said
        assert not computed or declared, f"undeclared {what}: {sorted(computed)}"
        assert computed or not declared, f"{what} are not rewritten, but {said!r}"


def test_every_op_type_with_an_adapter_is_asked() -> None:
    asked = {known(name).op_type for name, _, _ in SUBJECTS}
    missing = {
        op_type
        for op_type, spec in op_specs().items()
        if any(p not in spec.absent for p in PROVIDERS)
    } - asked
    assert not missing


X = {
    "x": torch.arange(12.0).view(3, 4) / 7.0,
    "n": torch.tensor([1, 2], dtype=torch.int32),
}
PLANTED: dict[str, tuple[Callable[..., Any], str]] = {
    "a product": (lambda k, i: k.run(i["x"] * 2.0), "inputs"),
    "a product in place": (lambda k, i: k.run(i["x"].mul_(2.0)), "inputs"),
    "a product through numpy": (
        lambda k, i: k.run(torch.from_numpy(i["x"].numpy() * 2.0)),
        "inputs",
    ),
    "a list of products": (
        lambda k, i: k.run(torch.tensor([v * 3.0 for v in i["x"][0].tolist()])),
        "inputs",
    ),
    "a product written to new memory": (
        lambda k, i: k.run(torch.empty_like(i["x"]).copy_(i["x"] + 1.0)),
        "inputs",
    ),
    "a cast that rounds": (lambda k, i: k.run(i["x"].half()), "inputs"),
    "a mask": (lambda k, i: k.run(i["x"].masked_fill(i["x"] > 1.0, 0.0)), "inputs"),
    "a masked copy": (
        lambda k, i: k.run(torch.where(i["x"] > 1.0, i["x"], 0.0)),
        "inputs",
    ),
    "rows in an order of their values": (
        lambda k, i: k.run(i["x"][i["x"].sum(1).argsort()]),
        "inputs",
    ),
    "ids of the largest": (lambda k, i: k.run(i["x"].argmax(1)), "inputs"),
    "a scale": (lambda k, i: k.run(i["x"], scale=float(i["x"][1, 1]) * 0.37), "inputs"),
    "an attribute of a layer": (lambda k, i: setattr(k, "w", i["x"] + 1), "inputs"),
    "inside of a namespace": (
        lambda k, i: k.run(SimpleNamespace(w=[i["x"].exp()])),
        "inputs",
    ),
    "an answer that is scaled": (lambda k, i: k.run(i["x"]) * 2.0, "outputs"),
    "an answer of torch": (lambda k, i: torch.exp(k.run(i["x"])), "outputs"),
    "half of it by the adapter": (
        lambda k, i: (k.run(i["x"]), i["x"].sum()),
        "outputs",
    ),
    "a buffer that is changed behind the kernel": (
        lambda k, i: (out := torch.empty(3), k.run(i["x"], out=out), out.add_(1.0))[2],
        "outputs",
    ),
}
ALLOWED: dict[str, Callable[..., Any]] = {
    "views": lambda k, i: k.run(i["x"].T.reshape(2, 6)[1:].unsqueeze(0)),
    "copies": lambda k, i: k.run(torch.cat([i["x"], i["x"]]).contiguous()),
    "a wider cast": lambda k, i: k.run(i["x"].double()),
    "plans": lambda k, i: k.run(i["n"].diff() + 1, torch.tensor(i["n"].tolist())),
    "allocations": lambda k, i: k.run(torch.zeros(4), torch.empty(3, 2)),
    "rows by a plan": lambda k, i: k.run(i["x"][i["n"].long() - 1]),
    "an answer as it is": lambda k, i: k.run(i["x"])[0].to(torch.float32),
    "a buffer": lambda k, i: (out := torch.empty(3), k.run(i["x"], out=out), out)[2],
    "several answers": lambda k, i: [(a, b) for a, b in [tuple(k.run(i["x"])) * 2]],
}


def planted(call: Callable[..., Any]) -> Handed:
    """Return what an adapter that makes a call is seen to compute."""

    def adapter(definition: Definition, inputs: dict[str, Any], backend: str) -> Any:
        import flashinfer

        return call(flashinfer.kernels, inputs)

    interface = Interface({"x": "float32[m, k]", "n": "int32[b]"}, {})
    definition = Definition("one", "rmsnorm", interface, {"k": 4})
    given = {name: value.clone() for name, value in X.items()}
    return handed_by(adapter, definition, given, "")


@pytest.mark.parametrize("what", PLANTED)
def test_what_an_adapter_computes_is_seen(what: str) -> None:
    call, where = PLANTED[what]
    found = planted(call)
    assert found.inputs if where == "inputs" else found.outputs


@pytest.mark.parametrize("what", ALLOWED)
def test_what_an_adapter_may_do_is_not(what: str) -> None:
    found = planted(ALLOWED[what])
    assert not found.inputs
    assert not found.outputs
