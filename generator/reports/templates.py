"""Find the templates, and make Jinja's environment for pages of HTML."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import generator

if TYPE_CHECKING:
    from jinja2 import Environment


def templates() -> Path:
    """Return the folder of templates, in a checkout or in an installed wheel."""
    package = Path(generator.__file__).parent
    checkout = package.parent / "templates"
    return checkout if checkout.is_dir() else package / "templates"


def html_environment() -> Environment:
    """Return Jinja's environment for pages: what it prints is escaped."""
    # reports that are text alone need no templates
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(templates()),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
