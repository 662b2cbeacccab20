"""Handling an incoming message: call the desk, and return the reply. No channel is known here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from agent_core.errors import PhonedeskError
from agent_core.texts import language_of
from bot.channels.chat import (
    answers,
    cards,
    commands,
    contacts,
    devices,
    digest,
    history,
    kb,
    learning,
    manual,
    offered,
    people,
    personal,
    plans,
    proposals,
    questions,
    runs,
    schedules,
    screen,
    sweeps,
)
from bot.channels.chat.answering import no_answer, read_answer, to_confirm, told, verdict
from bot.channels.chat.cards import Card, Line
from bot.channels.chat.commands import Command, ForAnotherBot, Unknown
from bot.channels.chat.texts import Texts, texts
from bot.channels.chat.turn import Files, Incoming, Outgoing, Said, Show, Subject, Turn, utc_now
from bot.desk.actors import Actor, BadRequest, NotFound, StillLimited
from bot.desk.views import AnswerOutcome, QuestionView

if TYPE_CHECKING:  # it loads the database, which chats and cards do without
    from bot.desk.desk import Desk

# They bring their own commands and buttons.
SUBJECTS: tuple[Subject, ...] = (
    answers.SUBJECT,
    questions.SUBJECT,
    contacts.SUBJECT,
    devices.SUBJECT,
    digest.SUBJECT,
    manual.SUBJECT,
    history.SUBJECT,
    kb.SUBJECT,
    learning.SUBJECT,
    offered.SUBJECT,
    people.SUBJECT,
    personal.SUBJECT,
    plans.SUBJECT,
    proposals.SUBJECT,
    runs.SUBJECT,
    schedules.SUBJECT,
    screen.SUBJECT,
    sweeps.SUBJECT,
)

OLD, FORGED = "old", "forged"  # refused buttons: of something that is over or gone, and buttons that we never made
MOST_QUOTED = 300  # characters


class Conversation:
    """The conversation with people in a channel.

    bot_name: the name that commands in groups may have after the @. files: the channel's documents.
    show: says something at once, while a request is still under way.
    """

    def __init__(
        self,
        desk: Desk,
        *,
        bot_name: str = "",
        clock: Callable[[], datetime] = utc_now,
        files: Files | None = None,
        show: Show | None = None,
    ) -> None:
        self.desk = desk
        self._files = files
        self._show = show
        self._clock = clock
        self.bot_name = bot_name
        self.start_link = ""  # set by the channel once it knows its own address
        self._commands: dict[str, Callable[[Turn], Awaitable[Said]]] = {
            **{name: handler for subject in SUBJECTS for name, handler in subject.commands.items()},
            "start": self._hello,
        }
        self._buttons = {name: handler for subject in SUBJECTS for name, handler in subject.buttons.items()}

    async def handle(self, incoming: Incoming, actor: Actor | None = None) -> Said:
        """Return the reply to a message. Our own errors become an answer; any other one is raised.

        actor: the writer, if the channel knows that already.
        """
        actor = actor or await self.desk.people.actor(incoming.chat.channel, incoming.person.user_id)
        if actor is None:
            return await self._stranger(incoming)
        actor = replace(actor, chat=incoming.chat, request=incoming.key, said_at=incoming.received_at)
        turn = Turn(
            incoming,
            actor,
            texts(actor.lang),
            self.desk,
            self._clock(),
            files=self._files,
            show=self._show,
            start_link=self.start_link,
        )
        try:
            if incoming.kind == "button":
                if incoming.action.partition(":")[0] not in runs.NEVER_TOO_MUCH:
                    await self.desk.people.admit(actor)
                return offered.for_person(await self._in_its_place(turn, await self._button(turn)), actor)
            return offered.for_person(await self._written(turn), actor)
        except PhonedeskError as error:
            said = turn.texts.error(error)
            if isinstance(error, StillLimited) and incoming.kind != "button":
                return Said()
            if incoming.kind == "button":
                if isinstance(error, BadRequest | NotFound):
                    await self._turn_away(incoming, OLD)
                return Said(toast=said, alert=True)
            title, _, more = said.partition("\n")
            return turn.tell(title, *([more] if more else []))

    async def _in_its_place(self, turn: Turn, said: Said) -> Said:
        """Return the reply, but as a new message if the card has no such button: then the tap was forged."""
        if turn.incoming.is_shown() or not any(message.replaces for message in said.messages):
            return said
        await self._turn_away(turn.incoming, FORGED)
        new = tuple(replace(message, replaces=None, reply_to=turn.incoming.message_id) for message in said.messages)
        return replace(said, messages=new)

    # Strangers --------------------------------------------------------------------------------------------------------

    async def _stranger(self, incoming: Incoming) -> Said:
        words = texts(language_of(incoming.person.lang))
        if incoming.kind == "button":
            await self._turn_away(incoming, "button")
            return Said(toast=words.get("access.stranger"), alert=True)
        command = commands.parse(incoming.text, bot_name=self.bot_name)
        if isinstance(command, ForAnotherBot):
            return Said()
        if isinstance(command, Command) and command.name == "start" and command.rest:
            if incoming.chat.kind != "private":
                await self._turn_away(incoming, "start")
                return self._to_stranger(incoming, words.get("access.private_only"))
            return await self._pair(incoming, words, command.rest)
        if incoming.chat.kind == "group" and not commands.is_slashed(incoming.text):
            return Said()  # people talk to each other there
        await self._turn_away(incoming, command.name if isinstance(command, Command) else "text")
        once = f"stranger:{incoming.chat.channel}:{incoming.person.user_id}"
        return self._to_stranger(incoming, words.get("access.stranger"), once=once)

    async def _turn_away(self, incoming: Incoming, what: str) -> None:
        person = incoming.person
        await self.desk.people.turned_away(incoming.chat.channel, person.user_id, person.name, what)

    async def _pair(self, incoming: Incoming, words: Texts, code: str) -> Said:
        person = incoming.person
        try:
            actor = await self.desk.people.pair(
                incoming.chat.channel, person.user_id, person.name, words.lang, commands.unquoted(code)
            )
        except StillLimited:
            return Said()
        except PhonedeskError as error:
            return self._to_stranger(incoming, words.error(error))
        role = words.get(f"role.{actor.role.value}")
        paired = words.get("access.paired", name=actor.name, role=role)
        card = Card(paired, manual.welcome(words, actor.role))
        return Said((Outgoing(card, incoming.chat, incoming.message_id),))

    @staticmethod
    def _to_stranger(incoming: Incoming, text: str, *, once: str = "") -> Said:
        return Said((Outgoing(Card(text), incoming.chat, incoming.message_id, once=once),))

    # Written messages -------------------------------------------------------------------------------------------------

    async def _written(self, turn: Turn) -> Said:
        incoming = turn.incoming
        command = commands.parse(incoming.text, bot_name=self.bot_name)
        if isinstance(command, ForAnotherBot):
            return Said()
        slashed = commands.is_slashed(incoming.text)
        if incoming.chat.kind == "group" and incoming.kind == "text" and not slashed:
            return Said()  # people talk to each other there
        if not (isinstance(command, Command) and command.name in runs.NEVER_TOO_MUCH):
            await self.desk.people.admit(turn.actor)
        if incoming.kind == "reply" and incoming.reply_to is not None and not slashed:
            # A card whose message was not remembered (killed between sending and storing) names its question itself.
            question_id = await self.desk.questions.at(incoming.reply_to) or incoming.reply_question
            if question_id:
                own = await self.desk.questions.asks_for_words(incoming.reply_to)
                return await self._answer_in_words(turn, question_id, own=own)
            if incoming.chat.kind == "group" and command is None and incoming.text.strip() and not incoming.document:
                return turn.tell(turn.texts.get("question.not_a_question"))
        if incoming.document is not None and command is None:
            # In private it is for the knowledge base; it does not answer a question.
            return await kb.document(turn, incoming.document) if incoming.chat.kind == "private" else Said()
        if incoming.other and not incoming.text.strip():
            return self._wordless(turn)
        if isinstance(command, Unknown):
            return self._unknown(turn, command)
        if isinstance(command, Command):
            return await self._commands[command.name](replace(turn, rest=command.rest))
        if incoming.chat.kind != "private" or not incoming.text.strip():
            return Said()
        return await plans.go_on(turn) or await offered.offer(turn)

    @staticmethod
    def _wordless(turn: Turn) -> Said:
        """Say in private that we take only text. In a group a voice message or picture may be for somebody else."""
        if turn.chat.kind != "private":
            return Said()
        once = f"wordless:{turn.chat.key}:{turn.incoming.album}" if turn.incoming.album else ""
        hint = cards.plain(turn.texts.get("common.only_text"), turn.texts.get("common.only_text_how"))
        return Said((Outgoing(hint, turn.chat, turn.incoming.message_id, once=once),))

    @staticmethod
    def _unknown(turn: Turn, command: Unknown) -> Said:
        if command.nearest:
            return turn.tell(turn.texts.get("help.nearest", command=command.written, nearest=command.nearest))
        return turn.tell(turn.texts.get("help.unknown", command=command.written), turn.texts.get("help.see"))

    # Commands ---------------------------------------------------------------------------------------------------------

    async def _hello(self, turn: Turn) -> Said:
        hello = turn.texts.get("access.hello", name=turn.actor.name)
        already = (Line(turn.texts.get("access.already")),) if turn.rest else ()
        return turn.say(Card(hello, (*already, *manual.welcome(turn.texts, turn.actor.role))))

    # Questions --------------------------------------------------------------------------------------------------------

    async def _answer_in_words(self, turn: Turn, question_id: str, *, own: bool) -> Said:
        """Answer a question with text. ``own``: own words were asked for, so it is not the number of a choice."""
        view = await self.desk.questions.to_answer(turn.actor, question_id)
        if view is None:
            return turn.tell(turn.texts.get("question.unknown"))
        if not turn.incoming.text.strip():
            return self._no_words(turn, view)
        given = read_answer(view.question, turn.incoming.text, own=own)
        if given is None:
            return turn.tell(no_answer(turn.texts, view, turn.incoming.text))
        if to_confirm(view.question, given):
            return offered.confirm(turn, view)
        result = await self.desk.questions.answer(turn.actor, question_id, choice=given.choice, text=given.text)
        told_of = turn.tell(told(turn, view, result))
        return replace(told_of, messages=(*told_of.messages, *await proposals.offer(turn, view, result)))

    @staticmethod
    def _no_words(turn: Turn, view: QuestionView) -> Said:
        """Say that a voice message or picture cannot answer a question, which stays open; for an album only once."""
        album = turn.incoming.album
        if not view.open and album:
            return Said()  # its first picture had the words
        said = turn.texts.get("question.only_text")
        if not view.open:
            said = verdict(turn.texts, view, AnswerOutcome("late", view.by, view.answer), me=turn.actor.name)
        once = f"wordless:{turn.chat.key}:{album}" if album else ""
        return Said((Outgoing(cards.plain(said), turn.chat, turn.incoming.message_id, once=once),))

    # Buttons ----------------------------------------------------------------------------------------------------------

    async def _button(self, turn: Turn) -> Said:
        words = turn.texts
        name, _, value = turn.incoming.action.partition(":")
        if name == "q":
            return await self._chosen_button(turn, value)
        if name == "own":
            return await self._own_words(turn, value)
        if name in self._buttons:
            return await self._buttons[name](turn, value)
        await self._turn_away(turn.incoming, FORGED)
        return Said(toast=words.get("common.no_button"))

    async def _chosen_button(self, turn: Turn, value: str) -> Said:
        question_id, _, number = value.rpartition(":")
        view = await self.desk.questions.get(question_id)
        if view is None:
            await self._turn_away(turn.incoming, OLD)
            return Said(toast=turn.texts.get("question.unknown"), alert=True)
        if not number.isdecimal() or int(number[:9]) >= len(view.question.choices):
            await self._turn_away(turn.incoming, FORGED)
            return Said(toast=turn.texts.get("common.no_button"), alert=True)
        choice = view.question.choices[int(number)].value
        result = await self.desk.questions.answer(turn.actor, question_id, choice=choice)
        more = await proposals.offer(turn, view, result)
        return Said(more, toast=told(turn, view, result), alert=result.state != "accepted")

    async def _own_words(self, turn: Turn, question_id: str) -> Said:
        """Open the person's input for an answer in their own words.

        The message that does so is stored as a card of the question, so that a reply to it also answers after a
        restart.
        """
        words, incoming = turn.texts, turn.incoming
        view = await self.desk.questions.to_answer(turn.actor, question_id)
        if view is None:
            return Said(toast=words.get("question.unknown"), alert=True)
        if not view.open:
            over = verdict(words, view, AnswerOutcome("late", view.by, view.answer), me=turn.actor.name)
            return Said(toast=over, alert=True)
        quoted = Line(_quoted(view.question.text), "", "quote")
        card = Card(words.get("question.own_words"), (quoted,), question=question_id)
        shows = f"question:{question_id}@own:{incoming.key}"
        asking = Outgoing(card, turn.chat, incoming.message_id, shows=shows, asks=incoming.person)
        asking = replace(asking, placeholder=words.get("question.own_placeholder"))
        return Said((asking,), toast=words.get("question.hint_own"))


def _quoted(text: str) -> str:
    """Return a question's text cut short, because the message that opens an input must stay a single one."""
    return text if len(text) <= MOST_QUOTED else text[: MOST_QUOTED - 1].rstrip() + "…"
