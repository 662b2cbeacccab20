"""Every setting: written (``sources``), checked (``values``), by subject (``sections``), in layers (``layers``), by
name (``names``), read (``loading``), told where it comes from (``origin``), changed in the file (``writing``) and while
we run (``live``).
"""

from bot.settings.layers import Settings
from bot.settings.loading import load, unknown_names
from bot.settings.sections import (
    DigestSettings,
    EndpointSettings,
    KnowledgeSettings,
    PriceSettings,
    RemoteSettings,
    TelegramSettings,
)
from bot.settings.sources import CONFIG_FILE, ENV_FILE, aliases, config_file
from bot.settings.values import HOST_NAME

__all__ = [
    "CONFIG_FILE",
    "ENV_FILE",
    "HOST_NAME",
    "DigestSettings",
    "EndpointSettings",
    "KnowledgeSettings",
    "PriceSettings",
    "RemoteSettings",
    "Settings",
    "TelegramSettings",
    "aliases",
    "config_file",
    "load",
    "unknown_names",
]
