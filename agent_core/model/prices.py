"""What calls of models cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent_core.model.base import Usage

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
