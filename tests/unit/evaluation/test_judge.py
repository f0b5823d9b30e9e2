"""Where the judge compares: on the GPU while that has room, else on the CPU."""

from __future__ import annotations

import pytest
import torch

from generator.evaluation import judge
from generator.evaluation.judge import Judge

# a device that no machine lacks
META = torch.device("meta")


@pytest.mark.parametrize(
    ("device", "room", "places"),
    [
        ("cpu", 0, ["cpu", "cpu"]),
        ("meta", 10**6, ["meta", "meta"]),
        ("meta", 100, ["cpu", "cpu"]),
        ("meta", None, ["cpu", "cpu"]),
    ],
)
def test_tensors_are_compared_on_the_gpu_if_that_has_room(
    monkeypatch, device, room, places
):
    monkeypatch.setattr(judge, "available_bytes", lambda device: room)
    asking = Judge(None, None, torch.device(device), True, 1)
    found = asking._near(torch.ones(8), torch.ones(4, 2))
    assert [value.device.type for value in found] == places


def test_what_is_no_tensor_stays_as_it_is(monkeypatch):
    monkeypatch.setattr(judge, "available_bytes", lambda device: 10**6)
    assert Judge(None, None, META, True, 1)._near(3.0, 4) == (3.0, 4)
