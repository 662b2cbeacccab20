"""Tasks for the agent: begun, and gone on with. Each is a run like any other: a row, a lease, the gate, the ledger."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import structlog

from agent_core.devices.adb.device import AdbDevice
from agent_core.devices.base import Key
from agent_core.errors import LeaseLost, PhonedeskError
from agent_core.ports import Human
from agent_core.session import FINAL, Answer, Session, Status
from agent_core.tasks import NO_RULES, check_task
from bot.app import question_times
from bot.desk.actors import Actor, BadRequest, NotFound, Role
from bot.mcp.arguments import ReplyMode, TaskCall
from bot.mcp.asking import Answerer, AskingHuman, by_form, by_model, no_reply, nobody, read_reply, who_may
from bot.mcp.client import Asks, Client, News
from bot.mcp.house import PhoneBusy, ToolHouse
from bot.mcp.pictures import Captions
from bot.mcp.results import Shot, StopReason, TaskResult, agent_action, info_action, stop_reason
from bot.mcp.stopping import Stopper
from bot.mcp.story import Story, Wanted
from bot.running import stopped_by_row
from scheduler.parking import ParkingModel, park
from scheduler.ports import given_answer
from scheduler.signals import Reason
from scheduler.worker import HeldLease
from storage.leases import Leases
from storage.questions import OPEN, Questions
from storage.runs import RUNNING, NewRun, RunRow, Runs

CHANNEL = "mcp"  # stands in a run's options: who began it goes on with it
MAX_EXTRA = 4000  # characters of the client's own notes
ASKING_STEP = frozenset({"interact", "take_over", "tap"})  # a step with one of these may itself be the question


@dataclass(frozen=True, slots=True)
class Leg:
    """One call on a session. ``before``: how many steps it had when this call began; ``number``: of the run's leg, 0
    until it is taken up. ``fresh``: it begins from a clean beginning. ``seen``: the session as it was read, as stored.
    """

    actor: Actor
    call: TaskCall
    client: Client
    session: Session
    number: int
    before: int
    fresh: bool
    seen: str | None = None


class Tasks:
    def __init__(self, house: ToolHouse) -> None:
        self._house = house
        self._core = house.core
        self._runs = Runs(house.core.db)
        self._questions = Questions(house.core.db)

    def _steps(self, call: TaskCall) -> int:
        return min(call.max_steps, self._house.settings.max_steps)

    def _check(self, call: TaskCall) -> None:
        if call.reply_mode is ReplyMode.MANUAL_REPLY:
            self._house.terminal.check()
        if len(json.dumps(call.extra_info, ensure_ascii=False)) > MAX_EXTRA:
            raise BadRequest(f"extra_info is longer than {MAX_EXTRA} characters.", advice="Keep it short.")

    # -- begin

    async def begin(self, actor: Actor, call: TaskCall, client: Client, stopper: Stopper) -> TaskResult:
        """A new task, from a clean beginning. Nothing is stored where the phone is busy or away."""
        task = check_task(call.task or "")
        self._check(call)
        serial = await self._house.rights.may_act(actor, "mcp task", call.device_id, task=task)
        settings = self._core.agent_settings(lang=actor.lang, max_steps=self._steps(call))
        async with self._house.phone(serial) as device:
            await self._house.check_free(device.serial)
            await self._core.may_ask(actor.lang)
            options: Mapping[str, Any] = {
                "lang": settings.lang,
                "channel": CHANNEL,
                "max_steps": settings.max_steps,
                **({"extra_info": call.extra_info} if call.extra_info else {}),
            }
            run_id = await self._runs.create(
                NewRun(task, device.serial, options=options, requested_by=actor.id, begun=True)
            )
            if run_id is None:
                raise RuntimeError("The run was not stored.")
            session = await self._core.session(task, device.serial, settings, run_id=run_id, rules=NO_RULES)
            leg = Leg(actor, call, client, session, 1, before=0, fresh=call.reset_environment)
            try:
                result = await self._call(leg, device, stopper)
            except BaseException as error:
                if session.status is Status.RUNNING:
                    _end_by(session, error)
                await self._close(leg)
                raise
        return replace(result, task=task)

    # -- go on

    async def go_on(
        self, actor: Actor, call: TaskCall, client: Client, stopper: Stopper, *, before: int | None = None
    ) -> TaskResult:
        """Go on with a session that asks something. ``before``: where the client's call began, None for here."""
        self._check(call)
        row, session = await self._waiting(actor, call)
        await self._questions.expire()  # no server beside us may watch the clock
        answer = await self._answer(actor, call, session)
        first = len(session.steps) if before is None else min(before, len(session.steps))
        session.max_steps = len(session.steps) + self._steps(call)
        leg = Leg(actor, call, client, session, 0, before=first, fresh=False, seen=row.session)
        async with self._house.phone(row.serial) as device:
            result = await self._call(leg, device, stopper, answer)
        return replace(result, reply=call.reply_from_client or "")

    async def waits(self, actor: Actor, call: TaskCall, *, before: int) -> TaskResult:
        """How a session stands that nobody wanted to answer: it waits as before."""
        row, session = await self._waiting(actor, call)
        async with self._house.phone(row.serial) as device:
            size = (await device.info()).size
        leg = Leg(actor, call, Client(_unheard), session, row.leg, before=min(before, len(session.steps)), fresh=False)
        return self._told(leg, size)

    async def _waiting(self, actor: Actor, call: TaskCall) -> tuple[RunRow, Session]:
        """The session that a call names, where it may be gone on with."""
        session_id = (call.session_id or "").strip()
        row = await self._runs.get(session_id)
        own = row is not None and (row.requested_by == actor.id or actor.role is Role.OWNER)
        if row is None or row.options.get("channel") != CHANNEL or not own:
            await self._house.rights.may_act(actor, "mcp reply", session=session_id[:64])
            raise NotFound(f"There is no session {session_id[:64]}.", advice="Begin a new task.")
        # Not what is replied, which may be a password: the question's row has it.
        await self._house.rights.may_act(actor, "mcp reply", row.serial, session=row.id)
        if call.device_id and await self._house.rights.serial_of(actor, call.device_id) != row.serial:
            raise BadRequest(
                f"The session {row.id} is on the phone {row.serial}.", advice="Leave device_id out, or give this one."
            )
        if row.final or row.session is None:
            raise BadRequest(f"The session {row.id} is over ({row.status}): {row.message}", advice="Begin a new task.")
        if row.hold:
            raise BadRequest(
                f"The session {row.id} is on hold.", advice="A person resumes it, in Telegram or at the server."
            )
        held = await Leases(self._core.db, seconds=self._house.lease_seconds).held()
        if row.status == RUNNING and any(lease.run_id == row.id for lease in held):
            raise BadRequest(f"The session {row.id} is at work now.", advice="Wait for the result of that call.")
        return row, Session.model_validate_json(row.session)

    async def _answer(self, actor: Actor, call: TaskCall, session: Session) -> Answer | None:
        """The client's answer, read; None where the question is over already, or there is none."""
        if session.question is None:
            return None
        stored = await self._questions.get(session.question.id)
        if stored is not None and stored.state != OPEN:
            return None
        there = self._house.settings.person_at_client
        return read_reply(session.question, call.reply_from_client or "", by=actor.name, person_there=there)

    async def _taken_up(self, leg: Leg, answer: Answer | None) -> Leg:
        """With the phone in hand, so that no server beside us goes on first: the answer stored, the next leg begun."""
        session = leg.session
        row = await self._runs.get(session.run_id)
        if row is None or row.session != leg.seen:  # whoever had the phone until now went on with it
            raise BadRequest(f"The session {session.run_id} went on meanwhile.", advice="Look what came of it first.")
        if session.question is not None:
            if answer is not None:
                given = answer.model_dump(include={"choice", "text"})
                await self._questions.answer(session.question.id, given, by=answer.by)
            session.answered = given_answer(await self._questions.get(session.question.id))
        row = await self._runs.get(session.run_id)
        begun = await self._runs.begin_leg(row.id, row.leg, serial=row.serial) if row else None
        if begun is None:
            raise BadRequest(f"The session {session.run_id} cannot be gone on with now.", advice="Begin a new task.")
        return replace(leg, number=begun.leg)

    # -- one call

    async def _call(self, leg: Leg, device: AdbDevice, stopper: Stopper, answer: Answer | None = None) -> TaskResult:
        """One call. What it thinks with stays open until it is done; every line that is logged tells whose it is."""
        with structlog.contextvars.bound_contextvars(run_id=leg.session.run_id, serial=device.serial):
            async with self._core.turnover.used():
                return await self._called(leg, device, stopper, answer)

    async def _called(self, leg: Leg, device: AdbDevice, stopper: Stopper, answer: Answer | None) -> TaskResult:
        """Work on the phone, and the result, for which nothing is needed of the phone any more."""
        session, call = leg.session, leg.call
        size = (await device.info()).size
        news = News(leg.client.report, self._steps(call))
        captions = Captions(self._house.helper, session.lang)
        wanted = Wanted(
            call.enable_intermediate_logs,
            call.enable_intermediate_screenshots,
            call.enable_intermediate_image_caption,
        )
        story = Story(news, captions, wanted, lang=session.lang, before=leg.before)
        lost = taken = False
        final = None
        try:
            try:
                async with self._house.held(device.serial, session.run_id, stopper) as lease:
                    taken = True
                    if leg.number == 0:
                        leg = await self._taken_up(leg, answer)
                    final = await self._work(leg, device, lease, story)
            except PhoneBusy:
                raise
            except LeaseLost as error:  # whoever has the phone now may have the run, too: it is theirs to end
                session.message, lost = str(error), True
            told = self._told(leg, size, lost=lost)
            shot = await self._shot(call, final, captions)
            logs = await story.logs(last_is_final=not _asked_after_last_step(session))
            return replace(told, logs=logs, final=shot)
        except asyncio.CancelledError:
            if taken:  # its answer may be stored, or its question asked: nobody is to go on with it unseen
                await self._runs.request_stop(session.run_id, by=leg.actor.id)
            raise
        finally:
            await news.close()
            await captions.close()

    async def _work(self, leg: Leg, device: AdbDevice, lease: HeldLease, story: Story) -> bytes | None:
        """The agent's part; the screen at the end, where it was asked for."""
        session, call = leg.session, leg.call
        store = self._core.runs(leg.number)
        story.stored_in(store)
        try:
            await self._agent_works(leg, device, lease, story)
            final = None
            if call.enable_final_screenshot or call.enable_final_image_caption:
                final = await self._house.shot(device)
            if session.gate.enabled and session.status not in FINAL and await park(device, lease, session):
                await store.save(session)
            # While the phone is still ours: a server beside us must not take the run for a dead one.
            await self._close(leg)
        except LeaseLost:
            raise
        except BaseException as error:
            stopped = lease.stop.reason is Reason.STOP
            if session.status not in FINAL and leg.number > 1 and not stopped:
                await self._runs.interrupt_leg(session.run_id, leg.number)
            elif session.status not in FINAL:
                _end_by(session, error)
            if session.status in FINAL and lease.stop.reason is not Reason.LEASE_LOST:
                await self._close(leg)
            raise
        return final

    async def _agent_works(self, leg: Leg, device: AdbDevice, lease: HeldLease, story: Story) -> None:
        session, core = leg.session, self._core
        agent = core.agent(
            device,
            core.agent_settings(lang=session.lang, max_steps=session.max_steps),
            human=self._human(leg),
            lease=lease,
            guard=lease.stop,
            store=story,
            model=ParkingModel(core.model, lease.stop),
            leg=leg.number,
            run_id=session.run_id,
        )
        begun = False
        try:
            async with stopped_by_row(self._runs, session.run_id, lease.stop):
                if leg.fresh:
                    await _begin_clean(device, lease, session)
                begun = True
                await agent.go_on(session)
        except asyncio.CancelledError:
            if lease.stop.reason not in (Reason.STOP, Reason.HOLD):
                raise
            if session.status in FINAL or lease.stop.reason is not Reason.STOP:
                return
            if begun:
                await agent.end_stopped()
            else:
                session.end(Status.STOPPED, "")

    def _human(self, leg: Leg) -> Human:
        house, db = self._house, self._core.db
        if leg.call.reply_mode is ReplyMode.MANUAL_REPLY:
            return house.terminal.human(db, leg.session, leg=leg.number)
        answerer: Answerer = nobody
        match leg.call.reply_mode:
            case ReplyMode.AUTO_REPLY:
                answerer = by_model(house.helper)
            case ReplyMode.NO_REPLY:
                answerer = no_reply
            case ReplyMode.PASS_TO_CLIENT if leg.client.asks is Asks.NOW:
                answerer = by_form(leg.client, name=leg.actor.name, person_there=house.settings.person_at_client)
        hold = self._core.settings.run.hold_seconds
        times = question_times(self._core.settings)
        return AskingHuman(db, answerer, leg=leg.number, hold_seconds=hold, times=times)

    @staticmethod
    async def _shot(call: TaskCall, jpeg: bytes | None, captions: Captions) -> Shot | None:
        if not (call.enable_final_screenshot or call.enable_final_image_caption):
            return None
        caption = await captions.begin(jpeg) if jpeg and call.enable_final_image_caption else None
        return Shot(jpeg if call.enable_final_screenshot else None, caption)

    async def _close(self, leg: Leg) -> None:
        """Store how the leg ended."""
        session = leg.session
        if session.status in FINAL:
            await self._runs.end_leg(session.run_id, leg.number, status=session.status.value, message=session.message)
        else:
            await self._runs.wait_leg(session.run_id, leg.number, message=session.message)

    def _told(self, leg: Leg, size: tuple[int, int], *, lost: bool = False) -> TaskResult:
        session = leg.session
        reason = StopReason.ERROR if lost else stop_reason(session)
        action = agent_action(session.steps[-1]) if len(session.steps) > leg.before else None
        question = session.question if reason is StopReason.NEEDS_REPLY else None
        who = ""
        if question is not None:
            who = who_may(question, person_there=self._house.settings.person_at_client)
            explain = action["explain"] if action and not _asked_after_last_step(session) else ""
            action = {**info_action(question, answered_by=who), "explain": explain}
        return TaskResult(
            device_id=session.serial,
            size=size,
            session_id=session.run_id,
            stop_reason=reason,
            message=session.message,
            final_action=action,
            global_steps=len(session.steps),
            local_steps=len(session.steps) - leg.before,
            extra_info=leg.call.extra_info,
            question=question,
            client_may_answer=who == "client",
        )


def _asked_after_last_step(session: Session) -> bool:
    """Whether the session asks something that is not what its last step did."""
    if session.question is None or not session.steps:
        return False
    return (session.steps[-1].action or {}).get("kind") not in ASKING_STEP


def _end_by(session: Session, error: BaseException) -> None:
    """The end of a session whose call was cut: stopped where it was taken back, else failed."""
    if isinstance(error, asyncio.CancelledError):
        session.end(Status.STOPPED, "")
    else:
        session.end(Status.FAILED, str(error) or type(error).__name__)


async def _begin_clean(device: AdbDevice, lease: HeldLease, session: Session) -> None:
    """The home screen, and each app begins anew. A customer's app is left as it is: drafts in it are somebody's."""
    try:
        await lease.check()
        await device.wake()
        await device.key(Key.HOME)
    except PhonedeskError as error:
        session.error_kind = error.kind
        session.end(Status.FAILED, str(error))
        return
    if not session.gate.enabled:
        device.start_apps_afresh()


async def _unheard(progress: float, total: float, message: str) -> None:
    return None
