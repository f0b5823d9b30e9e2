"""Names of torch that do not exist are found without importing torch."""

import pytest

from generator.rules.torch_names import _missing

_RUN = "def run(x):\n    return "


@pytest.mark.parametrize(
    "source",
    [
        f"import torch\n{_RUN}torch.nn.functional.silu(torch.exp(x)).topkk(2)\n",
        f"import torch.nn.functional as F\n{_RUN}F.softmax(x, -1)\n",
        f"from torch import nn\n{_RUN}nn.functional.gelu(x)\n",
        "import torch\ndef run(torch):\n    return torch.anything\n",
        f"import torch\n{_RUN}torch.newer(x) if hasattr(torch, 'newer') else x\n",
        f"import torch\n{_RUN}torch.Tensor.anything(x).to(torch.float8_e4m3fn)\n",
        f"import numpy\n{_RUN}numpy.anything(x)\n",
    ],
)
def test_what_may_exist_is_left_alone(source: str) -> None:
    assert _missing(source) == ()


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        (f"import torch\n{_RUN}torch.softmin2d(x)\n", ("torch", "softmin2d", 3)),
        (
            f"import torch.nn.functional as F\n{_RUN}F.silus(x)\n",
            ("torch.nn.functional", "silus", 3),
        ),
        (
            f"import torch\n{_RUN}torch.nn.functional.silus(x)\n",
            ("torch.nn.functional", "silus", 3),
        ),
        (f"from torch import nnn\n{_RUN}nnn(x)\n", ("torch", "nnn", 1)),
    ],
)
def test_what_does_not_exist_is_found(
    source: str, missing: tuple[str, str, int]
) -> None:
    assert _missing(source) == (missing,)
