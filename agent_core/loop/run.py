"""Builds a run from the parts that all runs of an agent share and the parts of each run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace

from agent_core.actions.types import Action
from agent_core.apps.names import opened_alone
from agent_core.apps.profile import AppProfile, profile
from agent_core.devices.base import Device, Frame, TouchWatch, Window
from agent_core.loop import questions
from agent_core.loop.acting import ActionPerformer, as_seen
from agent_core.loop.guard import RepeatWatch
from agent_core.loop.launching import AppLauncher, allowed_packages
from agent_core.loop.outcome import ActResult, Ending, Thought, end_at_limit
from agent_core.loop.recording import Recorder
from agent_core.loop.thinking import Thinker
from agent_core.loop.trajectory import Trajectory
from agent_core.model.usage import Account, charge_to
from agent_core.perception.observer import Observation, Observer
from agent_core.policies import Judgement, Policy, PolicyName, Situation, policies_of, review
from agent_core.policies.approval import holds, meant
from agent_core.policies.base import acts_on_screen
from agent_core.policies.right_chat import names_alike, row_at
from agent_core.ports import Chooser, Human, KnowledgeBase, Lease, Ledger, RunStore, StopGuard
from agent_core.reply.decisions import Decisions
from agent_core.reply.flow import Answering, ReplyFlow
from agent_core.reply.hand_over import HandOver
from agent_core.reply.leftovers import Leftovers
from agent_core.reply.looking import ChatLooks
from agent_core.reply.namesakes import Namesakes
from agent_core.reply.rows import Rows
from agent_core.reply.sender import ReplyContext
from agent_core.session import Session, Status
from agent_core.texts import say


@dataclass(frozen=True, slots=True)
class Outside:
    """The parts that an agent uses in all its runs.

    policies: None for the set that the task's policy names.
    """

    device: Device
    observer: Observer
    thinker: Thinker
    knowledge: KnowledgeBase
    chooser: Chooser | None
    human: Human
    ledger: Ledger
    store: RunStore
    lease: Lease
    guard: StopGuard
    part_chars: int
    checked_versions: Sequence[str]
    policies: Sequence[Policy] | None
    trajectory: Trajectory | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """The parts of one run. ``profile``, ``flow`` and ``decisions`` are None unless it is a reply task."""

    session: Session
    device: Device
    observer: Observer
    actor: ActionPerformer
    launcher: AppLauncher
    recorder: Recorder
    repeats: RepeatWatch
    touches: TouchWatch
    profile: AppProfile | None
    flow: ReplyFlow | None
    decisions: Decisions | None
    policies: Sequence[Policy]

    async def prepare(self) -> None:
        """Bring the phone into the state that a run needs; a dry run takes it as it is."""
        if not self.session.dry_run:
            await self.device.recover()
            await self.device.wake()

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """Keep the screen on and watch for a person's touches while steps are taken. Otherwise they do not count."""
        awake = nullcontext() if self.session.dry_run else self.device.kept_awake()
        self.touches.forget()
        try:
            async with awake, self.device.touch_watch(self.touches):
                yield
        finally:
            self.touches.forget()

    async def look(self, *, read: bool) -> Observation:
        """Return the observation for a step. ``read``: whether to read texts, if it is not a reply task."""
        if self.profile is not None:
            return await self.observer.observe_closely(self.profile)
        return await self.observer.observe(None, read=read)

    async def before_model(self, seen: Observation) -> ActResult | None:
        """Let the reply flow act on its own. Return None if the model is to be asked."""
        if self.flow is None or self.session.dry_run:
            return None
        return await self.actor.before_model(self.flow, seen)

    async def halt(self) -> ActResult | None:
        """Return why no further step may be taken (the run's end, or a question to a person), or None if one may."""
        session = self.session
        if session.dry_run and not (await self.device.screen()).awake:
            said = say(session.lang, "run.dry_run_asleep")
            return ActResult(said, ok=False, ending=Ending(Status.FAILED, said))
        app = "" if session.steps or session.dry_run else opened_alone(session.task)
        if app and not await self.launcher.is_there(app):
            said = say(session.lang, "run.app_needed", app=app)  # no model can help
            return ActResult(said, ok=False, ending=Ending(Status.FAILED, said))
        if len(session.steps) >= session.max_steps:
            return ActResult(session.observation, ok=False, ending=await end_at_limit(session, self.observer))
        question = questions.budget(session)
        return ActResult(session.observation, ok=False, question=question) if question is not None else None

    async def judge(self, thought: Thought, seen: Observation) -> Judgement:
        """Return the gate's judgement of the proposal."""
        session = self.session
        if thought.action is None:
            return Judgement(None)
        now, window_now = await self._last_look(thought.action, seen)
        rows = self.flow.namesakes if self.flow is not None and not session.dry_run else None
        situation = Situation(
            profile=self.profile,
            window=seen.window,
            size=seen.size,
            gate=session.gate,
            readings=seen.readings,
            chat=seen.chat,
            delivered=[*session.gate.delivered, *(reply.text for reply in session.replies)],
            lang=session.lang,
            apps=session.apps,
            frame=seen.frame,
            now=now,
            window_now=window_now,
            lapsed=await self._lapsed(thought.action, seen, now, window_now),
            unread_below=seen.unread_below,
            rows=await rows.rows(seen) if rows is not None else (),
            row=await rows.row(seen) if rows is not None else None,
            strangers=await rows.strangers(seen) if rows is not None else (),
            nodes=seen.nodes,
            # The flow also knows the ledger: if it cannot tell that nothing is new, the chat's picture alone cannot.
            open_rows=(self.flow is not None and not session.dry_run) or bool(session.cluster and session.cluster.left),
        )
        session.gate.alike = names_alike(situation.rows, session.gate.contact) or session.gate.alike
        judgement = review(thought.action, situation, self.policies)
        if judgement.action is not None and situation.row is not None:
            session.gate.row_entered |= row_at(judgement.action, situation) == situation.row
        self.repeats.count_unread(seen, judgement)
        if judgement.pending_question is not None:
            session.gate.pending_question = judgement.pending_question
        return judgement

    async def _last_look(self, action: Action, seen: Observation) -> tuple[Frame | None, Window | None]:
        """Return the current screen before a touch or text in a customer's app, or before an allowed tap.

        In other cases return (None, None). The window is None if the picture has not changed.
        """
        watched = (self.profile is not None and acts_on_screen(action)) or meant(self.session, action)
        if not watched or self.session.dry_run:
            return None, None
        now = await self.device.screenshot()
        return now, None if now.digest == seen.frame.digest else await self.device.window()

    async def _lapsed(self, action: Action, seen: Observation, now: Frame | None, window_now: Window | None) -> bool:
        """Tell whether the current screen no longer shows what a person allowed on the screen that was proposed on.

        Both are compared in the same way: by texts, or by the picture if no texts were read.
        """
        if now is None or window_now is None or not holds(self.session, action, as_seen(seen)):
            return False
        readings = await self.observer.texts_now(now, window_now) if seen.readings else ()
        return not holds(self.session, action, as_seen(replace(seen, frame=now, window=window_now, readings=readings)))


def take_up(session: Session, outside: Outside) -> Run:
    """Return the parts of a run for a new or saved session."""
    charge_to(Account(session.spent, lambda: session.half_sent and session.status is Status.RUNNING))
    recorder = Recorder(session, outside.store, outside.observer.redaction, outside.trajectory)
    app = profile(session.gate.app) if session.gate.enabled else None
    touches = TouchWatch()
    flow, decisions = _reply(session, app, outside, recorder, touches) if app is not None else (None, None)
    launcher = AppLauncher(outside.observer, outside.ledger, outside.lease, touches, allowed_packages(session))
    actor = ActionPerformer(
        outside.device,
        outside.lease,
        session,
        outside.knowledge,
        flow,
        launcher,
        touches,
        outside.thinker.summary,
        outside.chooser,
    )
    policies = outside.policies
    if policies is None:
        usual = PolicyName.REPLY if session.gate.enabled else PolicyName.CAREFUL
        policies = policies_of(PolicyName(session.policy or usual))
    return Run(
        session,
        outside.device,
        outside.observer,
        actor,
        launcher,
        recorder,
        RepeatWatch(session),
        touches,
        app,
        flow,
        decisions,
        policies,
    )


def _reply(
    session: Session, app: AppProfile, outside: Outside, recorder: Recorder, touches: TouchWatch
) -> tuple[ReplyFlow, Decisions]:
    observer, ledger = outside.observer, outside.ledger
    context = ReplyContext(observer, app, ledger, outside.guard, outside.lease, touches)
    rows = Rows(session, app, ledger, recorder.answer)
    looks = ChatLooks(context)
    hand_over = HandOver(session, context, rows, looks, on_reply=recorder.reply, save=recorder.save)
    flow = ReplyFlow(
        session,
        context,
        Answering(outside.knowledge, outside.chooser, outside.part_chars, outside.checked_versions),
        looks,
        rows,
        Leftovers(context),
        hand_over,
        Namesakes(session, app, observer, ledger),
    )
    return flow, Decisions(session, ledger, rows, hand_over, part_chars=outside.part_chars)
