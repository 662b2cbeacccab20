"""App profiles: the places of a chat app's parts. Data in layers, one TOML file an app.

The file's top holds for every version of the app; each of its ``[[layers]]`` holds for a range of versions. ``resolve``
makes one flat profile of them for the version that a phone has. Layout and theme are read from the page itself, and the
facts that a person has confirmed on a phone are in ``agent_core.apps.learnt``. The shipped files are beside this
module, the owner's in ``apps`` of their own folder. ``map.toml`` there is not a profile: see ``agent_core.apps.names``.

Regions are fractions of the screen (left, top, right, bottom; 0–1) for reading from the picture; ids are the resource
ids of the accessibility tree, without the package. Colours are ``#rrggbb``.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict

from agent_core.apps.secrets import FILE as SECRETS_FILE
from agent_core.apps.secrets import Region, SecretRules, shipped_rules
from agent_core.owner import folder as own
from agent_core.texts import Lang, NameIn

MAP_FILE = "map.toml"
_NO_PROFILES = {MAP_FILE, SECRETS_FILE}

_CONDITION = re.compile(r"\s*(>=|<=|>|<)\s*(\d+(?:\.\d+)*)\s*")
_COMPARE = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
_VERSION = re.compile(r"\d+(?:\.\d+)*")


def _range(written: str) -> str:
    """Check a range of versions. Raises ValueError if it is not a comma-separated list of conditions."""
    if written and not all(_CONDITION.fullmatch(condition) for condition in written.split(",")):
        raise ValueError(f"no range of versions, as '>=9.1,<10' is one: {written}")
    return written


class Parts(BaseModel):
    """The fields that one version of an app may have of its own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    # the tree
    title_ids: tuple[str, ...] = ()
    back_ids: tuple[str, ...] = ()
    input_ids: tuple[str, ...] = ()
    send_ids: tuple[str, ...] = ()
    more_ids: tuple[str, ...] = ()  # the ＋ beside the input, which is not Send
    messages_ids: tuple[str, ...] = ()  # the list with the rows of a chat
    row_ids: tuple[str, ...] = ()  # one row of a chat: an avatar with its message, or a time
    avatar_ids: tuple[str, ...] = ()
    nickname_ids: tuple[str, ...] = ()  # above a message in a group
    badge_ids: tuple[str, ...] = ()  # a level or a title beside a nickname
    time_ids: tuple[str, ...] = ()
    bubble_ids: tuple[str, ...] = ()  # the layout of a message of any kind
    text_ids: tuple[str, ...] = ()  # the words of a message
    picture_ids: tuple[str, ...] = ()
    sticker_ids: tuple[str, ...] = ()
    voice_ids: tuple[str, ...] = ()
    call_ids: tuple[str, ...] = ()
    file_ids: tuple[str, ...] = ()
    failed_ids: tuple[str, ...] = ()
    sending_ids: tuple[str, ...] = ()
    quote_ids: tuple[str, ...] = ()  # what a message quotes, inside its bubble
    # the picture
    title_region: Region = (0.1, 0.03, 0.9, 0.1)
    messages_region: Region = (0.0, 0.1, 1.0, 0.85)
    my_bubble_colors: tuple[str, ...] = ()
    their_bubble_colors: tuple[str, ...] = ()
    # how it behaves
    counts_in_title: bool = True  # a group's title ends with its member count
    quotes_below: bool = False  # a quotation is in a box of its own below the bubble


class Layer(Parts):
    """The fields of the versions in a range."""

    name: str
    versions: Annotated[str, AfterValidator(_range)]


class AppProfile(Parts):
    key: str  # "qq"
    name: str  # "QQ", as launchers show it
    aliases: tuple[str, ...] = ()
    packages: tuple[str, ...]
    unlike: tuple[str, ...] = ()  # names of other things that contain this name; they never mean this app
    ai_entries: tuple[str, ...] = ()  # texts of the built-in AI, never to be tapped in a reply task
    # How texts begin that offer to ask the AI, on a list or in a search.
    ai_offers: tuple[str, ...] = (
        "问AI",
        "问问AI",
        "问一问AI",
        "向AI提问",
        "用AI搜",
        "AI搜索",
        "AI问答",
        "AI回答",
        "问元宝",
        "问问元宝",
        "用元宝搜",
        "Ask AI",
    )
    risky: tuple[str, ...] = ()  # texts that pay, delete, add, call, grant: never tapped without a person
    send_texts: tuple[str, ...] = ("发送", "Send")
    delivery_only: tuple[str, ...] = ()  # texts that only delivery may tap: send, stickers, quick replies, paste
    list_tabs: tuple[str, ...] = ()  # texts at the bottom of the screen that lead to the list of chats
    tabs: tuple[str, ...] = ()  # all texts at the bottom of the app's main pages
    service_rows: tuple[str, ...] = ()  # rows of that list that are the app's own, not contacts
    chat_url: str = ""  # opens the chat with the account ``{number}``; "" if the app has no such address
    avatar_texts: tuple[str, ...] = ("{name}头像",)  # how the tree describes the avatar of a person
    my_avatar_texts: tuple[str, ...] = ()  # … our own avatar; () if all have the same description
    voice_bar_texts: tuple[str, ...] = (
        "按住 说话",
        "按住讲话",
        "Hold to Talk",
    )  # a bar to hold and talk, in the place of the input
    said_wrong: tuple[str, ...] = ()  # parts of a page that this phone's owner said are read wrongly, see ``learnt``
    # hidden in pictures for people, besides the secrets of every app
    secrets: SecretRules = SecretRules()

    def name_in(self, lang: Lang) -> str:
        """Return the app's name for readers of a language: in English an alias, if its name is written in Chinese."""
        if lang == "zh" or self.name.isascii():
            return self.name
        return next((alias for alias in self.aliases if alias.isascii()), self.name)

    @property
    def known_as(self) -> NameIn:
        """The app's name as a value of a text, which says it in its own language."""
        return NameIn(self.name_in("en"), self.name)

    def package_among(self, installed: Collection[str]) -> str:
        """Return the app's name on a phone that has these packages; Android's if it is not among them.

        Each system has its own name for an app, so ``packages`` has several.
        """
        return next((package for package in self.packages if package in installed), self.packages[0])

    def chat_url_of(self, number: str) -> str | None:
        """Return the address of the chat with this account; None if the app has none or ``number`` is not digits."""
        if not self.chat_url or not re.fullmatch(r"[0-9]{1,20}", number):
            return None
        return self.chat_url.replace("{number}", number)


class LayeredProfile(BaseModel):
    """One file: the app's profile without its layers, and the layers."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    base: AppProfile
    layers: tuple[Layer, ...] = ()

    def resolve(self, version: str | None = None) -> AppProfile:
        """Return the flat profile for a version of the app; None if it is unknown.

        Lists are united, the most specific first: the layers of this version, later ones before earlier ones, then the
        base. If the version is unknown, the lists of every layer follow. Of a single value the most specific one is
        taken.
        """
        known = [(layer, in_range(version, layer.versions)) for layer in self.layers]
        sure = [layer for layer, applies in reversed(known) if applies]
        possible = [layer for layer, applies in known if applies is None]
        values: dict[str, Any] = {}
        for field in Parts.model_fields:
            given = [getattr(layer, field) for layer in sure if field in layer.model_fields_set]
            if field.endswith(("_ids", "_colors")):
                more = [getattr(layer, field) for layer in possible]
                values[field] = _united([*given, getattr(self.base, field), *more])
            elif given:
                values[field] = given[0]
        return self.base.model_copy(update=values)


def in_range(version: str | None, versions: str) -> bool | None:
    """Tell whether ``version`` fulfils the conditions of ``versions`` (">=9.1,<10"); None if it has no number."""
    number = _VERSION.match(version or "")
    if number is None:
        return None
    seen = _numbers(number[0])
    return all(_COMPARE[sign](seen, _numbers(limit)) for sign, limit in _CONDITION.findall(versions))


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers without trailing zeros, which mean nothing: "9.0.0" gives (9,)."""
    return tuple(int(part) for part in re.sub(r"(?:\.0+)+$", "", version).split("."))


def _united(lists: Iterable[Sequence[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for values in lists for value in values))


# Targets that are never touched or shown. An owner's file in place of a shipped one adds to these and removes nothing:
# a text that it forgot would be tapped.
GUARDS = ("ai_entries", "ai_offers", "risky", "delivery_only", "service_rows", "unlike")


def _files() -> dict[str, LayeredProfile]:
    return _read(own.key())


@cache
def _read(_: Path | None) -> dict[str, LayeredProfile]:
    shipped = _shipped()
    found = dict(shipped)
    for read in own.sources(own.Part.APPS).values():
        if f"{read.name}.toml" == MAP_FILE:
            continue
        found[read.name] = guarded(file_in(read), shipped.get(read.name))
    return found


@cache
def _shipped() -> dict[str, LayeredProfile]:
    with own.looking_at(None):
        found = own.sources(own.Part.APPS, "agent_core.apps")
    return {name: file_in(read) for name, read in found.items() if f"{name}.toml" not in _NO_PROFILES}


def file_in(read: own.OwnerSource) -> LayeredProfile:
    """Return the profile in a file, which is named as the profile's key. Raises OwnWrong if an owner's is wrong."""
    found = own.made(read, layered)
    read.check_named("key", found.base.key)
    return found


def guarded(file: LayeredProfile, shipped: LayeredProfile | None) -> LayeredProfile:
    """Return the owner's profile of an app with everything that the shipped one never touches or shows."""
    if shipped is None:
        return file
    base = shipped.base
    kept: dict[str, Any] = {name: _united([getattr(file.base, name), getattr(base, name)]) for name in GUARDS}
    kept["secrets"] = file.base.secrets.joined(base.secrets)
    return file.model_copy(update={"base": file.base.model_copy(update=kept)})


def layered(data: dict[str, Any]) -> LayeredProfile:
    """Return the profile in the table of a file. Raises ValidationError if it has an unknown field."""
    base = {name: value for name, value in data.items() if name != "layers"}
    return LayeredProfile.model_validate({"base": AppProfile.model_validate(base), "layers": data.get("layers", [])})


def profiles() -> tuple[AppProfile, ...]:
    """Return every profile, the shipped ones and the owner's, for an unknown version."""
    return _resolved(own.key())


@cache
def _resolved(_: Path | None) -> tuple[AppProfile, ...]:
    return tuple(file.resolve() for file in _files().values())


def profile(key: str) -> AppProfile:
    """Return the profile with this key, as ``profiles`` has it. Raises KeyError if there is none."""
    for candidate in profiles():
        if candidate.key == key:
            return candidate
    raise KeyError(key)


def name_of(key: str, lang: Lang) -> str:
    """Return an app's name for readers of a language by its profile's key; the key itself if there is no such app."""
    return next((known.name_in(lang) for known in profiles() if known.key == key), key)


def resolve(key: str, version: str | None = None) -> AppProfile:
    """Return the app's profile for this version. Raises KeyError if there is no such app."""
    return _of_version(own.key(), key, version)


@cache
def _of_version(_: Path | None, key: str, version: str | None) -> AppProfile:
    return _files()[key].resolve(version)


def profile_of_package(package: str | None) -> AppProfile | None:
    """Return the profile that has exactly this package; None if there is none."""
    return next((p for p in profiles() if package in p.packages), None)


def secret_rules(package: str | None) -> SecretRules:
    """Return the rules for covering pictures while this package is in front: the shipped rules, and its profile's."""
    return _secret_rules(own.key(), package)


@cache
def _secret_rules(_: Path | None, package: str | None) -> SecretRules:
    found, profile = shipped_rules(package), profile_of_package(package)
    return found.joined(profile.secrets) if profile else found
