"""The libraries that have production kernels: also those of other distributions.

A distribution adds a provider by an entry point of `gen_tests.providers`, whose name is the
provider's and whose module has it as `PROVIDER`. One that can't be used stops nothing: it
is a provider that is `broken`, and skips say why.
"""

from __future__ import annotations

from collections.abc import Mapping

from generator.dataset.plugins import PROVIDERS, BadPlugin, plugin, plugins
from kernel_judge.provider import OURS, Provider, providers


def other_providers() -> Mapping[str, Provider]:
    """Return name → each provider of another distribution, sorted by name."""
    try:
        modules = plugins(PROVIDERS)
    except BadPlugin as error:
        return {PROVIDERS: _broken(PROVIDERS, str(error))}
    others = (_provider(name, module) for name, module in modules.items())
    return {provider.name: provider for provider in others}


def _provider(name: str, module: str) -> Provider:
    where = f"{module}, the entry point {name!r} of {PROVIDERS},"
    if name in OURS:
        return _broken(module, f"{where} has the name of a provider of ours")
    try:
        value = getattr(plugin(PROVIDERS, name), "PROVIDER", None)
    except BadPlugin as error:
        return _broken(name, str(error))
    if not isinstance(value, Provider) or value.name != name or not name.isidentifier():
        return _broken(name, f"{where} has no PROVIDER of that name")
    return value


def _broken(name: str, why: str) -> Provider:
    return Provider(name, name, name, name, "", broken=why)


def libraries() -> tuple[str, ...]:
    """Return the modules whose versions say what a run had, PyTorch's not among them."""
    return tuple(p.module for p in providers().values() if p.module != "torch")


def versioned_as(name: str) -> str:
    """Return under which name a run's versions have a provider's: its module's."""
    known = providers().get(name)
    return name if known is None else known.module
