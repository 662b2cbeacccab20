"""The effect of a person's answer on a reply."""

from __future__ import annotations

from contextlib import suppress

from agent_core.loop import questions
from agent_core.loop.outcome import ActResult
from agent_core.ports import Ledger, LedgerConflict, ReplyState
from agent_core.reply.asked import CustomerQuestion
from agent_core.reply.hand_over import HandOver
from agent_core.reply.outcome import end, fail
from agent_core.reply.planning import chosen_from, planned_by_person, planned_with, stands
from agent_core.reply.rows import Rows
from agent_core.session import NOBODY, Answer, Question, QuestionKind, RowMark, Session, Status
from agent_core.texts import say


class Decisions:
    """A person's answers to the questions of one run's reply flow, and their effects."""

    def __init__(self, session: Session, ledger: Ledger, rows: Rows, hand_over: HandOver, *, part_chars: int) -> None:
        self._session = session
        self._ledger = ledger
        self._rows = rows
        self._hand_over = hand_over
        self._part_chars = part_chars

    async def take(self, question: Question, answer: Answer) -> ActResult | None:
        """Apply ``answer`` and return what follows; None if the question is not one of the reply flow."""
        match question.kind:
            case QuestionKind.NO_SURE_ANSWER | QuestionKind.UNREADABLE:
                return await self._answer_given(question, answer)
            case QuestionKind.ANSWERED_BEFORE:
                return await self._answered_before(question, answer)
            case QuestionKind.DELIVERY_UNKNOWN:
                return await self._delivery(question, answer)
            case QuestionKind.FIRST_DELIVERY:
                return await self._first_delivery(question, answer)
            case QuestionKind.STILL_SEND:
                return await self._still_send(question, answer)
            case QuestionKind.NO_SEND:
                return self._no_send(answer)
            case _:
                return await self._of_the_chat(question, answer)

    async def _of_the_chat(self, question: Question, answer: Answer) -> ActResult | None:
        match question.kind:
            case QuestionKind.RIGHT_CHAT:
                return self._right_chat(question, answer)
            case QuestionKind.WHICH_ROW:
                return await self._which_row(question, answer)
            case QuestionKind.REST_UNSENT:
                return await self._rest(answer)
            case QuestionKind.FOREIGN_DRAFT:
                return self._draft(question, answer)
            case QuestionKind.CHAT_CHANGED:
                return self._chat_changed(answer)
            case _:
                return None

    async def _answered_before(self, question: Question, answer: Answer) -> ActResult:
        fingerprint = str(question.data["fingerprint"])
        if answer.choice != "again":
            if answer.by != NOBODY:
                await self._not_again(fingerprint)
            return await self._hand_over.skip(answer, fingerprint)
        self._session.answer_again = fingerprint
        self._session.cluster = None  # read again, as a question of its own
        return ActResult("")

    async def _not_again(self, fingerprint: str) -> None:
        """Close the question, because a person said that this message was answered: nobody is asked about it again."""
        for question in self._session.cluster.asked if self._session.cluster else []:
            if question.fingerprint == fingerprint:
                row = await self._rows.repeat(question)
                await self._ledger.advance(row.id, ReplyState.SKIPPED, expected=[row.state])

    def _draft(self, question: Question, answer: Answer) -> ActResult:
        if answer.choice != "clear":
            return end(self._session, Status.FAILED, answer.key("delivery.left_draft"), by=answer.by)
        self._session.draft_dropped = str(question.data["draft"])
        return ActResult("")

    def _chat_changed(self, answer: Answer) -> ActResult:
        if answer.choice != "retry":
            return end(self._session, Status.FAILED, answer.key("run.skipped"), by=answer.by)
        self._session.changed_chats = 0
        return ActResult("")

    async def _answer_given(self, question: Question, answer: Answer) -> ActResult:
        session, planned = self._session, self._session.planned
        if planned is None:
            return end(session, Status.SUCCEEDED, answer.key("run.skipped"), by=answer.by)
        if answer.choice == questions.SKIP and not answer.text:
            return await self._hand_over.skip(answer, planned.fingerprint)
        if answer.text.strip():
            session.planned = planned_by_person(planned, answer.text, self._part_chars, person=answer.by)
        else:
            picked = questions.candidate(question, answer.choice)
            if picked is None:
                raise ValueError(f"{answer.choice!r} is no choice of the question.")
            session.planned = planned_with(planned, chosen_from(picked), self._part_chars, person=answer.by)
            if stands(session.cluster, session.planned):
                return await self._hand_over.covered(session.planned)
        return ActResult(say(session.lang, "gate.answer_ready", contact=session.gate.contact))

    def _right_chat(self, question: Question, answer: Answer) -> ActResult:
        session, gate = self._session, self._session.gate
        title = str(question.data["title"])
        if answer.choice != "yes" or not title:  # a yes to a title that nobody could read means nothing
            return fail(session, answer.key("run.person_no_chat"), contact=gate.contact, by=answer.by)
        gate.chat_confirmed = title
        gate.print_confirmed = str(question.data.get("title_print", ""))
        gate.group_confirmed = bool(question.data.get("group", False))
        gate.doubts_confirmed = list(question.data.get("doubts", []))
        gate.contact = gate.contact or gate.chat_confirmed
        return ActResult("")

    async def _which_row(self, question: Question, answer: Answer) -> ActResult:
        session, gate = self._session, self._session.gate
        if answer.choice == questions.NONE:
            return end(session, Status.FAILED, answer.key("run.no_row"), contact=gate.contact, by=answer.by)
        gate.row = RowMark.model_validate(question.data["rows"][int(answer.choice.removeprefix("row:"))])
        gate.row_entered, gate.row_told = False, True
        await self._ledger.choose_row(session.serial, gate.app, gate.contact, gate.row)
        return ActResult(say(session.lang, "run.row_chosen", contact=gate.contact))

    async def _delivery(self, question: Question, answer: Answer) -> ActResult:
        row_id = int(question.data["ledger_id"])
        # An attempt that died before it saved applies the same answer again, so the row may have this state already.
        if answer.choice != "arrived":
            # Treat it as typed: it may still be in the input, which is cleared before anything else.
            known = [ReplyState.UNKNOWN, ReplyState.TYPING, ReplyState.PLANNED]
            await self._ledger.advance(row_id, ReplyState.TYPING, expected=known)
            return ActResult(say(self._session.lang, "delivery.not_arrived"))
        if not question.data.get("more"):
            row = await self._ledger.advance(row_id, ReplyState.SENT, expected=[ReplyState.UNKNOWN, ReplyState.SENT])
            cluster = self._session.cluster
            ours = any(question.ledger_id == row.id for question in (cluster.asked if cluster else []))
            planned = self._session.planned
            # The question in that chat has yet to be read.
            if not ours and (planned is None or planned.ledger_id != row.id):
                await self._rows.tell_row(row, ReplyState.SENT)
                return ActResult("")
            return await self._hand_over.found_sent(row, "run.resolved_sent")
        with suppress(LedgerConflict):
            known = [ReplyState.UNKNOWN, ReplyState.SENDING]
            row = await self._ledger.advance(row_id, ReplyState.SENDING, expected=known)
            await self._ledger.next_part(row_id, part=row.part)
        return ActResult("")

    async def _first_delivery(self, question: Question, answer: Answer) -> ActResult:
        session, planned = self._session, self._session.planned
        if answer.choice == "send":
            session.version_allowed = str(question.data["version"])
            return ActResult("")
        return await self._hand_over.skip(answer, planned.fingerprint if planned else "")

    def _no_send(self, answer: Answer) -> ActResult:
        """Apply the answer about a text that is typed but not sent.

        The chat is read first in any case, because the person may have sent the text by hand.
        """
        planned = self._session.planned
        if planned is not None and answer.choice == "enter":
            planned.send_by = "enter"
        elif planned is not None and answer.choice != "sent":
            planned.given_up = answer
        return ActResult("")

    async def _rest(self, answer: Answer) -> ActResult:
        """Apply the answer about the rest of a reply: the chat changed between two of its parts."""
        session, planned = self._session, self._session.planned
        if answer.choice != "send" or planned is None:
            for question in session.cluster.asked if session.cluster and planned else []:
                if planned and question.ledger_id == planned.ledger_id:
                    # No later run takes up the rest.
                    await self._rows.skip(question, person="" if answer.program else answer.by)
            return end(session, Status.FAILED, answer.key("delivery.rest_left"), by=answer.by)
        session.send_anyway = True
        return ActResult("")

    async def _still_send(self, question: Question, answer: Answer) -> ActResult:
        """Apply the answer about a chat that changed after a person had answered: send as it is, reword, or skip."""
        session, planned = self._session, self._session.planned
        if planned is None or (answer.choice == questions.SKIP and not answer.text):
            messages = planned.cluster if planned else []
            skipped = await self._hand_over.skip(answer, planned.fingerprint if planned else "")
            for one in question.data.get("shown", ()):
                await self._rows.settle(
                    CustomerQuestion(one["words"], one["fingerprint"]), messages, person=answer.person
                )
            if skipped.ending is None:
                return skipped
            session.cluster = None  # whatever changed the chat may be a question, and has yet to be read
            return ActResult("")
        if answer.text.strip():
            session.planned = planned_by_person(planned, answer.text, self._part_chars, person=answer.by)
        session.send_anyway = True
        return ActResult(say(session.lang, "gate.answer_ready", contact=session.gate.contact))
