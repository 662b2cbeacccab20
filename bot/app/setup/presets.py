"""The offered endpoints, and the cost of a reply there."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Any

from pydantic import BaseModel, ConfigDict

from bot.app.settings.names import environment_name
from bot.app.settings.origin import as_text

# A reply to one question, as `phonedesk demo` counts it: four calls with a picture and the screen's texts.
REPLY_TOKENS_IN, REPLY_TOKENS_OUT = 13_000, 300


class ModelPreset(BaseModel):
    """An OpenAI-compatible endpoint. Prices are of a million tokens; None: not known.

    profile: the model profile, "" if the name tells it.
    key_at: the page that makes keys.
    local: it runs on this machine and needs no key.
    priced_at: where and when the prices were read.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    key: str
    base_url: str
    name: str
    profile: str = ""
    key_at: str = ""
    local: bool = False
    tokens_in: float | None = None
    tokens_out: float | None = None
    currency: str = ""
    priced_at: str = ""

    @property
    def cost_of_reply(self) -> float | None:
        """The cost of a reply in ``currency``; None if the prices are not known."""
        if self.tokens_in is None or self.tokens_out is None:
            return None
        return (REPLY_TOKENS_IN * self.tokens_in + REPLY_TOKENS_OUT * self.tokens_out) / 1_000_000


class KnowledgePreset(BaseModel):
    """A knowledge base for the provider ``http``.

    server: the address that everybody uses, "" if each has its own.
    path: the part behind the address.
    http: the template, as in the section ``knowledge.http``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    key: str
    server: str = ""
    path: str
    http: dict[str, Any]

    def settings(self) -> dict[str, str]:
        """Return the template by environment name; a value that only other presets have is "", the default."""
        fields = {field for preset in knowledge_presets() for field in preset.http}
        values = {field: as_text(self.http.get(field)) for field in sorted(fields)}
        return {environment_name(("knowledge", "http", field)): value for field, value in values.items()}


@cache
def model_presets() -> tuple[ModelPreset, ...]:
    return tuple(ModelPreset.model_validate(one) for one in _written()["model"])


@cache
def knowledge_presets() -> tuple[KnowledgePreset, ...]:
    return tuple(KnowledgePreset.model_validate(one) for one in _written()["knowledge"])


def _written() -> dict[str, Any]:
    return tomllib.loads((resources.files("bot.app.setup") / "presets.toml").read_text(encoding="utf-8"))
