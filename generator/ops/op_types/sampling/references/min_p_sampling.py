"""One draw a row from the tokens that are nearly as probable as the most probable one."""

import torch


@torch.no_grad()
def run(probs: torch.Tensor, min_p: torch.Tensor) -> torch.Tensor:
    # The limit is a share of the largest probability, and itself within it.
    least = (min_p * probs.amax(dim=1)).unsqueeze(1)
    # No row keeps more tokens than this: no need to draw from the whole vocabulary.
    most = int((probs >= least).sum(dim=1).max())
    weights, tokens = probs.topk(most, dim=1)
    # multinomial() draws in proportion to the weights, whatever their sum.
    drawn = torch.multinomial(weights.masked_fill(weights < least, 0.0), 1)
    return tokens.gather(1, drawn).squeeze(1)
