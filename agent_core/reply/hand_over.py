"""Delivers a chosen reply: plans it in the ledger, sends its parts, and turns each outcome into what the run does next.

``planned → typing → sending → sent | unknown | failed``. The ledger is updated before each act, so that a restart knows
what may have happened. Nothing is cancelled between Send and reading its outcome.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import structlog

from agent_core.devices.base import Frame
from agent_core.loop import questions
from agent_core.loop.outcome import ActResult
from agent_core.perception.observer import Observation
from agent_core.perception.readings import ChatScreen
from agent_core.policies.right_chat import is_contacts, wrong_chat
from agent_core.ports import LedgerConflict, LedgerRow, Provenance, ReplyState
from agent_core.reply.asked import next_query
from agent_core.reply.looking import ChatLooks
from agent_core.reply.match import begins, is_draft
from agent_core.reply.outcome import DeliveryResult, Outcome, ask, check_planned, end, fail, nothing_left
from agent_core.reply.planning import bind, new_since
from agent_core.reply.rows import Rows
from agent_core.reply.sender import OnSent, ReplyContext, ReplySender
from agent_core.session import NOBODY, Answer, GateState, Planned, ReplyRecord, Session, Status
from agent_core.texts import say

log = structlog.get_logger(__name__)


CHANGES_ALLOWED = 2
REFUSALS_ALLOWED = 3  # in a row

OnReply = Callable[[ReplyRecord], Awaitable[None]]
Save = Callable[[], Awaitable[None]]


class HandOver:
    """One run's replies from the plan on. ``on_reply`` gets each delivered reply; ``save`` stores the session."""

    def __init__(
        self,
        session: Session,
        context: ReplyContext,
        rows: Rows,
        looks: ChatLooks,
        *,
        on_reply: OnReply,
        save: Save,
    ) -> None:
        self._session = session
        self._context = context
        self._rows = rows
        self._looks = looks
        self._on_reply = on_reply
        self._save = save

    async def go_on(self, planned: Planned) -> ActResult:
        """Deliver a reply that may come from an earlier attempt, unless the ledger knows its outcome."""
        session = self._session
        row = await self._context.ledger.find(self._rows.key(planned.fingerprint))
        if row is not None and row.state is ReplyState.SENT:
            if row.run_id != session.run_id:
                return await self._changed(planned)  # another run has answered it
            return await self.found_sent(row, "run.resolved_sent")
        if row is not None and row.state is ReplyState.UNKNOWN:
            return ask(session, questions.delivery_unknown(session, row), "delivery.unknown")
        if row is not None and row.part > planned.part and list(row.parts) == planned.parts:
            # The attempt died between the ledger and the session: those parts are in the chat.
            self._parts_sent(planned, row.part)
        return await self.deliver(planned)

    async def deliver(self, planned: Planned) -> ActResult:
        """Plan ``planned`` in the ledger, send its parts, and return what the outcome means for the run."""
        session = self._session
        try:
            if planned.part == 0:
                await self._plan(planned, planned.parts)
            await self._save()  # if an attempt dies after this, the next one knows which text was on its way
            outcome = await self._deliver_part(planned)
            while outcome.result is DeliveryResult.SENT and session.planned is planned:
                outcome = await self._deliver_part(planned)
        except LedgerConflict as error:
            log.warning("reply_moved_by_another", run_id=session.run_id, ledger_id=planned.ledger_id, error=str(error))
            return await self._changed(planned)
        return await self._delivered(planned, outcome)

    async def _plan(self, planned: Planned, parts: Sequence[str] = ()) -> None:
        """Write the text into the row of the ledger."""
        await self._context.ledger.plan(
            planned.ledger_id,
            run_id=self._session.run_id,
            text=planned.text,
            provenance=Provenance(planned.provenance),
            record_id=planned.record_id,
            record_source=planned.record_source,
            score=planned.score,
            person=planned.person,
            parts=parts,
        )

    async def _deliver_part(self, planned: Planned) -> Outcome:
        session = self._session
        return await send_part(
            self._context, planned, session.gate, on_sent=self._part_arrived, drop_draft=session.draft_dropped
        )

    async def _part_arrived(self, planned: Planned, frame: Frame | None) -> None:
        """Record a part that has arrived, right after the ledger was updated."""
        if planned.part + 1 < len(planned.parts):
            self._parts_sent(planned, planned.part + 1)
            await self._save()
        else:
            await self._arrived(planned, frame)

    def _parts_sent(self, planned: Planned, count: int) -> None:
        """Record that the first ``count`` parts are in the chat."""
        new = planned.parts[planned.part : count]
        planned.part = count
        planned.ours += new
        if self._session.cluster is not None:
            self._session.cluster.arrived(new)

    async def _delivered(self, planned: Planned, outcome: Outcome) -> ActResult:
        session = self._session
        match outcome.result:
            case DeliveryResult.SENT:
                return self.sent(session.replies[-1], "run.sent_observation")
            case DeliveryResult.CHANGED if planned.part or planned.person:
                return await self._still(planned)
            case DeliveryResult.CHANGED:
                return await self._changed(planned)
            case (
                DeliveryResult.TOUCHED
                | DeliveryResult.FOREIGN_DRAFT
                | DeliveryResult.NO_SEND
                | DeliveryResult.VOICE_BAR
            ):
                return self._ask_person(planned, outcome)
            case DeliveryResult.UNKNOWN:
                await self._tell(planned, ReplyState.UNKNOWN, outcome.frame)
                unknown = questions.delivery_unknown(session, planned)
                return ask(session, unknown, "delivery.unknown", outcome.frame)
            case DeliveryResult.KEYBOARD:
                return end(session, Status.FAILED, "delivery.keyboard", draft=outcome.detail)
            case DeliveryResult.RED_MARK | DeliveryResult.NOT_SENT:
                await self._tell(planned, ReplyState.FAILED, outcome.frame)
                return end(
                    session, Status.FAILED, f"delivery.{outcome.result.value}", app=self._context.profile.known_as
                )
            case DeliveryResult.NOT_IN_CHAT | DeliveryResult.WRONG_CHAT | DeliveryResult.UNSURE_CHAT:
                session.refusals += 1
                if session.refusals >= REFUSALS_ALLOWED:
                    session.refusals = 0
                    return ask(session, questions.chat_changed(session), "run.waiting")
                return self.refused(outcome)

    def _ask_person(self, planned: Planned, outcome: Outcome) -> ActResult:
        """Let a person decide about whatever keeps the text from being typed or sent."""
        session = self._session
        match outcome.result:
            case DeliveryResult.TOUCHED:
                question = questions.person_on_phone(session)
            case DeliveryResult.FOREIGN_DRAFT:
                question = questions.foreign_draft(session, outcome.detail)
            case DeliveryResult.NO_SEND:
                question = questions.no_send(session, planned)
            case _:
                asked = say(session.lang, "delivery.voice_bar", app=self._context.profile.known_as)
                question = questions.take_over(session, asked)
        return ask(session, question, "run.waiting", outcome.frame)

    async def _still(self, planned: Planned) -> ActResult:
        """Ask a person whether to send this text below the changed chat that they are shown, and below nothing else."""
        session = self._session
        seen = await self._looks.whole(await self._context.look())
        before = list(planned.cluster)
        if seen.chat is not None and is_contacts(seen.chat, session.gate):
            bind(planned, seen.chat)
        if not planned.cluster and not planned.ours:
            await self._rows.withdraw()
            session.planned = None
            return nothing_left(session, "run.nothing_new", contact=session.gate.contact)
        if planned.part:
            return ask(
                session, questions.rest_unsent(session, planned, new_since(before, planned)), "run.waiting", seen.frame
            )
        shown = self._rows.as_shown(seen.chat, planned) if seen.chat is not None else []
        question = questions.still_send(session, planned, shown, new_since(before, planned))
        return ask(session, question, "run.waiting", seen.frame)

    async def written_before(self, planned: Planned, chat: ChatScreen) -> ActResult:
        """Ask whether a person's text that an earlier run could not send, or was kept from sending, still holds."""
        bind(planned, chat)
        return ask(self._session, questions.written_before(self._session, planned), "run.waiting")

    def sent(self, reply: ReplyRecord, key: str) -> ActResult:
        """Return the message for the model about a reply that has arrived, and the customer's other questions."""
        session = self._session
        told = say(session.lang, key, contact=reply.contact, text=reply.text)
        left = session.cluster.left_readable if session.cluster else []
        if left:
            told += " " + say(session.lang, "run.more_questions", question=left[0].words, count=len(left))
        return ActResult(told)

    async def _changed(self, planned: Planned) -> ActResult:
        session = self._session
        session.planned = None  # the answer was chosen for other words: think again
        session.changed_chats += 1
        if session.changed_chats > CHANGES_ALLOWED:
            seen = await self._context.look()
            before = list(planned.cluster)
            if seen.chat is not None and is_contacts(seen.chat, session.gate):
                bind(planned, seen.chat)
            return ask(session, questions.chat_changed(session, new_since(before, planned)), "run.waiting", seen.frame)
        return fail(session, "delivery.changed")

    def refused(self, outcome: Outcome) -> ActResult:
        """Return what follows if the chat in front is not, or may not be, the contact's."""
        session = self._session
        if outcome.result is DeliveryResult.UNSURE_CHAT:
            return ask(
                session, questions.right_chat(session, outcome.title, outcome.detail, outcome.chat), "run.waiting"
            )
        if outcome.result is DeliveryResult.WRONG_CHAT:
            return fail(session, wrong_chat(outcome.chat), title=outcome.title, contact=session.gate.contact)
        return fail(session, "gate.not_in_chat", contact=session.gate.contact)

    async def _tell(self, planned: Planned, state: ReplyState, frame: Frame | None) -> None:
        await self._rows.tell(planned.ledger_id, planned.question, state, planned=planned, frame=frame)

    async def _arrived(self, planned: Planned, frame: Frame | None = None) -> None:
        """Record that the whole reply was seen to arrive."""
        cluster = self._session.cluster
        if cluster is not None:
            cluster.arrived(planned.parts[planned.part :] or [planned.text])
        await self._tell(planned, ReplyState.SENT, frame)
        await self._done(planned.ledger_id, self._record_of(planned))

    def _record_of(self, planned: Planned) -> ReplyRecord:
        record = {"record_id", "record_source", "record_questions", "score"}
        chosen = {"query", "text", "provenance", "person", *record}
        return ReplyRecord(
            contact=self._session.gate.contact,
            question=planned.question,
            app=self._context.profile.key,
            delivered=True,
            **planned.model_dump(include=chosen),
        )

    async def found_sent(self, row: LedgerRow, key: str) -> ActResult:
        """Record a reply that an earlier attempt sent, according to the chat or the ledger."""
        planned = self._session.planned
        if planned is not None and planned.ledger_id == row.id:
            await self._arrived(planned)
        else:
            reply = ReplyRecord(
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
            await self._done(row.id, reply)
        return self.sent(self._session.replies[-1], key)

    async def covered(self, planned: Planned) -> ActResult:
        """Record that the chosen text is already below these messages, as the answer to another of them."""
        await self._plan(planned)
        await self._context.ledger.advance(planned.ledger_id, ReplyState.SENT, expected=[ReplyState.PLANNED])
        await self._tell(planned, ReplyState.SENT, None)
        self._finish_row(planned.ledger_id)
        return self.sent(self._record_of(planned), "run.resolved_sent")  # an earlier run may have sent it

    async def skip(self, answer: Answer, fingerprint: str) -> ActResult:
        """Leave this question without an answer. The run ends if it was the last one."""
        session, cluster = self._session, self._session.cluster
        session.planned = None
        late = answer.by == NOBODY
        for question in cluster.asked if cluster else []:
            if question.fingerprint == fingerprint:
                await self._rows.skip(question, person=answer.person)
        if cluster is None or not cluster.left:
            skipped = "run.skipped_late" if late else answer.key("run.skipped")
            key = answer.key("run.sent_and_skipped") if session.replies else skipped
            return end(session, Status.SUCCEEDED, key, by=answer.by)
        left = cluster.left[0]
        session.gate.pending_question = next_query(cluster)
        return ActResult(say(session.lang, answer.key("run.skipped_one"), question=left.words, by=answer.by))

    async def _done(self, ledger_id: int, reply: ReplyRecord) -> None:
        session = self._session
        session.replies.append(reply)
        session.draft_dropped = ""
        session.refusals = 0
        self._finish_row(ledger_id)
        await self._on_reply(reply)

    def _finish_row(self, ledger_id: int) -> None:
        session = self._session
        session.planned = None
        self._rows.done(ledger_id)
        session.gate.knowledge_done = not (session.cluster and session.cluster.left)
        session.gate.pending_question = next_query(session.cluster)


async def send_part(
    context: ReplyContext, planned: Planned, gate: GateState, *, on_sent: OnSent, drop_draft: str = ""
) -> Outcome:
    """Send the next part of ``planned`` into the contact's chat, which must be in front and unchanged.

    on_sent: called right after the ledger is updated, before a stop can take effect.
    drop_draft: a foreign draft that a person allowed to be cleared.

    The chat is unchanged if its newest messages are still those of the plan. The ledger row must be ``planned``.
    """
    seen = await context.look()
    chat = seen.chat
    refusal = check_planned(chat, gate, planned)
    if chat is None or refusal is not None:
        return refusal or Outcome(DeliveryResult.NOT_IN_CHAT)
    if is_voice_bar(chat):
        seen = await leave_voice_bar(context, chat)
        chat, refusal = seen.chat, check_planned(seen.chat, gate, planned)
        if chat is None or refusal is not None:
            return refusal or Outcome(DeliveryResult.NOT_IN_CHAT)
        if is_voice_bar(chat):
            return Outcome(DeliveryResult.VOICE_BAR, title=chat.title, frame=seen.frame)
    if chat.draft is None or chat.input_box is None:
        return Outcome(DeliveryResult.KEYBOARD)
    if chat.draft and not is_draft(chat.draft, planned.part_text, chat.source) and chat.draft != drop_draft:
        return Outcome(DeliveryResult.FOREIGN_DRAFT, chat.draft, chat.title)
    await context.lease.check()
    async with context.device.keyboard() as keyboard:
        return await ReplySender(context, planned, gate, keyboard, seen, on_sent).run()


async def leave_voice_bar(context: ReplyContext, chat: ChatScreen) -> Observation:
    """Bring the text input back with one tap on a chat that ``is_voice_bar``. Return a new observation."""
    if chat.keyboard_icon is not None:
        await context.lease.check()
        await context.device.tap(chat.keyboard_icon)
        log.info("voice_bar_left", serial=context.device.serial)
    return await context.look()


async def clear_leftover(context: ReplyContext, chat: ChatScreen, text: str) -> bool:
    """Clear ``text``, or its beginning, that a dead run left in the input in front. Return whether it was there."""
    ours = bool(chat.draft) and (is_draft(chat.draft or "", text, chat.source) or begins(text, chat.draft or ""))
    if not ours or chat.input_box is None:
        return False
    device = context.device
    async with device.keyboard() as keyboard:
        await context.lease.check()  # taking the keyboard took time
        await device.tap(chat.input_box.center)
        await keyboard.clear()
    log.info("leftover_cleared", serial=device.serial)
    return True


def is_voice_bar(chat: ChatScreen) -> bool:
    """Tell whether a hold-to-talk bar is in the input's place."""
    return chat.input_box is None and chat.keyboard_icon is not None
