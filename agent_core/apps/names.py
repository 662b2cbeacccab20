"""The names that people and models call apps by, and the phone's names for these apps.

``map.toml`` lists apps with their aliases and their identifiers on each system; ``apps/map.toml`` in the owner's folder
has the same form and comes first. The app profiles add the names and Android packages of the chat apps. Labels that
only one phone's home screen has are found by ``agent_core.loop.launching``.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Collection, Iterator
from difflib import get_close_matches
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator

from agent_core.apps.profile import MAP_FILE, profiles
from agent_core.owner import folder as own

if TYPE_CHECKING:
    from agent_core.devices.base import System

_IDENTIFIERS = {
    # https://developer.android.com/build/configure-app-module#set-application-id; HarmonyOS bundle names are alike.
    "android": re.compile(r"[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)+"),
    "harmonyos": re.compile(r"[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)+"),
    # https://developer.apple.com/documentation/bundleresources/information-property-list/cfbundleidentifier
    "ios": re.compile(r"[A-Za-z0-9.-]+"),
}
_ANY_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)+")


def _listed(given: object) -> object:
    return [given] if isinstance(given, str) else given


_OneOrMore = Annotated[tuple[str, ...], BeforeValidator(_listed)]


class KnownApp(BaseModel):
    """One app: its further names, and its identifiers on each system. The first installed one is used."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    also: _OneOrMore = ()
    android: _OneOrMore = ()
    harmonyos: _OneOrMore = ()
    ios: _OneOrMore = ()

    @model_validator(mode="after")
    def _identified(self) -> KnownApp:
        """Raise ValueError if an identifier cannot be one of its system, or if there is none at all."""
        for system, form in _IDENTIFIERS.items():
            for identifier in self.on(system):
                if not form.fullmatch(identifier):
                    raise ValueError(f"{identifier!r} cannot be the identifier of an app ({system})")
        if not self.on(None):
            raise ValueError("no android, no harmonyos and no ios: what is the app called by the phone?")
        return self

    def on(self, system: System | str | None) -> tuple[str, ...]:
        """Return the identifiers on a system; on all of them if it is None."""
        if system is None:
            return tuple(dict.fromkeys((*self.android, *self.harmonyos, *self.ios)))
        found: tuple[str, ...] = getattr(self, str(system))
        return found


class AppMap(BaseModel):
    """A file of apps by name. The tables are explained in ``map.toml``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    answers: dict[str, KnownApp] = {}
    mail: dict[str, KnownApp] = {}
    phone: dict[str, KnownApp] = {}
    other: dict[str, KnownApp] = {}

    @model_validator(mode="after")
    def _no_name_twice(self) -> AppMap:
        seen: set[str] = set()
        for name, _ in (*self.names(self.answers, self.mail, self.phone, self.other),):
            if not name or name in seen:
                raise ValueError(f"the name {name!r} is empty, or two apps have it")
            seen.add(name)
        return self

    @staticmethod
    def names(*tables: dict[str, KnownApp]) -> Iterator[tuple[str, KnownApp]]:
        """Return the bare names of the apps in some tables, each with its app."""
        for table in tables:
            for label, app in table.items():
                for name in (label, *app.also):
                    yield bare(name), app


def map_in(read: own.OwnerSource) -> AppMap:
    """Return the map in an owner's file. Raises OwnWrong if it is wrong."""
    return own.made(read, AppMap.model_validate)


class _Names:
    """Every name with its app.

    spoken: the names that mean the app inside a sentence, too. served: those of apps in which people write.
    """

    def __init__(self) -> None:
        shipped = AppMap.model_validate(
            tomllib.loads(resources.files("agent_core.apps").joinpath(MAP_FILE).read_text(encoding="utf-8"))
        )
        self.every: dict[str, KnownApp] = {}
        self.spoken: dict[str, KnownApp] = {}
        self.served: dict[str, KnownApp] = {}
        self._add(shipped)
        for profile in profiles():
            for name in map(bare, (profile.name, *profile.aliases)):
                known = self.every.get(name)
                harmonyos, ios = (known.harmonyos, known.ios) if known else ((), ())
                android = tuple(package for package in profile.packages if package not in (*harmonyos, *ios))
                app = KnownApp(android=android, harmonyos=harmonyos, ios=ios)
                self.every[name] = self.spoken[name] = self.served[name] = app
        for read in own.sources(own.Part.APPS).values():
            if f"{read.name}.toml" == MAP_FILE:
                self._add(map_in(read))

    def _add(self, file: AppMap) -> None:
        every = dict(file.names(file.answers, file.mail, file.phone, file.other))
        for names, tables in (
            (self.every, (file.answers, file.mail, file.phone, file.other)),
            (self.spoken, (file.answers, file.mail, file.phone)),
            (self.served, (file.answers,)),
        ):
            for name in every:
                names.pop(name, None)
            names.update(file.names(*tables))


def _names() -> _Names:
    return _read(own.key())


@cache
def _read(_: Path | None) -> _Names:
    return _Names()


def bare(name: str) -> str:
    """Return a name without spaces, case and full-width letters: the form in which names are compared."""
    return re.sub(r"\s+", "", unicodedata.normalize("NFKC", name)).casefold()


# By name --------------------------------------------------------------------------------------------------------------


def packages_named(name: str, system: System | None = None) -> tuple[str, ...]:
    """Return the identifiers that ``name`` may mean on a system, installed or not; on every system if it is None.

    ``name`` is a label, an alias, or an identifier itself, which is returned as it is.
    """
    known = _names().every.get(bare(name))
    if known is not None:
        return known.on(system)
    return (name.strip(),) if is_identifier(name) else ()


def is_identifier(name: str) -> bool:
    """Tell whether ``name`` has the form of a package or bundle id. A name that is known as one, too, is a name."""
    return bool(_ANY_IDENTIFIER.fullmatch(name.strip()))


def resolve_app(name: str, installed: Collection[str], system: System | None = None) -> str | None:
    """Return the installed identifier that ``name`` means; None if there is none."""
    wanted = name.strip()
    if wanted in installed and is_identifier(wanted):
        return wanted
    return next((package for package in packages_named(name, system) if package in installed), None)


def similar_names(name: str, installed: Collection[str], system: System) -> list[str]:
    """Return known names that are alike ``name`` and mean an installed app, the most alike first."""
    here = [one for one in _names().every if resolve_app(one, installed, system) is not None]
    return get_close_matches(bare(name), here)


def known_on(system: System) -> list[str]:
    """Return the identifiers of all apps of the map on a system, for a phone that does not list its apps."""
    return list(dict.fromkeys(package for app in _names().every.values() for package in app.on(system)))


def known_as(package: str) -> list[str]:
    """Return the names, bare, by which an app with this identifier is known."""
    return [name for name, app in _names().every.items() if package in app.on(None)]


# In sentences ---------------------------------------------------------------------------------------------------------

_OPENS = re.compile(
    r"\s*(?:请|帮我|麻烦)*\s*(?:打开|启动|(?:open|launch)\s)\s*(?:the\s)?\s*[“\"'「]?(?P<app>[^“”\"'「」，。,;；!！]+?)[”\"'」]?"
    r"\s*(?:应用|\sapp)?\s*[。.!！]?\s*",
    re.IGNORECASE,
)


def opened_alone(task: str) -> str:
    """Return the app that the task only opens; "" if the task is another one, or the name is not known."""
    found = _OPENS.fullmatch(task)
    return found["app"] if found is not None and packages_named(found["app"]) else ""


def is_app_name(word: str) -> bool:
    """Tell whether ``word`` is the name of an app, and none of the names that are everyday words or people's, too."""
    return bare(word) in _names().spoken or is_identifier(word)


def names_one_of(text: str, packages: Collection[str]) -> bool:
    """Tell whether a label, an alias or the package of one of these apps is anywhere in ``text``."""
    names = [name for package in packages for name in known_as(package)]
    words = unicodedata.normalize("NFKC", text).casefold()
    return any(_stands_in(name, words) for name in (*names, *map(str.casefold, packages)))


def names_an_app(text: str) -> bool:
    """Tell whether the name of any known app is in ``text``."""
    words = unicodedata.normalize("NFKC", text).casefold()
    return any(_stands_in(name, words) for name in _names().spoken)


def without_profile(text: str) -> list[str]:
    """Return the names in ``text``, as they are written there, of apps in which people write and which have no
    profile.
    """
    answered = {package for one in profiles() for package in one.packages}
    found: list[str] = []
    for name, app in _names().served.items():
        if not answered & set(app.on(None)):
            found += (match[0] for match in _pattern(name).finditer(text))
    return sorted(dict.fromkeys(found), key=len, reverse=True)


def _stands_in(name: str, words: str) -> bool:
    return _pattern(name).search(words) is not None


@cache
def _pattern(name: str) -> re.Pattern[str]:
    """Return the pattern for ``name``, which is bare.

    In Latin letters it is a whole word: "excel" does not name "x".
    """
    spaced = r"\s*".join(map(re.escape, name))
    return re.compile(rf"(?<![A-Za-z0-9]){spaced}(?![A-Za-z0-9])" if name.isascii() else spaced, re.IGNORECASE)
