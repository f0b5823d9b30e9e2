"""The loopback Hub, and a dataset to pull, for the tests of this folder."""

from tests.hub.fixtures import hub
from tests.hub.pulling import pull, repository, root

__all__ = ["hub", "pull", "repository", "root"]
