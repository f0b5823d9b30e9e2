"""Accepted drafts of each chain, and one token drawn behind them."""

import torch


@torch.no_grad()
def run(
    draft_probs: torch.Tensor,
    draft_token_ids: torch.Tensor,
    target_probs: torch.Tensor,
) -> torch.Tensor:
    batch_size, drafts = draft_token_ids.shape
    tokens = draft_token_ids.long().unsqueeze(2)
    drafted = draft_probs.gather(2, tokens).squeeze(2)
    wanted = target_probs[:, :drafts].gather(2, tokens).squeeze(2)
    # accepted with the probability target / draft, at most 1
    accepted = torch.rand_like(drafted) * drafted < wanted
    # the first rejection ends the chain
    emitted = accepted.long().cumprod(dim=1).sum(dim=1)
    rows = torch.arange(batch_size, device=draft_probs.device)
    residual = target_probs[rows, emitted].clone()
    # behind a rejection what the draft had of a token is taken off it; a chain that
    # was accepted whole has no draft for its last token
    cut = emitted < drafts
    residual[cut] -= draft_probs[rows[cut], emitted[cut]]
    # multinomial() draws in proportion to the weights, whatever their sum
    drawn = torch.multinomial(residual.clamp(min=0.0), 1)
    place = torch.arange(drafts + 1, device=draft_probs.device)
    padded = torch.cat([draft_token_ids, draft_token_ids[:, :1]], dim=1)
    result = torch.where(place < emitted.unsqueeze(1), padded, -1)
    result[rows, emitted] = drawn.squeeze(1).to(result.dtype)
    return result
