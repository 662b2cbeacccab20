"""Rules for secrets that no picture for people may show: codes, passwords, balances, card numbers.

They are data, as the app profiles are. ``secrets.toml`` has the rules for every app and those of apps other than chat
apps; a chat app's own are in its profile, in the table ``secrets``.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict

FILE = "secrets.toml"
Region = tuple[float, float, float, float]  # fractions of the screen: left, top, right, bottom


def _pattern(written: str) -> str:
    """Check a regular expression. Raises ValueError if it is none."""
    try:
        re.compile(written)
    except re.error as error:
        raise ValueError(f"no regular expression ({error}): {written}") from None
    return written


Pattern = Annotated[str, AfterValidator(_pattern)]


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SecretRule(_Data):
    """A text is covered if ``value`` is found in it (ignoring case and width of letters).

    label: cover it only beside a label: in the same text, on the same row to its right, or right above or below it.
    """

    name: str
    value: Pattern
    label: Pattern = ""


class SecretRules(_Data):
    """The rules for an app.

    pages: texts that identify a page that is covered completely.
    regions: always covered.
    sensitive: a page that nobody could read is covered completely.
    """

    rules: tuple[SecretRule, ...] = ()
    pages: tuple[Pattern, ...] = ()
    regions: tuple[Region, ...] = ()
    sensitive: bool = False

    def joined(self, other: SecretRules) -> SecretRules:
        """Return both sets of rules as one."""
        return SecretRules(
            rules=(*self.rules, *other.rules),
            pages=(*self.pages, *other.pages),
            regions=(*self.regions, *other.regions),
            sensitive=self.sensitive or other.sensitive,
        )


class _Apps(SecretRules):
    name: str
    packages: tuple[str, ...]


class _File(_Data):
    every: SecretRules
    apps: tuple[_Apps, ...] = ()


@cache
def _file() -> _File:
    text = resources.files("agent_core.apps").joinpath(FILE).read_text(encoding="utf-8")
    return _File.model_validate(tomllib.loads(text))


@cache
def shipped_rules(package: str | None) -> SecretRules:
    """Return the rules of ``secrets.toml`` while this package is in front: every app's and its own."""
    found = _file().every
    for app in _file().apps:
        if package in app.packages:
            found = found.joined(app)
    return found
