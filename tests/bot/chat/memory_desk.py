"""A desk that keeps everything in memory: small, but with the rights, the order and the promises of the real one."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

from PIL import Image

from agent_core.observer import SeenPage
from agent_core.screen.page_report import Page
from agent_core.session import Choice, Question, QuestionKind
from agent_core.tasks import NO_RULES, TaskRules
from agent_core.texts import language_of
from bot.desk.actors import AccessDenied, Actor, BadRequest, ChatRef, MessageRef, NotFound, Role
from bot.desk.answers_views import AnswersAsked, AnswersPage, AnswerView, UnansweredView
from bot.desk.desk import Desk
from bot.desk.schedules_views import NO_WISH, ScheduleNews, ScheduleView, ScheduleWish
from bot.desk.views import (
    AnswerResult,
    ContactView,
    EventView,
    PhoneView,
    QuestionView,
    RunStatus,
    RunView,
    StatusView,
    SweepView,
)
from knowledge.alike import alike

NOW = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)


SERVICES: Mapping[str, Mapping[str, str]] = {
    "people": {
        "pair": "pair",
        "actor": "actor",
        "members": "members",
        "admit": "admit",
        "turned_away": "turned_away",
        "first_code": "first_code",
    },
    "runs": {
        "start": "start_run",
        "stop": "stop_run",
        "hold": "hold_run",
        "resume": "resume_run",
        "going": "going",
        "at": "run_at",
        "get": "run",
        "card": "card_ref",
        "set_card": "set_card_ref",
    },
    "phones": {
        "names": "phone_names",
        "screenshot": "screenshot",
        "page": "screen_page",
        "all": "phones",
        "away": "away",
    },
    "questions": {
        "answer": "answer",
        "to_answer": "question_to_answer",
        "get": "question",
        "here": "questions_here",
        "all_open": "list_questions",
        "seen_by": "open_questions",
        "alike": "alike_questions",
        "of_run": "questions_of",
        "show": "show_question",
        "picture": "question_picture",
        "escalate": "escalate_question",
        "copies": "question_copies",
        "card": "question_ref",
        "set_card": "set_question_ref",
        "at": "question_at",
        "asks_for_words": "asks_for_words",
    },
    "answers": {
        "find": "answers",
        "get": "answer_entry",
        "pictures": "answer_pictures",
        "rate": "rate_answer",
        "unanswered": "unanswered",
        "sent_in": "sent_in",
    },
    "contacts": {"find": "contacts", "add": "add_contact", "edit": "edit_contact", "remove": "remove_contact"},
    "schedules": {
        "add": "add_schedule",
        "edit": "edit_schedule",
        "all": "list_schedules",
        "get": "find_schedule",
        "pause": "pause_schedule",
        "resume": "resume_schedule",
        "run": "run_schedule",
        "remove": "remove_schedule",
        "put_back": "put_back_schedule",
        "news": "schedule_news",
    },
    "sweeps": {"start": "start_sweep"},
    "chats": {"moved": "chat_moved", "topic_gone": "topic_gone"},
}


class _Service:
    def __init__(self, twin: MemoryDesk, names: Mapping[str, str]) -> None:
        self._twin, self._names = twin, names

    def __getattr__(self, name: str) -> Any:
        return getattr(self._twin, self._names[name])


class _Face:
    """The twin with the services of the desk, as chats and channels call it."""

    def __init__(self, twin: MemoryDesk) -> None:
        self._twin = twin

    def __getattr__(self, name: str) -> Any:
        names = SERVICES.get(name)
        return getattr(self._twin, name) if names is None else _Service(self._twin, names)


class MemoryDesk:
    @property
    def face(self) -> Desk:
        return cast("Desk", _Face(self))

    def __init__(self, *, codes: Mapping[str, Role] | None = None, picture: bytes = b"jpeg") -> None:
        self.codes = dict(codes or {"4711": Role.OWNER, "0815": Role.OPERATOR, "1234": Role.VIEWER})
        self.people: dict[tuple[str, str], Actor] = {}
        self.runs: dict[str, RunView] = {}
        self.keys: dict[str, str] = {}
        self.owners: dict[str, str] = {}
        self.questions: dict[str, QuestionView] = {}
        self.schedules: dict[str, ScheduleView] = {}
        self.removed_schedules: dict[str, ScheduleView] = {}
        self.phones = [PhoneView("S1", "Pixel", "free")]
        self.log: list[EventView] = []
        self.positions: dict[str, int] = {}
        self.cards: dict[str, MessageRef] = {}
        self.question_refs: dict[str, MessageRef] = {}
        self.copies: dict[str, list[tuple[str, ChatRef]]] = {}  # of questions
        self.second_chats: list[ChatRef] = []  # who sees what nobody answers
        self.picture = picture
        self.page = SeenPage(Image.new("RGB", (360, 800), "white"), Page())
        self.kb: Any = None  # a DeskKnowledge, set by the tests that have one
        self.team: Any = None  # a DeskTeam, likewise
        self.refused: list[tuple[str, str]] = []
        self.digest: Any = None  # a DeskDigest; tests/bot/chat/test_digest.py has the real one
        self.history: Any = None  # a DeskHistory; tests/bot/chat/test_history.py has the real one
        self.learning: Any = None  # a DeskLearning; tests/bot/chat/test_learning.py has the real one
        self.plans = SimpleNamespace(ready=True)  # tests/bot/telegram/test_plans.py has the real one
        self.broken: Exception | None = None
        self._numbers = itertools.count(1)
        self._news = asyncio.Event()

    # What happens in the house ----------------------------------------------------------------------------------------

    def happen(
        self, run_id: str, kind: str, data: Mapping[str, Any] | None = None, *, picture: bytes | None = None, **row: Any
    ) -> None:
        """Change the run's row by ``row`` and append an event."""
        if row:
            self.runs[run_id] = replace(self.runs[run_id], **row)
        self.log.append(EventView(len(self.log) + 1, run_id, kind, dict(data or {}), picture, NOW))
        self._news.set()
        self._news = asyncio.Event()

    def ask(
        self,
        run_id: str,
        kind: QuestionKind = QuestionKind.NO_SURE_ANSWER,
        *choices: tuple[str, str],
        text: str = "怎么退货",
        free_text: bool = True,
        picture: bytes | None = None,
        **data: Any,
    ) -> str:
        question_id = f"question{next(self._numbers)}"
        question = Question(
            id=question_id,
            kind=kind,
            text=text,
            choices=[Choice(value=value, label=label) for value, label in choices],
            free_text=free_text,
            data={"contact": "11", **data},
        )
        run = self.runs[run_id]
        self.questions[question_id] = QuestionView(
            question_id, run_id, question, run.chat, run.lang, NOW + timedelta(minutes=10), "skip", asked_at=NOW
        )
        self.happen(run_id, "question", question.model_dump(), picture=picture, status=RunStatus.WAITING)
        return question_id

    def _allow(self, actor: Actor, *roles: Role) -> None:
        if self.broken is not None:
            raise self.broken
        if actor.role not in roles:
            raise AccessDenied(f"{actor.role} may not do this.")

    # The Desk ---------------------------------------------------------------------------------------------------------

    async def pair(self, channel: str, user_id: str, name: str, lang: str, code: str) -> Actor:
        if code not in self.codes:
            raise AccessDenied("This code is unknown.")
        role = Role.OWNER if not self.people else self.codes[code]
        del self.codes[code]
        actor = Actor(str(next(self._numbers)), channel, user_id, name, language_of(lang), role)
        self.people[channel, user_id] = actor
        return actor

    async def actor(self, channel: str, user_id: str) -> Actor | None:
        return self.people.get((channel, user_id))

    async def members(self, channel: str) -> Sequence[Actor]:
        return [actor for actor in self.people.values() if actor.channel == channel]

    async def admit(self, actor: Actor) -> None:
        return None

    async def turned_away(self, channel: str, user_id: str, name: str, what: str) -> None:
        self.refused.append((user_id, what))

    async def start_run(
        self,
        actor: Actor,
        task: str,
        *,
        chat: ChatRef,
        serial: str | None = None,
        rules: TaskRules = NO_RULES,
        key: str = "",
    ) -> RunView:
        self._allow(actor, Role.OPERATOR, Role.OWNER)
        if serial and serial not in {phone.serial for phone in self.phones}:
            raise NotFound(f"No phone {serial}.", key="no_phone", name=serial)
        if key and key in self.keys:
            return self.runs[self.keys[key]]
        run = RunView(
            f"run{next(self._numbers)}", task, RunStatus.QUEUED, actor.lang, serial or "S1", "Pixel", chat, actor.name,
            position=1, created_at=NOW,
        )  # fmt: skip
        self.runs[run.id] = run
        self.owners[run.id] = actor.id
        self.keys[key or run.id] = run.id
        return run

    async def start_sweep(
        self, actor: Actor, words: str, *, chat: ChatRef, serial: str | None = None, key: str = ""
    ) -> RunView:
        run = await self.start_run(actor, f"巡检 {words}".strip(), chat=chat, serial=serial, key=key)
        self.runs[run.id] = replace(run, sweep=SweepView())
        return self.runs[run.id]

    def begin(self, run_id: str) -> None:
        """A worker takes the run up."""
        self.happen(run_id, "started", {}, status=RunStatus.RUNNING, position=0, started_at=NOW)

    async def stop_run(self, actor: Actor, run_id: str | None = None) -> RunView | None:
        self._allow(actor, Role.OPERATOR, Role.OWNER)
        active = [run for run in self.runs.values() if not run.status.final and run_id in {None, run.id}]
        if not active:
            return None
        run = active[-1]
        self.happen(run.id, "outcome", status=RunStatus.STOPPED, stopped_by=actor.name, ended_at=NOW)
        return self.runs[run.id]

    async def hold_run(self, actor: Actor, run_id: str | None = None) -> RunView | None:
        self._allow(actor, Role.OPERATOR, Role.OWNER)
        active = [run for run in self.runs.values() if not run.status.final and run_id in {None, run.id}]
        if not active:
            return None
        self.happen(active[-1].id, "status", {"status": "waiting"}, status=RunStatus.WAITING, held=True)
        return self.runs[active[-1].id]

    async def resume_run(self, actor: Actor, run_id: str | None = None) -> RunView | None:
        self._allow(actor, Role.OPERATOR, Role.OWNER)
        held = [run for run in self.runs.values() if run.held and run_id in {None, run.id}]
        if not held:
            return None
        self.happen(held[-1].id, "status", {"status": "waiting"}, held=False, status=RunStatus.QUEUED, position=1)
        return self.runs[held[-1].id]

    async def going(self, actor: Actor) -> Sequence[RunView]:
        return (await self.status(actor)).runs

    async def run_at(self, ref: MessageRef) -> str | None:
        return next((name for name, card in self.cards.items() if card.message_id == ref.message_id), None)

    async def status(self, actor: Actor) -> StatusView:
        self._allow(actor, *Role)
        active = tuple(run for run in self.runs.values() if not run.status.final)
        return StatusView(tuple(self.phones), active, tuple(q for q in self.questions.values() if q.open))

    async def phone_names(self, serials: Sequence[str]) -> tuple[str, ...]:
        names = {phone.serial: phone.name for phone in self.phones}
        return tuple(names.get(serial, serial) for serial in serials)

    async def screenshot(self, actor: Actor, serial: str | None = None, *, full: bool = False) -> bytes:
        self._allow(actor, *Role)
        return self.picture

    async def screen_page(self, actor: Actor, serial: str | None = None) -> SeenPage:
        self._allow(actor, *Role)
        return self.page

    async def answer(self, actor: Actor, question_id: str, *, choice: str = "", text: str = "") -> AnswerResult:
        self._allow(actor, Role.OPERATOR, Role.OWNER)
        view = self.questions.get(question_id)
        if view is None:
            return AnswerResult("unknown")
        given = choice or text
        if not view.open:
            same = (view.by, view.answer) == (actor.name, given)
            return AnswerResult("accepted" if same else "late", view.by, view.answer)
        self.questions[question_id] = replace(view, open=False, answer=given, by=actor.name)
        self.happen(view.run_id, "answered", {"question": question_id, "by": actor.name}, status=RunStatus.RUNNING)
        return AnswerResult("accepted", actor.name, given)

    async def add_schedule(
        self,
        actor: Actor,
        expression: str,
        task: str,
        *,
        chat: ChatRef,
        rules: TaskRules = NO_RULES,
        wish: ScheduleWish = NO_WISH,
        key: str = "",
    ) -> ScheduleView:
        self._allow(actor, Role.OWNER)
        if expression.startswith("every x"):
            raise BadRequest(f"{expression!r} is no time.", key="bad_schedule", said=expression)
        times = tuple(NOW + timedelta(minutes=5 * n) for n in (1, 2, 3))
        schedule = ScheduleView(str(next(self._numbers)), expression, task, times, chat=chat)
        self.schedules[schedule.id] = schedule
        return schedule

    async def edit_schedule(
        self,
        actor: Actor,
        schedule_id: str,
        *,
        expression: str | None = None,
        task: str | None = None,
        chat: ChatRef | None = None,
        rules: TaskRules | None = None,
        wish: ScheduleWish = NO_WISH,
    ) -> ScheduleView:
        given = {"expression": expression, "task": task, "chat": chat, "quiet": wish.quiet}
        return self._change(actor, schedule_id, **{name: value for name, value in given.items() if value is not None})

    async def find_schedule(self, actor: Actor, schedule_id: str) -> ScheduleView:
        self._allow(actor, *Role)
        if schedule_id not in self.schedules:
            raise NotFound(f"No schedule {schedule_id}.", key="no_schedule", number=schedule_id)
        return self.schedules[schedule_id]

    async def run_schedule(
        self, actor: Actor, schedule_id: str, *, chat: ChatRef | None = None, key: str = ""
    ) -> RunView:
        schedule = await self.find_schedule(actor, schedule_id)
        place = chat or schedule.chat
        assert place is not None
        return await self.start_run(actor, schedule.task, chat=place, key=key)

    async def put_back_schedule(self, actor: Actor, schedule_id: str) -> ScheduleView:
        self._allow(actor, Role.OWNER)
        self.schedules[schedule_id] = self.removed_schedules.pop(schedule_id)
        return self.schedules[schedule_id]

    async def schedule_news(self, data: Mapping[str, Any]) -> ScheduleNews | None:
        return None

    async def list_schedules(self, actor: Actor) -> Sequence[ScheduleView]:
        self._allow(actor, *Role)
        return list(self.schedules.values())

    async def pause_schedule(self, actor: Actor, schedule_id: str) -> ScheduleView:
        return self._change(actor, schedule_id, paused=True)

    async def resume_schedule(self, actor: Actor, schedule_id: str) -> ScheduleView:
        return self._change(actor, schedule_id, paused=False)

    async def remove_schedule(self, actor: Actor, schedule_id: str) -> ScheduleView:
        schedule = self._change(actor, schedule_id)
        self.removed_schedules[schedule_id] = self.schedules.pop(schedule_id)
        return schedule

    def _change(self, actor: Actor, schedule_id: str, **changes: Any) -> ScheduleView:
        self._allow(actor, Role.OWNER)
        if schedule_id not in self.schedules:
            raise NotFound(f"No schedule {schedule_id}.", key="no_schedule", number=schedule_id)
        self.schedules[schedule_id] = replace(self.schedules[schedule_id], **changes)
        return self.schedules[schedule_id]

    # The answer log and contacts are tested over the real desk: tests/bot/chat/test_answers.py, test_contacts.py

    async def answers(
        self, actor: Actor, asked: AnswersAsked, *, before: str = "", after: str = "", limit: int = 10
    ) -> AnswersPage:
        return AnswersPage()

    async def answer_entry(self, actor: Actor, answer_id: str) -> AnswerView:
        raise NotFound(f"No answer {answer_id}.")

    async def answer_pictures(self, actor: Actor, answer_id: str) -> tuple[bytes | None, bytes | None]:
        raise NotFound(f"No answer {answer_id}.")

    async def rate_answer(
        self, actor: Actor, answer_id: str, rating: int, *, toggle: bool = True, key: str = ""
    ) -> AnswerView:
        raise NotFound(f"No answer {answer_id}.")

    async def unanswered(self, actor: Actor, since: str = "") -> Sequence[UnansweredView]:
        return []

    async def contacts(self, actor: Actor, *, app: str = "", text: str = "", tag: str = "") -> Sequence[ContactView]:
        return []

    async def add_contact(self, actor: Actor, contact: ContactView) -> ContactView:
        return contact

    async def edit_contact(
        self,
        actor: Actor,
        name: str,
        *,
        app: str = "qq",
        serial: str = "",
        rename: str | None = None,
        number: str | None = None,
        tags: Sequence[str] | None = None,
        note: str | None = None,
    ) -> ContactView:
        raise NotFound(f"No contact {name}.")

    async def remove_contact(self, actor: Actor, name: str, *, app: str = "qq", serial: str = "") -> ContactView:
        raise NotFound(f"No contact {name}.")

    async def events(self, consumer: str) -> AsyncIterator[EventView]:
        position = self.positions.get(consumer, 0)
        while True:
            news = self._news
            if position < len(self.log):
                position += 1
                yield self.log[position - 1]
            else:
                await news.wait()

    async def confirm(self, consumer: str, event_id: int) -> None:
        self.positions[consumer] = max(event_id, self.positions.get(consumer, 0))

    async def chat_moved(self, channel: str, old_id: str, new_id: str) -> Sequence[tuple[str, str]]:
        def moved(chat: ChatRef | None) -> ChatRef | None:
            return replace(chat, chat_id=new_id) if chat is not None and chat.chat_id == old_id else chat

        self.runs = {name: replace(run, chat=moved(run.chat)) for name, run in self.runs.items()}
        self.questions = {name: replace(view, chat=moved(view.chat)) for name, view in self.questions.items()}
        return self._forget(lambda chat: chat.chat_id == old_id)

    async def topic_gone(self, channel: str, chat_id: str, thread_id: str) -> Sequence[tuple[str, str]]:
        return self._forget(lambda chat: (chat.chat_id, chat.thread_id) == (chat_id, thread_id))

    def _forget(self, there: Callable[[ChatRef], bool]) -> list[tuple[str, str]]:
        gone = []
        for kind, refs in (("run", self.cards), ("question", self.question_refs)):
            names = [name for name, ref in refs.items() if there(ref.chat)]
            gone += [(kind, name) for name in names]
            for name in names:
                del refs[name]
        return gone

    async def run(self, run_id: str) -> RunView | None:
        return self.runs.get(run_id)

    async def question_to_answer(self, actor: Actor, question_id: str) -> QuestionView | None:
        self._allow(actor, Role.OPERATOR, Role.OWNER)
        return self.questions.get(question_id)

    async def question(self, question_id: str) -> QuestionView | None:
        return self.questions.get(question_id)

    async def questions_here(self, actor: Actor, chat: ChatRef) -> Sequence[QuestionView]:
        self._allow(actor, *Role)
        places = {
            name: [view.chat, *(at for _, at in self.copies.get(name, []))] for name, view in self.questions.items()
        }
        return [view for name, view in reversed(self.questions.items()) if view.open and chat in places[name]]

    async def list_questions(self, actor: Actor) -> Sequence[QuestionView]:
        self._allow(actor, *Role)
        return [view for view in self.questions.values() if view.open]

    async def alike_questions(
        self, question_id: str, *, actor: Actor | None = None, chat: ChatRef | None = None
    ) -> Sequence[QuestionView]:
        asked = self.questions[question_id].question
        return [
            view
            for view in self.questions.values()
            if view.open and view.id != question_id and view.question.kind is asked.kind is QuestionKind.NO_SURE_ANSWER
            if alike(view.question.text, asked.text) and view.question.data["contact"] != asked.data["contact"]
        ]

    async def questions_of(self, run_id: str) -> Sequence[QuestionView]:
        return [view for view in self.questions.values() if view.run_id == run_id]

    async def show_question(self, actor: Actor, question_id: str, *, chat: ChatRef, name: str) -> QuestionView:
        self._allow(actor, *Role)
        if question_id not in self.questions:
            raise NotFound(f"No question {question_id}.")
        self._copy(question_id, name, chat)
        return self.questions[question_id]

    def _copy(self, question_id: str, name: str, chat: ChatRef) -> None:
        if (name, chat) not in self.copies.setdefault(question_id, []):
            self.copies[question_id].append((name, chat))

    async def question_picture(self, question_id: str) -> bytes | None:
        asked = [event.picture for event in self.log if event.kind == "question" and event.data["id"] == question_id]
        return asked[-1] if asked else None

    async def escalate_question(self, question_id: str) -> Sequence[ChatRef]:
        for chat in self.second_chats:
            self._copy(question_id, f"escalated:{chat.chat_id}", chat)
        return self.second_chats

    async def question_copies(self, question_id: str) -> Sequence[tuple[str, ChatRef]]:
        return self.copies.get(question_id, [])

    async def card_ref(self, run_id: str) -> MessageRef | None:
        return self.cards.get(run_id)

    async def set_card_ref(self, run_id: str, ref: MessageRef) -> None:
        self.cards[run_id] = ref

    async def question_ref(self, question_id: str) -> MessageRef | None:
        return self.question_refs.get(question_id)

    async def set_question_ref(self, question_id: str, ref: MessageRef) -> None:
        self.question_refs[question_id] = ref

    async def question_at(self, ref: MessageRef) -> str | None:
        return self._card_at(ref).partition("@")[0] or None

    async def asks_for_words(self, ref: MessageRef) -> bool:
        return "@own:" in self._card_at(ref)

    def _card_at(self, ref: MessageRef) -> str:
        for name, known in self.question_refs.items():
            if (known.chat.chat_id, known.message_id) == (ref.chat.chat_id, ref.message_id):
                return name
        return ""
