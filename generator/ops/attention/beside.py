"""The relation of one long sequence by itself and among many short ones.

Kernels split a sequence's keys over blocks that would be idle, and merge what these
return: FlashInfer plans chunks of 128 keys or more as long as there are fewer than its grid
has blocks (`PrefillBinarySearchKVChunkSize` and
`PartitionPagedKVCacheBinarySearchMinNumPagePerBatch` of its `scheduler.cuh`). So the
other sequences of a batch decide how a sequence is split, and which bits its answer has.
"""

from __future__ import annotations

from collections.abc import Iterator

from generator.ops.attention.related import ALIKE, batch_of, run_on
from generator.ops.attention.relations import related_case
from generator.ops.attention.sequences import is_prefill
from kernel_judge.definition import Definition
from kernel_judge.inputs.memory import tensor_bytes
from kernel_judge.relation import Claim, RelatedCalls, Relation, alike

_LONG = 4_099
# blocks of one head of keys that fill a large GPU: 16 on each of 144 multiprocessors
_BLOCKS = 2_304
# lengths of the others, in turn
_SHORT = (1, 3, 2, 7)
_QUERIES = 3
# with fewer others, and fewer keys, there is nothing to split otherwise
_FEWEST, _SHORTEST = 16, 512


def long_among_many(definition: Definition, most_bytes: int) -> Relation:
    """Return the relation on a batch whose first sequence is long, and all others short.

    The others take all blocks of a large GPU, or as many as `most_bytes` of inputs hold.
    """
    others = -(-_BLOCKS // definition.axes.get("num_kv_heads", 1))
    queries, keys = _QUERIES if is_prefill(definition) else 1, _LONG
    while True:
        short = [(1, _SHORT[n % len(_SHORT)]) for n in range(others)]
        case = related_case(
            definition, "long-among-many", "small", [(queries, keys), *short]
        )
        bytes_of = tensor_bytes(definition, case)
        if bytes_of <= most_bytes or (others <= _FEWEST and keys <= _SHORTEST):
            return Relation("long-alone", _alone, [case])
        # of many heads the long one takes most of it
        if others > _FEWEST:
            others //= 2
        else:
            keys //= 2


def _alone(subject: RelatedCalls) -> Iterator[Claim]:
    first = batch_of(subject)[0]
    expected = {name: value[: first.q_len] for name, value in subject.whole.items()}
    actual = run_on(subject.run, subject, [first], "alone")
    yield from alike(expected, actual, ALIKE)
