"""Tell which expressions of a reference can be evaluated twice, and change nothing."""

from __future__ import annotations

import ast

# stand for calls in a text with sites: `generic/beside.py`
NAMES = BESIDE, FOLLOW, STORED, REACHED = (
    "_beside_",
    "_follow_",
    "_stored_",
    "_reached_",
)
_FUNCTIONS = """
abs all amax amin any arange argmax argsort bfloat16 bit_length bmm bool cat ceil chunk
clamp clamp_max clamp_min clone contiguous cos cumprod cumsum dim double einsum erf exp
exp2 expand flatten float floor frexp full gather gelu half int item ldexp log log2
logsumexp long masked_fill matmul max maximum mean min minimum neg new_full new_zeros
nonzero numel ones ones_like outer permute pow prod relu repeat repeat_interleave reshape
round rsqrt scatter scatter_add searchsorted sigmoid signbit silu sin size softmax
softplus split sqrt square squeeze stack sum t tanh tensor to tolist topk transpose tril
triu unbind unflatten unfold unsqueeze view where zeros zeros_like
"""
# what evaluates to the same again, and changes nothing
_PURE = frozenset(_FUNCTIONS.split())
_BUILTINS = frozenset(
    (
        "abs",
        "bool",
        "float",
        "int",
        "len",
        "max",
        "min",
        "range",
        "slice",
        "sum",
        "tuple",
    )
)
_WRITING = frozenset(("out", "generator", "inplace"))
# a list's sort() writes to the list, and has none of these
_OF_TENSORS = frozenset(("dim", "descending", "stable"))
# these change a list, a set or a mapping
_METHODS = "add append clear extend insert pop popitem remove setdefault update"
_ADDING = frozenset(_METHODS.split())
_TENSORS = "clone full new_full new_zeros ones ones_like zeros zeros_like"
_MAKING = frozenset(_TENSORS.split())
_IN_PLACE = "add_ index_add_ masked_fill_ mul_ scatter_ scatter_add_"
_FILLING = frozenset(_IN_PLACE.split())
# these are read once: a second evaluation of the same expression finds them at their end
_ITERATORS = "enumerate filter iter map next open reversed zip"
_READ_ONCE = frozenset(_ITERATORS.split())
# lets code read or write what it does not name
_HIDDEN = frozenset(("data", "numpy", "set_", "untyped_storage", "storage"))
_READING = "eval exec globals locals vars setattr getattr delattr dir"
_CODE = frozenset(_READING.split())
_REFUSED = (
    ast.AsyncFunctionDef,
    ast.Await,
    ast.ClassDef,
    ast.Delete,
    ast.GeneratorExp,
    ast.Global,
    ast.NamedExpr,
    ast.Nonlocal,
    ast.Try,
    ast.Yield,
    ast.YieldFrom,
)
_EXPRESSIONS = (
    ast.Attribute,
    ast.BinOp,
    ast.BoolOp,
    ast.Call,
    ast.Compare,
    ast.Constant,
    ast.IfExp,
    ast.List,
    ast.Name,
    ast.Slice,
    ast.Subscript,
    ast.Tuple,
    ast.UnaryOp,
)
_PARTS = (
    ast.boolop,
    ast.cmpop,
    ast.expr_context,
    ast.keyword,
    ast.operator,
    ast.unaryop,
)


def can_be_followed(tree: ast.Module) -> bool:
    """Return whether a text does only what its names tell.

    It has no classes or generators, handles no exception, and keeps nothing for its next
    call.
    """
    for node in ast.walk(tree):
        if isinstance(node, _REFUSED):
            return False
        if isinstance(node, ast.Attribute) and node.attr in _HIDDEN:
            return False
        if isinstance(node, ast.Name):
            # the sense of these may be another one here
            shadowed = node.id in _BUILTINS and not isinstance(node.ctx, ast.Load)
            if shadowed or node.id in (*_CODE, *NAMES):
                return False
        if isinstance(node, ast.FunctionDef) and node.name in _BUILTINS:
            return False
        if isinstance(node, ast.arg) and node.arg in _BUILTINS:
            return False
    if any(_keeps_values(n) for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)):
        return False
    loops = (
        n.iter for n in ast.walk(tree) if isinstance(n, (ast.For, ast.comprehension))
    )
    spared = {id(loop) for loop in loops}
    return not any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in _READ_ONCE
        and id(node) not in spared
        for node in ast.walk(tree)
    )


def _keeps_values(function: ast.FunctionDef) -> bool:
    """Return whether a function writes to an object that outlives its call."""
    nodes = [*ast.walk(function)]
    local = {n.arg for n in nodes if isinstance(n, ast.arg)}
    local |= {
        n.id
        for n in nodes
        if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)
    }
    for node in nodes:
        target: ast.AST = node
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr not in _ADDING:
                continue
            target = node.func
        elif not isinstance(node, (ast.Attribute, ast.Subscript)) or isinstance(
            node.ctx, ast.Load
        ):
            continue
        while isinstance(target, (ast.Attribute, ast.Subscript)):
            target = target.value
        if isinstance(target, ast.Name) and target.id not in local:
            return True
    return False


def is_pure(node: ast.AST) -> bool:
    """Return whether an expression writes to nothing and draws nothing."""
    for part in ast.walk(node):
        if not isinstance(part, (*_EXPRESSIONS, *_PARTS)):
            return False
        if isinstance(part, ast.keyword) and part.arg in (None, *_WRITING):
            return False
        if isinstance(part, ast.Call):
            function = part.func
            if isinstance(function, ast.Attribute):
                names = {keyword.arg for keyword in part.keywords}
                of_tensor = function.attr == "sort" and names & _OF_TENSORS
                if function.attr not in _PURE and not (of_tensor or _fills(part)):
                    return False
            elif not isinstance(function, ast.Name) or function.id not in _BUILTINS:
                return False
    return True


def _fills(call: ast.Call) -> bool:
    """Return whether a call writes to a tensor that the same expression makes."""
    function = call.func
    if not isinstance(function, ast.Attribute) or function.attr not in _FILLING:
        return False
    maker = function.value
    if not isinstance(maker, ast.Call) or not isinstance(maker.func, ast.Attribute):
        return False
    return maker.func.attr in _MAKING or _fills(maker)
