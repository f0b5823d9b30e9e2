"""A model as it is deployed: what all of its modules depend on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from generator.models.config import Config
from generator.models.layers import Layer, layers, places
from generator.models.parallel import Deployment
from generator.models.projections import Projections
from generator.problems.messages import show

_EPS = ("rms_norm_eps", "norm_eps", "layer_norm_epsilon", "norm_epsilon")


@dataclass(frozen=True)
class Deployed:
    """A config and a deployment, with the layers and the constants of the norms."""

    config: Config
    deployment: Deployment
    layers: tuple[Layer, ...]
    norms: Mapping[str, Any]

    def projections(self, *kinds: str) -> Projections:
        """Return what names the linear layers of the layers of some kinds."""
        return Projections(self.config, self.deployment, places(self.layers, *kinds))


def deployed(config: Config, deployment: Deployment) -> Deployed:
    """Return a model as it is deployed. Raises Failure for figures that none has."""
    eps = config.get(*_EPS)
    if type(eps) is not float or not 0.0 < eps < 1e-2:
        stated = "is missing" if eps is None else f"is {show(eps)}"
        config.refuse("rms_norm_eps", f"{stated}, no number between 0 and 0.01")
    norms = {"eps": eps, "unit_offset": config.architecture.unit_offset}
    return Deployed(config, deployment, layers(config), norms)
