"""Repetition, frequency and presence penalties of tokens that occurred."""

import torch


@torch.no_grad()
def run(
    logits: torch.Tensor,
    prompt_counts: torch.Tensor,
    output_counts: torch.Tensor,
    repetition_penalties: torch.Tensor,
    frequency_penalties: torch.Tensor,
    presence_penalties: torch.Tensor,
) -> torch.Tensor:
    in_output = output_counts > 0
    occurred = (prompt_counts > 0) | in_output
    factors = torch.where(occurred, repetition_penalties.unsqueeze(1), 1.0)
    scaled = torch.where(logits < 0, logits * factors, logits / factors)

    repeated = output_counts.float() * frequency_penalties.unsqueeze(1)
    present = torch.where(in_output, presence_penalties.unsqueeze(1), 0.0)
    return scaled - repeated - present
