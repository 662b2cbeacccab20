"""From an app's name as people and models say it to its package."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from importlib import resources

from agent_core.apps.profile import profiles

PACKAGE = re.compile(r"[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)+")


def _bare(name: str) -> str:
    """Without spaces, case and full-width letters."""
    return re.sub(r"\s+", "", unicodedata.normalize("NFKC", name)).casefold()


@cache
def _packages_by_name() -> dict[str, tuple[str, ...]]:
    raw = json.loads(resources.files("agent_core.apps").joinpath("map.json").read_text(encoding="utf-8"))
    found: dict[str, tuple[str, ...]] = {}
    for label, (package, *aliases) in raw.items():
        for name in (label, *aliases):
            found[_bare(name)] = (package,)
    for profile in profiles():
        for name in (profile.name, *profile.aliases):
            found[_bare(name)] = profile.packages
    return found


def packages_named(name: str) -> tuple[str, ...]:
    """The packages that ``name`` (a label, an alias, or a package) may mean, installed or not."""
    wanted = name.strip()
    return (wanted,) if PACKAGE.fullmatch(wanted) else _packages_by_name().get(_bare(wanted), ())


def resolve_app(name: str, installed: Sequence[str]) -> str | None:
    """The installed package that ``name`` (a label, an alias, or a package) means; None where there is none."""
    wanted = name.strip()
    if PACKAGE.fullmatch(wanted) and wanted in installed:
        return wanted
    candidates = _packages_by_name().get(_bare(wanted), ())
    return next((package for package in candidates if package in installed), None)
