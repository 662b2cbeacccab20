"""The endpoints that are offered, and what a reply costs there."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources

from pydantic import BaseModel, ConfigDict

# A reply to one question, as `phonedesk demo` counts it: four calls with a picture and the screen's texts.
REPLY_TOKENS_IN, REPLY_TOKENS_OUT = 13_000, 300


class ModelPreset(BaseModel):
    """An OpenAI-compatible endpoint. Prices are of a million tokens; None: not known.

    ``profile``: the model profile, "" if the name tells it. ``key_at``: the page where a key is made. ``local``: it
    runs on this machine and wants no key. ``priced_at``: where and when the prices were read.
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
        """In ``currency``; None if the prices are not known."""
        if self.tokens_in is None or self.tokens_out is None:
            return None
        return (REPLY_TOKENS_IN * self.tokens_in + REPLY_TOKENS_OUT * self.tokens_out) / 1_000_000


@cache
def model_presets() -> tuple[ModelPreset, ...]:
    file = resources.files("bot.app.setup") / "presets.toml"
    return tuple(ModelPreset.model_validate(one) for one in tomllib.loads(file.read_text(encoding="utf-8"))["model"])
