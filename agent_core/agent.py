"""The agent: observe → think → gate → act. Each step does one action and begins with a new observation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import structlog

from agent_core.devices.base import Device, Frame
from agent_core.errors import DeviceError, LeaseLost, PhonedeskError, ScreenOff
from agent_core.loop import defaults, questions
from agent_core.loop.outcome import ActResult, end_by, said_at_stop, take_answer
from agent_core.loop.run import Outside, Run, take_up
from agent_core.loop.thinking import Thinker
from agent_core.loop.trajectory import Trajectory
from agent_core.model.base import Model
from agent_core.perception.observer import Observation, Observer
from agent_core.perception.reader import ScreenReader
from agent_core.policies import Policy
from agent_core.ports import Chooser, Human, KnowledgeBase, Lease, Ledger, LedgerConflict, RunStore, StopGuard
from agent_core.reply.leftovers import clear_in_front
from agent_core.reply.outcome import still_away
from agent_core.session import FINAL, Question, QuestionKind, Session, Status
from agent_core.settings import AgentSettings, StepResult, new_session

log = structlog.get_logger(__name__)


class PhoneAgent:
    """An agent that does tasks on a phone. It needs a model and a device; every other part has a working default."""

    def __init__(
        self,
        *,
        model: Model,
        device: Device,
        knowledge: KnowledgeBase | None = None,
        chooser: Chooser | None = None,
        human: Human | None = None,
        ledger: Ledger | None = None,
        store: RunStore | None = None,
        lease: Lease | None = None,
        guard: StopGuard | None = None,
        reader: ScreenReader | None = None,
        settings: AgentSettings | None = None,
        policies: Sequence[Policy] | None = None,
        trajectory: Trajectory | None = None,
    ) -> None:
        own = self._settings = settings or AgentSettings()
        ledger = ledger or defaults.MemoryLedger()
        self._outside = Outside(
            device=device,
            observer=Observer(
                device,
                reader or ScreenReader(ocr=None, model=model),
                ledger=ledger,
                tree=own.tree,
                blur=own.blur,
            ),
            thinker=Thinker(model, profile=own.model, elements=own.elements),
            knowledge=knowledge or defaults.NoKnowledge(),
            chooser=chooser,
            human=human or defaults.NobodyThere(),
            ledger=ledger,
            store=store or defaults.NoStore(),
            lease=lease or defaults.FreeLease(),
            guard=guard or defaults.Unguarded(),
            part_chars=own.part_chars,
            checked_versions=own.checked_versions,
            policies=policies,
            trajectory=trajectory,
        )
        self._run: Run | None = None

    async def run(self, task: str) -> str:
        """Do ``task`` and return its final message. The whole state is in ``session`` afterwards."""
        return (await self.go_on(new_session(task, self._outside.device.serial, self._settings))).message

    async def step(self, task: str | None = None) -> StepResult:
        """Do one step of a run. Raises ValueError if it is the first one and ``task`` is missing."""
        over = self._run is not None and self.session.status in FINAL
        if self._run is None:
            if not task:
                raise ValueError("The first step needs a task.")
            self._run = take_up(new_session(task, self._outside.device.serial, self._settings), self._outside)
            await self._guarded(self._begin)
        session = self.session
        before = len(session.steps)
        if session.status is Status.RUNNING:
            await self._guarded(self._one)
        if session.status in FINAL and not over:
            await self._now.recorder.outcome()
        return StepResult.of(session, steps_before=before, action=self._now.recorder.last_action)

    def reset(self) -> None:
        """Forget the run, so that the next one starts from the beginning."""
        self._run = None

    @property
    def session(self) -> Session:
        """The state of the current or last run. Raises ValueError before the first."""
        return self._now.session

    async def go_on(self, session: Session) -> Session:
        """Continue a new or saved session until it ends, or waits for a person or the knowledge base.

        It waits for a person if nobody answers a question now, and for a knowledge base that is away
        (``Session.is_put_off``). Errors become its outcome, except LeaseLost, which is raised because the run is not
        over. A cancellation is raised, too, after the phone is tidied up and the state saved: the code that cancelled
        decides whether it means stopped or put off.
        """
        self._run = take_up(session, self._outside)
        if session.status not in FINAL:  # otherwise an attempt died between its end and telling it
            await self._guarded(self._loop)
        if session.status in FINAL:
            await self._now.recorder.outcome()
        return session

    async def end_stopped(self) -> None:
        """End a run that was cancelled in order to stop it."""
        self.session.end(Status.STOPPED, said_at_stop(self.session))
        await self._now.recorder.save()
        await self._now.recorder.outcome()

    async def _begin(self) -> None:
        run, outside = self._now, self._outside
        await outside.lease.check()
        await run.prepare()
        if run.flow is None and not run.session.dry_run:  # a reply task handles it when it sees the chat
            try:
                await clear_in_front(
                    run.observer, outside.ledger, lease=outside.lease, guard=outside.guard, touches=run.touches
                )
            except (LeaseLost, ScreenOff):
                raise
            except DeviceError as error:
                log.warning("leftover_not_cleared", serial=run.device.serial, error=str(error))
        await run.recorder.started()

    async def _one(self) -> None:
        async with self._now.at_work():
            await self._step()

    async def _loop(self) -> None:
        session = self.session
        if session.is_put_off and await still_away(session, self._outside.knowledge):
            return  # nothing was touched for it
        await self._begin()
        async with self._now.at_work():
            session.status = Status.RUNNING
            if session.question is not None and session.answered is not None:
                await self._take_answer(session.question)
            elif session.question is not None:
                await self._ask(session.question, None)  # the attempt that asked died: nobody may have seen it
            while session.status is Status.RUNNING:
                await self._step()

    async def _step(self) -> None:
        run, session = self._now, self.session
        if (halt := await run.halt()) is not None:
            await self._apply(halt, None)
            return
        if run.touches.touched:
            looked = await run.observer.observe(None, read=False)
            await self._ask(questions.person_on_phone(session), looked.frame)
            return
        seen = await run.look(read=self._settings.elements)
        async with run.recorder.taking(seen) as step:
            result = await run.before_model(seen)
            if result is None:
                session.observation = run.repeats.look(seen, session.observation)
                step.thinks(thought := await self._outside.thinker.think(session, seen, run.profile, run.recorder))
                step.judges(judgement := await run.judge(thought, seen))
                result = thought.problem or run.repeats.count(thought.action, seen)
                result = result or await run.actor.perform(judgement, seen)
            step.result = result
            self._tell(result, step.judgement.messages)  # it is stored with the step
            if result.question is None and result.ending is None:
                run.observer.look_ahead(seen.frame if result.acted else None)
        await self._apply(result, seen, step.judgement.messages)

    async def _apply(self, result: ActResult, seen: Observation | None, messages: Sequence[str] = ()) -> None:
        """Apply a result: the message for the model's next turn, a question, or the end."""
        self._tell(result, messages)
        if result.question is not None:
            await self._ask(result.question, result.frame or (seen.frame if seen else None))
        elif result.ending is not None:
            self.session.end(result.ending.status, result.ending.message)
        await self._now.recorder.save()

    def _tell(self, result: ActResult, messages: Sequence[str] = ()) -> None:
        """Store the message to the model about a result with its next screen."""
        self.session.observation = " ".join(filter(None, (*messages, result.message)))

    async def _ask(self, question: Question, frame: Frame | None) -> None:
        session, recorder = self.session, self._now.recorder
        await self._now.observer.end_look_ahead()  # a person may use the phone before they answer
        session.question, session.answered, session.status = question, None, Status.WAITING
        if question not in session.questions:
            session.questions.append(question)
        session.message = question.text
        await recorder.save()
        picture = await recorder.picture_for(question, frame)
        session.answered = await self._outside.human.ask(session, question, picture=picture)
        if session.answered is not None:
            await self._take_answer(question)

    async def _take_answer(self, question: Question) -> None:
        """Apply the answer to the open question. The run keeps waiting if no answer fits."""
        session, answer, decisions = self.session, self.session.answered, self._now.decisions
        if answer is None or not question.accepts(answer):
            session.answered, session.status = None, Status.WAITING
            return
        session.question, session.answered = None, None
        session.status, session.message = Status.RUNNING, ""
        await self._now.recorder.answered(question.id, answer.by, answer.text or answer.choice)
        self._now.touches.forget()  # the person who was asked may have used the phone
        result = await decisions.take(question, answer) if decisions else None
        result = result or take_answer(session, question, answer)
        if session.steps and question.kind is not QuestionKind.BUDGET and result.ending is None:
            asking = session.steps[-1]  # so that the run's history contains the answer
            asking.followed = " ".join(filter(None, (asking.followed, result.message)))
        await self._apply(result, None)

    async def _guarded(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do a part of the run. Errors become its outcome, and the state is saved in any case but LeaseLost."""
        session = self.session
        try:
            await work()
        except LeaseLost:
            raise  # another owner continues: none of their data may be overwritten
        except asyncio.CancelledError:
            with suppress(LeaseLost):  # losing the phone also cancels the run
                await self._outside.lease.check()
                await self._now.recorder.save()
            raise
        except (PhonedeskError, LedgerConflict) as error:
            flow = self._now.flow if not session.dry_run else None
            end_by(session, error, await flow.fate() if flow is not None else "")
        finally:
            await self._now.observer.end_look_ahead()
        await self._now.recorder.save()

    @property
    def _now(self) -> Run:
        if self._run is None:
            raise ValueError("There is no run yet.")
        return self._run
