"""What a run needs, put together: the outside of an agent once, the parts of one run each time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent_core.acting import Actor
from agent_core.apps.profile import AppProfile, profile
from agent_core.delivery.deliver import Delivery
from agent_core.delivery.flow import ReplyFlow
from agent_core.delivery.hand_over import HandOver
from agent_core.delivery.leftovers import Leftovers
from agent_core.devices.base import Device
from agent_core.gate import Policy, Situation, Verdict, review
from agent_core.observer import Observation, Observer
from agent_core.ports import Human, KnowledgeBase, Lease, Ledger, RunStore, StopGuard
from agent_core.recording import Recorder
from agent_core.repeats import RepeatWatch
from agent_core.session import Session
from agent_core.texts import say
from agent_core.thinking import Thinker, Thought


@dataclass(frozen=True, slots=True)
class Outside:
    """What an agent is given, for all its runs."""

    device: Device
    observer: Observer
    thinker: Thinker
    knowledge: KnowledgeBase
    human: Human
    ledger: Ledger
    store: RunStore
    lease: Lease
    guard: StopGuard
    policies: Sequence[Policy]


@dataclass(frozen=True, slots=True)
class Run:
    """The parts of one run. ``profile`` and ``flow`` are there for reply tasks only."""

    session: Session
    actor: Actor
    recorder: Recorder
    repeats: RepeatWatch
    profile: AppProfile | None
    flow: ReplyFlow | None
    policies: Sequence[Policy]

    @property
    def over(self) -> str:
        """Why no further step may be taken, with what was seen last; "" where one may."""
        steps, most = self.session.steps, self.session.max_steps
        if len(steps) < most:
            return ""
        seen = (steps[-1].thinking or steps[-1].result) if steps else ""
        return say(self.session.lang, "run.max_steps", steps=most, seen=seen)

    def judge(self, thought: Thought, seen: Observation) -> Verdict:
        """What the gate makes of the proposal; outside a reply task it stands as it is."""
        session = self.session
        if thought.action is None or self.profile is None:
            return Verdict(thought.action)
        situation = Situation(
            profile=self.profile,
            window=seen.window,
            size=seen.size,
            gate=session.gate,
            readings=seen.readings,
            chat=seen.chat,
            delivered=[reply.text for reply in session.replies],
            lang=session.lang,
        )
        verdict = review(thought.action, situation, self.policies)
        if verdict.pending_question is not None:
            session.gate.pending_question = verdict.pending_question
        return verdict


def take_up(session: Session, outside: Outside) -> Run:
    """The parts for a session, new or saved."""
    recorder = Recorder(session, outside.store)
    app = profile(session.gate.app) if session.gate.enabled else None
    flow = _flow(session, app, outside, recorder) if app is not None else None
    actor = Actor(outside.device, outside.lease, session, outside.knowledge, flow)
    return Run(session, actor, recorder, RepeatWatch(session), app, flow, outside.policies)


def _flow(session: Session, app: AppProfile, outside: Outside, recorder: Recorder) -> ReplyFlow:
    observer, ledger = outside.observer, outside.ledger
    delivery = Delivery(observer, app, ledger, guard=outside.guard, lease=outside.lease)
    return ReplyFlow(
        session,
        app,
        observer,
        outside.knowledge,
        ledger,
        outside.lease,
        Leftovers(observer, app, ledger, delivery),
        HandOver(session, app, ledger, delivery, on_reply=recorder.reply, save=recorder.save),
    )
