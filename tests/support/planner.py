"""What a planner needs and a test does not look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent_core.planner.base import PlanEvent


class Nothing:
    """A conversation that is not kept."""

    async def items(self, limit: int | None = None) -> list[dict[str, Any]]:
        return []

    async def add(self, items: Sequence[Mapping[str, Any]]) -> None: ...

    async def pop(self) -> dict[str, Any] | None:
        return None

    async def clear(self) -> None: ...


async def quiet(event: PlanEvent) -> None: ...
