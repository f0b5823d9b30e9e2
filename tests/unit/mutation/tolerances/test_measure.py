"""What a float64 run of a reference is compared with."""

import torch

from generator.mutation.tolerances.floor import half_ulp
from generator.mutation.tolerances.measure import _codes, _is_code

E4M3 = torch.float8_e4m3fn


def test_an_oracle_of_codes_is_told_from_one_of_values() -> None:
    values = torch.tensor([1.125, -0.5, 448.0], dtype=torch.float64)
    assert _is_code(values, E4M3)
    assert not _is_code(values + 0.01, E4M3)
    # all bfloat16 outputs may happen to be whole numbers
    assert not _is_code(values, torch.bfloat16)


def test_float64_is_rounded_to_codes_and_a_wrong_code_stays_wrong() -> None:
    # 1.1875 lies between 1.125 and 1.25; float32 makes it of the last of these
    exact = torch.tensor([1.13, 1.13, 1.1875 - 4.6e-8], dtype=torch.float64)
    expected = torch.tensor([1.125, 1.25, 1.125], dtype=torch.float64)
    assert _codes(exact, expected, E4M3).tolist() == [1.125, 1.125, 1.125]


def test_nobody_rounds_to_integers() -> None:
    values = torch.tensor([0.0, 3.0], dtype=torch.float64)
    assert half_ulp(values, torch.int8).tolist() == [0.0, 0.0]
    assert half_ulp(values, torch.bfloat16)[1] > 0.0
