"""One incoming message in, the desk asked, what is to be said out. Knows no channel."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime

from agent_core.errors import PhonedeskError
from bot.chat import cards, commands, helping
from bot.chat.answering import read_answer, verdict
from bot.chat.cards import Button, Card, Line
from bot.chat.commands import Command, ForAnotherBot, Unknown
from bot.chat.subjects import SUBJECTS
from bot.chat.texts import Texts, language_of, texts
from bot.chat.turn import Attached, Files, Incoming, Outgoing, Person, Said, Turn, utc_now
from bot.desk.actors import AccessDenied, BadRequest, NotFound, Role, StillLimited, role_denied
from bot.desk.port import AnswerResult, Desk, RunView
from bot.desk.schedules_port import ScheduleView

__all__ = ["Attached", "Conversation", "Files", "Incoming", "Outgoing", "Person", "Said", "utc_now"]

OLD, FORGED = "old", "forged"  # buttons that are refused: of what is over or gone, and such as we never made


class Conversation:
    """``bot_name``: what commands in groups may be addressed to (without the @). ``files``: the channel's documents."""

    def __init__(
        self,
        desk: Desk,
        *,
        bot_name: str = "",
        clock: Callable[[], datetime] = utc_now,
        files: Files | None = None,
    ) -> None:
        self.desk = desk
        self._files = files
        self._clock = clock
        self.bot_name = bot_name
        self.start_link = ""  # the channel sets it once it knows its own address
        self._commands: dict[str, Callable[[Turn], Awaitable[Said]]] = {
            **{name: handler for subject in SUBJECTS for name, handler in subject.commands.items()},
            "start": self._hello,
            "run": self._run,
            "stop": self._stop,
            "status": self._status,
            "devices": self._devices,
            "schedule": self._schedule,
        }
        self._buttons = {name: handler for subject in SUBJECTS for name, handler in subject.buttons.items()}

    async def handle(self, incoming: Incoming) -> Said:
        """What to say to it. Errors of the product are said; any other is raised."""
        actor = await self.desk.actor(incoming.chat.channel, incoming.person.user_id)
        if actor is None:
            return await self._stranger(incoming)
        actor = replace(actor, chat=incoming.chat, request=incoming.key)
        turn = Turn(
            incoming, actor, texts(actor.lang), self.desk, self._clock(), files=self._files, start_link=self.start_link
        )
        try:
            if incoming.kind == "button":
                await self.desk.admit(actor)
                return await self._in_its_place(turn, await self._button(turn))
            return await self._written(turn)
        except StillLimited:
            return Said()
        except PhonedeskError as error:
            said = turn.texts.error(error)
            if incoming.kind == "button":
                if isinstance(error, BadRequest | NotFound):
                    await self._turn_away(incoming, OLD)
                return Said(toast=said, alert=True)
            title, _, more = said.partition("\n")
            return turn.tell(title, *([more] if more else []))

    async def _in_its_place(self, turn: Turn, said: Said) -> Said:
        """What is said, but never in the place of a card that has no such button: that tap was made up."""
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
        if incoming.chat.kind == "group" and not _slashed(incoming):
            return Said()  # people talk to each other there
        await self._turn_away(incoming, command.name if isinstance(command, Command) else "text")
        once = f"stranger:{incoming.chat.channel}:{incoming.person.user_id}"
        return self._to_stranger(incoming, words.get("access.stranger"), once=once)

    async def _turn_away(self, incoming: Incoming, what: str) -> None:
        person = incoming.person
        await self.desk.turned_away(incoming.chat.channel, person.user_id, person.name, what)

    async def _pair(self, incoming: Incoming, words: Texts, code: str) -> Said:
        person = incoming.person
        try:
            actor = await self.desk.pair(
                incoming.chat.channel, person.user_id, person.name, words.lang, commands.unquoted(code)
            )
        except StillLimited:
            return Said()
        except AccessDenied:
            return self._to_stranger(incoming, words.get("access.wrong_code"))
        except PhonedeskError as error:
            return self._to_stranger(incoming, words.error(error))
        role = words.get(f"role.{actor.role.value}")
        paired = words.get("access.paired", name=actor.name, role=role)
        card = Card(paired, helping.lines(words, actor.role))
        return Said((Outgoing(card, incoming.chat, incoming.message_id),))

    @staticmethod
    def _to_stranger(incoming: Incoming, text: str, *, once: str = "") -> Said:
        return Said((Outgoing(Card(text), incoming.chat, incoming.message_id, once=once),))

    # What is written --------------------------------------------------------------------------------------------------

    async def _written(self, turn: Turn) -> Said:
        incoming = turn.incoming
        command = commands.parse(incoming.text, bot_name=self.bot_name)
        if isinstance(command, ForAnotherBot):
            return Said()
        slashed = _slashed(incoming)
        if incoming.chat.kind == "group" and incoming.kind == "text" and not slashed:
            return Said()  # people talk to each other there
        await self.desk.admit(turn.actor)
        if incoming.document is not None and command is None:
            return await self._document(turn)
        if incoming.kind == "reply" and incoming.reply_to is not None and not slashed:
            # A card whose message was not remembered (killed between sending and storing) names its question itself.
            question_id = await self.desk.question_at(incoming.reply_to) or incoming.reply_question
            if question_id:
                return await self._answer_in_words(turn, question_id)
            if incoming.chat.kind == "group" and command is None:
                return turn.tell(turn.texts.get("question.not_a_question"))
        if isinstance(command, Unknown):
            return self._unknown(turn, command)
        if isinstance(command, Command):
            return await self._commands[command.name](replace(turn, rest=command.rest))
        return self._offer(turn) if incoming.chat.kind == "private" and incoming.text.strip() else Said()

    @staticmethod
    async def _document(turn: Turn) -> Said:
        """A document without a command: whoever of the subjects takes one; never an answer to a question."""
        handler = next((subject.document for subject in SUBJECTS if subject.document is not None), None)
        return await handler(turn) if handler is not None and turn.chat.kind == "private" else Said()

    def _offer(self, turn: Turn) -> Said:
        """Free text is offered as a task. The text itself is read again from the message that this replies to."""
        words = turn.texts
        buttons = ((Button("go", words.get("offer.yes"), "success"), Button("no", words.get("offer.no"))),)
        return turn.say(Card(words.get("offer.title"), (Line(turn.incoming.text.strip(), "", "quote"),), None, buttons))

    @staticmethod
    def _unknown(turn: Turn, command: Unknown) -> Said:
        if command.nearest:
            return turn.tell(turn.texts.get("help.nearest", command=command.written, nearest=command.nearest))
        return turn.tell(
            turn.texts.get("help.unknown", command=command.written), turn.texts.get("command.help") + ": /help"
        )

    # Commands ---------------------------------------------------------------------------------------------------------

    async def _hello(self, turn: Turn) -> Said:
        hello = turn.texts.get("access.hello", name=turn.actor.name)
        already = (Line(turn.texts.get("access.already")),) if turn.rest else ()  # a code stays good for somebody else
        return turn.say(Card(hello, (*already, *helping.lines(turn.texts, turn.actor.role))))

    async def _run(self, turn: Turn) -> Said:
        request = commands.read_run(turn.rest)
        if not request.task:
            return turn.tell(turn.texts.get("usage.run"))
        run = await self.desk.start_run(
            turn.actor,
            request.task,
            chat=turn.chat,
            serial=request.phone or turn.incoming.phone or None,
            rules=request.rules,
            key=turn.incoming.key,
        )
        return Said((self._card_of(turn, run),))

    def _card_of(self, turn: Turn, run: RunView) -> Outgoing:
        """The run's card as it begins; the channel keeps it up to date from the run's events."""
        card = cards.run_card(run, turn.texts, now=turn.now)
        return Outgoing(card, turn.chat, turn.incoming.message_id, shows=f"run:{run.id}")

    async def _stop(self, turn: Turn) -> Said:
        named = turn.rest.strip()
        if not named and turn.incoming.phone and not (named := await turn.run_here()):
            return turn.tell(turn.texts.get("run.nothing_to_stop"))
        run = await self.desk.stop_run(turn.actor, named or None)
        return turn.tell(turn.texts.get("run.stopping" if run else "run.nothing_to_stop"), *([run.task] if run else []))

    async def _status(self, turn: Turn) -> Said:
        return turn.say(cards.status_card(await self.desk.status(turn.actor), turn.texts))

    async def _devices(self, turn: Turn) -> Said:
        return turn.say(cards.devices_card(await self.desk.status(turn.actor), turn.texts))

    async def _schedule(self, turn: Turn) -> Said:
        words, actor = turn.texts, turn.actor
        request = commands.read_schedule(turn.rest)
        if request is None:
            adding = turn.rest.strip().partition(" ")[0].lower() not in {"pause", "resume", "remove", "delete"}
            return turn.tell(words.get("usage.schedule" if adding else "usage.schedule_id"))
        if request.verb == "list":
            return self._schedules(turn, list(await self.desk.list_schedules(actor)))
        if request.verb == "add":
            done = await self.desk.add_schedule(
                actor,
                request.expression,
                request.task,
                chat=turn.chat,
                serial=turn.incoming.phone,
                rules=request.rules,
                key=turn.incoming.key,
            )
            said = "schedule.added"
        else:
            change, said = {
                "pause": (self.desk.pause_schedule, "schedule.paused"),
                "resume": (self.desk.resume_schedule, "schedule.resumed"),
                "remove": (self.desk.remove_schedule, "schedule.removed"),
            }[request.verb]
            done = await change(actor, request.schedule_id)
        return turn.say(Card(words.get(said, id=done.id), tuple(cards.schedule_lines(done, words))))

    @staticmethod
    def _schedules(turn: Turn, schedules: list[ScheduleView]) -> Said:
        if not schedules:
            return turn.tell(turn.texts.get("schedule.empty"), turn.texts.get("usage.schedule"))
        lines = []
        for schedule in schedules:
            first, *others = cards.schedule_lines(schedule, turn.texts)
            lines += [Line(first.text, f"#{schedule.id}", first.kind), *others]
        return turn.say(Card(turn.texts.get("schedule.title"), tuple(lines)))

    # Questions --------------------------------------------------------------------------------------------------------

    async def _answer_in_words(self, turn: Turn, question_id: str) -> Said:
        view = await self.desk.question_to_answer(turn.actor, question_id)
        if view is None:
            return turn.tell(turn.texts.get("question.unknown"))
        given = read_answer(view.question, turn.incoming.text)
        if given is None:
            labels = " / ".join(cards.choice_label(view, n) for n in range(len(view.question.choices)))
            key = "question.own_or_choice" if view.question.free_text else "question.not_a_choice"
            return turn.tell(turn.texts.get(key, choices=labels))
        result = await self.desk.answer(turn.actor, question_id, choice=given.choice, text=given.text)
        return turn.tell(verdict(turn.texts, view, result))

    # Buttons ----------------------------------------------------------------------------------------------------------

    async def _button(self, turn: Turn) -> Said:
        words = turn.texts
        name, _, value = turn.incoming.action.partition(":")
        if name == "stop":
            return await self._stop_button(turn, value)
        if name == "q":
            return await self._chosen_button(turn, value)
        if name == "own":
            return await self._own_words(turn, value)
        if name in {"go", "no"}:
            return await self._offered(turn, accepted=name == "go")
        if name in self._buttons:
            return await self._buttons[name](turn, value)
        await self._turn_away(turn.incoming, FORGED)
        return Said(toast=words.get("question.unknown"))

    async def _stop_button(self, turn: Turn, run_id: str) -> Said:
        words = turn.texts
        run = await self.desk.stop_run(turn.actor, run_id)
        if run is None:
            await self._turn_away(turn.incoming, OLD)
        seen = run or await self.desk.run(run_id)
        if seen is not None and seen.stopped_by not in {"", turn.actor.name}:
            return Said(toast=words.get("run.stopped_before", by=seen.stopped_by))
        return Said(toast=words.get("run.stopping" if run else "run.nothing_to_stop"))

    async def _chosen_button(self, turn: Turn, value: str) -> Said:
        question_id, _, number = value.rpartition(":")
        view = await self.desk.question(question_id)
        if view is None or not number.isdecimal() or int(number[:9]) >= len(view.question.choices):
            await self._turn_away(turn.incoming, OLD if view is None else FORGED)
            return Said(toast=turn.texts.get("question.unknown"), alert=True)
        choice = view.question.choices[int(number)].value
        result = await self.desk.answer(turn.actor, question_id, choice=choice)
        return Said(toast=verdict(turn.texts, view, result), alert=result.state != "accepted")

    async def _own_words(self, turn: Turn, question_id: str) -> Said:
        """How to answer in own words. In a group the person's input is opened for it."""
        words, incoming = turn.texts, turn.incoming
        hint = words.get("question.hint_own")
        view = await self.desk.question_to_answer(turn.actor, question_id)
        if view is None or turn.chat.kind != "group":
            return Said(toast=hint, alert=True)
        if not view.open:
            return Said(toast=verdict(words, view, AnswerResult("late", view.by, view.answer)), alert=True)
        card = Card(words.get("question.own_words"), (Line(view.question.text, "", "quote"),))
        shows = f"question:{question_id}@own:{incoming.key}"
        return Said((Outgoing(card, turn.chat, incoming.message_id, shows=shows, asks=incoming.person),), toast=hint)

    async def _offered(self, turn: Turn, *, accepted: bool) -> Said:
        words, incoming = turn.texts, turn.incoming
        if not turn.actor.role.covers(Role.OPERATOR):
            raise role_denied(turn.actor, Role.OPERATOR)
        if not incoming.is_shown():
            await self._turn_away(incoming, FORGED)
            return Said(toast=words.get("offer.lost"), alert=True)
        task = incoming.subject.strip()
        if accepted and not task:
            return Said(toast=words.get("offer.lost"), alert=True)
        said = words.get("offer.started" if accepted else "offer.declined")
        if accepted:
            # Two taps on one offer start one run.
            asked = incoming.reply_to.message_id if incoming.reply_to else incoming.key
            key = f"{turn.chat.channel}:{turn.chat.chat_id}:{asked}:go"
            run = await self.desk.start_run(turn.actor, task, chat=turn.chat, key=key)
            # The offer itself becomes the run's card.
            return Said((replace(self._card_of(turn, run), replaces=incoming.reply_to),), toast=said)
        card = Card(said, (Line(task, "", "quote"),) if task else ())
        return Said((Outgoing(card, turn.chat, replaces=incoming.reply_to),), toast=said)


def _slashed(incoming: Incoming) -> bool:
    return incoming.text.lstrip().startswith(("/", "／"))
