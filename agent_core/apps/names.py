"""From an app's name as people and models say it to its package."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Sequence
from functools import cache
from importlib import resources
from pathlib import Path

from agent_core.apps.profile import profiles
from agent_core.owner import folder as own

_OPENS = re.compile(
    r"\s*(?:请|帮我|麻烦)*\s*(?:打开|启动|(?:open|launch)\s)\s*(?:the\s)?\s*[“\"'「]?(?P<app>[^“”\"'「」，。,;；!！]+?)[”\"'」]?"
    r"\s*(?:应用|\sapp)?\s*[。.!！]?\s*",
    re.IGNORECASE,
)
PACKAGE = re.compile(r"[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)+")


def _bare(name: str) -> str:
    """Without spaces, case and full-width letters."""
    return re.sub(r"\s+", "", unicodedata.normalize("NFKC", name)).casefold()


def _packages_by_name() -> dict[str, tuple[str, ...]]:
    return _named(own.key())


@cache
def _named(_: Path | None) -> dict[str, tuple[str, ...]]:
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


def opened_alone(task: str) -> str:
    """Return the app that the task only opens; "" if the task is another one, or the name is not known."""
    found = _OPENS.fullmatch(task)
    return found["app"] if found is not None and packages_named(found["app"]) else ""


def names_one_of(text: str, packages: Collection[str]) -> bool:
    """Whether a label, an alias or the package of one of these apps stands somewhere in ``text``."""
    names = [name for name, known in _packages_by_name().items() if set(known) & set(packages)]
    words = unicodedata.normalize("NFKC", text).casefold()
    return any(_stands_in(name, words) for name in (*names, *map(str.casefold, packages)))


def names_an_app(text: str) -> bool:
    """Tell whether any app that is known by name stands in ``text``."""
    words = unicodedata.normalize("NFKC", text).casefold()
    return any(_stands_in(name, words) for name in _packages_by_name())


def _stands_in(name: str, words: str) -> bool:
    """``name`` is bare. In Latin letters it is a whole word: "x" is not named by "excel"."""
    spaced = r"\s*".join(map(re.escape, name))
    return re.search(rf"(?<![a-z0-9]){spaced}(?![a-z0-9])" if name.isascii() else spaced, words) is not None


def resolve_app(name: str, installed: Sequence[str]) -> str | None:
    """The installed package that ``name`` (a label, an alias, or a package) means; None where there is none."""
    wanted = name.strip()
    if PACKAGE.fullmatch(wanted) and wanted in installed:
        return wanted
    candidates = _packages_by_name().get(_bare(wanted), ())
    return next((package for package in candidates if package in installed), None)
