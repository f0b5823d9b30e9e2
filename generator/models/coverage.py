"""Coverage of a model: the definitions that a dataset has for it, and their proofs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from generator.dataset.atomic_write import write_below
from generator.dataset.definition import LoadedDefinition, build_definition
from generator.dataset.paths import DatasetFile, Discovered
from generator.models.config import Config
from generator.models.instances import instance
from generator.models.modules import needs, unplaced
from generator.models.need import Need
from generator.models.parallel import Deployment
from generator.models.projections import BF16, F16, model_dtype
from generator.ops.family import Spec, definition_json
from generator.ops.registry import op_specs
from generator.ops.workloads.lines import spec_files
from generator.problems.messages import plural
from generator.reports.report import (
    Conclusion,
    Quoted,
    Report,
    Row,
    Section,
    Status,
    Table,
)
from generator.results.sources import ORACLE, is_kernel, is_layer, is_recorded
from generator.rules import route_calls
from generator.rules.constants import resolve_constants
from generator.rules.load import load_file
from generator.rules.route_calls import ROUTE_INTERFACE


class State(str, Enum):
    """The coverage of a module; the first four have a definition that fits."""

    KERNEL = "agrees with a kernel"
    LAYER = "agrees with a PyTorch layer of SGLang"
    ORACLE = "agrees with the oracle alone"
    UNVERIFIED = "nothing agreed yet"
    OTHER = "other constants"
    MISSING = "missing"
    NOT_CALLED = "called otherwise"
    NO_FAMILY = "no family"

    @property
    def is_there(self) -> bool:
        """Return whether the dataset has the definition."""
        known = (State.KERNEL, State.LAYER, State.ORACLE, State.UNVERIFIED)
        return self in known


_STATUS = {
    State.KERNEL: Status.PASSED,
    State.LAYER: Status.OPEN,
    State.ORACLE: Status.OPEN,
}


@dataclass(frozen=True)
class ModuleCoverage:
    """The need of a module, its coverage, and the definition or the reason for none.

    `spec` is a missing definition that its family makes.
    """

    need: Need
    state: State
    note: str
    spec: Spec | None = None


def coverage(
    config: Config,
    deployment: Deployment,
    root: Path,
    discovered: Discovered,
    agreed: Mapping[str, Iterable[str]],
) -> list[ModuleCoverage]:
    """Return one entry for each module of a model; several may need one definition.

    `agreed` maps a definition to the sources that it agreed with. Raises Failure as the
    figures of a config do.
    """
    files = {file.name: file for file in discovered.files}
    dtype = model_dtype(config)
    covered = []
    for need in needs(config, deployment):
        there = [files[n] for n in need.names if n in files]
        entries = [_there(need, dtype, root, file, agreed) for file in there]
        fits = next((entry for entry in entries if entry.state.is_there), None)
        covered.append(fits or _absent(config, deployment, need, entries))
    return covered


def write_missing(root: Path, covered: Iterable[ModuleCoverage]) -> Iterator[str]:
    """Write the missing definitions that families make, with workloads; yield paths."""
    for entry in distinct(covered):
        if entry.spec is not None:
            # the definition last: with it the rest counts as there, and is not written
            for path, content in reversed([*spec_files(entry.spec)]):
                write_below(root, path, content)
                yield path


def distinct(covered: Iterable[ModuleCoverage]) -> list[ModuleCoverage]:
    """Return one entry for each definition."""
    return list({entry.need.name: entry for entry in covered}.values())


def _absent(
    config: Config, deployment: Deployment, need: Need, others: Sequence[ModuleCoverage]
) -> ModuleCoverage:
    """Return what to say where no definition fits; `others` have other constants."""
    why = "".join(f"{other.need.name}: {other.note}; " for other in others)
    spec = instance(config, deployment, need)
    if spec is not None:
        value = json.loads(definition_json(spec))
        definition = build_definition(value, f"{spec.op_type}/{spec.name}.json", "")
        other = [*differences(need, definition, model_dtype(config))]
        if other:
            return ModuleCoverage(need, State.NO_FAMILY, f"{why}{'; '.join(other)}")
        broken = _call_of(definition)
        if broken:
            return ModuleCoverage(need, State.NOT_CALLED, f"{why}{broken}")
        return ModuleCoverage(need, State.MISSING, f"{why}--write makes it", spec)
    known = need.op_type in op_specs()
    lacks = "no family of {} makes it" if known else "there is no op_type {}"
    return ModuleCoverage(need, State.NO_FAMILY, why + lacks.format(need.op_type))


def _call_of(definition: LoadedDefinition) -> str:
    """Return how FlashInfer calls a definition's name by another interface, or nothing."""
    broken = (p for p in route_calls.check(definition) if p.rule == ROUTE_INTERFACE.id)
    return next((problem.message for problem in broken), "")


def _there(
    need: Need,
    dtype: str,
    root: Path,
    file: DatasetFile,
    agreed: Mapping[str, Iterable[str]],
) -> ModuleCoverage:
    need = replace(need, name=file.name)
    return ModuleCoverage(need, *_state(need, dtype, root, file, agreed))


def _state(
    need: Need,
    dtype: str,
    root: Path,
    file: DatasetFile,
    agreed: Mapping[str, Iterable[str]],
) -> tuple[State, str]:
    definition, problems = load_file(root, file)
    if definition is None:
        why = problems[0].message if problems else "it can't be read"
        return State.UNVERIFIED, why
    other = list(differences(need, definition, dtype))
    if other:
        return State.OTHER, "; ".join(other)
    sources = sorted(set(agreed.get(need.name, ())))
    kernels = [source for source in sources if is_kernel(source)]
    live = [source for source in kernels if not is_recorded(source)]
    if kernels:
        return State.KERNEL, ", ".join(live or kernels)
    if layers := [source for source in sources if is_layer(source)]:
        return State.LAYER, ", ".join(layers)
    return (State.ORACLE, ORACLE) if sources else (State.UNVERIFIED, "")


def differences(need: Need, definition: LoadedDefinition, dtype: str) -> Iterator[str]:
    """Yield in words what makes a definition another model's: constants and dtypes.

    `dtype` is the model's own; what a definition has in 16 bits must be in that one.
    """
    yield from other_constants(need, definition)
    for name, tensor in definition.inputs.items():
        wanted = need.dtypes.get(name)
        if wanted is None and tensor.dtype in (BF16, F16):
            wanted = dtype
        if wanted is not None and tensor.dtype != wanted:
            yield f"its {name} is {tensor.dtype}, the model's is {wanted}"
            return


def other_constants(need: Need, definition: LoadedDefinition) -> Iterator[str]:
    """Yield in words each constant of a definition that is not the model's."""
    spec = op_specs().get(definition.op_type)
    constants = resolve_constants(definition, spec)[0] if spec else ()
    for constant in constants:
        wanted = need.constants.get(constant.name, constant.value)
        if constant.value is not None and wanted != constant.value:
            yield (
                f"its {constant.name} is {constant.value!r}, the model's is {wanted!r}"
            )


def coverage_report(
    config: Config, deployment: Deployment, covered: list[ModuleCoverage]
) -> Report:
    """Return the report of one model: a row for each module."""
    each = distinct(covered)
    there = sum(entry.state.is_there for entry in each)
    proven = sum(entry.state is State.KERNEL for entry in each)
    summary = (
        f"{plural(len(each), 'definition')} needed: {there} are there, {proven} "
        "agreed with a kernel"
    )
    left = unplaced(config, deployment)
    if left:
        summary += f"; not placed: {', '.join(left)}"
    rows = [
        Row(
            (
                entry.need.module,
                Quoted(entry.need.name),
                entry.state.value,
                entry.note,
            ),
            _STATUS.get(entry.state, Status.FAILED),
        )
        for entry in covered
    ]
    columns = ("module", "definition", "state", "by, or why not")
    status = Status.PASSED if there == len(each) else Status.FAILED
    deployed = (
        f"tp {deployment.tp}, ep {deployment.ep}, pages of {deployment.page_size}"
    )
    return Report(
        f"Definitions for {config.name}",
        "trace-dataset model",
        lambda: Conclusion(status, summary),
        _payload(config, deployment, covered),
        [Section("", [Table(rows, columns, columns, marked="state")])],
        about=f"{deployed}, {deployment.kv_dtype} cache",
    )


def _payload(
    config: Config, deployment: Deployment, covered: list[ModuleCoverage]
) -> dict[str, Any]:
    return {
        "model": config.name,
        "deployment": vars(deployment),
        "unplaced": unplaced(config, deployment),
        "modules": [
            {
                "module": entry.need.module,
                "op_type": entry.need.op_type,
                "definition": entry.need.name,
                "constants": dict(entry.need.constants),
                "state": entry.state.name.lower(),
                "note": entry.note,
            }
            for entry in covered
        ],
    }
