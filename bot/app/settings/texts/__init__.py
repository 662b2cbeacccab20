"""The plain words for each setting and each group of settings, one TOML file a language.

They are the only description for people: the console and ``config show`` print them, and the reference begins with
them.
"""

from __future__ import annotations

from agent_core.texts import Lang, load_texts
from bot.app.settings.names import Name, SettingPath

GENERAL = "general"  # the group of the settings that are in no table of the file


def setting_words(name: Name, lang: Lang) -> str:
    """Return what a setting is, in a few words, with its unit. Raises KeyError if a setting has no words."""
    return load_texts(__name__, lang)[f"{_group(name.path[:-1])}.{name.path[-1]}"]


def group_words(path: SettingPath, lang: Lang) -> str:
    """Return the heading of a group of settings; ``()`` is the general one. Raises KeyError if it has none."""
    return load_texts(__name__, lang)[f"group.{_group(path)}"]


def _group(path: SettingPath) -> str:
    return ".".join(path) or GENERAL
