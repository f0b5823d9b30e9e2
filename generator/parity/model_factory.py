"""Models of transformers with weights that are drawn or read, made where they fit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from generator.parity.recipe import Family
from generator.parity.subject import ParityModel
from generator.problems import Failure
from generator.running.free_memory import available_bytes

Tensor = torch.Tensor
MOST_BYTES = 24 << 30
"""What a comparison on a CPU may take of the memory that is free."""
_LARGE = 1 << 27
"""Elements from which the weights of experts are windows of one matrix."""


def make(
    figures: Mapping[str, Any], weights: Path | None, seed: int, family: Family
) -> list[ParityModel]:
    """Return one model in float32 and the same one in bfloat16, on the default device.

    The weights are those of a folder, or drawn; both have the same values. Raises
    Failure where transformers refuses the figures, where the weights don't fit the
    model, and where the model doesn't fit the memory.
    """
    import transformers

    transformers.utils.logging.set_verbosity_error()
    # some layers draw weights of their own
    torch.manual_seed(seed)
    auto, is_drawn = family.auto, weights is None
    half, config = _made(auto, figures, torch.bfloat16, with_windows=is_drawn)
    if weights is None:
        torch.manual_seed(seed)
        whole, _ = _made(auto, figures, torch.float32, with_windows=True)
        _draw(whole, seed)
    else:
        whole = _loaded(auto, config, weights)
    sources = dict(_drawn(whole))
    for name, target in _drawn(half):
        elements(target).copy_(elements(sources[name]))
    return [ParityModel(model, family, seed=seed) for model in (whole, half)]


def _made(
    auto: str, figures: Mapping[str, Any], dtype: torch.dtype, *, with_windows: bool
) -> tuple[nn.Module, Any]:
    """Return a model of transformers whose weights are not drawn yet, and its config."""
    import transformers
    from transformers.initialization import no_init_weights

    try:
        config = transformers.AutoConfig.for_model(**figures)
        config._experts_implementation = "eager"
        with no_init_weights(), _Allocating(with_windows=with_windows):
            model = getattr(transformers, auto).from_config(
                config, dtype=dtype, attn_implementation="eager"
            )
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
        why = " ".join(str(error).split())[:300]
        raise Failure(f"transformers refuses the config: {why}") from error
    model.tie_weights()
    return model.eval().requires_grad_(False), config


class _Allocating(TorchFunctionMode):
    """A mode that makes a model's weights: none that don't fit, large experts as windows.

    Expert e of a large tensor [experts, rows, columns] is the window of one matrix that
    begins at row e: experts differ, and take the memory of one.
    """

    def __init__(self, *, with_windows: bool) -> None:
        super().__init__()
        self.with_windows = with_windows
        self.bytes = self.largest = 0
        device = torch.empty(0).device
        free = available_bytes(device)
        self.free = free if free is not None else MOST_BYTES
        if device.type == "cpu":
            self.free = min(self.free, MOST_BYTES)

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is not torch.empty:
            return func(*args, **kwargs)
        shape = tuple(
            args[0] if isinstance(args[0], (tuple, list, torch.Size)) else args
        )
        count = math.prod(shape)
        is_windowed = self.with_windows and len(shape) == 3 and count > _LARGE
        length = (shape[0] - 1 + shape[1]) * shape[2] if is_windowed else count
        self._reserve(length)
        if is_windowed:
            columns = shape[2]
            matrix = func(length, **kwargs)
            # strides in elements: an expert begins one row behind the one before
            return matrix.as_strided(shape, (columns, columns, 1))
        # nothing may depend on what the memory held: initial values are part of a draw
        return torch.zeros(shape, **kwargs) if len(shape) < 2 else func(shape, **kwargs)

    def _reserve(self, count: int) -> None:
        """Count elements of a float32 model. Raises Failure where they don't fit.

        The model in bfloat16 takes half as much again; references make float32 copies
        of weights that they multiply by, two of them where several are fused.
        """
        self.bytes += 4 * count
        self.largest = max(self.largest, 4 * count)
        needed = self.bytes * 3 // 2 + 4 * self.largest
        if needed > self.free:
            raise Failure(
                f"the model needs over {needed >> 30} GiB, {self.free >> 30} GiB may be "
                "used: choose a smaller one, or fewer layers."
            )


def elements(value: Tensor) -> Tensor:
    """Return a tensor's memory: itself, or the matrix whose windows it is made of."""
    held = value.untyped_storage().nbytes() // value.element_size()
    if value.numel() <= held:
        return value
    return value.detach().as_strided((held,), (1,))


def _drawn(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Yield the parameters, and biases among the buffers, which training keeps."""
    yield from model.named_parameters()
    buffers = model.named_buffers()
    yield from ((name, value) for name, value in buffers if name.endswith("bias"))


def _draw(model: nn.Module, seed: int) -> None:
    """Draw every weight, so that each one matters.

    Initial norm weights are all 1 or 0 and biases 0, which hides what is left out.
    Values are those of bfloat16, in float32.
    """
    generator = torch.Generator(torch.empty(0).device).manual_seed(seed)
    config: Any = model.config
    is_encoder_decoder = bool(getattr(config, "is_encoder_decoder", False))
    for name, value in _drawn(model):
        target = elements(value)
        noise = torch.randn(target.shape, generator=generator)
        if "embed" in name or name == "shared.weight":
            # else what an encoder hands over leaves nothing of a decoder's tokens
            drawn = noise * (0.3 if is_encoder_decoder else 0.05)
        elif name.endswith("A_log"):
            # states that last for some ten tokens: others hide what is read of them
            drawn = 0.2 * noise - 2.0
        elif value.dim() == 1:
            start = value if value.numel() and bool(torch.isfinite(value).all()) else 0
            drawn = start + 0.2 * noise
        else:
            inputs = value.shape[1] if value.dim() == 2 else value.shape[-1]
            drawn = noise.div_(inputs**0.5)
            if name.endswith("Attention.q.weight"):
                # T5 doesn't scale logits: its queries are small instead
                drawn = drawn * config.d_kv**-0.5
        target.copy_(drawn.bfloat16())


def _loaded(auto: str, config: Any, folder: Path) -> nn.Module:
    """Return the model in float32 with a folder's weights.

    transformers converts checkpoints that keep each expert by itself. Raises Failure
    where a file can't be read, or doesn't fit the config.
    """
    import transformers
    from safetensors import SafetensorError

    if not any(folder.glob("*.safetensors")):
        raise Failure(f"{folder} has no *.safetensors.")
    try:
        model, info = getattr(transformers, auto).from_pretrained(
            folder,
            config=config,
            dtype=torch.float32,
            attn_implementation="eager",
            output_loading_info=True,
            ignore_mismatched_sizes=True,
        )
    except (SafetensorError, OSError, ValueError, RuntimeError) as error:
        what = " ".join(str(error).split())[:300]
        raise Failure(f"the weights of {folder} can't be read: {what}") from error
    for name, *shapes in sorted(info["mismatched_keys"]):
        theirs, ours = (list(shape) for shape in shapes)
        raise Failure(f"{folder}: {name} is {theirs}; the config says {ours}.")
    if missing := sorted(info["missing_keys"]):
        raise Failure(f"{folder} lacks {missing[0]}, and {len(missing) - 1} more.")
    model = model.to(torch.empty(0).device).eval().requires_grad_(False)
    for _, value in _drawn(model):
        value.copy_(value.bfloat16())
    loaded: nn.Module = model
    return loaded
