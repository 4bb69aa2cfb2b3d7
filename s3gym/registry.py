"""Finds games, back ends, pathways, interventions and report sections by name: a module's name is its id.

A module is imported only when it is asked for. Adding one is adding one file.
"""

import difflib
import importlib
import pkgutil
from collections.abc import Iterable
from types import ModuleType

from s3gym.errors import Explained

LISTED_AT_MOST = 30
"""Valid names a message lists when none is near."""

GAMES, PATHWAYS, SECTIONS = "s3gym.games", "s3gym.pathways", "s3gym.report.sections"
INTERVENTIONS = "s3gym.interventions"
"""The packages whose modules are found by name."""

_NOT_ENTRIES = {"base", "prices"}


class UnknownName(Explained, ValueError):
    """A name that is not there; the message gives the value and the nearest valid ones."""

    def __init__(self, kind: str, name: str, valid: Iterable[str], more: str = "") -> None:
        options = sorted(valid)
        near = difflib.get_close_matches(name, options, n=3, cutoff=0.5)
        if near:
            hint = f"Did you mean {' or '.join(near)}?"
        elif len(options) <= LISTED_AT_MOST:
            hint = f"Valid: {', '.join(options)}."
        else:
            hint = f"None of the {len(options)} known names is like it."
        super().__init__(f"unknown {kind} {name!r}. {hint}{more}")


def names(package: str) -> list[str]:
    """Sorted ids of the modules in ``package`` (a dotted name), without importing them."""
    folder = importlib.import_module(package).__path__
    return sorted(
        info.name for info in pkgutil.iter_modules(folder) if info.name not in _NOT_ENTRIES and info.name[0] != "_"
    )


def load(package: str, name: str, kind: str) -> ModuleType:
    """Imports the module ``name`` of ``package``; raises UnknownName with the nearest valid names."""
    valid = names(package)
    if name not in valid:
        raise UnknownName(kind, name, valid)
    return importlib.import_module(f"{package}.{name}")
