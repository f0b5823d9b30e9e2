"""Steps of a server under load: who is in a batch, and how long each sequence is.

A model of traffic, not a capture. Its figures are published ones:

- prompts and answers: means of Mooncake's traces of Kimi (Qin et al., FAST '25, table 2):
  12,035 and 343 tokens in conversations, 8,596 and 182 of tools and agents, of which 40 %
  and 59 % were cached; lengths are log-normal about them, which their tails look like;
- arrivals: 12,031 conversations in an hour (the same traces), 3.3 a second, exponential;
- chunks of at most 8,192 tokens: SGLang's chunked_prefill_size on GPUs of 80 GiB;
- contexts of 131,072 tokens: the positions of Llama 3.1 and of models after it;
- videos of 32,760 and 75,600 tokens: 81 frames of Wan 2.1 at 480 x 832 and 720 x 1280, of
  which the VAE makes 21 latent ones 8 times smaller, in patches of 2 x 2.

A reference holds the logits of a sequence, so that prompts are as long as MEMORY_LIMIT
lets them be, and what is longer is the rest of a prompt behind a cached prefix.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import MEMORY_LIMIT

CONTEXT = 131_072
LONG = 32_768
CHUNK = 8_192
VIDEOS = (32_760, 75_600)
_HEADS = 32
_PER_SECOND = 12_031 / 3600
# seconds that a step of decode takes, for how many are in flight
_STEP = 0.03


@dataclass(frozen=True)
class Requests:
    """One kind of request: means in tokens, and the share that is cached."""

    prompt: int
    answer: int
    cached: float

    def length(self, rng: random.Random, longest: int) -> int:
        """Draw the length of a prompt."""
        return min(_log_normal(rng, self.prompt), longest)


CONVERSATION = Requests(12_035, 343, 0.40)
AGENT = Requests(8_596, 182, 0.59)
CHAT = Requests(1_024, 343, 0.40)
"""Short prompts, as many as fit: the batches of 512 that long ones never reach."""


@dataclass(frozen=True)
class Step(CapturedWorkload):
    """A batch: queries and keys of each sequence, and the tokens all have alike."""

    q_lens: tuple[int, ...] = field(default=(), kw_only=True)
    kv_lens: tuple[int, ...] = field(default=(), kw_only=True)
    shared: int = field(default=0, kw_only=True)


def batches(axis: str, *sizes: int) -> Iterator[Step]:
    """Yield batches of so many tokens, for ops that know no sequences."""
    for size in sizes:
        yield Step(f"{size} tokens", axes={axis: size})


def videos(spec: object) -> Iterator[Step]:
    """Yield the tokens of a video, which are queries and keys alike."""
    for size in VIDEOS:
        yield step(f"a video of {size} tokens", [size], [size])


def decode_steps(seed: str, most_tokens: int) -> Iterator[Step]:
    """Yield steps of decode with at most so many tokens in the cache."""
    rng = random.Random(f"decode {seed}")
    yield step("one long context", [1], [CONTEXT])
    # conversations in flight: those that arrived while an answer is being made
    in_flight = round(_PER_SECOND * CONVERSATION.answer * _STEP)
    lengths = [_so_far(CONVERSATION, rng) for _ in range(in_flight)]
    yield step("conversations", [1] * in_flight, lengths)
    prefix = round(AGENT.cached * AGENT.prompt)
    tails = [rng.randint(1, AGENT.prompt - prefix + AGENT.answer) for _ in range(64)]
    yield step("agents", [1] * 64, [prefix + n for n in tails], prefix)
    for batch in (128, 512):
        room = most_tokens // batch
        if room < CHAT.prompt:
            # with pages of one token the table of such a batch is no small file
            continue
        lengths = [min(_so_far(CHAT, rng), room) for _ in range(batch)]
        yield step(f"{batch} chats", [1] * batch, lengths)


def prefill_steps(seed: str, num_qo_heads: int) -> Iterator[Step]:
    """Yield chunks of prefill whose logits fit in MEMORY_LIMIT, a sequence at a time."""
    rng = random.Random(f"prefill {seed}")
    # a shard of few heads gets the chunks of its whole model
    num_qo_heads = max(num_qo_heads, _HEADS)

    def queries(kv_len: int) -> int:
        return min(CHUNK, kv_len, MEMORY_LIMIT // (4 * num_qo_heads * kv_len))

    for name, length in (("a long prompt's end", LONG), ("a context's end", CONTEXT)):
        yield step(name, [queries(length)], [length])
    longest = math.isqrt(MEMORY_LIMIT // (4 * num_qo_heads))
    q_lens, kv_lens, left = [], [], CHUNK
    while left > 0:
        # what is cached of a prompt is its beginning
        length = AGENT.length(rng, LONG)
        new = max(1, min(round(length * (1 - AGENT.cached)), left, queries(length)))
        q_lens.append(min(new, longest))
        kv_lens.append(length)
        left -= q_lens[-1]
    yield step("a chunk of agents", q_lens, kv_lens)


def step(name: str, q_lens: list[int], kv_lens: list[int], shared: int = 0) -> Step:
    """Return a batch as a workload whose axes are those of a cache of one-token pages."""
    tokens = sum(kv_lens)
    axes = {
        "batch_size": len(kv_lens),
        "len_indptr": len(kv_lens) + 1,
        "total_q": sum(q_lens),
        "num_kv_indices": tokens,
        "total_kv": tokens,
        # a cache that is nearly full
        "num_pages": tokens + tokens // 16 + 1,
    }
    return Step(
        name, axes=axes, q_lens=tuple(q_lens), kv_lens=tuple(kv_lens), shared=shared
    )


def _so_far(requests: Requests, rng: random.Random) -> int:
    """Return a prompt and the part of its answer that is there."""
    answer = _log_normal(rng, requests.answer)
    return min(requests.length(rng, CONTEXT) + rng.randint(1, answer), CONTEXT)


def _log_normal(rng: random.Random, mean: int, sigma: float = 1.0) -> int:
    return max(1, round(rng.lognormvariate(math.log(mean) - sigma * sigma / 2, sigma)))
