"""The agent: observe → think → gate → act, one action a step, always looked at again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

import structlog

from agent_core import answers, defaults
from agent_core.acting import Actor
from agent_core.actions.types import Action, Finish, GetKnowledgeData
from agent_core.apps.profile import profile
from agent_core.delivery.deliver import Delivery
from agent_core.delivery.flow import ReplyFlow
from agent_core.devices.base import Device
from agent_core.errors import PhonedeskError
from agent_core.gate import REPLY_POLICIES, Policy, Situation, Verdict, review
from agent_core.model.base import Model
from agent_core.observer import Observation, Observer
from agent_core.ports import Human, KnowledgeBase, Lease, Ledger, RunStore, StopGuard
from agent_core.recording import Recorder
from agent_core.repeats import RepeatWatch
from agent_core.result import ActResult, Ending
from agent_core.screen.reader import ScreenReader
from agent_core.session import FINAL, Question, Session, Status
from agent_core.settings import AgentSettings, StepResult, new_session
from agent_core.texts import say
from agent_core.thinking import Thinker, Thought

log = structlog.get_logger(__name__)


class PhoneAgent:
    """Does tasks on a phone. Give it a model and a device; everything else has a default that stands alone."""

    def __init__(
        self,
        *,
        model: Model,
        device: Device,
        knowledge: KnowledgeBase | None = None,
        human: Human | None = None,
        ledger: Ledger | None = None,
        store: RunStore | None = None,
        lease: Lease | None = None,
        guard: StopGuard | None = None,
        reader: ScreenReader | None = None,
        settings: AgentSettings | None = None,
        policies: Sequence[Policy] = REPLY_POLICIES,
    ) -> None:
        self._device = device
        self._settings = settings or AgentSettings()
        self._knowledge = knowledge or defaults.NoKnowledge()
        self._human = human or defaults.NobodyThere()
        self._ledger = ledger or defaults.MemoryLedger()
        self._store = store or defaults.NoStore()
        self._lease = lease or defaults.FreeLease()
        self._guard = guard or defaults.Unguarded()
        self._policies = policies
        self._observer = Observer(device, reader or ScreenReader(ocr=None, model=model), tree=self._settings.tree)
        self._thinker = Thinker(model, dialect=self._settings.dialect, elements=self._settings.elements)
        self._session: Session | None = None

    async def run(self, task: str) -> str:
        """Do ``task`` and give its final message; the whole state is in ``session`` afterwards."""
        return (await self.go_on(new_session(task, self._device.serial, self._settings))).message

    async def step(self, task: str | None = None) -> StepResult:
        """One step of a run; the first one needs the task (ValueError)."""
        if self._session is None:
            if not task:
                raise ValueError("The first step needs a task.")
            self._take_up(new_session(task, self._device.serial, self._settings))
            await self._guarded(self._device.wake)
        session = self.session
        before = len(session.steps)
        if session.status is Status.RUNNING:
            await self._guarded(self._step)
        last = session.steps[-1] if len(session.steps) > before else None
        return StepResult(
            success=session.status is not Status.FAILED and (last is None or last.ok),
            finished=session.status is not Status.RUNNING,
            action=self._last_action,
            thinking=last.thinking if last else "",
            message=session.message or (last.result if last else ""),
        )

    def reset(self) -> None:
        """Forget the run; the next one starts anew."""
        self._session = None

    @property
    def session(self) -> Session:
        """The state of the run that is under way or ended last. ValueError before the first."""
        if self._session is None:
            raise ValueError("There is no run yet.")
        return self._session

    async def go_on(self, session: Session) -> Session:
        """Go on with a session, new or saved, until an outcome or a question that nobody answers now.

        What goes wrong becomes its outcome. A cancel is raised on, the phone tidied up and the state saved: whether
        that means stopped or put off is for the one who cancelled.
        """
        self._take_up(session)
        await self._guarded(self._loop)
        if session.status in FINAL:
            await self._recorder.outcome()
        return session

    async def end_stopped(self) -> None:
        """The run that was cancelled is over: for the one who cancelled it in order to stop it."""
        self._end(Status.STOPPED, say(self.session.lang, "run.stopped"))
        await self._store.save(self.session)
        await self._recorder.outcome()

    # -- the loop ----------------------------------------------------------------------------------------------

    async def _loop(self) -> None:
        session = self.session
        await self._lease.check()
        await self._device.wake()
        async with self._device.kept_awake():
            await self._recorder.started()
            session.status = Status.RUNNING
            if session.question is not None and session.answered is not None:
                await self._take_answer(session.question)
            elif session.question is not None:
                await self._ask(session.question, None)  # the leg that asked died: nobody may have seen it
            while session.status is Status.RUNNING:
                await self._step()

    async def _step(self) -> None:
        session, begun = self.session, time.monotonic()
        if len(session.steps) >= session.max_steps:
            last = session.steps[-1].thinking or session.steps[-1].result
            self._end(Status.FAILED, say(session.lang, "run.max_steps", steps=session.max_steps, seen=last))
            return
        seen = await self._observer.observe(self._profile, read=self._settings.elements or self._flow is not None)
        early = await self._flow.before_model(seen.chat) if self._flow and not session.dry_run else None
        if early is not None:
            await self._apply(early, seen)
            return
        session.observation = self._repeats.look(seen, session.observation)
        thought = await self._thinker.think(session, seen, self._profile, self._recorder.thinking)
        thought_at = time.monotonic()
        verdict = self._judge(thought, seen)
        result = thought.problem or await self._act(thought, verdict, seen)
        timings = {"observe": seen.seconds, "model": thought.seconds, "act": time.monotonic() - thought_at}
        await self._recorder.step(seen, thought, verdict, result, {**timings, "step": time.monotonic() - begun})
        self._last_action = verdict.action
        await self._apply(result, seen, verdict.messages)

    def _judge(self, thought: Thought, seen: Observation) -> Verdict:
        """What the gate makes of the proposal; outside a reply task it stands as it is."""
        session = self.session
        if thought.action is None or self._profile is None:
            return Verdict(thought.action)
        situation = Situation(
            profile=self._profile,
            window=seen.window,
            size=seen.size,
            gate=session.gate,
            readings=seen.readings,
            chat=seen.chat,
            delivered=[reply.text for reply in session.replies],
            lang=session.lang,
        )
        verdict = review(thought.action, situation, self._policies)
        if verdict.pending_question is not None:
            session.gate.pending_question = verdict.pending_question
        return verdict

    async def _act(self, thought: Thought, verdict: Verdict, seen: Observation) -> ActResult:
        session, action = self.session, verdict.action
        stuck = self._repeats.count(thought.action, seen)
        if stuck is not None:
            return stuck
        if action is None:
            return ActResult("", ok=False)
        if session.dry_run:
            message = say(session.lang, "run.dry_run", action=action.model_dump_json())
            return ActResult(message, ending=Ending(Status.SUCCEEDED, message))
        if isinstance(action, Finish):
            status = Status.SUCCEEDED if action.success else Status.FAILED
            return ActResult(action.message, ok=action.success, ending=Ending(status, action.message))
        if isinstance(action, GetKnowledgeData) and self._flow is not None:
            return await self._flow.get_knowledge(action.query)
        return await self._actor.attempt(action, seen)

    async def _apply(self, result: ActResult, seen: Observation | None, messages: Sequence[str] = ()) -> None:
        """Let a result take effect: what the model is told next, a question, or the end."""
        session = self.session
        session.observation = " ".join(filter(None, (*messages, result.message)))
        if result.question is not None:
            await self._ask(result.question, seen)
        elif result.ending is not None:
            self._end(result.ending.status, result.ending.message)
        await self._store.save(session)

    async def _ask(self, question: Question, seen: Observation | None) -> None:
        session = self.session
        session.question, session.answered, session.status = question, None, Status.WAITING
        if question not in session.questions:
            session.questions.append(question)
        session.message = question.text
        await self._store.save(session)
        picture = await self._recorder.picture(seen.frame) if seen else None
        session.answered = await self._human.ask(session, question, picture=picture)
        if session.answered is not None:
            await self._take_answer(question)

    async def _take_answer(self, question: Question) -> None:
        """Go on with the answer to the open question; without one that fits the run keeps waiting."""
        session, answer = self.session, self.session.answered
        if answer is None or not question.accepts(answer):
            session.answered, session.status = None, Status.WAITING
            return
        session.question, session.answered = None, None
        session.status, session.message = Status.RUNNING, ""
        await self._recorder.answered(question.id, answer.by, answer.text or answer.choice)
        result = await self._flow.take_answer(question, answer) if self._flow else None
        await self._apply(result or answers.take_answer(session, question, answer), None)

    def _end(self, status: Status, message: str) -> None:
        self.session.status, self.session.message = status, message

    async def _guarded(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run a part of the run; what goes wrong becomes its outcome, and the state is saved in any case."""
        session = self.session
        try:
            await work()
        except asyncio.CancelledError:
            await self._store.save(session)
            raise
        except PhonedeskError as error:
            log.warning("run_failed", run_id=session.run_id, kind=error.kind, error=str(error))
            session.error_kind = error.kind
            self._end(Status.FAILED, str(error))
        await self._store.save(session)

    def _take_up(self, session: Session) -> None:
        self._session, self._last_action, self._flow = session, None, None
        self._actor = Actor(self._device, self._lease, session, self._knowledge)
        self._recorder = Recorder(session, self._store)
        self._repeats = RepeatWatch(session)
        self._profile = profile(session.gate.app) if session.gate.enabled else None
        if self._profile is not None:
            delivery = Delivery(self._observer, self._profile, self._ledger, guard=self._guard, lease=self._lease)
            self._flow = ReplyFlow(
                session,
                self._profile,
                self._observer,
                self._knowledge,
                self._ledger,
                delivery,
                on_reply=self._recorder.reply,
            )

    _last_action: Action | None
    _flow: ReplyFlow | None
