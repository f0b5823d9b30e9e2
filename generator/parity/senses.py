"""Inputs of a model beside the tokens of its text: an image, speech, a source text."""

from __future__ import annotations

from typing import Any

import torch

Tensor = torch.Tensor
IMAGE_AT = 4
"""Tokens before an image."""
_GRID = (1, 8, 6)
"""Patches of an image: frames, rows and columns."""
ASPECT = 1
"""The number of an image of one tile."""
_SOURCE, _PADDED = 40, 7
"""Tokens of a source text, and how many of them are padding, at its end."""


class Senses:
    """The input of a model's tower: noise from a seed, in the model's dtype."""

    def __init__(self, kind: str, model: Any, seed: int) -> None:
        self.kind = kind
        self.model: Any = model
        self.config: Any = model.config
        self.generator = torch.Generator(model.device).manual_seed(seed + 1)
        make = getattr(self, f"_{kind}", None)
        self.input: Tensor = make() if make else torch.empty(0, 0)

    def _image(self) -> Tensor:
        vision = self.config.vision_config
        pixels = vision.in_channels * vision.temporal_patch_size * vision.patch_size**2
        return self._noise(_GRID[0] * _GRID[1] * _GRID[2], pixels)

    def _speech(self) -> Tensor:
        return self._noise(
            self.config.num_mel_bins, 2 * self.config.max_source_positions
        )

    def _source(self) -> Tensor:
        highest = self.config.vocab_size
        return torch.randint(highest, (_SOURCE,), generator=self.generator)

    def _tiles(self) -> Tensor:
        vision = self.config.vision_config
        patches = (vision.image_size // vision.patch_size) ** 2
        return self._noise(patches, vision.num_channels * vision.patch_size**2)

    def _noise(self, *shape: int) -> Tensor:
        noise = torch.randn(shape, generator=self.generator)
        # both models get the same values
        return noise.bfloat16().to(self.model.dtype)

    @property
    def rows(self) -> int:
        """Return how many rows a tower's layers have."""
        if self.kind == "speech":
            # one of two convolutions leaves out every second
            return int(self.input.shape[1] // 2)
        if self.kind == "tiles":
            # with one for the class, in multiples of 8
            return -(-(len(self.input) + 1) // 8) * 8
        return len(self.input)

    @property
    def seen(self) -> int:
        """Return how many rows of a tower's last layer are no padding."""
        return _SOURCE - _PADDED if self.kind == "source" else 0

    def image_rows(self) -> int:
        """Return how many tokens of the text stand for the image."""
        merged = self.config.vision_config.spatial_merge_size**2
        return int(_GRID[0] * _GRID[1] * _GRID[2] // merged)

    def placed(self, tokens: Tensor) -> Tensor:
        """Return tokens with those that stand for an image, and no others like them."""
        if self.kind != "image":
            return tokens
        marks = sorted((self.config.image_token_id, self.config.video_token_id))
        tokens = tokens.remainder(marks[0])
        tokens[IMAGE_AT : IMAGE_AT + self.image_rows()] = self.config.image_token_id
        return tokens

    def words(self, vocabulary: int) -> int:
        """Return how many tokens may be drawn: the last ones stand for images."""
        if self.kind != "image":
            return vocabulary
        return int(min(self.config.image_token_id, self.config.video_token_id))

    def arguments(self, tokens: Tensor) -> dict[str, Any]:
        """Return what transformers' model is called with."""
        text, noise = tokens[None], self.input
        if self.kind == "image":
            return {
                "input_ids": text,
                "pixel_values": noise,
                "image_grid_thw": torch.tensor([_GRID]),
                "mm_token_type_ids": (text == self.config.image_token_id).int(),
            }
        if self.kind == "tiles":
            return {
                "input_ids": text,
                "pixel_values": self._tile(),
                "aspect_ratio_ids": torch.tensor([[ASPECT]]),
                "aspect_ratio_mask": torch.ones(1, 1, 1, dtype=torch.long),
                "cross_attention_mask": torch.ones(1, len(tokens), 1, 1),
            }
        if self.kind == "speech":
            return {"input_features": noise[None], "decoder_input_ids": text}
        if self.kind == "source":
            mask = torch.ones(1, len(noise), dtype=torch.long)
            mask[:, self.seen :] = 0
            return {
                "input_ids": noise[None],
                "attention_mask": mask,
                "decoder_input_ids": text,
            }
        return {"input_ids": text}

    def _tile(self) -> Tensor:
        """Return the patches as an image: [1, 1, 1, channels, rows, columns]."""
        vision = self.config.vision_config
        size, channels = vision.patch_size, vision.num_channels
        side = vision.image_size // size
        patches = self.input.view(side, side, channels, size, size)
        whole = (1, 1, 1, channels, vision.image_size, vision.image_size)
        return patches.permute(2, 0, 3, 1, 4).reshape(whole)

    def axes(self, count: int) -> Tensor:
        """Return the positions of `count` tokens in time, height and width: [3, count]."""
        kinds = torch.zeros(1, count, dtype=torch.int32)
        kinds[:, IMAGE_AT : IMAGE_AT + self.image_rows()] = 1
        ids = torch.zeros(1, count, dtype=torch.long)
        grid = torch.tensor([_GRID])
        places, _ = self.model.model.get_rope_index(ids, kinds, image_grid_thw=grid)
        axes: Tensor = places[:, 0]
        return axes

    def turns(self, tower: Any) -> Tensor:
        """Return cosines and sines of an image's patches: float32 [patches, head_dim]."""
        from transformers.vision_utils import get_vision_position_ids

        grid = torch.tensor([_GRID])
        at = get_vision_position_ids(grid, tower.spatial_merge_size)
        pair = tower.rotary_pos_emb(torch.zeros(1), at)
        return torch.cat([part[:, : part.shape[1] // 2] for part in pair], dim=-1)

    def places(self, tower: Any) -> Tensor:
        """Return what a tower adds to an image's patches: [patches, hidden]."""
        from transformers.vision_utils import (
            get_vision_interpolation_indices_and_weights,
        )

        indices, weights = get_vision_interpolation_indices_and_weights(
            torch.tensor([_GRID]),
            num_grid_per_side=tower.num_grid_per_side,
            mode=tower.interpolation_mode,
            align_corners=tower.interpolation_align_corners,
            spatial_merge_size=tower.config.spatial_merge_size,
        )
        placed: Tensor = (tower.pos_embed(indices) * weights[:, :, None]).sum(1)
        return placed
