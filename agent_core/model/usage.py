"""Counting the calls of models: to the run that they are made for, and against limits.

Whoever asks a model (the client, the chooser of records, a planner) tells its meter. The run is known by the task in
which the call is made, so what is shared between runs (the reader of screens, the chooser) counts to the right one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass

from agent_core.errors import ModelError
from agent_core.model.base import Usage
from agent_core.model.prices import Prices
from agent_core.session import Spent


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
