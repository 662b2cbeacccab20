"""Count the calls of models, their tokens and what they cost: to the run that they are made for, and against limits.

Whoever asks a model (the client, the chooser of records, a planner) tells its meter. The run is known by the task in
which the call is made, so what is shared between runs (the reader of screens, the chooser) counts to the right one.
Tokens that an endpoint does not tell are guessed from above, without the model's tokenizer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from agent_core.errors import ModelError
from agent_core.model.base import Usage
from agent_core.session import Spent

MILLION = 1_000_000


def money(cost: float) -> str:
    """A sum as people read it; small ones with what makes them differ."""
    return f"{cost:,.2f}" if cost >= 0.1 or not cost else f"{cost:.4f}"


@dataclass(frozen=True, slots=True)
class Price:
    """Of a million tokens. ``tokens_cached``: of those that the endpoint had in its cache; None: as any other."""

    tokens_in: float = 0.0
    tokens_out: float = 0.0
    tokens_cached: float | None = None

    def of(self, usage: Usage) -> float:
        cached = min(usage.tokens_cached, usage.tokens_in) if self.tokens_cached is not None else 0
        fresh = (usage.tokens_in - cached) * self.tokens_in
        return (fresh + cached * (self.tokens_cached or 0.0) + usage.tokens_out * self.tokens_out) / MILLION


@dataclass(frozen=True)
class Prices:
    """By the models' names, in any case of letters; ``default``: of all others. None: not known."""

    models: Mapping[str, Price] = field(default_factory=dict)
    default: Price | None = None
    currency: str = ""

    def __bool__(self) -> bool:
        return bool(self.models) or self.default is not None

    def of(self, model: str, usage: Usage) -> float | None:
        """What it cost, in ``currency``; None where the model has no price."""
        own = {name.casefold(): price for name, price in self.models.items()}
        price = own.get(model.casefold(), self.default)
        return None if price is None else price.of(usage)


@dataclass(frozen=True, slots=True)
class Account:
    """Of one run. ``owes``: whether a customer has a part of an answer, of which the rest is still to be sent."""

    spent: Spent
    owes: Callable[[], bool] = lambda: False


_account: ContextVar[Account | None] = ContextVar("account", default=None)


def charge_to(account: Account) -> None:
    """From now on the calls of this task, and of those that it begins, are of this run."""
    _account.set(account)


def account() -> Account | None:
    """Of the run in whose task this is; None outside of any."""
    return _account.get()


class Meter:
    """Counts to the run, by ``prices``; knows no limits."""

    def __init__(self, prices: Prices | None = None) -> None:
        self.prices = prices or Prices()

    async def admit(self, model: str) -> None:
        """Before a call: wait for its turn. ModelLimit where no more are allowed today."""

    async def count(self, model: str, usage: Usage) -> None:
        """After a call that was answered, wholly or in part."""
        self._charge(usage, self.prices.of(model, usage))

    def failed(self, model: str, error: ModelError) -> None:
        """After each try of a call that gave no reply."""

    def stood_in(self, model: str, instead_of: str) -> None:
        """After a reply of ``model``, which was asked since the one of the name ``instead_of`` failed or rests."""

    def _charge(self, usage: Usage, cost: float | None) -> None:
        if (now := account()) is not None:
            spent = now.spent
            spent.calls += 1
            spent.tokens_in += usage.tokens_in
            spent.tokens_out += usage.tokens_out
            spent.tokens_cached += usage.tokens_cached
            if cost is not None:
                spent.cost, spent.currency = (spent.cost or 0.0) + cost, self.prices.currency


_WORDS, _SPACES, _RARE = re.compile(r"[A-Za-z]+"), re.compile(r"[ \t]+"), re.compile("[\U00010000-\U0010ffff]")
MESSAGE_TOKENS = 6  # the marks around one message
PICTURE_TOKENS = 1_600  # of a picture, at most; a half-size phone screen costs about 900


def text_tokens(text: str) -> int:
    """Tokens of ``text`` at most: a Chinese character, digit or mark is one, Latin letters one for each three."""
    words, spaces = _WORDS.findall(text), _SPACES.findall(text)
    others = len(text) - sum(map(len, words)) - sum(map(len, spaces)) + 2 * len(_RARE.findall(text))
    return others + sum(math.ceil(len(word) / 3) for word in words) + sum(len(space) // 4 for space in spaces)


def request_tokens(messages: Sequence[Mapping[str, Any]]) -> int:
    """What ``messages`` of the chat completions form cost at most, pictures included."""
    total = 0
    for message in messages:
        content = message.get("content") or ""
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        texts = (part["text"] for part in parts if part["type"] == "text")
        total += MESSAGE_TOKENS + sum(map(text_tokens, texts))
        total += sum(PICTURE_TOKENS for part in parts if part["type"] != "text")
    return total
