"""The settings of an agent, and the result of one of its steps."""

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
    """The settings of an agent.

    max_tokens, max_cost: after these a person is asked whether the run may go on (see ``agent_core.model.usage``). 0
    means that nobody is asked.
    elements: put what can be read of the screen into the prompt as text.
    model: how the model is asked and its replies are read.
    timezone: the owner's (IANA).
    part_chars: a longer text to a customer is sent in parts.
    checked_versions: app versions ("qq 9.1.30") in which somebody has seen replies arrive. In others a person is shown
    the first one.
    blur: cover secrets in pictures for people.
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
    """The result of one step.

    finished: the run is over or waits for a person.
    action: None if nothing was done.
    """

    success: bool
    finished: bool
    action: Action | None
    thinking: str
    message: str

    @classmethod
    def of(cls, session: Session, *, steps_before: int, action: Action | None) -> StepResult:
        """Return the result of the step after the first ``steps_before`` steps."""
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
    """Return a session for ``task``. Its policies are decided here, once: by ``policy``, else by the task's text.

    apps: the only apps that a task other than a reply may use.
    number: the contact's, if it is known.

    Raises ConfigInvalid if ``policy`` is reply and the text names no app in which customers are answered.
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
    """Return the gate of a task: enabled for a reply task, disabled for any other.

    Raises ConfigInvalid as ``new_session`` does.
    """
    if policy not in (None, PolicyName.REPLY):
        return GateState()
    reply = reply_task(task, certain=policy is PolicyName.REPLY)
    if reply is not None:
        return GateState(enabled=True, app=reply.profile.key, contact=reply.contact)
    if policy is None:
        return GateState()
    names = Listed(profile.known_as for profile in profiles())
    raise ConfigInvalid(
        "The task names no app in which customers are answered.",
        advice=f"Name one of {names}, or choose another policy.",
        key="no_reply_app",
        known=names,
    )
