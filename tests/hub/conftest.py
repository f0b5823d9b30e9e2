"""The loopback Hub for the tests of this folder."""

from tests.hub.fixtures import hub

__all__ = ["hub"]
