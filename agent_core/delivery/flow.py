"""The reply flow: from the customer's newest messages to a delivered answer, or to a person.

The gate may end a run before a model's finish in three ways only: nothing new, no sure answer (a person decides), and a
knowledge base that keeps failing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import structlog

from agent_core import questions
from agent_core.apps.profile import AppProfile
from agent_core.delivery.deliver import Delivery, Outcome, Result, check_chat
from agent_core.delivery.match import our_bubble_after_question
from agent_core.errors import KnowledgeError
from agent_core.observer import Observer
from agent_core.ports import KnowledgeBase, Ledger, LedgerRow, MessageKey, Provenance, Record, ReplyState
from agent_core.result import ActResult, Ending
from agent_core.screen.compare import Match, same_name
from agent_core.screen.fingerprint import fingerprint, same_message
from agent_core.screen.readings import BubbleState, ChatScreen, Side
from agent_core.session import Answer, Planned, Question, QuestionKind, ReplyRecord, Session, Status
from agent_core.texts import say

log = structlog.get_logger(__name__)

KNOWLEDGE_TRIES = 2  # failed actions; each has the provider's own retries behind it
CHANGES_ALLOWED = 2
OPEN_STATES = (ReplyState.TYPING, ReplyState.SENDING)

OnReply = Callable[[ReplyRecord], Awaitable[None]]


class ReplyFlow:
    """One run's reply. All that must survive a restart stands in the session and the ledger."""

    def __init__(
        self,
        session: Session,
        profile: AppProfile,
        observer: Observer,
        knowledge: KnowledgeBase,
        ledger: Ledger,
        delivery: Delivery,
        *,
        on_reply: OnReply,
    ) -> None:
        self._session = session
        self._profile = profile
        self._observer = observer
        self._knowledge = knowledge
        self._ledger = ledger
        self._delivery = delivery
        self._on_reply = on_reply

    # -- before the model is asked ------------------------------------------------------------------------------

    async def before_model(self, chat: ChatScreen | None) -> ActResult | None:
        """What the chat in front calls for without a model: a reply that waits, an old one to settle, nothing new."""
        session = self._session
        if chat is None or session.gate.knowledge_done or check_chat(chat, session.gate) is not None:
            return None
        settled = await self._settle_open_rows(chat)
        if settled is not None:
            return settled
        if session.planned is not None and session.planned.text:
            return await self._deliver_once(session.planned)
        newest = chat.newest
        if newest is None or newest.side is Side.ME:
            return self._end(Status.SUCCEEDED, "run.nothing_new", contact=session.gate.contact)
        row = await self._ledger.find(self._key(chat))
        if row is not None and row.state is ReplyState.SKIPPED:
            return self._end(Status.SUCCEEDED, "run.already_skipped")
        return None

    async def _settle_open_rows(self, chat: ChatScreen) -> ActResult | None:
        """Replies to this contact that a dead leg left in typing or sending: look at the chat before anything else."""
        contact = self._session.gate.contact
        for row in await self._ledger.unfinished(self._session.serial):
            if row.key.app != self._profile.key or not same_name(row.key.contact, contact):
                continue
            result = await self._settle(row, chat)
            if result is not None:
                return result
        return None

    async def _settle(self, row: LedgerRow, chat: ChatScreen) -> ActResult | None:
        bubble = our_bubble_after_question(chat, row.question.split("\n"), row.text)
        if row.state is ReplyState.SENDING and bubble is not None and bubble.state is BubbleState.OK:
            row = await self._ledger.advance(row.id, ReplyState.SENT, expected=[ReplyState.SENDING])
            log.info("reply_found_sent", run_id=self._session.run_id, ledger_id=row.id)
            return await self._sent(row, "run.resolved_sent") if row.run_id == self._session.run_id else None
        if row.state is ReplyState.SENDING and bubble is not None and bubble.state is BubbleState.FAILED:
            await self._ledger.advance(row.id, ReplyState.FAILED, expected=[ReplyState.SENDING])
            return self._end(Status.FAILED, "delivery.red_mark", app=self._profile.name)
        left_over = await self._delivery.clear_leftover(chat, row.text)
        if row.state is ReplyState.TYPING or (left_over and bubble is None):
            # Typing never sends; and what still stood in the input was not sent.
            await self._ledger.advance(row.id, ReplyState.PLANNED, expected=[row.state])
            return None
        await self._ledger.advance(row.id, ReplyState.UNKNOWN, expected=[ReplyState.SENDING])
        return self._ask(questions.delivery_unknown(self._session, row.id, row.text), "delivery.unknown")

    # -- GET_KNOWLEDGE_DATA ------------------------------------------------------------------------------------

    async def get_knowledge(self, query: str) -> ActResult:
        """Ask the knowledge base, choose, deliver. In front must be the contact's chat with a question in it."""
        session = self._session
        if not query.strip():
            return self._fail("run.query_blank")
        chat = await self._observer.chat(self._profile)
        refusal = check_chat(chat, session.gate)
        if chat is None or refusal is not None:
            return self._refused(refusal or Outcome(Result.NOT_IN_CHAT), chat)
        early = await self.before_model(chat)
        if early is not None:
            return early
        row = await self._ledger.open(
            self._key(chat), run_id=session.run_id, question="\n".join(b.text for b in chat.question)
        )
        doubt = self._doubt_about(row)
        if doubt is not None:
            return doubt
        planned = Planned(
            ledger_id=row.id,
            fingerprint=row.key.fingerprint,
            cluster=[bubble.text for bubble in chat.question],
            query=query.strip(),
        )
        try:
            records = await self._knowledge.retrieve(planned.query)
        except KnowledgeError as error:
            return self._knowledge_failed(error)
        session.knowledge_failures = 0
        sure = next((r for r in records[:1] if r.sure and r.text.strip()), None)
        session.planned = self._choose(planned, sure, Provenance.KNOWLEDGE) if sure else planned
        if sure is None:
            return self._ask(questions.no_sure_answer(session, planned, records), "run.waiting")
        return await self._deliver(session.planned)

    def _doubt_about(self, row: LedgerRow) -> ActResult | None:
        session = self._session
        if row.state is ReplyState.SENT and session.answer_again != row.key.fingerprint:
            question = questions.answered_before(session, row.question, row.text, row.key.fingerprint)
            return self._ask(question, "run.waiting")
        if row.state is ReplyState.UNKNOWN:
            return self._ask(questions.delivery_unknown(session, row.id, row.text), "delivery.unknown")
        return None

    def _knowledge_failed(self, error: KnowledgeError) -> ActResult:
        self._session.knowledge_failures += 1
        if self._session.knowledge_failures >= KNOWLEDGE_TRIES:
            return self._end(Status.FAILED, "run.knowledge_gave_up", error=error)
        return self._fail("run.knowledge_failed", error=error)

    @staticmethod
    def _choose(planned: Planned, record: Record, provenance: Provenance, person: str = "") -> Planned:
        return planned.model_copy(
            update={
                "text": record.text.strip(),
                "provenance": provenance.value,
                "record_id": record.id,
                "record_source": record.source,
                "score": record.score,
                "person": person,
            }
        )

    async def _deliver_once(self, planned: Planned) -> ActResult:
        """Deliver a reply that may come from an earlier leg, unless the ledger says that it is sent already."""
        session = self._session
        key = MessageKey(session.serial, self._profile.key, session.gate.contact, planned.fingerprint)
        row = await self._ledger.find(key)
        if row is not None and row.id == planned.ledger_id and row.state is ReplyState.SENT:
            return await self._sent(row, "run.resolved_sent")
        return await self._deliver(planned)

    async def _deliver(self, planned: Planned) -> ActResult:
        session = self._session
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
        outcome = await self._delivery.deliver(planned, session.gate, drop_draft=session.draft_dropped)
        match outcome.result:
            case Result.SENT:
                return await self._sent_planned(planned)
            case Result.CHANGED:
                return self._changed()
            case Result.FOREIGN_DRAFT:
                return self._ask(questions.foreign_draft(session, outcome.detail), "run.waiting")
            case Result.UNKNOWN:
                question = questions.delivery_unknown(session, planned.ledger_id, planned.text)
                return self._ask(question, "delivery.unknown")
            case Result.KEYBOARD:
                return self._end(Status.FAILED, "delivery.keyboard", draft=outcome.detail)
            case Result.RED_MARK | Result.NOT_SENT:
                return self._end(Status.FAILED, f"delivery.{outcome.result.value}", app=self._profile.name)
            case Result.NOT_IN_CHAT | Result.WRONG_CHAT | Result.UNSURE_CHAT:
                return self._refused(outcome, None)

    def _changed(self) -> ActResult:
        session = self._session
        session.planned = None  # the answer was chosen for other words: think again
        session.changed_chats += 1
        if session.changed_chats > CHANGES_ALLOWED:
            return self._ask(questions.chat_changed(session), "run.waiting")
        return self._fail("delivery.changed")

    def _refused(self, outcome: Outcome, chat: ChatScreen | None) -> ActResult:
        session = self._session
        if outcome.result is Result.UNSURE_CHAT:
            title = chat.title if chat else outcome.detail
            return self._ask(questions.right_chat(session, title, outcome.detail or title), "run.waiting")
        if outcome.result is Result.WRONG_CHAT:
            return self._fail("gate.wrong_chat", title=outcome.detail, contact=session.gate.contact)
        return self._fail("gate.not_in_chat", contact=session.gate.contact)

    async def _sent_planned(self, planned: Planned) -> ActResult:
        session = self._session
        reply = ReplyRecord(
            contact=session.gate.contact,
            question=planned.question,
            app=self._profile.key,
            delivered=True,
            **planned.model_dump(
                include={"query", "text", "provenance", "record_id", "record_source", "score", "person"}
            ),
        )
        return await self._done(reply, "run.sent_observation")

    async def _sent(self, row: LedgerRow, key: str) -> ActResult:
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
        return await self._done(reply, key)

    async def _done(self, reply: ReplyRecord, key: str) -> ActResult:
        session = self._session
        session.replies.append(reply)
        session.planned = None
        session.gate.knowledge_done = True
        session.gate.pending_question = ""
        await self._on_reply(reply)
        return ActResult(say(session.lang, key, contact=reply.contact, text=reply.text))

    # -- answers of people -------------------------------------------------------------------------------------

    async def take_answer(self, question: Question, answer: Answer) -> ActResult | None:
        """Take up a person's answer to a question of this flow; None where the question is not one of it."""
        match question.kind:
            case QuestionKind.NO_SURE_ANSWER:
                return await self._take_no_sure_answer(question, answer)
            case QuestionKind.RIGHT_CHAT:
                return self._take_right_chat(question, answer)
            case QuestionKind.ANSWERED_BEFORE:
                if answer.choice != "again":
                    return self._end(Status.SUCCEEDED, "run.skipped")
                self._session.answer_again = str(question.data["fingerprint"])
                return ActResult("")
            case QuestionKind.DELIVERY_UNKNOWN:
                return await self._take_delivery(question, answer)
            case QuestionKind.FOREIGN_DRAFT:
                if answer.choice != "clear":
                    return self._end(Status.FAILED, "delivery.left_draft")
                self._session.draft_dropped = str(question.data["draft"])
                return ActResult("")
            case QuestionKind.CHAT_CHANGED:
                if answer.choice != "retry":
                    return self._end(Status.FAILED, "run.skipped")
                self._session.changed_chats = 0
                return ActResult("")
            case _:
                return None

    async def _take_no_sure_answer(self, question: Question, answer: Answer) -> ActResult:
        session, planned = self._session, self._session.planned
        if planned is None or (answer.choice == questions.SKIP and not answer.text):
            if planned is not None:
                await self._ledger.advance(planned.ledger_id, ReplyState.SKIPPED, expected=[ReplyState.PLANNED])
            session.planned = None
            return self._end(Status.SUCCEEDED, "run.skipped")
        if answer.text.strip():
            record, provenance = Record(id="", text=answer.text), Provenance.PERSON
        else:
            candidate = question.data["candidates"][int(answer.choice.removeprefix("record:"))]
            record = Record(
                id=candidate["id"], text=candidate["text"], score=candidate["score"], source=candidate["source"]
            )
            provenance = Provenance.KNOWLEDGE
        session.planned = self._choose(planned, record, provenance, answer.by)
        return ActResult(say(session.lang, "gate.answer_ready", contact=session.gate.contact))

    def _take_right_chat(self, question: Question, answer: Answer) -> ActResult:
        gate = self._session.gate
        if answer.choice != "yes":
            return self._fail("run.person_no_chat", contact=gate.contact)
        gate.chat_confirmed = str(question.data["title"])
        gate.contact = gate.contact or gate.chat_confirmed
        return ActResult("")

    async def _take_delivery(self, question: Question, answer: Answer) -> ActResult:
        row_id = int(question.data["ledger_id"])
        if answer.choice == "arrived":
            row = await self._ledger.advance(row_id, ReplyState.SENT, expected=[ReplyState.UNKNOWN])
            return await self._sent(row, "run.resolved_sent")
        await self._ledger.advance(row_id, ReplyState.PLANNED, expected=[ReplyState.UNKNOWN])
        return ActResult(say(self._session.lang, "delivery.not_arrived"))

    # -- small things ------------------------------------------------------------------------------------------

    def _key(self, chat: ChatScreen) -> MessageKey:
        session = self._session
        mark = fingerprint(chat)
        if session.answer_again and same_message(session.answer_again, mark) is not Match.DIFFERENT:
            mark = f"{mark}-again-{session.run_id}"
        return MessageKey(session.serial, self._profile.key, session.gate.contact, mark)

    def _ask(self, question: Question, key: str) -> ActResult:
        return ActResult(say(self._session.lang, key), ok=False, question=question)

    def _fail(self, key: str, **values: object) -> ActResult:
        return ActResult(say(self._session.lang, key, **values), ok=False)

    def _end(self, status: Status, key: str, **values: object) -> ActResult:
        message = say(self._session.lang, key, **values)
        return ActResult(message, ok=status is Status.SUCCEEDED, ending=Ending(status, message))
