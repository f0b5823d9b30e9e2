"""The figures of a model's config.json that decide which kernels it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

from generator.dataset.json_file import read_json
from generator.models.architectures import ARCHITECTURES, Architecture
from generator.problems import Failure
from generator.problems.messages import did_you_mean, quote, show

DATA = Path(__file__).parent / "data"
_LARGEST = 1 << 24
"""No dimension of a layer is larger; a config with a larger one is no model's."""


@dataclass(frozen=True)
class Config:
    """One config.json: `figures` are those of the text model, if it has several.

    `name` is the file's, or that of the folder it lies in.
    """

    name: str
    figures: Mapping[str, Any]
    architecture: Architecture

    def get(self, *keys: str) -> Any:
        """Return the first of the figures that the config has, else None."""
        return next((v for k in keys if (v := self.figures.get(k)) is not None), None)

    def size(self, *keys: str, default: int | None = None) -> int:
        """Return a length or a count: a positive integer under the first key present.

        Raises Failure, with the key, where it is missing or none.
        """
        for key in keys:
            if self.figures.get(key) is None:
                continue
            value = self.figures[key]
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
        found = self.get(*keys)
        return 0 if found in (None, 0) else self.size(*keys)

    def divided(self, key: str, value: int, by: int, what: str) -> int:
        """Return value / by. Raises Failure where it leaves a remainder."""
        if value % by:
            self.refuse(key, f"is {value}, which {what} {by} does not divide")
        return value // by

    def refuse(self, key: str, why: str) -> NoReturn:
        """Raise the Failure that says what is wrong with a figure."""
        raise Failure(f"{self.name}: {key} {why}.")


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
    figures = figures_of(whole)
    kinds = [k for k in _kinds(whole, figures) if k in ARCHITECTURES]
    if kinds:
        return Config(name, figures, ARCHITECTURES[kinds[0]])
    said = list(_kinds(whole, figures))
    if not said:
        raise Failure(f"{name}: model_type is missing: this is no config of a model.")
    near = get_close_matches(said[0], ARCHITECTURES, 1, 0.0)[0]
    raise Failure(
        f"{name}: the architecture {quote(said[0])} is unknown; the nearest that is "
        f"known is {near}."
    )


def read_config(path: Path) -> dict[str, Any]:
    """Return the object in a config.json. Raises Failure where there is none."""
    read = read_json(path.parent, path.name)
    shown = quote(str(path), 200)
    if read.problems:
        raise Failure(f"{shown}: {read.problems[0].message}")
    if not isinstance(read.value, dict):
        raise Failure(f"{shown}: a config is a JSON object of figures, this is none.")
    return read.value


def figures_of(whole: Mapping[str, Any]) -> dict[str, Any]:
    """Return a config's figures: those of the text model before the others."""
    text = whole.get("text_config")
    return {**whole, **(text if isinstance(text, dict) else {})}


def _kinds(*objects: Mapping[str, Any]) -> Iterator[str]:
    for figures in reversed(objects):
        kind = figures.get("model_type")
        if isinstance(kind, str) and kind:
            yield kind


def _unknown(source: str) -> str:
    hint = did_you_mean(source, names()) or f" Known are {', '.join(names())}."
    return f"{quote(source)} is no file, and no model of that name is known.{hint}"
