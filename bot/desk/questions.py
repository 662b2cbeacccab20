"""Questions to people: the first answer wins, from any channel."""

from __future__ import annotations

from contextlib import suppress

from agent_core.errors import KnowledgeError
from agent_core.session import Answer, Question, QuestionKind
from agent_core.texts import kept_language
from bot.desk.actors import Actor, BadRequest, ChatRef, MessageRef, NotFound, Role
from bot.desk.context import (
    TELEGRAM,
    DeskService,
    card_message,
    chat_data,
    chat_ref,
    own_chat,
    put_card,
    sees,
    telegram_chat,
)
from bot.desk.views import AnswerOutcome, QuestionView
from knowledge.entries import Entry
from knowledge.learning import alike
from scheduler.jobs.deadlines import AT_DEADLINE
from storage.events import Events
from storage.messages import QUESTION, Cards
from storage.questions import ANSWERED, OPEN, QuestionRow, Questions
from storage.runs import Runs

MOST_OPEN = 100_000  # meant as all: a question that is cut off would never be answered


class DeskQuestions(DeskService):
    """The service for questions to people. Viewers may see them, and operators may answer."""

    async def answer(self, actor: Actor, question_id: str, *, choice: str = "", text: str = "") -> AnswerOutcome:
        """Answer a question, and return the outcome of the answer. The first answer wins.

        The same answer by the same person again is ``accepted``, not ``late``.
        Raises BadRequest if the answer is none of the choices and the question takes no free text.
        """
        row = await Questions(self._db).get(question_id)
        phone = await self._phone_of(row) if row else None
        await self._allow(actor, Role.OPERATOR, "answer", phone=phone, question=question_id, choice=choice, text=text)
        if row is None:
            return AnswerOutcome("unknown")
        given = Answer(choice=choice, text=text.strip(), by=actor.name)
        question = Question.model_validate(dict(row.payload))
        if not question.accepts(given):
            takes = [*(one.value for one in question.choices), *(["text"] if question.free_text else [])]
            choices = ", ".join(takes)
            said, advice = "This is none of the choices.", f"The question takes: {choices}."
            raise BadRequest(said, advice=advice, key="not_a_choice", choices=choices)
        result = await self.context.runs.answer(
            question_id, {"choice": choice, "text": given.text}, by=actor.name, at=actor.said_at
        )
        won = result.question.answer or {}
        said = str(won.get("choice") or won.get("text") or "")
        same = result.question.answered_by == actor.name and said == (choice or given.text)
        return AnswerOutcome("accepted" if result.won or same else "late", result.question.answered_by, said)

    async def to_answer(self, actor: Actor, question_id: str) -> QuestionView | None:
        """Return a question to somebody who is about to answer it; None if there is none. Checks the same rights."""
        row = await Questions(self._db).get(question_id)
        phone = await self._phone_of(row) if row else None
        await self._allow(actor, Role.OPERATOR, "answer look", phone=phone, question=question_id)
        return await self._question_view(row) if row else None

    async def look(self, actor: Actor, question_id: str) -> QuestionView:
        """Return a question. Raises NotFound if there is none."""
        row = await Questions(self._db).get(question_id)
        phone = await self._phone_of(row) if row else None
        await self._allow(actor, Role.VIEWER, "questions show", phone=phone, question=question_id)
        if row is None:
            raise no_question(question_id)
        return await self._question_view(row)

    async def get(self, question_id: str) -> QuestionView | None:
        """Return a question for a channel; None if there is none."""
        row = await Questions(self._db).get(question_id)
        return await self._question_view(row) if row else None

    async def seen_by(self, actor: Actor | None) -> list[QuestionView]:
        """Return the open questions that this person may see, or all if ``actor`` is None, the oldest first.

        Checks no rights.
        """
        async with self._db.one_view():
            rows = await Questions(self._db).find(state=OPEN, limit=MOST_OPEN)
            return [
                await self._question_view(row)
                for row in rows
                if actor is None or sees(actor, await self._phone_of(row))
            ]

    async def here(self, actor: Actor, chat: ChatRef) -> list[QuestionView]:
        """Return the open questions with a card in ``chat``, the newest first."""
        await self._allow(actor, Role.VIEWER, "ask", chat=chat)
        shown = []
        for view in reversed(await self.seen_by(actor)):
            chats = [view.chat, *(copy for _, copy in await self.copies(view.id))]
            if any(place is not None and place.key == chat.key for place in chats):
                shown.append(view)
        return shown

    async def all_open(self, actor: Actor) -> list[QuestionView]:
        """Return the open questions, the oldest first."""
        await self._allow(actor, Role.VIEWER, "ask")
        return await self.seen_by(actor)

    async def alike(
        self, question_id: str, *, actor: Actor | None = None, chat: ChatRef | None = None
    ) -> list[QuestionView]:
        """Return other contacts' open questions that ask nearly the same as this one, the oldest first.

        Returns only questions that ``actor`` may see and ``chat`` may show. This one need not be open itself.
        """
        row = await Questions(self._db).get(question_id)
        if row is None or row.kind != QuestionKind.NO_SURE_ANSWER:
            return []
        asked, serial, found = Question.model_validate(dict(row.payload)), await self._phone_of(row), []
        for other in await Questions(self._db).find(state=OPEN, limit=MOST_OPEN):
            if other.id == row.id or other.kind != row.kind or not alike(asked.text, str(other.payload.get("text"))):
                continue
            view = await self._question_view(other)
            if "" in (asked.data.get("query"), view.question.data.get("query")):
                continue  # one has a picture or a quotation, so it may be another question
            same_contact = (view.serial, view.question.data.get("contact")) == (serial, asked.data.get("contact"))
            seen = actor is None or sees(actor, view.serial)
            if not same_contact and seen and (chat is None or await self._is_seen_in(chat, view.serial)):
                found.append(view)
        return found

    async def of_run(self, run_id: str) -> list[QuestionView]:
        """Return all questions of a run. Checks no rights."""
        return [await self._question_view(row) for row in await Questions(self._db).find(run_id=run_id)]

    async def show(self, actor: Actor, question_id: str, *, chat: ChatRef, name: str) -> QuestionView:
        """Show a question on a further card in ``chat``, and return it. ``name`` identifies the card among the copies.

        Raises NotFound if there is no such question.
        """
        row = await Questions(self._db).get(question_id)
        phone = await self._phone_of(row) if row else None
        await self._allow(actor, Role.VIEWER, "ask", phone=phone, chat=chat, question=question_id)
        if row is None:
            raise no_question(question_id)
        await Questions(self._db).copy(question_id, name, chat_data(chat))
        return await self._question_view(row)

    async def picture(self, question_id: str) -> bytes | None:
        """Return the screen at the time of the question, as JPEG; None if it is not kept."""
        row = await Questions(self._db).get(question_id)
        picture_id = await Events(self._db).picture_of(row.run_id, "question", question_id) if row else None
        return await Events(self._db).picture(picture_id) if picture_id is not None else None

    async def escalate(self, question_id: str) -> list[ChatRef]:
        """Show a question in further chats from now on, and return them.

        They are the chat in the settings, else every owner's private chat, but never the run's own chat.
        """
        row = await Questions(self._db).get(question_id)
        if row is None:
            return []
        run = await Runs(self._db).get(row.run_id)
        shown = await self.chat_of(run) if run else None
        if wanted := self.context.escalate_chat:
            chats = [telegram_chat(wanted)]
        else:
            chats = [own_chat(person) for person in await self._owners()]
        others = [chat for chat in chats if shown is None or chat.key != shown.key]
        for chat in others:
            name = chat.chat_id if chat.channel == TELEGRAM else chat.key
            await Questions(self._db).copy(question_id, f"escalated:{name}", chat_data(chat))
        return others

    async def copies(self, question_id: str) -> list[tuple[str, ChatRef]]:
        """Return the further cards of a question: for each its name, which is unique among them, and its chat.

        Their id for ``card`` is ``<question>@<name>``. Chats that may no longer see the phone are left out.
        """
        copies = [(copy.name, chat_ref(copy.chat)) for copy in await Questions(self._db).copies(question_id)]
        row = await Questions(self._db).get(question_id) if copies else None
        serial = await self._phone_of(row) if row else ""
        return [(name, chat) for name, chat in copies if chat is not None and await self._is_seen_in(chat, serial)]

    async def _phone_of(self, row: QuestionRow) -> str:
        run = await Runs(self._db).get(row.run_id)
        return run.serial if run else ""

    async def card(self, question_id: str) -> MessageRef | None:
        """Return the message of the question's card, also after a restart; None if there is none."""
        return card_message(await Cards(self._db).get(QUESTION, question_id))

    async def set_card(self, question_id: str, ref: MessageRef) -> None:
        """Store which message is a card of the question."""
        await put_card(self._db, QUESTION, question_id, ref)

    async def at(self, ref: MessageRef) -> str | None:
        """Return the id of the question that this message shows, or None. ``ref.picture`` is not compared."""
        return (await self._card_at(ref)).partition("@")[0] or None

    async def asks_for_words(self, ref: MessageRef) -> bool:
        """Tell whether this message asked for an answer in the person's own words: its card's name is ``own:…``."""
        return (await self._card_at(ref)).partition("@")[2].startswith("own:")

    async def _card_at(self, ref: MessageRef) -> str:
        """Return the id of the question's card that this message is, with an @ and its name for a copy; "" for none."""
        row = await Cards(self._db).at(
            QUESTION, channel=ref.chat.channel, chat_id=ref.chat.chat_id, message_id=ref.message_id
        )
        return row.subject_id if row else ""

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
            held=run is not None and run.hold,
            learnt=await self._learnt(row) if row.state == ANSWERED else None,
        )

    async def _learnt(self, row: QuestionRow) -> Entry | None:
        """Return the entry that was made from the answer, as long as it waits for approval, else None.

        Returns None, too, if the shop's own entries do not answer customers.
        """
        store, entry = self.context.store, None
        if store is None or not self.context.uses_entries:
            return None
        if entry_id := await Events(self._db).entry_of(row.run_id, row.id):
            with suppress(KnowledgeError):  # the card is shown all the same, without the entry
                entry = await store.get(entry_id)
        return entry if entry is not None and not entry.live else None


def no_question(question_id: str) -> NotFound:
    """Return the error for a question that is not known."""
    return NotFound(f"There is no question {question_id}.", advice="See /ask for the open ones.", key="no_question")
