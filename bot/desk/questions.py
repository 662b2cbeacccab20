"""Questions to people: the first answer wins, from whatever channel."""

from __future__ import annotations

from contextlib import suppress

from agent_core.errors import KnowledgeError
from agent_core.session import Answer, Question, QuestionKind
from agent_core.texts import kept_language
from bot.desk.actors import Actor, BadRequest, ChatRef, MessageRef, NotFound, Role
from bot.desk.house import DeskPart, chat_data, chat_ref, sees
from bot.desk.port import AnswerResult, QuestionView
from knowledge.alike import alike
from knowledge.entries import Entry
from scheduler.deadlines import AT_DEADLINE
from storage.cards import QUESTION, RUN, CardRow, Cards
from storage.events import Events
from storage.people import People
from storage.questions import ANSWERED, OPEN, QuestionRow, Questions
from storage.runs import Runs

TELEGRAM = "telegram"  # where owners are reached
MOST_OPEN = 100_000  # all of them: what is cut off nobody would answer


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
            said = "This is none of the choices."
            raise BadRequest(said, advice="Tap a button of the question.", key="not_a_choice")
        result = await self.house.runs.answer(
            question_id, {"choice": choice, "text": given.text}, by=actor.name, at=actor.said_at
        )
        won = result.question.answer or {}
        said = str(won.get("choice") or won.get("text") or "")
        same = result.question.answered_by == actor.name and said == (choice or given.text)
        return AnswerResult("accepted" if result.won or same else "late", result.question.answered_by, said)

    async def question_to_answer(self, actor: Actor, question_id: str) -> QuestionView | None:
        row = await Questions(self._db).get(question_id)
        phone = await self._phone_of(row) if row else None
        await self._allow(actor, Role.OPERATOR, "answer look", phone=phone, question=question_id)
        return await self._question_view(row) if row else None

    async def question(self, question_id: str) -> QuestionView | None:
        row = await Questions(self._db).get(question_id)
        return await self._question_view(row) if row else None

    async def open_questions(self, actor: Actor | None = None) -> list[QuestionView]:
        """Those that this person may see, or all."""
        rows = await Questions(self._db).find(state=OPEN, limit=MOST_OPEN)
        return [
            await self._question_view(row) for row in rows if actor is None or sees(actor, await self._phone_of(row))
        ]

    async def questions_here(self, actor: Actor, chat: ChatRef) -> list[QuestionView]:
        await self._allow(actor, Role.VIEWER, "ask", chat=chat)
        shown = []
        for view in reversed(await self.open_questions(actor)):
            chats = [view.chat, *(copy for _, copy in await self.question_copies(view.id))]
            if any(place is not None and place.key == chat.key for place in chats):
                shown.append(view)
        return shown

    async def list_questions(self, actor: Actor) -> list[QuestionView]:
        await self._allow(actor, Role.VIEWER, "ask")
        return await self.open_questions(actor)

    async def alike_questions(
        self, question_id: str, *, actor: Actor | None = None, chat: ChatRef | None = None
    ) -> list[QuestionView]:
        row = await Questions(self._db).get(question_id)
        if row is None or row.kind != QuestionKind.NO_SURE_ANSWER:
            return []
        asked, serial, found = Question.model_validate(dict(row.payload)), await self._phone_of(row), []
        for other in await Questions(self._db).find(state=OPEN, limit=MOST_OPEN):
            if other.id == row.id or other.kind != row.kind or not alike(asked.text, str(other.payload.get("text"))):
                continue
            view = await self._question_view(other)
            if "" in (asked.data.get("query"), view.question.data.get("query")):
                continue  # a picture or a quotation belongs to one of them: it may be another question
            same_contact = (view.serial, view.question.data.get("contact")) == (serial, asked.data.get("contact"))
            seen = actor is None or sees(actor, view.serial)
            if not same_contact and seen and (chat is None or await self._is_seen_in(chat, view.serial)):
                found.append(view)
        return found

    async def questions_of(self, run_id: str) -> list[QuestionView]:
        return [await self._question_view(row) for row in await Questions(self._db).find(run_id=run_id)]

    async def show_question(self, actor: Actor, question_id: str, *, chat: ChatRef, name: str) -> QuestionView:
        row = await Questions(self._db).get(question_id)
        phone = await self._phone_of(row) if row else None
        await self._allow(actor, Role.VIEWER, "ask", phone=phone, chat=chat, question=question_id)
        if row is None:
            said = f"There is no question {question_id}."
            raise NotFound(said, advice="See /ask for the open ones.", key="no_question")
        await Questions(self._db).copy(question_id, name, chat_data(chat))
        return await self._question_view(row)

    async def question_picture(self, question_id: str) -> bytes | None:
        row = await Questions(self._db).get(question_id)
        picture_id = await Events(self._db).picture_of(row.run_id, "question", question_id) if row else None
        return await Events(self._db).picture(picture_id) if picture_id is not None else None

    async def escalate_question(self, question_id: str) -> list[ChatRef]:
        """The chat of the settings, else the private chat of every owner who may see it, but the run's own chat."""
        row = await Questions(self._db).get(question_id)
        if row is None:
            return []
        run = await Runs(self._db).get(row.run_id)
        shown = await self.chat_of(run) if run else None
        if wanted := self.house.escalate_chat:
            chats = [ChatRef(TELEGRAM, wanted, kind="group" if wanted.startswith("-") else "private")]
        else:
            owners = [person for person in await People(self._db).all() if person.role == Role.OWNER.value]
            chats = [ChatRef(TELEGRAM, str(person.telegram_id)) for person in owners]
        others = [chat for chat in chats if shown is None or chat.chat_id != shown.chat_id]
        for chat in others:
            await Questions(self._db).copy(question_id, f"escalated:{chat.chat_id}", chat_data(chat))
        return others

    async def question_copies(self, question_id: str) -> list[tuple[str, ChatRef]]:
        """Those in chats where its phone may be seen by now."""
        copies = [(copy.name, chat_ref(copy.chat)) for copy in await Questions(self._db).copies(question_id)]
        row = await Questions(self._db).get(question_id) if copies else None
        serial = await self._phone_of(row) if row else ""
        return [(name, chat) for name, chat in copies if chat is not None and await self._is_seen_in(chat, serial)]

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
        return (await self._card_at(ref)).partition("@")[0] or None

    async def asks_for_words(self, ref: MessageRef) -> bool:
        return (await self._card_at(ref)).partition("@")[2].startswith("own:")

    async def _card_at(self, ref: MessageRef) -> str:
        """The id and, behind an @, the name of the question's card that this message is; "" where it is none."""
        row = await Cards(self._db).at(
            QUESTION, channel=ref.chat.channel, chat_id=ref.chat.chat_id, message_id=ref.message_id
        )
        return row.subject_id if row else ""

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
            lang=kept_language(run.options.get("lang") if run else None),
            deadline=row.deadline.astimezone(self._zone) if row.deadline else None,
            then=AT_DEADLINE[QuestionKind(row.kind)].then if row.deadline else "wait",
            open=row.state == OPEN,
            answer=str(answer.get("choice") or answer.get("text") or ""),
            by=row.answered_by,
            asked_at=row.created_at.astimezone(self._zone),
            answered_at=row.answered_at.astimezone(self._zone) if row.answered_at else None,
            serial=run.serial if run else "",
            learnt=await self._learnt(row) if row.state == ANSWERED else None,
        )

    async def _learnt(self, row: QuestionRow) -> Entry | None:
        """What waits for approval since this was answered, if the shop's own entries answer customers."""
        store, entry = self.house.store, None
        if store is None or not self.house.uses_entries:
            return None
        if entry_id := await Events(self._db).entry_of(row.run_id, row.id):
            with suppress(KnowledgeError):  # a card is shown without what it could offer
                entry = await store.get(entry_id)
        return entry if entry is not None and not entry.live else None


def _message(row: CardRow | None) -> MessageRef | None:
    chat = chat_ref(row.chat) if row else None
    return MessageRef(chat, row.message_id, row.picture) if row and chat else None
