"""How an agent works, and what one step of it gives."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import uuid4
from zoneinfo import ZoneInfo

from agent_core.actions.types import Action
from agent_core.gate.detect import reply_task
from agent_core.observer import TreeUse
from agent_core.session import GateState, Session, Status
from agent_core.texts import Lang

Dialect = Literal["autoglm", "json", "gelab", "auto"]


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """``elements`` puts what can be read of the screen into the prompt as text. ``timezone`` is the owner's (IANA)."""

    lang: Lang = "zh"
    max_steps: int = 100
    elements: bool = True
    tree: TreeUse = "auto"
    dialect: Dialect = "autoglm"
    timezone: str = ""


@dataclass(frozen=True, slots=True)
class StepResult:
    """What one step did. ``finished``: the run is over or waits for a person."""

    success: bool
    finished: bool
    action: Action | None
    thinking: str
    message: str

    @classmethod
    def of(cls, session: Session, *, steps_before: int, action: Action | None) -> StepResult:
        last = session.steps[-1] if len(session.steps) > steps_before else None
        return cls(
            success=session.status is not Status.FAILED and (last is None or last.ok),
            finished=session.status is not Status.RUNNING,
            action=action,
            thinking=last.thinking if last else "",
            message=session.message or (last.result if last else ""),
        )


def new_session(
    task: str, serial: str, settings: AgentSettings, *, run_id: str | None = None, dry_run: bool = False
) -> Session:
    """A session for ``task``. Whether the gate is on is decided here, once, by the task's own text."""
    reply = reply_task(task)
    now = datetime.now(ZoneInfo(settings.timezone) if settings.timezone else None).astimezone()
    return Session(
        run_id=run_id or uuid4().hex[:12],
        task=task,
        serial=serial,
        lang=settings.lang,
        max_steps=settings.max_steps,
        dry_run=dry_run,
        date=now.date().isoformat(),
        started_at=now,
        gate=GateState(enabled=True, app=reply.profile.key, contact=reply.contact) if reply else GateState(),
    )
