"""Each provider's verdict on machines that have more and more of what it needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from generator.dataset.definition import LoadedAxis, LoadedDefinition, LoadedTensor
from generator.ground_truth.interface import Availability, Library, version_numbers
from generator.ground_truth.libraries import libraries
from generator.ground_truth.machine import Machine
from generator.ground_truth.resolver import Resolution, resolve
from generator.ops.family import every_spec
from generator.ops.op_source import OpSource, op_source
from generator.ops.registry import op_specs
from generator.ops.spec import OpSpec
from generator.rules.load import load_definitions
from kernel_judge.obstacle import Kind, Obstacle
from tests.builders import ROOT

PROVIDERS = FLASHINFER, SGLANG, PYTORCH = libraries()
NO_CUDA = Obstacle(Kind.NEEDS_CUDA, "needs CUDA, no CUDA device here")
ALL = {"flashinfer-python": "0.6.9", "sglang": "0.5.23", "torch": "2.13.0"}


@dataclass(frozen=True)
class FakeMachine(Machine):
    """A machine with the distributions and the import failures that it is given."""

    capability: int | None = 90
    versions: Mapping[str, str] = field(default_factory=lambda: ALL)
    failures: Mapping[str, str] = field(default_factory=dict)

    def version(self, distribution: str) -> str | None:
        return self.versions.get(distribution)

    def import_failure(self, module: str) -> str:
        return self.failures.get(module, "")


def definition(
    op_type: str = "rmsnorm", tags: tuple[str, ...] = (), reference: str = "EPS = 1e-6"
) -> LoadedDefinition:
    if op_type in op_specs():
        of_family = next(spec for spec in every_spec() if spec.op_type == op_type)
        (known,) = load_definitions(ROOT, names=[of_family.name]).definitions
        return replace(known, name="some", tags=tags, reference=reference)
    tensor = LoadedTensor("x", ("M",), "bfloat16")
    return LoadedDefinition(
        name="some",
        op_type=op_type,
        path=f"definitions/{op_type}/some.json",
        sha256="0" * 64,
        axes={"M": LoadedAxis("M", None)},
        inputs={"x": tensor},
        outputs={"y": tensor},
        reference=reference,
        tags=tags,
    )


def judge(
    library: Library, some: LoadedDefinition, source: OpSource, machine: Machine
) -> Availability:
    return library.judge(some, op_specs()[some.op_type], source, machine)


def op(*providers: str) -> OpSource:
    return OpSource((), "", (), providers)


@pytest.mark.parametrize(
    ("machine", "kind", "reason"),
    [
        (FakeMachine(None, {}), Kind.NOT_INSTALLED, "not installed"),
        (
            FakeMachine(None, {"flashinfer-python": "0.5.9"}),
            Kind.TOO_OLD,
            "version 0.5.9 is older than 0.6",
        ),
        (
            FakeMachine(None, {"flashinfer-python": "unknown"}),
            Kind.TOO_OLD,
            "version unknown is older than 0.6",
        ),
        (FakeMachine(None), Kind.NEEDS_CUDA, "needs CUDA, no CUDA device here"),
        (
            FakeMachine(failures={"flashinfer": "import failed: OSError: libcudart"}),
            Kind.BROKEN,
            "import failed: OSError: libcudart",
        ),
    ],
)
def test_what_stands_in_the_way(machine: FakeMachine, kind: Kind, reason: str) -> None:
    found = judge(FLASHINFER, definition(), op("flashinfer"), machine)
    assert not found.usable
    assert found.obstacle == Obstacle(kind, reason)
    assert found.version == (machine.version("flashinfer-python") or "")


@pytest.mark.parametrize("version", ["0.6", "0.6.0rc1", "0.6.18.post1", "1.0"])
def test_usable(version: str) -> None:
    machine = FakeMachine(versions={"flashinfer-python": version})
    tags = ("fi_api:flashinfer.norm.rmsnorm", "fi_api:other.thing", "model:x")
    found = judge(FLASHINFER, definition(tags=tags), op_source("rmsnorm"), machine)
    assert found == Availability("flashinfer", None, "flashinfer.norm.rmsnorm", version)


def test_without_an_adapter_nothing_is_tried() -> None:
    class Untouchable(FakeMachine):
        def version(self, distribution: str) -> str | None:
            raise AssertionError(distribution)

    found = judge(SGLANG, definition(), op("flashinfer"), Untouchable())
    obstacle = Obstacle(Kind.NO_ADAPTER, "no SGLang adapter for rmsnorm")
    assert found == Availability("sglang", obstacle)


def test_nothing_is_imported_where_the_reason_is_known() -> None:
    class Untouchable(FakeMachine):
        def import_failure(self, module: str) -> str:
            raise AssertionError(module)

    machine = Untouchable(None)
    found = judge(PYTORCH, definition("gemm"), op_source("gemm"), machine)
    assert found.obstacle == NO_CUDA


@pytest.mark.parametrize(
    ("version", "numbers"),
    [
        ("0.6.18.post1", (0, 6, 18)),
        ("2.13.0+cpu", (2, 13)),
        ("1", (1,)),
        ("", ()),
        ("dev", ()),
    ],
)
def test_version_numbers(version: str, numbers: tuple[int, ...]) -> None:
    assert version_numbers(version) == numbers


def test_libraries_say_their_own_names() -> None:
    assert [library.name for library in libraries()] == [
        "flashinfer",
        "sglang",
        "pytorch",
    ]
    assert [library.provider.distribution for library in libraries()] == list(ALL)


def test_an_op_may_say_why_a_library_has_no_adapter() -> None:
    spec = OpSpec("some", {}, absent={"sglang": "has no such kernel"})
    found = SGLANG.judge(definition(), spec, op(), FakeMachine())
    obstacle = Obstacle(Kind.NO_KERNEL, "has no such kernel")
    assert found == Availability("sglang", obstacle)


# ---- the resolver


def test_the_first_usable_provider_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    every = op(*(provider.name for provider in PROVIDERS))
    monkeypatch.setattr(
        "generator.ground_truth.resolver.op_source", lambda op_type: every
    )
    some = definition()
    for missing, chosen in (
        ((), "flashinfer"),
        (("flashinfer-python",), "sglang"),
        (("flashinfer-python", "sglang"), "pytorch"),
        (tuple(ALL), None),
    ):
        versions = {name: v for name, v in ALL.items() if name not in missing}
        found = resolve(some, FakeMachine(versions=versions))
        assert (found.chosen.provider if found.chosen else None) == chosen
        assert [v.provider for v in found.providers] == [p.name for p in PROVIDERS]
        assert [str(v.obstacle) for v in found.rejected] == ["not installed"] * len(
            missing
        )


def test_as_dict_of_a_usable_provider() -> None:
    some = definition(tags=("fi_api:flashinfer.norm.rmsnorm",))
    machine = FakeMachine(versions={**ALL, "sglang": "0.5.10"})
    assert resolve(some, machine).as_dict() == {
        "definition": "some",
        "op_type": "rmsnorm",
        "provider": "flashinfer",
        "symbol": "flashinfer.norm.rmsnorm",
        "version": "0.6.9",
        "note": "",
        "status": "RESOLVED",
        "reason": "",
        "rejected": {
            "sglang": {
                "kind": "too-old",
                "reason": "version 0.5.10 is older than 0.5.23",
            },
            "pytorch": {
                "kind": "no-adapter",
                "reason": "no PyTorch adapter for rmsnorm",
            },
        },
        "replay": {"recordings": [], "kind": None, "reason": ""},
    }


def test_as_dict_of_a_light_installation_without_a_device() -> None:
    class Light(FakeMachine):
        def missing(self, modules: Iterable[str]) -> tuple[str, ...]:
            return ("zmq",)

    found = resolve(definition(), Light(None)).as_dict()
    assert (found["provider"], found["version"]) == ("sglang", "0.5.23")
    assert found["note"] == "light installation"


def test_sglang_needs_cuda_where_no_backend_does_without() -> None:
    machine, source = FakeMachine(None), op("sglang")
    found = judge(SGLANG, definition(), source, machine)
    assert found.obstacle == NO_CUDA
    on_cpu = replace(source, on_cpu=("sglang",))
    assert judge(SGLANG, definition(), on_cpu, machine).usable


def test_op_modules_say_who_does_without_cuda() -> None:
    assert op_source("rmsnorm").on_cpu == ("sglang",)
    assert op_source("gemm").on_cpu == ()


def _nothing(found: dict[str, Any]) -> list[Any]:
    return [found["provider"], found["symbol"], found["version"]]


def test_as_dict_where_nothing_is_usable() -> None:
    machine = FakeMachine(None, {"flashinfer-python": "0.6.9"})
    found = resolve(definition(), machine).as_dict()
    assert _nothing(found) == [None, None, None]
    assert (found["status"], found["reason"]) == ("RESOLVED", "")
    assert found["rejected"]["flashinfer"] == {
        "kind": "needs-cuda",
        "reason": "needs CUDA, no CUDA device here",
    }


def test_an_op_type_without_a_module_is_unresolved() -> None:
    found = resolve(definition("twice"), FakeMachine())
    assert found == Resolution(definition("twice"), (), "no op module for twice")
    assert found.chosen is None
    assert found.rejected == ()
    assert found.as_dict()["status"] == "UNRESOLVED"
    assert found.as_dict()["reason"] == "no op module for twice"


def test_an_op_type_without_a_module_may_be_matched_by_name() -> None:
    tagged = definition("twice", tags=["fi_api:flashinfer.twice"])
    reason = resolve(tagged, FakeMachine()).unresolved
    assert reason == "no op module for twice; its tests match its fi_api by name"


def test_a_constant_that_no_source_knows_is_unresolved() -> None:
    found = resolve(definition(reference="X = 1"), FakeMachine())
    assert (found.unresolved, found.chosen) == ("no source knows eps", None)


def test_a_registry_of_ones_own_is_looked_at() -> None:
    assert resolve(definition(), FakeMachine(), ops={}).unresolved
    assert not resolve(definition("gemm"), FakeMachine(), ops=op_specs()).unresolved
