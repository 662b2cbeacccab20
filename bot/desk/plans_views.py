"""The parameters and results of the desk's service for plans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class PlanCallView:
    """A tool call of the planner. ``args``: the arguments by name. ``result``: its text, "" if there is none yet."""

    tool: str
    args: Mapping[str, str] = field(default_factory=dict)
    state: Literal["going", "done", "failed"] = "going"
    result: str = ""
    phone: str = ""  # the name of the phone that it is about


@dataclass(frozen=True, slots=True)
class PlanView:
    """The progress of a plan. ``said``: the planner's last words; "" once they are the plan's outcome."""

    calls: tuple[PlanCallView, ...] = ()
    said: str = ""


@dataclass(frozen=True, slots=True)
class NewPlan:
    """A request for a plan.

    session: the key of its conversation.
    serials: the phones that it may use, () for all.
    only: the phone that it is about, "" for any of these.
    key: the request's name, see ``Desk``.
    """

    task: str
    session: str
    lang: Literal["zh", "en"] = "zh"
    requested_by: str = ""
    chat: Mapping[str, Any] | None = None
    serials: tuple[str, ...] = ()
    only: str = ""
    key: str = ""
