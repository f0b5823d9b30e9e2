"""Each model at each parallelism: what one GPU runs there, and how far it is covered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from generator.dataset.paths import Discovered
from generator.models.config import load
from generator.models.coverage import ModuleCoverage, coverage, distinct
from generator.models.modules import unplaced
from generator.models.parallel import Deployment
from generator.problems import Failure

_TENSOR, _EXPERT = "tp 8", "tp 8, ep 8"
COLUMNS: Mapping[str, Deployment] = {
    "tp 1": Deployment(),
    "tp 2": Deployment(tp=2),
    "tp 4": Deployment(tp=4),
    _TENSOR: Deployment(tp=8),
    _EXPERT: Deployment(tp=8, ep=8),
}


@dataclass(frozen=True)
class ModelSurvey:
    """The needs of a model in one column, or why it is refused there.

    A model without experts has no column with `ep`. `unplaced` are modules that no
    definition is named for.
    """

    covered: Mapping[str, Sequence[ModuleCoverage]] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    unplaced: Sequence[str] = ()

    def missing(self, column: str) -> list[ModuleCoverage]:
        """Return what has no definition in a column, each definition once."""
        return [e for e in self.definitions(column) if not e.state.is_there]

    def definitions(self, column: str) -> list[ModuleCoverage]:
        """Return what is needed in a column, each definition once."""
        return distinct(self.covered[column])


def survey(
    name: str, root: Path, discovered: Discovered, agreed: Mapping[str, Iterable[str]]
) -> ModelSurvey:
    """Return how far a model is covered in each column; arguments as of `coverage`."""
    covered: dict[str, Sequence[ModuleCoverage]] = {}
    refused: dict[str, str] = {}
    left: Sequence[str] = ()
    for column, deployment in COLUMNS.items():
        try:
            config = load(name)
            covered[column] = coverage(config, deployment, root, discovered, agreed)
            left = unplaced(config, deployment)
        except Failure as failure:
            refused[column] = str(failure)
    answers = [
        [entry.need.name for entry in covered[column]] if column in covered else None
        for column in (_TENSOR, _EXPERT)
    ]
    if answers[0] == answers[1]:
        for table in (covered, refused):
            table.pop(_EXPERT, None)
    return ModelSurvey(covered, refused, left)
