"""Carries out one call on a session: the phone's lease, the agent's work, and the client's result."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

import structlog

from agent_core.devices.base import Device, Key
from agent_core.errors import LeaseLost, PhonedeskError
from agent_core.ports import Human
from agent_core.session import FINAL, Session, Status
from bot.app.core import question_times
from bot.app.logs import mask
from bot.channels.mcp.arguments import ReplyMode, TaskCall
from bot.channels.mcp.asking import PROGRAM_MAY, Answerer, AskingHuman, by_form, by_model, no_reply, nobody, who_may
from bot.channels.mcp.client import Asks, Client, News
from bot.channels.mcp.context import PhoneBusy, ToolContext
from bot.channels.mcp.results import ResultPicture, StopReason, TaskResult, agent_action, info_action, stop_reason
from bot.channels.mcp.stopping import Stopper
from bot.channels.mcp.story import Captions, Story
from bot.desk.actors import Actor
from scheduler.runs.executor import carry_out, outcome_of, said, store_outcome
from scheduler.runs.human import park
from scheduler.runs.lease import HeldLease
from scheduler.runs.stop import Reason, StopRequests
from storage.runs import Runs

ASKING_STEP = frozenset({"interact", "take_over", "tap"})  # a step with one of these may be the question itself

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ClientAttempt:
    """One call on a session.

    number: of the run's attempt; 0 until it is taken up.
    before: the number of steps that the session had when this call began.
    fresh: start from the home screen with no saved state.
    seen: the session as it was read, as stored.
    note: a further message for the client.
    """

    actor: Actor
    call: TaskCall
    client: Client
    session: Session
    number: int
    before: int
    fresh: bool
    steps: int  # the most steps of this call
    seen: str | None = None
    note: str = ""


TakeUp = Callable[[ClientAttempt], Awaitable[ClientAttempt]]
"""A function that takes the attempt while its phone is leased, so that no other server continues first.

It returns the attempt with its number.
"""


class ClientExecutor:
    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._core = context.core
        self._runs = Runs(context.core.db)

    async def call(
        self,
        attempt: ClientAttempt,
        device: Device,
        size: tuple[int, int],
        stopper: Stopper,
        take_up: TakeUp | None = None,
    ) -> TaskResult:
        """Carry out one call. A later failure is a result, too, so that its client knows that the call had begun.

        The models stay open until it is done, and every log line names the run.

        size: the phone's, in pixels.
        take_up: None if the run's row already says that it is at work.
        """
        with structlog.contextvars.bound_contextvars(run_id=attempt.session.run_id, serial=device.serial):
            async with self._core.client_rotation.used(), self.story(attempt) as (story, captions):
                return await self._called(attempt, device, size, stopper, take_up, story, captions)

    @asynccontextmanager
    async def story(self, attempt: ClientAttempt) -> AsyncIterator[tuple[Story, Captions]]:
        """Give the report of this call for the client, including the steps that an earlier round of it took."""
        news = News(attempt.client.report, attempt.steps)
        captions = Captions(self._context.helper, attempt.session.lang)
        story = Story(news, captions, attempt.call, lang=attempt.session.lang, before=attempt.before)
        try:
            await story.begin_with(self._core.db, attempt.session)
            yield story, captions
        finally:
            await news.close()
            await captions.close()

    async def _called(
        self,
        attempt: ClientAttempt,
        device: Device,
        size: tuple[int, int],
        stopper: Stopper,
        take_up: TakeUp | None,
        story: Story,
        captions: Captions,
    ) -> TaskResult:
        """Work on the phone and return the result; making the result needs the phone no more."""
        session = attempt.session
        taken = cut = False
        begun = take_up is None
        final = None
        with ExitStack() as ours:
            if begun:
                ours.enter_context(self._context.working(session.run_id))
            try:
                async with self._context.held(device, session.run_id, stopper) as lease:
                    taken = True
                    if take_up is not None:
                        attempt = await take_up(attempt)
                        ours.enter_context(self._context.working(session.run_id))
                        begun = True
                    final = await self._work(attempt, device, lease, story)
            except PhoneBusy:
                raise
            except LeaseLost as error:
                await self._lost(attempt, error)
                session.message, cut = str(error), True
            except asyncio.CancelledError:
                if taken:  # its answer may be stored, or its question asked: nobody may continue it unseen
                    await self._runs.request_stop(session.run_id, by=attempt.actor.id)
                raise
            except Exception as error:
                if not (taken and begun):
                    raise
                log.exception("mcp_attempt_failed", error=repr(error))
                session.message, cut = mask(said(error, "en")), True
        told = self.told(attempt, size, cut=cut)
        shot = await self._shot(attempt.call, final, captions)
        return replace(told, logs=await story.logs(last_is_final=not asked_after_last_step(session)), final=shot)

    async def _lost(self, attempt: ClientAttempt, error: LeaseLost) -> None:
        """Handle a lost phone. The run is over, unless another attempt has it: its client may begin it again.

        A reply continues by itself, because its ledger prevents that anything is sent twice.
        """
        session = attempt.session
        try:
            if session.status in FINAL:
                await self.close(attempt)
            elif session.gate.enabled:
                await self._runs.interrupt_attempt(session.run_id, attempt.number)
            else:
                session.end(Status.FAILED, str(error))
                await self.close(attempt)
        except Exception as failed:  # the database is away, too: the run is found dead
            log.exception("mcp_attempt_not_stored", error=repr(failed))

    async def _work(self, attempt: ClientAttempt, device: Device, lease: HeldLease, story: Story) -> bytes | None:
        """Have the agent work; return the final screen if it was requested."""
        session, call = attempt.session, attempt.call
        store = self._core.runs(attempt.number)
        story.stored_in(store)
        try:
            await self._agent_works(attempt, device, lease, story)
            final = None
            if call.enable_final_screenshot or call.enable_final_image_caption:
                final = await self._context.shot(device)
            if session.gate.enabled and session.status not in FINAL and await park(device, lease, session):
                await store.save(session)
            # While the phone is still ours, so that another server does not take the run for a dead one.
            await self.close(attempt)
        except LeaseLost:
            raise
        except BaseException as error:
            if lease.stop.reason is not Reason.LEASE_LOST:  # otherwise ``_lost`` handles it
                await self._cut(attempt, error, stopped=lease.stop.reason is Reason.STOP)
            raise
        return final

    async def _cut(self, attempt: ClientAttempt, error: BaseException, *, stopped: bool) -> None:
        """End the run after an error in the agent's work.

        Nothing continues unattended, except a reply that was begun before.
        """
        session = attempt.session
        if session.status not in FINAL and session.gate.enabled and attempt.number > 1 and not stopped:
            await self._runs.interrupt_attempt(session.run_id, attempt.number)
            return
        end_by(session, error)
        await self.close(attempt)

    async def _agent_works(self, attempt: ClientAttempt, device: Device, lease: HeldLease, story: Story) -> None:
        session, core = attempt.session, self._core
        settings = core.agent_settings(lang=session.lang, max_steps=session.max_steps)
        prepare = partial(_begin_clean, device, lease, session) if attempt.fresh else None
        human, number = self._human(attempt), attempt.number
        async with StopRequests(self._core.db).heard(session.run_id, lease.stop):
            agent = core.agent(
                device, settings, human=human, lease=lease, store=story, attempt=number, run_id=session.run_id
            )
            await carry_out(agent, session, lease.stop, prepare=prepare)

    def _human(self, attempt: ClientAttempt) -> Human:
        context, settings = self._context, self._core.settings
        answerer: Answerer = nobody
        patient = PROGRAM_MAY  # a client has as long as it likes to answer
        match attempt.call.reply_mode:
            case ReplyMode.MANUAL_REPLY:
                answerer, patient = context.terminal.answerer(context.core.db), frozenset()
            case ReplyMode.AUTO_REPLY:
                answerer = by_model(context.helper)
            case ReplyMode.NO_REPLY:
                answerer = no_reply
            case ReplyMode.PASS_TO_CLIENT if attempt.client.asks is Asks.NOW:
                answerer = by_form(
                    attempt.client, name=attempt.actor.name, person_there=context.settings.person_at_client
                )
        hold, times = settings.run.hold_seconds, question_times(settings)
        return AskingHuman(
            context.core.db, answerer, attempt=attempt.number, hold_seconds=hold, times=times, patient=patient
        )

    @staticmethod
    async def _shot(call: TaskCall, jpeg: bytes | None, captions: Captions) -> ResultPicture | None:
        if not (call.enable_final_screenshot or call.enable_final_image_caption):
            return None
        caption = await captions.begin(jpeg) if jpeg and call.enable_final_image_caption else None
        return ResultPicture(jpeg if call.enable_final_screenshot else None, caption)

    async def close(self, attempt: ClientAttempt) -> None:
        """Store how the attempt ended."""
        await store_outcome(self._runs, attempt.session.run_id, attempt.number, outcome_of(attempt.session))

    def told(self, attempt: ClientAttempt, size: tuple[int, int], *, cut: bool = False) -> TaskResult:
        """Return the result for the client. ``cut``: the phone was lost, or something failed, during the work."""
        session = attempt.session
        reason = StopReason.ERROR if cut else stop_reason(session)
        action = agent_action(session.steps[-1]) if len(session.steps) > attempt.before else None
        question = session.question if reason is StopReason.NEEDS_REPLY else None
        who = ""
        if question is not None:
            who = who_may(question, person_there=self._context.settings.person_at_client)
            explain = action["explain"] if action and not asked_after_last_step(session) else ""
            action = {**info_action(question, answered_by=who), "explain": explain}
        return TaskResult(
            device_id=session.serial,
            size=size,
            session_id=session.run_id,
            stop_reason=reason,
            message=" ".join(filter(None, (attempt.note, session.message))),
            final_action=action,
            global_steps=len(session.steps),
            local_steps=len(session.steps) - attempt.before,
            extra_info=attempt.call.extra_info,
            question=question,
            client_may_answer=who == "client",
        )


def end_by(session: Session, error: BaseException) -> None:
    """End a session whose call was cut, if it is not over: stopped if the call was cancelled, else failed."""
    if session.status in FINAL:
        return
    if isinstance(error, asyncio.CancelledError):
        session.end(Status.STOPPED, "")
    else:
        session.end(Status.FAILED, mask(said(error, "en")))


def asked_after_last_step(session: Session) -> bool:
    """Tell whether the session asks something that is not its last step."""
    if session.question is None or not session.steps:
        return False
    return (session.steps[-1].action or {}).get("kind") not in ASKING_STEP


async def _begin_clean(device: Device, lease: HeldLease, session: Session) -> None:
    """Go to the home screen and have apps restart, but not a customer's app: drafts in it belong to somebody."""
    try:
        await lease.check()
        await device.wake()
        await device.key(Key.HOME)
    except LeaseLost:
        raise
    except PhonedeskError as error:
        session.error_kind = error.kind
        session.end(Status.FAILED, str(error))
        return
    if not session.gate.enabled:
        device.start_apps_afresh()
