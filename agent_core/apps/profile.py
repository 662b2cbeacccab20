"""App profiles: where a chat app's parts are found. Data, one TOML file an app.

Regions are fractions of the screen (left, top, right, bottom; 0–1) for reading from the picture; ids are the resource
ids of the accessibility tree, without the package. Colours are ``#rrggbb``.
"""

from __future__ import annotations

import re
import tomllib
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources

from pydantic import BaseModel, ConfigDict

from agent_core.apps.secrets import FILE as SECRETS_FILE
from agent_core.apps.secrets import Region, SecretRules


class AppProfile(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str  # "qq"
    name: str  # "QQ", as launchers show it
    aliases: tuple[str, ...] = ()
    packages: tuple[str, ...]
    unlike: tuple[str, ...] = ()  # names of other things that this one's name is a part of; they never mean this app
    ai_entries: tuple[str, ...] = ()  # texts of the built-in AI, never to be tapped in a reply task
    risky: tuple[str, ...] = ()  # texts that pay, delete, add, call, grant: never tapped without a person
    send_texts: tuple[str, ...] = ("发送", "Send")
    delivery_only: tuple[str, ...] = ()  # texts that only delivery may tap: send, stickers, quick replies, paste
    versions: tuple[str, ...] = ()  # whose layout is known, as shell patterns (``9.1.*``)
    list_tabs: tuple[str, ...] = ()  # texts at the bottom of the screen that lead to the list of chats
    tabs: tuple[str, ...] = ()  # all texts at the bottom of the app's main pages
    service_rows: tuple[str, ...] = ()  # rows of that list that are the app's own, and no contacts
    chat_url: str = ""  # opens the chat with the account ``{number}``; "" where the app has no such address
    # the tree
    title_ids: tuple[str, ...] = ()
    bubble_ids: tuple[str, ...] = ()
    input_ids: tuple[str, ...] = ()
    send_ids: tuple[str, ...] = ()
    failed_ids: tuple[str, ...] = ()
    sending_ids: tuple[str, ...] = ()
    quote_ids: tuple[str, ...] = ()  # what a message quotes, inside its bubble
    # the picture
    title_region: Region = (0.1, 0.03, 0.9, 0.1)
    messages_region: Region = (0.0, 0.1, 1.0, 0.85)
    my_bubble_colors: tuple[str, ...] = ()
    their_bubble_colors: tuple[str, ...] = ("#ffffff",)
    # what pictures for people do not show, beside what they show of no app
    secrets: SecretRules = SecretRules()

    def knows(self, version: str | None) -> bool:
        """Whether the layout of the app in this version is known."""
        return version is not None and any(fnmatchcase(version, pattern) for pattern in self.versions)

    def chat_url_of(self, number: str) -> str | None:
        """The address of the chat with this account; None where there is none, or ``number`` is not digits."""
        if not self.chat_url or not re.fullmatch(r"[0-9]{1,20}", number):
            return None
        return self.chat_url.replace("{number}", number)


@cache
def profiles() -> tuple[AppProfile, ...]:
    """Every profile in this folder."""
    files = sorted(resources.files("agent_core.apps").iterdir(), key=lambda item: item.name)
    return tuple(
        AppProfile.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
        for file in files
        if file.name.endswith(".toml") and file.name != SECRETS_FILE
    )


def profile(key: str) -> AppProfile:
    """The profile with this key; KeyError where there is none."""
    for candidate in profiles():
        if candidate.key == key:
            return candidate
    raise KeyError(key)


def profile_of_package(package: str | None) -> AppProfile | None:
    """The profile whose packages hold exactly this one."""
    return next((p for p in profiles() if package in p.packages), None)
