"""Inputs that a reference's text never names: no value of theirs changes what it returns."""

from __future__ import annotations

import ast

# what reads parameters without their names
_BY_ANY_NAME = {"locals", "vars", "eval", "exec", "inspect", "sys", "dir"}


def unread_inputs(reference: str) -> frozenset[str]:
    """Return the parameters of `run()` whose names stand nowhere in its body."""
    tree = ast.parse(reference)
    runs = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "run"]
    if len(runs) != 1:
        return frozenset()
    (run,) = runs
    used = {n.id for s in run.body for n in ast.walk(s) if isinstance(n, ast.Name)}
    if used & _BY_ANY_NAME:
        return frozenset()
    arguments = (*run.args.posonlyargs, *run.args.args, *run.args.kwonlyargs)
    return frozenset(a.arg for a in arguments) - used
