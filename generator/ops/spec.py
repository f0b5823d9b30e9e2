"""Static facts of an op_type that the generator reads without importing torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

EPS_WORDS: Mapping[str, tuple[str, Any]] = {
    f"{first}em{digits}".replace(".", "p"): ("eps", float(f"{first}e-{digits}"))
    # 1.5625e-7 is that of GLM-4 9B
    for first in ("1", "1.5625", "2", "3", "5")
    for digits in range(4, 9)
}
"""Words of names that state the eps of a norm."""


@dataclass(frozen=True)
class Figure:
    """The figures of a model's config that give a constant axis.

    `names` are keys of config.json. The axis is the `first` of them that a config has,
    the `sum` of them all, or `any` of them where the config has the first. `parallel` is
    the tag of the parallelism that divides it (`tp`, `ep`), empty where none does. What it
    does not divide is filled up to a multiple of `padding` before.
    """

    names: tuple[str, ...]
    parallel: str = ""
    takes: Literal["first", "sum", "any"] = "first"
    padding: int = 1


@dataclass(frozen=True)
class OpSpec:
    """One op_type as the loader, the resolver and the renderer know it.

    `name_tokens` maps a token of a definition's name (`kv8`) to the constant axis it
    stands for (or to several, of which a definition has one), `name_words` a word of it
    (`neox`) to a constant and the value that it states, `name_constants` a token to
    the constant that its number is. `figures` maps a constant axis to the figures of a
    model that give it. `constants` maps a constant that the interface does not carry to
    the op's convention for it, None where there is none. `variant_constants` are those
    that a definition has only where its name states them. `absent` says why the op's
    module has no adapter for a provider. `filled_inputs` names the inputs that `run()`
    writes to, as buffers that callers pass for that. `kernels` maps the beginning of a
    name to FlashInfer's function for it, which a fi_api tag of such definitions names;
    where tags differ from definition to definition, families write them. `domains` says
    where an input's values lie (`generator.evaluation.checkers.domain`), by dtype where that
    decides, but for definitions whose name has a word of `without_domains`.
    """

    op_type: str
    name_tokens: Mapping[str, str | tuple[str, ...]]
    constants: Mapping[str, Any] = field(default_factory=dict)
    variant_constants: tuple[str, ...] = ()
    absent: Mapping[str, str] = field(default_factory=dict)
    name_words: Mapping[str, tuple[str, Any]] = field(default_factory=dict)
    name_constants: Mapping[str, str] = field(default_factory=dict)
    figures: Mapping[str, Figure] = field(default_factory=dict)
    filled_inputs: tuple[str, ...] = ()
    kernels: Mapping[str, str] = field(default_factory=dict)
    domains: Mapping[str, str | Mapping[str, str]] = field(default_factory=dict)
    without_domains: tuple[str, ...] = ()

    def stated(self, name: str) -> dict[str, Any]:
        """Return constant → value for the words of a definition's name that state one."""
        stated: dict[str, Any] = {}
        for word in name.split("_"):
            if word in self.name_words:
                constant, value = self.name_words[word]
                stated.setdefault(constant, value)
        return stated

    def domain_of(self, name: str, tensor: str, dtype: str) -> str | None:
        """Return the domain of an input of a definition, None where it has none."""
        if not {*name.split("_")}.isdisjoint(self.without_domains):
            return None
        domain = self.domains.get(tensor)
        return domain.get(dtype) if isinstance(domain, Mapping) else domain

    def kernel_of(self, name: str) -> str | None:
        """Return FlashInfer's function for a definition's name, None where none is."""
        fitting = (
            f for beginning, f in self.kernels.items() if name.startswith(beginning)
        )
        return next(fitting, None)

    def kernel_tags(self, name: str) -> tuple[str, ...]:
        """Return the tag of that function."""
        symbol = self.kernel_of(name)
        return () if symbol is None else (f"fi_api:{symbol}",)
