"""A chosen reply on its way: planned in the ledger, delivered, and what each outcome means for the run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import structlog

from agent_core import questions
from agent_core.apps.profile import AppProfile
from agent_core.delivery.deliver import Delivery
from agent_core.delivery.outcome import Outcome, Result
from agent_core.delivery.results import ask, end, fail
from agent_core.ports import Ledger, LedgerConflict, LedgerRow, MessageKey, Provenance, ReplyState
from agent_core.result import ActResult
from agent_core.session import Planned, ReplyRecord, Session, Status
from agent_core.texts import say

log = structlog.get_logger(__name__)

CHANGES_ALLOWED = 2
REFUSALS_ALLOWED = 3  # in a row

OnReply = Callable[[ReplyRecord], Awaitable[None]]
Save = Callable[[], Awaitable[None]]


class HandOver:
    """One run's replies from the plan on. ``on_reply`` is told what was seen to arrive; ``save`` keeps the session."""

    def __init__(
        self,
        session: Session,
        profile: AppProfile,
        ledger: Ledger,
        delivery: Delivery,
        *,
        on_reply: OnReply,
        save: Save,
    ) -> None:
        self._session = session
        self._profile = profile
        self._ledger = ledger
        self._delivery = delivery
        self._on_reply = on_reply
        self._save = save

    async def go_on(self, planned: Planned) -> ActResult:
        """Deliver a reply that may come from an earlier leg, unless the ledger says what became of it."""
        session = self._session
        key = MessageKey(session.serial, self._profile.key, session.gate.contact, planned.fingerprint)
        row = await self._ledger.find(key)
        if row is not None and row.state is ReplyState.SENT:
            if row.run_id != session.run_id:
                return self._changed()  # another run has answered it
            return await self.found_sent(row, "run.resolved_sent")
        if row is not None and row.state is ReplyState.UNKNOWN:
            return ask(session, questions.delivery_unknown(session, row.id, row.text), "delivery.unknown")
        return await self.deliver(planned)

    async def deliver(self, planned: Planned) -> ActResult:
        session = self._session
        try:
            await self._ledger.plan(
                planned.ledger_id,
                run_id=session.run_id,
                text=planned.text,
                provenance=Provenance(planned.provenance),
                record_id=planned.record_id,
                record_source=planned.record_source,
                score=planned.score,
                person=planned.person,
            )
            await self._save()  # a leg that dies from here on is followed by one that knows what was on its way
            outcome = await self._delivery.deliver(
                planned, session.gate, on_sent=self._record, drop_draft=session.draft_dropped
            )
        except LedgerConflict as error:
            log.warning("reply_moved_by_another", run_id=session.run_id, ledger_id=planned.ledger_id, error=str(error))
            return self._changed()
        return self._delivered(planned, outcome)

    def _delivered(self, planned: Planned, outcome: Outcome) -> ActResult:
        session = self._session
        match outcome.result:
            case Result.SENT:
                reply = session.replies[-1]
                return ActResult(say(session.lang, "run.sent_observation", contact=reply.contact, text=reply.text))
            case Result.CHANGED:
                return self._changed()
            case Result.FOREIGN_DRAFT:
                return ask(session, questions.foreign_draft(session, outcome.detail), "run.waiting")
            case Result.UNKNOWN:
                question = questions.delivery_unknown(session, planned.ledger_id, planned.text)
                return ask(session, question, "delivery.unknown")
            case Result.KEYBOARD:
                return end(session, Status.FAILED, "delivery.keyboard", draft=outcome.detail)
            case Result.RED_MARK | Result.NOT_SENT:
                return end(session, Status.FAILED, f"delivery.{outcome.result.value}", app=self._profile.name)
            case Result.NOT_IN_CHAT | Result.WRONG_CHAT | Result.UNSURE_CHAT:
                session.refusals += 1
                if session.refusals >= REFUSALS_ALLOWED:
                    session.refusals = 0
                    return ask(session, questions.chat_changed(session), "run.waiting")
                return self.refused(outcome)

    def _changed(self) -> ActResult:
        session = self._session
        session.planned = None  # the answer was chosen for other words: think again
        session.changed_chats += 1
        if session.changed_chats > CHANGES_ALLOWED:
            return ask(session, questions.chat_changed(session), "run.waiting")
        return fail(session, "delivery.changed")

    def refused(self, outcome: Outcome) -> ActResult:
        session = self._session
        if outcome.result is Result.UNSURE_CHAT:
            return ask(session, questions.right_chat(session, outcome.title, outcome.detail), "run.waiting")
        if outcome.result is Result.WRONG_CHAT:
            return fail(session, "gate.wrong_chat", title=outcome.title, contact=session.gate.contact)
        return fail(session, "gate.not_in_chat", contact=session.gate.contact)

    async def _record(self, planned: Planned) -> None:
        """The reply has been seen to arrive."""
        chosen = {"query", "text", "provenance", "record_id", "record_source", "score", "person"}
        await self._done(
            ReplyRecord(
                contact=self._session.gate.contact,
                question=planned.question,
                app=self._profile.key,
                delivered=True,
                **planned.model_dump(include=chosen),
            )
        )

    async def found_sent(self, row: LedgerRow, key: str) -> ActResult:
        """An earlier leg sent it, as the chat or the ledger tells."""
        await self._done(
            ReplyRecord(
                contact=row.key.contact,
                question=row.question,
                text=row.text,
                app=row.key.app,
                provenance=row.provenance.value if row.provenance else "",
                record_id=row.record_id,
                record_source=row.record_source,
                score=row.score,
                person=row.person,
                delivered=True,
            )
        )
        return ActResult(say(self._session.lang, key, contact=row.key.contact, text=row.text))

    async def _done(self, reply: ReplyRecord) -> None:
        session = self._session
        session.replies.append(reply)
        session.planned = None
        session.draft_dropped = ""
        session.refusals = 0
        session.gate.knowledge_done = True
        session.gate.pending_question = ""
        await self._on_reply(reply)
