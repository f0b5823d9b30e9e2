"""One draw a row from its nucleus: the most probable tokens that together reach p."""

import torch


def most_probable(
    probs: torch.Tensor, top_p: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the largest probabilities, falling, and their tokens: enough for p.

    A nucleus is mostly small, and to sort the whole vocabulary takes long.
    """
    vocab_size = probs.shape[1]
    count = min(256, vocab_size)
    while True:
        values, tokens = probs.topk(count, dim=1)
        if count == vocab_size or bool((values.sum(dim=1) >= top_p).all()):
            return values, tokens
        count = min(16 * count, vocab_size)


@torch.no_grad()
def run(probs: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    weights, tokens = most_probable(probs.float(), top_p)
    # A token is kept while those before it fall short of p: the one that crosses p is.
    before = weights.cumsum(dim=1) - weights
    kept = before < top_p.unsqueeze(1)
    # The most probable token is kept whatever p is, so p <= 0 means argmax.
    kept[:, 0] = True
    # multinomial() draws in proportion to the weights, whatever their sum.
    drawn = torch.multinomial(weights.masked_fill(~kept, 0.0), 1)
    return tokens.gather(1, drawn).squeeze(1)
