"""Definitions of which nothing can be compared: no ground truth, and no oracle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from generator.dataset.definition import LoadedDefinition
from generator.ops.registry import op_packages, op_specs
from generator.ops.serving import why_not_served
from generator.problems import warning
from generator.problems.messages import nearest, plural, some
from generator.rules.basis import basis_of
from generator.rules.constants import resolve_constants
from generator.rules.proofs import proof_of

UNPROVEN = warning("""reference-unproven: A definition has no ground truth and no oracle:
    its tests compare nothing, and pass whatever `run` computes.
    Fix: Correct the op_type or the interface, so that the op's kernels and oracle are
    asked; or write oracles/<op_type>/<definition>.py, its `run` in float64.
    Finds: the op_type rmsnrom, or an rmsnorm whose axis is `rows` and not `batch_size`""")

Agreed = Callable[[str, str], bool]


def never(name: str, basis: str) -> bool:
    """Return False: no run on record agreed with the definition."""
    return False


def why_unproven(
    root: Path, definition: LoadedDefinition, agreed: Agreed = never
) -> str | None:
    """Return why nothing can be compared with a definition's `run()`, None if it can.

    `root` is the dataset's. `agreed` says of a name and a text's hash whether a run on
    record compared it with a production kernel: it alone proves that a function that a
    tag names, or a file of custom inputs, can be called.
    """
    reason = why_no_op(definition)
    if reason is None or agreed(definition.name, basis_of(definition)):
        return None
    proof = proof_of(root, definition)
    if not isinstance(proof, str):
        return None
    reason += f"; {proof}" if proof else ""
    named = definition.tag_values("fi_api")
    if named:
        reason += f"; no run on record compared it with {some(named, 2)}"
    return reason


def why_no_op(definition: LoadedDefinition) -> str | None:
    """Return why an op_type's functions can't judge a definition, None where they can."""
    spec = op_specs().get(definition.op_type)
    if spec is None:
        op_type, known = definition.op_type, op_packages()
        # `rmsnorm_backward` is no misspelt rmsnorm
        variant = any(op_type.startswith(f"{name}_") for name in known)
        guess = None if variant else nearest(op_type, known)
        hint = f" (did you mean {guess}?)" if guess is not None else ""
        return f"no op module for {op_type}{hint}"
    other = why_not_served(definition)
    if other is not None:
        return other
    unknown = [
        c.name for c in resolve_constants(definition, spec)[0] if c.value is None
    ]
    return f"no source knows {', '.join(unknown)}" if unknown else None


def unproven_line(reasons: Mapping[str, str]) -> str:
    """Return the loud line on the definitions of which nothing is compared."""
    what = plural(len(reasons), "definition")
    named = [f"{name} ({why})" for name, why in reasons.items()]
    return f"NOTHING COMPARED with {what}: {some(named, 5)}"
