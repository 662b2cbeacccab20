"""The demo in a terminal: a row for each thing that customer, operator and bot say, so that it fits one screen.

Everything is the product as it is; the operator's part is played through the local Telegram simulator. At the end the
same desk can be looked at in the console.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from agent_core.loop.questions import SKIP, candidate
from agent_core.session import Answer
from agent_core.texts import Lang
from bot.app.server import Server, server
from bot.channels.chat.answering import no_answer, read_answer, says_yes, to_confirm
from bot.channels.chat.texts import Texts
from bot.channels.cli.terminal.console import Console, Text
from bot.channels.cli.terminal.language import spoken_language, texts
from bot.desk.actors import Actor, Role
from bot.desk.views import QuestionView
from bot.tools.demo.pictures import leave_pictures
from bot.tools.demo.world import World, demo_world
from knowledge.embedded import EmbeddedKnowledge
from knowledge.entries import sample_entries
from scheduler.times import parse_schedule
from simulator.telegram import FakeTelegram, FakeUser
from simulator.telegram.world import Button, Message
from storage.people import TERMINAL

OPERATOR = 10001
CONTACT = "11"
OTHER = "110"
STEP_SECONDS = 90.0  # the longest wait for one event of the show
TICK = "* * * * *"
# What the customers of the shown world write; the shipped world is Chinese.
WORLDS: dict[Lang, Path | None] = {"zh": None, "en": Path(__file__).with_name("shop.en.toml")}

ReadLine = Callable[[], Awaitable[str | None]]


class NotShown(Exception):
    """Something that the demo waits for did not happen."""


@dataclass
class DemoStage:
    """The shop, the people in it, and their views: a line for each event."""

    world: World
    telegram: FakeTelegram
    running: Server
    console: Console
    words: Texts
    read: ReadLine | None
    user: FakeUser

    def say(self, text: str, style: str = "") -> None:
        """Print one row; a longer text is cut."""
        self.console.print(Text(text, style=style), no_wrap=True, overflow="ellipsis")

    async def operator(self, text: str) -> None:
        self.say(self.words.get("demo.operator", text=text), "cyan")
        await self.user.send(text)

    async def until(self, met: Callable[[], bool], what: str, seconds: float = STEP_SECONDS, *, idle: str = "") -> None:
        """Show the active run until ``met``, or ``idle`` without one.

        Raises NotShown if that takes too long.
        """
        idle = idle or self.words.get("demo.wait")
        with self.console.status(idle) as status:
            try:
                async with asyncio.timeout(seconds):
                    while not met():
                        status.update(self.at_work or idle)
                        await asyncio.sleep(0.1)
            except TimeoutError:
                raise NotShown(what) from None

    @property
    def at_work(self) -> str:
        """The head of the card of the active run, with its present activity; "" without one."""
        going = [message for message in self.user.chat.from_bot if _is_going(message)]
        if not going:
            return ""
        said = going[-1].words.splitlines()
        return " · ".join(part for part in said[:1] + said[4:7] if part)

    @property
    def outcome(self) -> str:
        """The outcome of the newest run, as its card says it."""
        ends = ("succeeded", "failed", "stopped", "waiting")
        states = {self.words.get(f"card.{state}") for state in ends}
        states |= {self.words.get(f"scheduled_reply.{state}", contact=OTHER) for state in ends}
        heads = (message.words.partition("\n")[0] for message in reversed(self.user.chat.from_bot))
        return next((head for head in heads if head in states), "")

    @property
    def question(self) -> Message | None:
        """The newest open question card."""
        cards = [m for m in self.user.chat.from_bot if any(b.data.startswith("q:") for b in _buttons(m))]
        return cards[-1] if cards else None

    def sent(self, contact: str = CONTACT) -> list[str]:
        """Return the messages that the contact really got, in order."""
        return self.world.phone.report()["sent"].get(contact, [])


def _buttons(message: Message) -> list[Button]:
    return [button for row in message.content.buttons for button in row]


def _is_going(message: Message) -> bool:
    """Tell whether this is the card of a run that is not over: it has a Stop button."""
    return any(button.data.startswith("stop:") for button in _buttons(message))


def _choices(card: Message) -> list[Button]:
    """Return the buttons of a question that answer it."""
    return [button for button in _buttons(card) if button.data.startswith("q:")]


@asynccontextmanager
async def stage(console: Console, scenario: Path | None, lang: Lang, read: ReadLine | None) -> AsyncIterator[DemoStage]:
    """Open the stage. People, customers and the sample shop speak ``lang``, unless ``scenario`` has other customers."""
    async with FakeTelegram() as telegram:
        bot = {"token": telegram.token, "api_base_url": telegram.url.removesuffix("/bot"), "mode": "polling"}
        shop = {"provider": "embedded", "sample": False}
        async with (
            demo_world(scenario or WORLDS[lang], lang=lang, telegram=bot, knowledge=shop) as world,
            server(world.settings) as running,
        ):
            await EmbeddedKnowledge(running.desk.context.db).add_all(sample_entries(lang))
            words = texts(lang)
            user = telegram.user(OPERATOR, words.get("demo.person"), lang)
            yield DemoStage(world, telegram, running, console, words, read, user)


async def show(
    console: Console,
    folder: Path,
    *,
    scenario: Path | None = None,
    lang: Lang | None = None,
    read: ReadLine | None,
    tick: str = TICK,
) -> bool:
    """Show the whole demo; return whether everything happened. Leaves pictures in ``folder``.

    A cancelled demo leaves none, and says what became of its data.

    read: returns the operator's line. None: nobody is there; the demo answers by itself and offers no console.
    tick: the schedule of the third act, which is left out if it is "".
    """
    lang = lang or spoken_language()
    words, asked = texts(lang), False
    try:
        async with AsyncExitStack() as stack:
            with console.status(words.get("demo.starting")):
                on = await stack.enter_async_context(stage(console, scenario, lang, read))
            try:
                done = await _acts(on, tick)
            except asyncio.CancelledError:
                asked = on.question is not None
                raise
            await leave_pictures(on.running.desk.context.db, on.world.phone, folder)
            if done:
                await _end(on, folder)
                for line in on.words.get("demo.next_step").splitlines():
                    on.say(line)
            return done
    except asyncio.CancelledError:
        console.print(Text(words.get("demo.stopped_asked" if asked else "demo.stopped")))
        raise


async def _acts(on: DemoStage, tick: str) -> bool:
    on.say(on.words.get("demo.welcome" if on.read is not None else "demo.welcome_alone"), "bold")
    try:
        await _pair(on)
        await _first(on)
        await _second(on)
        if tick:
            await third_act(on, tick)
    except NotShown as missing:
        on.say(on.words.get("demo.not_done", what=missing), "bold red")
        return False
    return True


async def _pair(on: DemoStage) -> None:
    await on.user.send(f"/start {await on.running.desk.people.first_code()}")
    await on.until(lambda: bool(on.user.chat.from_bot), "/start")


async def _first(on: DemoStage) -> None:
    on.say(on.words.get("demo.first"), "bold magenta")
    await _customer_and_run(on, None)
    await _answer_is_seen(on, 1)


async def _second(on: DemoStage) -> None:
    on.say(on.words.get("demo.second"), "bold magenta")
    before = on.question
    await _customer_and_run(on, on.words.get("demo.unknown_question"))
    await on.until(lambda: on.question is not None and on.question is not before, "question")
    card = on.question
    if card is None:
        raise NotShown("question")
    on.say(on.words.get("demo.bot", text=card.words.partition("\n")[0]), "yellow")
    view = await _view(on, card)
    for number, choice in enumerate(view.question.choices, start=1):
        if choice.value == SKIP:  # the row below shows it, with how to answer: all must fit a screen
            continue
        found = candidate(view.question, choice.value)
        answer = f" → {found['text']}" if found else ""
        on.say(f"    [{number}] {choice.in_words(on.words.lang)}{answer}", "yellow")
    await _answer(on, card, view)


async def _view(on: DemoStage, card: Message) -> QuestionView:
    """Return the question that a card shows."""
    view = await on.running.desk.questions.get(_choices(card)[0].data.split(":")[1])
    if view is None:
        raise NotShown("question")
    return view


async def _read(on: DemoStage, view: QuestionView) -> Answer:
    """Read the person's answer as every other terminal does; Enter skips.

    If it is not an answer, the person is told why; if it looks like a command, they are asked to confirm it.
    """
    if on.read is None:
        text = on.words.get("demo.own_answer")
        on.say(on.words.get("demo.by_itself", text=text), "cyan")
        return Answer(text=text)
    skip = [choice.value for choice in view.question.choices].index(SKIP) + 1
    on.say(on.words.get("demo.ask", skip=skip), "yellow")
    while said := (await on.read() or "").strip():
        answer = read_answer(view.question, said)
        if answer is None:
            on.say(f"  {no_answer(on.words, view, said)}", "yellow")
        elif not to_confirm(view.question, answer):
            return answer
        else:
            on.say(f"  {on.words.get('question.like_a_command')}", "yellow")
            on.say(f"  {on.words.get('question.confirm_typed')}", "yellow")
            if says_yes(await on.read() or ""):
                return answer
            on.say(on.words.get("demo.ask", skip=skip), "yellow")
    on.say(on.words.get("demo.skipped"), "dim")
    return Answer(choice=SKIP)


async def _answer(on: DemoStage, card: Message, view: QuestionView) -> None:
    answer, sent = await _read(on, view), len(on.sent())
    if answer.text:
        await on.user.send(answer.text, reply_to=card)
        if to_confirm(view.question, answer):
            await _confirm(on)
        await _answer_is_seen(on, sent + 1)
        return
    number = [choice.value for choice in view.question.choices].index(answer.choice)
    await on.user.tap(card, _choices(card)[number].data)
    await _over(on)
    if len(on.sent()) > sent:
        await _answer_is_seen(on, sent + 1)
    else:
        on.say(on.words.get("demo.bot", text=on.outcome), "bold green")


async def _confirm(on: DemoStage) -> None:
    """Confirm to the bot, which also asks whether the answer is for the customer: the person has just said so."""

    def found() -> tuple[Message, Button] | None:
        cards = reversed(on.user.chat.from_bot)
        return next(((m, b) for m in cards for b in _buttons(m) if b.data.startswith("mine:")), None)

    await on.until(lambda: found() is not None, "confirm")
    if (offered := found()) is not None:
        await on.user.tap(offered[0], offered[1].data)


async def third_act(on: DemoStage, tick: str) -> None:
    """Show a schedule: it is added, its tick starts a run, and it is removed again."""
    on.say(on.words.get("demo.third"), "bold magenta")
    text = on.words.get("demo.cron_question")
    # Another customer: the question that the operator skipped in the second act is still open in the first one's chat.
    on.say(on.words.get("demo.customer", contact=OTHER, text=text), "green")
    on.world.phone.receive(OTHER, text)
    sent, messages = len(on.sent(OTHER)), len(on.user.chat.from_bot)
    await on.operator(f'/schedule add "{tick}" {on.words.get("demo.cron_task")}')
    await on.until(lambda: len(on.user.chat.from_bot) > messages, "/schedule")
    settings = on.world.settings
    coming = parse_schedule(tick, settings.timezone).next(datetime.now(UTC))
    idle = ""
    if coming:
        time = coming[0].astimezone(ZoneInfo(settings.timezone)).strftime("%H:%M:%S")
        idle = on.words.get("demo.next", time=time)
        if not on.console.is_terminal:  # there it stands beside the spinner
            on.say(idle, "dim")
    await on.until(lambda: len(on.sent(OTHER)) > sent, "tick", idle=idle.strip())
    await _answer_is_seen(on, sent + 1, OTHER)
    messages = len(on.user.chat.from_bot)
    await on.user.send("/schedule remove 1")
    await on.until(lambda: len(on.user.chat.from_bot) > messages, "/schedule remove")


async def _end(on: DemoStage, folder: Path) -> None:
    """Let the person look at the desk in a browser, until they press Enter."""
    if on.read is None:
        on.say(on.words.get("demo.done", folder=folder), "bold green")
        return
    owner = Actor(TERMINAL, TERMINAL, TERMINAL, TERMINAL, on.words.lang, Role.OWNER)
    on.say(on.words.get("demo.console", folder=folder), "bold green")
    # A browser keeps one cookie for all ports of a name: a session with the owner's real desk stays.
    link = (await on.running.desk.console.link(owner)).replace("//127.0.0.1:", "//localhost:", 1)
    on.console.print(Text(link, style="cyan"), soft_wrap=True)
    await on.read()


async def _customer_and_run(on: DemoStage, text: str | None) -> None:
    """Have the customer write (or show what the scenario has), and the operator ask for the answer."""
    if text is None:
        text = on.world.phone.report()["chats"][CONTACT][-1]["text"]
    else:
        on.world.phone.receive(CONTACT, text)
    on.say(on.words.get("demo.customer", contact=CONTACT, text=text), "green")
    await on.operator(f"/run {on.words.get('demo.task')}")


async def _answer_is_seen(on: DemoStage, count: int, contact: str = CONTACT) -> None:
    await on.until(lambda: len(on.sent(contact)) >= count, "answer")
    await _over(on)
    on.say(on.words.get("demo.answered", outcome=on.outcome, contact=contact, text=on.sent(contact)[-1]), "bold green")


async def _over(on: DemoStage) -> None:
    """Wait until every run's card is closed."""
    await on.until(lambda: not any(map(_is_going, on.user.chat.from_bot)), "outcome")
