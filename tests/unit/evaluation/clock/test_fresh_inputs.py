"""Each timed call has values that no rule gets from those of another one."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from generator.evaluation.clock.fresh_inputs import FreshInputs


def draws(*shapes: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Any:
    made = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        made.append({f"x{n}": torch.randn(s).to(dtype) for n, s in enumerate(shapes)})
    return made


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float8_e4m3fn]
)
def test_elements_are_of_one_draw_or_the_other(dtype: torch.dtype) -> None:
    given = draws((64, 32), dtype=dtype)
    fresh = FreshInputs(given, "cpu", 3)
    first, second = (
        d["x0"].view(-1).view(torch.uint8).view(64 * 32, -1) for d in given
    )
    for _ in range(3):
        found = fresh.next()["x0"]
        assert (found.dtype, found.shape) == (dtype, (64, 32))
        bits = found.view(-1).view(torch.uint8).view(64 * 32, -1)
        of_first, of_second = (bits == first).all(1), (bits == second).all(1)
        assert bool((of_first | of_second).all())
        assert 0.4 < float(of_first.float().mean()) < 0.7


def test_no_row_of_a_call_comes_again() -> None:
    fresh = FreshInputs(draws((128, 64)), "cpu", 5)
    rows = torch.cat([fresh.next()["x0"] for _ in range(20)])
    assert len(rows.unique(dim=0)) == len(rows)


def test_difference_of_two_calls_has_full_rank() -> None:
    # else the product's change would be cheaper than the product
    fresh = FreshInputs(draws((48, 64)), "cpu", 7)
    change = fresh.next()["x0"] - fresh.next()["x0"]
    assert int(torch.linalg.matrix_rank(change)) == 48


def test_integers_are_whole_and_stay_together() -> None:
    given = draws((8, 4))
    for seed, draw in enumerate(given):
        draw |= {
            "indptr": torch.tensor([0, 3 + seed, 9]),
            "indices": torch.arange(9) + 10 * seed,
            "mask": torch.full((4,), bool(seed)),
            "eps": 1e-6,
        }
    fresh, seen = FreshInputs(given, "cpu", 9), set()
    for _ in range(12):
        found = fresh.next()
        seed = int(found["indptr"][1]) - 3
        assert int(found["indices"][0]) == 10 * seed
        assert bool(found["mask"][0]) == bool(seed)
        assert found["eps"] == 1e-6
        seen.add(seed)
    assert seen == {0, 1}


def test_bytes_that_are_codes_are_mixed() -> None:
    given = [{"w": torch.full((1000,), value, dtype=torch.uint8)} for value in (1, 2)]
    assert set(FreshInputs(given, "cpu", 1).next()["w"].tolist()) == {1, 2}


def test_nobody_else_can_draw_the_same() -> None:
    given = draws((16, 16))
    one, same = (FreshInputs(given, "cpu", 11).next()["x0"] for _ in range(2))
    assert torch.equal(one, same)
    torch.manual_seed(11)
    other = FreshInputs(given, "cpu", 12).next()["x0"]
    assert not torch.equal(one, other)


def test_values_that_a_workload_states_are_not_fresh() -> None:
    given = [{"x": torch.ones(4, 4)}] * 2
    assert not FreshInputs(given, "cpu", 1).is_fresh
    assert FreshInputs(draws((4, 4)), "cpu", 1).is_fresh


def test_draws_of_other_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="other shapes"):
        FreshInputs([{"x": torch.ones(3)}, {"x": torch.ones(4)}], "cpu", 1)


def test_scalars_and_empty_tensors_pass() -> None:
    given = [{"x": torch.tensor(float(n)), "none": torch.ones(0, 4)} for n in (1, 2)]
    found = FreshInputs(given, "cpu", 1).next()
    assert float(found["x"]) in (1.0, 2.0)
    assert found["x"].shape == ()


def test_integers_of_rows_come_in_other_orders_and_stay_together() -> None:
    given = draws((32, 4))
    for seed, draw in enumerate(given):
        numbers = torch.arange(32) + 100 * seed
        draw |= {"experts": numbers[:, None].repeat(1, 2), "places": numbers[None]}
        draw["table"] = torch.arange(7) + seed
    fresh = FreshInputs(given, "cpu", 3, {"x0": 0, "experts": 0, "places": 1})
    orders = set()
    for _ in range(8):
        values = fresh.next()
        places = values["places"][0]
        assert torch.equal(values["experts"][:, 0], places)
        draw = int(places.max() >= 100)
        assert torch.equal(places.sort().values, torch.arange(32) + 100 * draw)
        assert torch.equal(values["table"], given[draw]["table"])
        orders.add(tuple(places.tolist()))
    assert len(orders) == 8
