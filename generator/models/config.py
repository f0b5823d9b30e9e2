"""The figures of a model's config.json that decide which kernels it runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from generator.dataset.file_reading import read_text_file
from generator.dataset.json_file import JSON_NAN, MAX_BYTES, parse
from generator.models.architectures import ARCHITECTURES, REFUSED, Architecture
from generator.models.keys import IRRELEVANT, OF_SOME
from generator.problems import Failure, Problem
from generator.problems.messages import did_you_mean, quote, show

DATA = Path(__file__).parent / "data"
_LINEAR = "linear_attn_config"
_IN_LINEAR: Mapping[str, str] = {
    "head_dim": "linear_head_dim",
    "num_heads": "linear_num_heads",
    "short_conv_kernel_size": "linear_conv_kernel_dim",
}
_LAYERS_OF: Mapping[str, str] = {
    "full_attn_layers": "full_attention",
    "kda_layers": "linear_attention",
}
_LARGEST = 1 << 24
"""No dimension of a layer is larger; a config with a larger one is no model's."""


@dataclass(frozen=True)
class Config:
    """One config.json: `figures` are those of the text model, if it has several.

    `name` is the file's, or that of the folder it lies in. `defaults` are what
    transformers supplies for keys that the file omits. `asked` collects the keys that
    somebody read: what remains of `figures` has no part in an answer.
    """

    name: str
    figures: Mapping[str, Any]
    architecture: Architecture
    defaults: Mapping[str, Any] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set, compare=False, repr=False)

    def get(self, *keys: str) -> Any:
        """Return the first of the figures that the config has, else a default.

        The file's null is None, whatever the default.
        """
        key = self._present(keys)
        return None if key is None else self._value(key)

    def stated(self, *keys: str) -> Any:
        """Return the first of the figures that the file itself has, else None."""
        self.asked.update(keys)
        return next((v for k in keys if (v := self.figures.get(k)) is not None), None)

    def size(self, *keys: str, default: int | None = None) -> int:
        """Return a length or a count: a positive integer under the first key present.

        Raises Failure, with the key, where it is missing or none.
        """
        key = self._present(keys)
        if key is not None:
            value = self._value(key)
            if type(value) is not int or not 0 < value <= _LARGEST:
                self.refuse(
                    key, f"is {show(value)}, not an integer from 1 to {_LARGEST}"
                )
            return int(value)
        if default is None:
            self.refuse(keys[0], "is missing")
        return default

    def count(self, *keys: str) -> int:
        """Return a count that may be 0 or absent. Raises Failure where it is none."""
        return 0 if self.get(*keys) in (None, 0) else self.size(*keys)

    def flag(self, *keys: str, default: bool = False) -> bool:
        """Return a yes or no. Raises Failure where it is neither."""
        key = self._present(keys)
        if key is None:
            return default
        value = self._value(key)
        if not isinstance(value, bool):
            self.refuse(key, f"is {show(value)}, neither true nor false")
        return value

    def word(self, *keys: str, known: Mapping[str, str], default: str = "") -> str:
        """Return what a figure is in `known`. Raises Failure for another one."""
        key = self._present(keys)
        value = default if key is None else self._value(key)
        if not isinstance(value, str) or value not in known:
            why = f"is {show(value)}: known are {', '.join(known)}"
            self.refuse(key or keys[0], why)
        return known[value]

    def divided(self, key: str, value: int, by: int, what: str) -> int:
        """Return value / by. Raises Failure where it leaves a remainder."""
        if value % by:
            self.refuse(key, f"is {value}, which {what} {by} does not divide")
        return value // by

    def refuse(self, key: str, why: str) -> NoReturn:
        """Raise the Failure that says what is wrong with a figure."""
        raise Failure(f"{self.name}: {key} {why}.")

    def _present(self, keys: tuple[str, ...]) -> str | None:
        keys = tuple(k for k in keys if k not in OF_SOME or k in self.defaults)
        self.asked.update(keys)
        there = [key for key in keys if self.figures.get(key) is not None]
        # of two names of one figure transformers reads its own
        if there:
            return min(there, key=lambda key: key not in self.defaults)
        if any(key in self.figures for key in keys):
            return None
        return next((k for k in keys if self.defaults.get(k) is not None), None)

    def _value(self, key: str) -> Any:
        value = self.figures.get(key)
        return self.defaults.get(key) if value is None else value


def names() -> tuple[str, ...]:
    """Return the models whose published figures are here."""
    return tuple(sorted(path.stem for path in DATA.glob("*.json")))


def load(source: str) -> Config:
    """Read a config.json, or the figures of a model that is named.

    Raises Failure where there is no such file or model, where it is no config, and
    where its architecture is unknown: with the nearest one.
    """
    path = Path(source)
    if not path.is_file():
        if source not in names():
            raise Failure(_unknown(source))
        path = DATA / f"{source}.json"
    whole = read_config(path)
    name = path.stem if path.stem != "config" else path.resolve().parent.name
    return config_of(name, whole)


def config_of(name: str, whole: Mapping[str, Any]) -> Config:
    """Return the config of a model. Raises Failure for an unknown architecture."""
    figures = figures_of(whole)
    every = [*_kinds(whole, figures)]
    kinds = [kind for kind in every if kind in ARCHITECTURES]
    if kinds:
        architecture = ARCHITECTURES[kinds[0]]
        defaults = model_defaults().get(architecture.defaults or kinds[0], {})
        return Config(name, figures, architecture, defaults)
    if not every:
        raise Failure(f"{name}: model_type is missing: this is no config of a model.")
    placed = next((REFUSED[k] for k in map(_of_text, every) if k in REFUSED), None)
    if placed is not None:
        raise Failure(
            f"{name}: {quote(every[0])} is refused: it has {placed}, not placed."
        )
    near, shared = _nearest(figures)
    raise Failure(
        f"{name}: the architecture {quote(every[0])} is unknown; the nearest that is "
        f"known, by {shared} of its keys, is {near}."
    )


def _of_text(kind: str) -> str:
    return kind.removesuffix("_text").removesuffix("_text_model")


def _nearest(figures: Mapping[str, Any]) -> tuple[str, str]:
    """Return the architecture whose defaults have most of a config's keys, and how many.

    Keys say which modules a model has: of those that change a definition, the share of
    the keys of both that each has.
    """
    keys = figures.keys() - IRRELEVANT.keys()

    def likeness(kind: str) -> float:
        known = model_defaults()[kind].keys() - IRRELEVANT.keys()
        return len(keys & known) / max(1, len(keys | known))

    near = max(model_defaults(), key=likeness)
    return near, f"{len(keys & model_defaults()[near].keys())} of {len(keys)}"


@cache
def model_defaults() -> Mapping[str, Mapping[str, Any]]:
    """Return model_type → what transformers supplies for keys that a file omits."""
    file = Path(__file__).parent / "defaults.json"
    table: Mapping[str, Mapping[str, Any]] = json.loads(file.read_text("utf-8"))
    return table


def read_config(path: Path) -> dict[str, Any]:
    """Return the object in a config.json. Raises Failure where there is none.

    `Infinity` is read, which is no JSON: transformers writes it (time_step_limit).
    NaN is refused: no figure is one.
    """
    shown = quote(str(path), 200)
    whole = path.absolute()  # of `.` the name is empty
    data = read_text_file(whole.parent, whole.name, MAX_BYTES)
    if isinstance(data, Problem):
        raise Failure(f"{shown}: {data.message}")
    read = parse(data, path.name)
    problems = [
        p for p in read.problems if p.rule != JSON_NAN.id or " NaN " in p.message
    ]
    if problems:
        at = f"#{problems[0].pointer}" if problems[0].pointer else ""
        raise Failure(f"{shown}{at}: {problems[0].message}")
    value = read.value if not read.problems else json.loads(data)
    if not isinstance(value, dict):
        raise Failure(f"{shown}: a config is a JSON object of figures, this is none.")
    return value


def figures_of(whole: Mapping[str, Any]) -> dict[str, Any]:
    """Return a config's figures: those of the text model before the others."""
    text = whole.get("text_config")
    figures = {**whole, **(text if isinstance(text, dict) else {})}
    linear = _of_linear_attention(figures.pop(_LINEAR, None))
    return {**figures, **linear}


def _of_linear_attention(stated: Any) -> dict[str, Any]:
    """Return Kimi Linear's own keys for figures that its published file has inside one."""
    if not isinstance(stated, dict):
        return {} if stated is None else {_LINEAR: stated}
    figures: dict[str, Any] = {_IN_LINEAR.get(k, k): v for k, v in stated.items()}
    places = [figures.pop(key, None) for key in _LAYERS_OF]
    if places == [None, None]:
        return figures
    kinds: dict[int, str] = {}
    for of, kind in zip(places, _LAYERS_OF.values(), strict=True):
        if not isinstance(of, list) or any(type(at) is not int for at in of):
            # said to be unknown
            return {**figures, _LINEAR: stated}
        kinds |= dict.fromkeys(of, kind)
    # counted from 1
    figures["layer_types"] = [kinds.get(i) for i in range(1, len(kinds) + 1)]
    return figures


def _kinds(*objects: Mapping[str, Any]) -> Iterator[str]:
    for figures in reversed(objects):
        kind = figures.get("model_type")
        if isinstance(kind, str) and kind:
            yield kind


def _unknown(source: str) -> str:
    hint = did_you_mean(source, names()) or f" Known are {', '.join(names())}."
    return f"{quote(source)} is no file, and no model of that name is known.{hint}"
