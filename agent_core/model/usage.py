"""Counts the calls of models, their tokens and their cost: per run, and against limits.

Every caller of a model (the client, the chooser of records, a planner) reports to its meter. The run is identified by
the asyncio task in which the call is made, so calls of shared parts (the reader of screens, the chooser) count to the
right run. Tokens that an endpoint does not report are estimated from above, without the model's tokenizer.
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
    """Return a sum as people read it; small sums with four decimals, so that they differ."""
    return f"{cost:,.2f}" if cost >= 0.1 or not cost else f"{cost:.4f}"


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a million tokens.

    tokens_cached: for tokens that the endpoint had in its cache; None: the same as for any others.
    """

    tokens_in: float = 0.0
    tokens_out: float = 0.0
    tokens_cached: float | None = None

    def of(self, usage: Usage) -> float:
        cached = min(usage.tokens_cached, usage.tokens_in) if self.tokens_cached is not None else 0
        fresh = (usage.tokens_in - cached) * self.tokens_in
        return (fresh + cached * (self.tokens_cached or 0.0) + usage.tokens_out * self.tokens_out) / MILLION


@dataclass(frozen=True)
class Prices:
    """Prices by model name, ignoring case; ``default`` is for all other models, None if unknown."""

    models: Mapping[str, Price] = field(default_factory=dict)
    default: Price | None = None
    currency: str = ""

    def __bool__(self) -> bool:
        return bool(self.models) or self.default is not None

    def of(self, model: str, usage: Usage) -> float | None:
        """Return the cost in ``currency``; None if the model has no price."""
        own = {name.casefold(): price for name, price in self.models.items()}
        price = own.get(model.casefold(), self.default)
        return None if price is None else price.of(usage)


@dataclass(frozen=True, slots=True)
class Account:
    """The usage of one run.

    owes: whether a customer has got part of an answer, of which the rest is still to be sent.
    """

    spent: Spent
    owes: Callable[[], bool] = lambda: False


_account: ContextVar[Account | None] = ContextVar("account", default=None)


def charge_to(account: Account) -> None:
    """Charge the calls of this asyncio task, and of tasks that it starts from now on, to this run."""
    _account.set(account)


def account() -> Account | None:
    """Return the account of the run whose task this is; None outside of any."""
    return _account.get()


class Meter:
    """A counter of calls for the run, by ``prices``; it has no limits."""

    def __init__(self, prices: Prices | None = None) -> None:
        self.prices = prices or Prices()

    async def admit(self, model: str) -> None:
        """Wait for a call's turn. Raises ModelLimit if no more calls are allowed today."""

    async def count(self, model: str, usage: Usage) -> None:
        """Count a call that was answered, wholly or in part."""
        self._charge(usage, self.prices.of(model, usage))

    def failed(self, model: str, error: ModelError) -> None:
        """Note a try of a call that gave no reply."""

    def stood_in(self, model: str, instead_of: str) -> None:
        """Note that ``model`` replied because ``instead_of`` failed or rests."""

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
MESSAGE_TOKENS = 6  # for the markup around one message
PICTURE_TOKENS = 1_600  # of a picture, at most; a half-size phone screen costs about 900


def text_tokens(text: str) -> int:
    """Return the most tokens that ``text`` takes: one per Chinese character, digit or sign, or three Latin letters."""
    words, spaces = _WORDS.findall(text), _SPACES.findall(text)
    others = len(text) - sum(map(len, words)) - sum(map(len, spaces)) + 2 * len(_RARE.findall(text))
    return others + sum(math.ceil(len(word) / 3) for word in words) + sum(len(space) // 4 for space in spaces)


def request_tokens(messages: Sequence[Mapping[str, Any]]) -> int:
    """Return the most tokens that ``messages`` (chat completions format) cost, pictures included."""
    total = 0
    for message in messages:
        content = message.get("content") or ""
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        texts = (part["text"] for part in parts if part["type"] == "text")
        total += MESSAGE_TOKENS + sum(map(text_tokens, texts))
        total += sum(PICTURE_TOKENS for part in parts if part["type"] != "text")
    return total
