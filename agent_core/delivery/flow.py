"""The reply flow: from the customer's newest messages to a delivered answer, or to a person.

The gate may end a run before a model's finish in three ways only: nothing new, no sure answer (a person decides), and a
knowledge base that keeps failing.
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from agent_core import questions
from agent_core.apps.profile import AppProfile
from agent_core.delivery.hand_over import HandOver
from agent_core.delivery.leftovers import Fate, Leftovers
from agent_core.delivery.outcome import Outcome, Result, check_chat
from agent_core.delivery.results import ask, end, fail
from agent_core.devices.base import Key
from agent_core.errors import KnowledgeError
from agent_core.observer import Observation, Observer
from agent_core.ports import (
    KnowledgeBase,
    Lease,
    Ledger,
    LedgerRow,
    MessageKey,
    Provenance,
    Record,
    ReplyState,
)
from agent_core.result import ActResult
from agent_core.screen.compare import Match, same_name
from agent_core.screen.fingerprint import fingerprint, same_message
from agent_core.screen.readings import BubbleState, ChatScreen, Side
from agent_core.session import Answer, Planned, Question, QuestionKind, Session, Status
from agent_core.texts import say

log = structlog.get_logger(__name__)

KNOWLEDGE_TRIES = 2  # failed actions; each has the provider's own retries behind it
# Nothing of it is on its way; FAILED is of an earlier run, SKIPPED of a leg that died before it saved.
MAY_BE_SKIPPED = (ReplyState.PLANNED, ReplyState.FAILED, ReplyState.SKIPPED)


class ReplyFlow:
    """One run's reply. All that must survive a restart stands in the session and the ledger."""

    def __init__(
        self,
        session: Session,
        profile: AppProfile,
        observer: Observer,
        knowledge: KnowledgeBase,
        ledger: Ledger,
        lease: Lease,
        leftovers: Leftovers,
        hand_over: HandOver,
    ) -> None:
        self._session = session
        self._profile = profile
        self._observer = observer
        self._knowledge = knowledge
        self._ledger = ledger
        self._lease = lease
        self._leftovers = leftovers
        self._hand_over = hand_over
        self._keyboard_stays = False  # Back did not take it away

    # -- before the model is asked ------------------------------------------------------------------------------

    async def before_model(self, seen: Observation) -> ActResult | None:
        """What the chat in front calls for without a model: a reply that waits, an old one to settle, nothing new."""
        session, chat = self._session, seen.chat
        if chat is None or session.gate.knowledge_done:
            return None
        if check_chat(chat, session.gate, bound=True) is not None:
            await self._tidy_another_chat(chat)
            return None
        settled, touched = await self._settle_own_rows(chat)
        if settled is not None:
            return settled
        if touched:
            seen = await self._observer.observe(self._profile, model_may_read=True)
        if session.planned is not None and session.planned.text:
            return await self._hand_over.go_on(session.planned)
        chat = await self._whole(seen)
        if chat is None or check_chat(chat, session.gate) is not None:
            return None
        newest = chat.newest
        if newest is None or newest.side is Side.ME:
            if newest is not None and newest.state is BubbleState.FAILED:
                return end(session, Status.FAILED, "delivery.red_mark", app=self._profile.name)
            return end(session, Status.SUCCEEDED, "run.nothing_new", contact=session.gate.contact)
        row = await self._ledger.find(self._key(chat))
        if row is not None and row.state is ReplyState.SKIPPED:
            return end(session, Status.SUCCEEDED, "run.already_skipped")
        return None

    async def _settle_own_rows(self, chat: ChatScreen) -> tuple[ActResult | None, bool]:
        """Replies to this contact that a dead leg left in typing or sending. What follows from them, if anything, and
        whether the chat is to be looked at anew."""
        session, touched = self._session, False
        for row in await self._leftovers.rows(session.serial, session.gate.contact):
            row, fate = await self._leftovers.settle(row, chat, session.gate)  # noqa: PLW2901 - as it is now
            touched = True
            match fate:
                case Fate.SENT if row.run_id == session.run_id:
                    return await self._hand_over.found_sent(row, "run.resolved_sent"), True
                case Fate.RED_MARK:
                    return end(session, Status.FAILED, "delivery.red_mark", app=self._profile.name), True
                case Fate.UNKNOWN:
                    await self._ledger.advance(row.id, ReplyState.UNKNOWN, expected=[ReplyState.SENDING])
                    question = questions.delivery_unknown(session, row.id, row.text)
                    return ask(session, question, "delivery.unknown"), True
                case _:
                    continue
        return None, touched

    async def _tidy_another_chat(self, chat: ChatScreen) -> None:
        """What a dead run left in the input of the chat where it stopped, though it is not the one of this run."""
        if not chat.sure or same_name(chat.title, self._session.gate.contact):
            return
        gate = self._session.gate.model_copy(update={"contact": chat.title, "chat_confirmed": ""})
        for row in await self._leftovers.rows(self._session.serial, chat.title):
            await self._leftovers.settle(row, chat, gate)  # what stays open is for the next run of that contact

    # -- looking -------------------------------------------------------------------------------------------------

    async def _read(self) -> Observation:
        """The chat in front, read for an answer; twice where the first look is not sure: a tree that was older than the
        picture is fresh the next time, and a keyboard may hide what is asked."""
        seen = await self._observer.observe(self._profile, model_may_read=True)
        if seen.chat is None or seen.chat.sure:
            return seen
        await self._whole(seen)
        return await self._observer.observe(self._profile, model_may_read=True)

    async def _whole(self, seen: Observation) -> ChatScreen | None:
        """The chat page without a keyboard over its upper half: messages are known again by what stands above them."""
        if not seen.keyboard_up or self._keyboard_stays:
            return seen.chat
        await self._lease.check()
        await self._observer.device.key(Key.BACK)
        now = await self._observer.observe(self._profile, model_may_read=True)
        self._keyboard_stays = now.chat is None or now.keyboard_up
        return now.chat

    # -- GET_KNOWLEDGE_DATA ------------------------------------------------------------------------------------

    async def get_knowledge(self, query: str) -> ActResult:
        """Ask the knowledge base, choose, deliver. In front must be the contact's chat with a question in it."""
        session = self._session
        if not query.strip():
            return fail(session, "run.query_blank")
        seen = await self._read()
        refusal = check_chat(seen.chat, session.gate)
        if refusal is not None:
            return self._hand_over.refused(refusal)
        early = await self.before_model(seen)
        if early is not None:
            return early
        chat = await self._whole(seen)
        if chat is None:
            return self._hand_over.refused(Outcome(Result.NOT_IN_CHAT))
        if not chat.question:
            if session.replies:  # a leg that died may not have told the model
                return ActResult(say(session.lang, "run.resolved_sent", text=session.replies[-1].text))
            return fail(session, "run.nothing_new", contact=session.gate.contact)
        row = await self._ledger.open(
            self._key(chat), run_id=session.run_id, question="\n".join(b.text for b in chat.question)
        )
        doubt = await self._doubt_about(row)
        if doubt is not None:
            return doubt
        planned = Planned(
            ledger_id=row.id,
            fingerprint=row.key.fingerprint,
            cluster=[bubble.text for bubble in chat.question],
            read_by=chat.source.value,
            query=query.strip(),
        )
        try:
            records = await self._knowledge.retrieve(planned.query)
        except KnowledgeError as error:
            return self._knowledge_failed(error)
        session.knowledge_failures = 0
        sure = sure_record(records)
        session.planned = self._choose(planned, sure, Provenance.KNOWLEDGE) if sure else planned
        if sure is None:
            return ask(session, questions.no_sure_answer(session, planned, records), "run.waiting")
        return await self._hand_over.deliver(session.planned)

    async def _doubt_about(self, row: LedgerRow) -> ActResult | None:
        session = self._session
        if row.state is ReplyState.SENT and session.answer_again != row.key.fingerprint:
            question = questions.answered_before(session, row.question, row.text, row.key.fingerprint)
            return ask(session, question, "run.waiting")
        # Seen a little differently, a message has another key: the same words with an open fate are looked for, too.
        key = row.key
        for other in await self._ledger.recent(key.serial, key.app, key.contact):
            alike = same_message(other.key.fingerprint, key.fingerprint) is not Match.DIFFERENT
            if other.state is ReplyState.UNKNOWN and alike:
                return ask(session, questions.delivery_unknown(session, other.id, other.text), "delivery.unknown")
        return None

    def _knowledge_failed(self, error: KnowledgeError) -> ActResult:
        session = self._session
        session.knowledge_failures += 1
        if session.knowledge_failures >= KNOWLEDGE_TRIES:
            session.error_kind = error.kind
            return end(session, Status.FAILED, "run.knowledge_gave_up", error=error)
        return fail(session, "run.knowledge_failed", error=error)

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

    # -- answers of people -------------------------------------------------------------------------------------

    async def take_answer(self, question: Question, answer: Answer) -> ActResult | None:
        """Take up a person's answer to a question of this flow; None where the question is not one of it."""
        session = self._session
        match question.kind:
            case QuestionKind.NO_SURE_ANSWER:
                return await self._take_no_sure_answer(question, answer)
            case QuestionKind.RIGHT_CHAT:
                return self._take_right_chat(question, answer)
            case QuestionKind.ANSWERED_BEFORE:
                if answer.choice != "again":
                    return end(session, Status.SUCCEEDED, "run.skipped")
                session.answer_again = str(question.data["fingerprint"])
                return ActResult("")
            case QuestionKind.DELIVERY_UNKNOWN:
                return await self._take_delivery(question, answer)
            case QuestionKind.FOREIGN_DRAFT:
                if answer.choice != "clear":
                    return end(session, Status.FAILED, "delivery.left_draft")
                session.draft_dropped = str(question.data["draft"])
                return ActResult("")
            case QuestionKind.CHAT_CHANGED:
                if answer.choice != "retry":
                    return end(session, Status.FAILED, "run.skipped")
                session.changed_chats = 0
                return ActResult("")
            case _:
                return None

    async def _take_no_sure_answer(self, question: Question, answer: Answer) -> ActResult:
        session, planned = self._session, self._session.planned
        if planned is None or (answer.choice == questions.SKIP and not answer.text):
            if planned is not None:
                await self._ledger.advance(planned.ledger_id, ReplyState.SKIPPED, expected=MAY_BE_SKIPPED)
            session.planned = None
            return end(session, Status.SUCCEEDED, "run.skipped")
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
        session, gate = self._session, self._session.gate
        title = str(question.data["title"])
        if answer.choice != "yes" or not title:  # a yes to a title that nobody could read says nothing
            return fail(session, "run.person_no_chat", contact=gate.contact)
        gate.chat_confirmed = title
        gate.contact = gate.contact or gate.chat_confirmed
        return ActResult("")

    async def _take_delivery(self, question: Question, answer: Answer) -> ActResult:
        row_id = int(question.data["ledger_id"])
        # A leg that died before it saved takes the same answer again: the row may be there already.
        if answer.choice == "arrived":
            row = await self._ledger.advance(row_id, ReplyState.SENT, expected=[ReplyState.UNKNOWN, ReplyState.SENT])
            return await self._hand_over.found_sent(row, "run.resolved_sent")
        await self._ledger.advance(row_id, ReplyState.PLANNED, expected=[ReplyState.UNKNOWN, ReplyState.PLANNED])
        return ActResult(say(self._session.lang, "delivery.not_arrived"))

    # -- small things ------------------------------------------------------------------------------------------

    def _key(self, chat: ChatScreen) -> MessageKey:
        session = self._session
        mark = fingerprint(chat)
        if session.answer_again and same_message(session.answer_again, mark) is not Match.DIFFERENT:
            mark = f"{mark}-again-{session.run_id}"
        return MessageKey(session.serial, self._profile.key, session.gate.contact, mark)


def sure_record(records: Sequence[Record]) -> Record | None:
    """The best record where the provider is sure of it; None where others without a score say something else.

    Without scores the order is all there is, and of several texts that are all called sure none is.
    """
    best = next((record for record in records[:1] if record.sure and record.text.strip()), None)
    if best is None or best.score is not None:
        return best
    rivals = {record.text.strip() for record in records if record.sure and record.score is None}
    return best if rivals == {best.text.strip()} else None
