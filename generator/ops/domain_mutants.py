"""Domain mutants: the defects that references of each op family are known to have."""

from __future__ import annotations

from generator.ops import common_mutants
from generator.ops.code_mutants import code_mutants
from generator.ops.factor_mutants import rounded_factors
from generator.ops.mutants import DomainMutant, MutantGroup
from generator.ops.registry import optional_op_module
from kernel_judge.definition import Definition


def domain_mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects that a definition's reference could have, named uniquely.

    What could not differ is left out: a head mapping of one KV head, a last page of one
    token. An op_type or interface without a family has the defects of any outputs.
    """
    defects = [
        *common_mutants.mutants(definition),
        *rounded_factors(definition),
        *code_mutants(definition),
    ]
    for group in _groups(definition.op_type):
        if group.has(definition):
            defects += group.mutants(definition)
    return tuple(defects)


def _groups(op_type: str) -> tuple[MutantGroup, ...]:
    """Return the op_type's own mutants; none where it has no module of them."""
    module = optional_op_module(op_type, "mutants")
    groups: tuple[MutantGroup, ...] = () if module is None else module.MUTANTS
    return groups
