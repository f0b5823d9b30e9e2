"""One draw a row from the nucleus of its k largest logits."""

import torch


@torch.no_grad()
def run(logits: torch.Tensor, top_k: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    vocab_size = logits.shape[1]
    # A k that is not positive leaves out nothing, nor does one beyond the vocabulary.
    k = torch.where(top_k > 0, top_k, vocab_size).clamp(max=vocab_size)
    # Ranks from the largest k on are of no row: no need to sort the whole vocabulary.
    kept_logits, tokens = logits.topk(int(k.max()), dim=1)
    rank = torch.arange(kept_logits.shape[1], device=logits.device)
    kept_logits = kept_logits.masked_fill(rank >= k.unsqueeze(1), float("-inf"))
    # The softmax is of the k tokens alone: p is a share of the mass that they hold.
    weights = kept_logits.softmax(dim=1)
    # A token is kept while those before it fall short of p: the one that crosses p is.
    before = weights.cumsum(dim=1) - weights
    kept = before < top_p.unsqueeze(1)
    # The most probable token is kept whatever p is, so p <= 0 means argmax.
    kept[:, 0] = True
    # multinomial() draws in proportion to the weights, whatever their sum.
    drawn = torch.multinomial(weights.masked_fill(~kept, 0.0), 1)
    return tokens.gather(1, drawn).squeeze(1)
