"""Questions to people: the first answer wins, from whatever channel."""

from __future__ import annotations

from agent_core.session import Answer, Question
from bot.desk.house import DeskPart, chat_data, chat_ref, sees
from bot.desk.port import Actor, AnswerResult, BadRequest, MessageRef, QuestionView, Role
from storage.cards import QUESTION, RUN, CardRow, Cards
from storage.questions import OPEN, QuestionRow, Questions
from storage.runs import Runs


class QuestionsDesk(DeskPart):
    async def answer(self, actor: Actor, question_id: str, *, choice: str = "", text: str = "") -> AnswerResult:
        """BadRequest where it is none of the choices and own words are not allowed."""
        row = await Questions(self._db).get(question_id)
        phone = await self._phone_of(row) if row else None
        await self._allow(actor, Role.OPERATOR, "answer", phone=phone, question=question_id, choice=choice, text=text)
        if row is None:
            return AnswerResult("unknown")
        given = Answer(choice=choice, text=text.strip(), by=actor.name)
        if not Question.model_validate(dict(row.payload)).accepts(given):
            raise BadRequest("This is none of the choices.", advice="Tap a button of the question.")
        result = await self.house.runs.answer(question_id, {"choice": choice, "text": given.text}, by=actor.name)
        won = result.question.answer or {}
        said = str(won.get("choice") or won.get("text") or "")
        same = result.question.answered_by == actor.name and said == (choice or given.text)
        return AnswerResult("accepted" if result.won or same else "late", result.question.answered_by, said)

    async def question(self, question_id: str) -> QuestionView | None:
        row = await Questions(self._db).get(question_id)
        return await self._question_view(row) if row else None

    async def open_questions(self, actor: Actor | None = None) -> list[QuestionView]:
        """Those that this person may see, or all."""
        rows = await Questions(self._db).find(state=OPEN)
        return [
            await self._question_view(row) for row in rows if actor is None or sees(actor, await self._phone_of(row))
        ]

    async def _phone_of(self, row: QuestionRow) -> str:
        run = await Runs(self._db).get(row.run_id)
        return run.serial if run else ""

    async def card_ref(self, run_id: str) -> MessageRef | None:
        return _message(await Cards(self._db).get(RUN, run_id))

    async def set_card_ref(self, run_id: str, ref: MessageRef) -> None:
        await self._put(RUN, run_id, ref)

    async def question_ref(self, question_id: str) -> MessageRef | None:
        return _message(await Cards(self._db).get(QUESTION, question_id))

    async def set_question_ref(self, question_id: str, ref: MessageRef) -> None:
        await self._put(QUESTION, question_id, ref)

    async def question_at(self, ref: MessageRef) -> str | None:
        """The id of the question that this message shows."""
        row = await Cards(self._db).at(
            QUESTION, channel=ref.chat.channel, chat_id=ref.chat.chat_id, message_id=ref.message_id
        )
        return row.subject_id if row else None

    async def _put(self, subject: str, subject_id: str, ref: MessageRef) -> None:
        await Cards(self._db).put(
            subject, subject_id, chat=chat_data(ref.chat), message_id=ref.message_id, picture=ref.picture
        )

    async def _question_view(self, row: QuestionRow) -> QuestionView:
        run = await Runs(self._db).get(row.run_id)
        answer = row.answer or {}
        return QuestionView(
            id=row.id,
            run_id=row.run_id,
            question=Question.model_validate(dict(row.payload)),
            chat=await self.chat_of(run) if run else None,
            lang="en" if run and run.options.get("lang") == "en" else "zh",
            deadline=row.deadline,
            then="skip" if row.deadline else "wait",
            open=row.state == OPEN,
            answer=str(answer.get("choice") or answer.get("text") or ""),
            by=row.answered_by,
        )


def _message(row: CardRow | None) -> MessageRef | None:
    chat = chat_ref(row.chat) if row else None
    return MessageRef(chat, row.message_id, row.picture) if row and chat else None
