"""How an agent works, and what one step of it gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import uuid4
from zoneinfo import ZoneInfo

from agent_core.actions.types import Action
from agent_core.apps.profile import profiles
from agent_core.errors import ConfigInvalid
from agent_core.model.profile import ModelProfile
from agent_core.model.prompt import USUAL
from agent_core.perception.observer import TreeUse
from agent_core.policies import PolicyName, reply_task
from agent_core.session import GateState, Session, Status
from agent_core.texts import Lang, Listed


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """``elements`` puts what can be read of the screen into the prompt as text. ``timezone`` is the owner's (IANA).

    A text to a customer that is longer than ``part_chars`` goes out in parts. ``blur`` covers secrets in pictures for
    people. ``checked_versions`` ("qq 9.1.30") are versions of the apps in which somebody has seen replies arrive: there
    the first one is not shown to a person. ``model`` says how the model is asked and read. After ``max_tokens``, or
    ``max_cost`` (see ``agent_core.model.usage``), a person is asked whether the run may go on; 0: never.
    """

    lang: Lang = "zh"
    max_steps: int = 100
    max_tokens: int = 0
    max_cost: float = 0.0
    elements: bool = True
    tree: TreeUse = "auto"
    model: ModelProfile = USUAL
    timezone: str = ""
    part_chars: int = 500
    checked_versions: Sequence[str] = ()
    blur: bool = True


@dataclass(frozen=True, slots=True)
class StepResult:
    """What one step did. ``finished``: the run is over or waits for a person. ``action`` None: nothing was done."""

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
            action=action if last else None,
            thinking=last.thinking if last else "",
            message=session.message or (last.result if last else ""),
        )


def new_session(
    task: str,
    serial: str,
    settings: AgentSettings,
    *,
    run_id: str | None = None,
    dry_run: bool = False,
    policy: PolicyName | None = None,
    apps: Sequence[str] = (),
    number: str = "",
) -> Session:
    """A session for ``task``. Which policies hold is decided here, once: by ``policy``, else by the task's own text.

    ``apps`` are the only ones that a task which is no reply may use; ``number`` is the contact's, where it is known.
    ConfigInvalid for ``policy`` reply where the text names no app that customers are answered in.
    """
    gate = gate_for(task, policy)
    gate.number = number
    now = datetime.now(ZoneInfo(settings.timezone)) if settings.timezone else datetime.now().astimezone()
    return Session(
        run_id=run_id or uuid4().hex[:12],
        task=task,
        serial=serial,
        lang=settings.lang,
        max_steps=settings.max_steps,
        max_tokens=settings.max_tokens,
        max_cost=settings.max_cost,
        dry_run=dry_run,
        date=now.date().isoformat(),
        started_at=now,
        policy=(policy or (PolicyName.REPLY if gate.enabled else PolicyName.CAREFUL)).value,
        apps=list(apps),
        gate=gate,
    )


def gate_for(task: str, policy: PolicyName | None) -> GateState:
    """The gate of a task: on for a reply, off for anything else."""
    if policy not in (None, PolicyName.REPLY):
        return GateState()
    reply = reply_task(task, certain=policy is PolicyName.REPLY)
    if reply is not None:
        return GateState(enabled=True, app=reply.profile.key, contact=reply.contact)
    if policy is None:
        return GateState()
    names = Listed(profile.name for profile in profiles())
    raise ConfigInvalid(
        "The task names no app in which customers are answered.",
        advice=f"Name one of {names}, or choose another policy.",
        key="no_reply_app",
        known=names,
    )
