"""Identities of workloads: of the values, not of how a line is written."""

from __future__ import annotations

import pytest

from generator.dataset.workload_identity import workload_identity

WORKLOAD = {
    "uuid": "33bf737d-3b37-4e38-be80-ea39b4b46ae6",
    "axes": {"batch": 7, "pages": 9},
    "inputs": {"x": {"type": "random"}, "n": {"type": "scalar", "value": 2}},
}


def test_the_order_of_keys_says_nothing():
    turned = {
        "inputs": dict(reversed(WORKLOAD["inputs"].items())),
        "axes": {"pages": 9, "batch": 7},
        "uuid": WORKLOAD["uuid"],
    }
    identity = workload_identity(WORKLOAD)
    assert identity == workload_identity(turned)
    assert identity.startswith("33bf737d-")
    assert len(identity) == 17


@pytest.mark.parametrize(
    "change",
    [
        {"uuid": "43bf737d-3b37-4e38-be80-ea39b4b46ae6"},
        {"axes": {"batch": 8, "pages": 9}},
        {"inputs": {**WORKLOAD["inputs"], "n": {"type": "scalar", "value": 3}}},
    ],
)
def test_a_workload_that_changed_is_another(change):
    assert workload_identity({**WORKLOAD, **change}) != workload_identity(WORKLOAD)
