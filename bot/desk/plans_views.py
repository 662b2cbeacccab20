"""What the desk takes and returns of plans: tasks that a planner has done in several parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class PlanCallView:
    """A tool that the planner has called. ``args`` by name; ``result``: what came of it in words, "" where none did."""

    tool: str
    args: Mapping[str, str] = field(default_factory=dict)
    state: Literal["going", "done", "failed"] = "going"
    result: str = ""
    phone: str = ""  # the name of the one that it is about


@dataclass(frozen=True, slots=True)
class PlanView:
    """What a plan came to so far. ``said``: what the planner said last; "" once that is the plan's outcome."""

    calls: tuple[PlanCallView, ...] = ()
    said: str = ""


@dataclass(frozen=True, slots=True)
class NewPlan:
    """A plan that is asked for. ``session`` names the conversation that it belongs to, as whoever keeps it knows it.

    ``serials``: the phones that it may use, () for all; ``only``: the one that it is about, "" for any of these.
    """

    task: str
    session: str
    lang: Literal["zh", "en"] = "zh"
    requested_by: str = ""
    chat: Mapping[str, Any] | None = None
    serials: tuple[str, ...] = ()
    only: str = ""
    key: str = ""
