"""Begins and continues tasks of the agent. Each is a run like any other: a row, a lease, the gate, the ledger."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from agent_core.loop.tasks import NO_RULES, check_task
from agent_core.session import NOBODY, Answer, Session, Status
from bot.channels.mcp.arguments import ReplyMode, TaskCall
from bot.channels.mcp.asking import read_reply
from bot.channels.mcp.attempts import ClientAttempt, ClientExecutor, asked_after_last_step, end_by
from bot.channels.mcp.client import Client
from bot.channels.mcp.context import ToolContext
from bot.channels.mcp.results import TaskResult
from bot.channels.mcp.stopping import Stopper
from bot.channels.mcp.texts import say
from bot.desk.actors import Actor, BadRequest, NotFound, Role
from scheduler.runs.human import given_answer
from scheduler.sweeps.order import read_task
from storage.leases import Leases
from storage.questions import OPEN, Questions
from storage.repository import run_shielded
from storage.runs import RUNNING, NewRun, RunRow, Runs

CHANNEL = "mcp"  # in a run's options: the channel that began it continues it
MAX_EXTRA = 4000  # characters of the client's own notes


class Tasks:
    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._core = context.core
        self._runs = Runs(context.core.db)
        self._questions = Questions(context.core.db)
        self._attempts = ClientExecutor(context)

    def _steps(self, call: TaskCall) -> int:
        return min(call.max_steps, self._context.settings.max_steps)

    def _check(self, call: TaskCall) -> None:
        if call.reply_mode is ReplyMode.MANUAL_REPLY:
            self._context.terminal.check()
        if len(json.dumps(call.extra_info, ensure_ascii=False)) > MAX_EXTRA:
            raise BadRequest(f"extra_info is longer than {MAX_EXTRA} characters.", advice="Keep it short.")

    # -- begin

    async def begin(self, actor: Actor, call: TaskCall, client: Client, stopper: Stopper) -> TaskResult:
        """Begin a new task from a clean state. Nothing is stored if the phone is busy or away."""
        task = check_task(call.task or "")
        if read_task(task) is not None:
            raise BadRequest(
                "A task of an MCP client answers one contact, because the client waits for it.",
                advice="Call once for each contact; a sweep for everybody is started from Telegram or the terminal.",
                key="reply_one",
            )
        self._check(call)
        serial = await self._context.rights.may_act(actor, "mcp task", call.device_id, task=task)
        settings = self._core.agent_settings(lang=actor.lang, max_steps=self._steps(call))
        async with self._context.phone(serial) as device:
            await self._context.check_free(device.serial)
            await self._core.may_ask(actor.lang)
            # The phone is asked before there is a row, because a run at work without a lease is soon taken for dead.
            size = (await device.info()).size
            session = await self._core.session(task, device.serial, settings, run_id="", rules=NO_RULES)
            options: Mapping[str, Any] = {
                "lang": settings.lang,
                "channel": CHANNEL,
                "max_steps": settings.max_steps,
                **({"extra_info": call.extra_info} if call.extra_info else {}),
            }
            new = NewRun(task, device.serial, options=options, requested_by=actor.id, begun=True)
            session.run_id = await self._stored(new)
            steps, fresh = self._steps(call), call.reset_environment
            attempt = ClientAttempt(actor, call, client, session, 1, before=0, fresh=fresh, steps=steps)
            try:
                result = await self._attempts.call(attempt, device, size, stopper)
            except BaseException as error:
                if session.status is Status.RUNNING:
                    end_by(session, error)
                await self._attempts.close(attempt)
                raise
        return replace(result, task=task)

    async def _stored(self, new: NewRun) -> str:
        """Store the run and return its id.

        If the call is cancelled meanwhile, end the run, because nobody else would.
        """
        storing = asyncio.ensure_future(self._runs.create(new))
        try:
            run_id = await asyncio.shield(storing)
        except asyncio.CancelledError:
            await run_shielded(self._end_unbegun(storing))
            raise
        if run_id is None:
            raise RuntimeError("The run was not stored.")
        return run_id

    async def _end_unbegun(self, storing: asyncio.Future[str | None]) -> None:
        run_id = await storing
        if run_id is not None:
            await self._runs.end_attempt(run_id, 1, status=Status.STOPPED.value)

    # -- continuing

    async def go_on(
        self, actor: Actor, call: TaskCall, client: Client, stopper: Stopper, *, before: int | None = None
    ) -> TaskResult:
        """Continue a session. ``before``: the number of steps when the client's call began; None for now."""
        self._check(call)
        row, session = await self._waiting(actor, call)
        await self._questions.expire()  # there may be no other server that watches deadlines
        answer = await self._answer(actor, call, session)
        first = len(session.steps) if before is None else min(before, len(session.steps))
        steps = self._steps(call)
        session.max_steps = len(session.steps) + steps
        attempt = ClientAttempt(
            actor, call, client, session, 0, before=first, fresh=False, steps=steps, seen=row.session
        )
        async with self._context.phone(row.serial) as device:
            size = (await device.info()).size
            result = await self._attempts.call(attempt, device, size, stopper, partial(self._taken_up, answer))
        return replace(result, reply=call.reply_from_client or "")

    async def waits(self, actor: Actor, call: TaskCall, *, before: int, why: str = "") -> TaskResult:
        """Return the state of a session that nobody answered: it still waits.

        ``why``: what was wrong with the answer.
        """
        row, session = await self._waiting(actor, call)
        async with self._context.phone(row.serial) as device:
            size = (await device.info()).size
        first, steps = min(before, len(session.steps)), self._steps(call)
        attempt = ClientAttempt(
            actor, call, Client(_report_nothing), session, row.attempt, first, fresh=False, steps=steps, note=why
        )
        async with self._attempts.story(attempt) as (story, _):
            return replace(
                self._attempts.told(attempt, size),
                logs=await story.logs(last_is_final=not asked_after_last_step(session)),
            )

    async def _waiting(self, actor: Actor, call: TaskCall) -> tuple[RunRow, Session]:
        """Return the session that a call names. Raises if it cannot be continued."""
        session_id = (call.session_id or "").strip()
        row = await self._runs.get(session_id)
        own = row is not None and (row.requested_by == actor.id or actor.role is Role.OWNER)
        if row is None or row.options.get("channel") != CHANNEL or not own:
            await self._context.rights.may_act(actor, "mcp reply", session=session_id[:64])
            raise NotFound(f"There is no session {session_id[:64]}.", advice="Begin a new task.")
        # Not the reply, which may be a password: the question's row has it.
        await self._context.rights.may_act(actor, "mcp reply", row.serial, session=row.id)
        if call.device_id and await self._context.rights.serial_of(actor, call.device_id) != row.serial:
            raise BadRequest(
                f"The session {row.id} is on the phone {row.serial}.", advice="Leave device_id out, or give this one."
            )
        if row.final or row.session is None:
            raise BadRequest(f"The session {row.id} is over ({row.status}): {row.message}", advice="Begin a new task.")
        if row.hold:
            raise BadRequest(
                f"The session {row.id} is on hold.", advice="A person resumes it, in Telegram or at the server."
            )
        held = await Leases(self._core.db, seconds=self._context.lease_seconds).held()
        at_work = row.id in self._context.at_work or any(lease.run_id == row.id for lease in held)
        if row.status == RUNNING and at_work:
            raise BadRequest(f"The session {row.id} is at work now.", advice="Wait for the result of that call.")
        return row, Session.model_validate_json(row.session)

    async def _answer(self, actor: Actor, call: TaskCall, session: Session) -> Answer | None:
        """Return the client's answer; None if the question is already over, or there is none."""
        if session.question is None:
            return None
        words = call.reply_from_client or ""
        stored = await self._questions.get(session.question.id)
        if stored is not None and stored.state != OPEN:
            await self._questions.answer(stored.id, {"choice": "", "text": words}, by=actor.name)  # kept as a late one
            return None
        there = self._context.settings.person_at_client
        return read_reply(session.question, words, by=actor.name, person_there=there, confirmed=call.confirm)

    async def _taken_up(self, answer: Answer | None, attempt: ClientAttempt) -> ClientAttempt:
        """Store the answer and begin the next attempt while the phone is leased."""
        session, note = attempt.session, ""
        row = await self._runs.get(session.run_id)
        if row is None or row.session != attempt.seen:  # the last owner of the phone has continued it
            raise BadRequest(f"The session {session.run_id} went on meanwhile.", advice="Look what came of it first.")
        if session.question is not None:
            won = False
            if answer is not None:
                won = (await self._questions.answer(session.question.id, answer.kept(), by=answer.by)).won
            session.answered = given_answer(await self._questions.get(session.question.id))
            note = "" if won else _whose(session)
        else:
            heard = say(session.lang, "told.client_says", text=attempt.call.reply_from_client or "")
            session.observation = " ".join(filter(None, (session.observation, heard)))
        row = await self._runs.get(session.run_id)
        begun = await self._runs.begin_attempt(row.id, row.attempt, serial=row.serial) if row else None
        if begun is None:
            raise BadRequest(f"The session {session.run_id} cannot be gone on with now.", advice="Begin a new task.")
        return replace(attempt, number=begun.attempt, note=note)


def _whose(session: Session) -> str:
    """Return whose answer counts if it is not the client's; "" if there is none."""
    answer, question = session.answered, session.question
    if answer is None or question is None:
        return ""
    label = next((choice.label for choice in question.choices if choice.value == answer.choice), "")
    key = "told.too_late" if answer.by == NOBODY else "told.answered_first"
    return say(session.lang, key, who=answer.by, answer=answer.text or label or answer.choice)


async def _report_nothing(progress: float, total: float, message: str) -> None:
    return None
