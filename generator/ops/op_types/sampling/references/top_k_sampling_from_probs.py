"""One draw a row from its k most probable tokens."""

import torch


@torch.no_grad()
def run(probs: torch.Tensor, top_k: torch.Tensor) -> torch.Tensor:
    vocab_size = probs.shape[1]
    # A k that is not positive leaves out nothing, nor does one beyond the vocabulary.
    k = torch.where(top_k > 0, top_k, vocab_size).clamp(max=vocab_size)
    # Ranks from the largest k on are of no row: no need to sort the whole vocabulary.
    weights, tokens = probs.float().topk(int(k.max()), dim=1)
    rank = torch.arange(weights.shape[1], device=probs.device)
    weights = weights.masked_fill(rank >= k.unsqueeze(1), 0.0)
    # multinomial() draws in proportion to the weights, whatever their sum.
    drawn = torch.multinomial(weights, 1)
    return tokens.gather(1, drawn).squeeze(1)
