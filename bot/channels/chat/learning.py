"""Learning an app on a phone: the words for the terminal and the chat, and the chat's cards and buttons."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from PIL import Image

from agent_core.apps.learnt import PARTS, SendsBy
from agent_core.apps.profile import AppProfile, profiles
from agent_core.perception.marks import to_jpeg
from agent_core.perception.page_report import report
from agent_core.perception.readings import SendState, Side
from agent_core.texts import say
from bot.channels.chat.cards import Button, Card, Line
from bot.channels.chat.commands import unquoted
from bot.channels.chat.screen import marked, page_lines
from bot.channels.chat.texts import Texts
from bot.channels.chat.turn import Said, Subject, Turn

if TYPE_CHECKING:
    from agent_core.apps.learning import TriedInput
    from agent_core.apps.learnt import LearntApp
    from agent_core.perception.page_report import PageReport
    from bot.desk.learning import ShownChat, TriedChat

_LEARN = {"learn", "认识", "学习"}
_HERE = {"here", "这里", "当前"}
MESSAGES = 4  # how many of the newest messages have a button to correct their side


def found_line(page: PageReport, app: str, words: Texts) -> str:
    """Return the reading of a chat in one sentence: "title 11, 3 messages, the newest from the customer: …"."""
    newest = page.messages[-1] if page.messages else None
    title = page.title.text if page.title else ""
    if newest is None:
        said = words.get("learn.found_empty", app=app, title=title)
    else:
        kind = words.get(f"reading.kind_{newest.kind.value}")
        said = words.get(
            "learn.found",
            app=app,
            title=title,
            count=len(page.messages),
            who=words.get(f"learn.from_{newest.side.value}"),
            text=newest.text or kind,
        )
    return said + _input(page, words)


def _input(page: PageReport, words: Texts) -> str:
    if page.input is None:
        return words.get("learn.input_voice")
    state = page.send.state if page.send else SendState.ABSENT
    return words.get(f"learn.input_{state.value}")


def result_lines(learnt: LearntApp, app: str, tried: TriedInput, words: Texts) -> tuple[str, ...]:
    """Return the learnt facts, and what follows from them."""
    by = words.get(f"learn.by_{learnt.sends_by}")
    lines = [words.get("learn.kept", app=app, version=learnt.version, by=by)]
    if tried.sent is not None:
        lines.append(words.get("learn.arrived" if tried.sent else "learn.not_arrived"))
    lines.append(words.get(f"learn.tree_{learnt.tree}"))
    return tuple(lines)


# The chat -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LearnCommand:
    """``/devices learn [PHONE] APP NAME``. ``contact``: "" for the chat in front. ``app``: None if none is named."""

    serial: str = ""
    app: AppProfile | None = None
    contact: str = ""
    here: bool = False


def asked(rest: str) -> LearnCommand | None:
    """Return the request to learn; None if the words ask for something else."""
    verb, _, words = rest.strip().partition(" ")
    if verb.casefold() not in _LEARN:
        return None
    serial, app, name = "", None, words.strip()
    for _ in range(2):
        first, _, others = name.partition(" ")
        app = _app(first)
        if app is not None:
            name = others.strip()
            break
        serial, name = unquoted(first), others.strip()
    here = name.casefold() in _HERE
    return LearnCommand(serial, app, "" if here else unquoted(name), here)


def _app(word: str) -> AppProfile | None:
    called = word.casefold()
    return next((p for p in profiles() if called in {n.casefold() for n in (p.key, p.name, *p.aliases)}), None)


async def learn(turn: Turn, wanted: LearnCommand) -> Said:
    """Read a chat and show the reading, with buttons to confirm it."""
    words = turn.texts
    if wanted.app is None or not (wanted.contact or wanted.here):
        return turn.tell(words.get("learn.usage"))
    serial = wanted.serial or turn.incoming.phone
    key, shown = await turn.desk.learning.show(turn.actor, wanted.app, wanted.contact, serial=serial, here=wanted.here)
    return await _shown(turn, key, shown)


async def _shown(turn: Turn, key: str, shown: ShownChat) -> Said:
    words = turn.texts
    picture = await asyncio.to_thread(lambda: to_jpeg(shown_picture(shown, words)))
    lines = shown_lines(shown, words)
    buttons = (
        (Button(f"learn:{key} yes", words.get("learn.button_yes"), "success"),),
        (Button(f"learn:{key} send", words.get("learn.button_send")),),
        (Button(f"learn:{key} wrong", words.get("learn.button_wrong"), "danger"),),
    )
    return turn.say(
        Card(
            words.get("learn.title", app=shown.app.name_in(words.lang), contact=shown.contact), lines, picture, buttons
        )
    )


async def _button(turn: Turn, value: str) -> Said:
    """Handle a button: ``KEY yes``, ``KEY send``, ``KEY wrong``, or ``KEY`` and the control that sends."""
    key, _, wish = value.partition(" ")
    words, desk = turn.texts, turn.desk.learning
    if wish == "wrong":
        return _what_is_wrong(turn, key, await desk.shown(turn.actor, key))
    part = next((part for part in PARTS if wish == f"wrong {part}"), None)
    if part is not None:
        shown = await desk.correct(turn.actor, key, part)
        more = (
            (Button(f"learn:{key} wrong", words.get("learn.button_more_wrong")),),
            (Button(f"learn:{key} again", words.get("learn.button_again")),),
        )
        noted = words.get("learn.noted", what=say(words.lang, f"wrong.{part}"))
        return turn.say(Card(noted, (Line(words.get("learn.send_a_kit", app=shown.app.key)),), None, more))
    if wish == "again":
        before = await desk.shown(turn.actor, key)
        again = await desk.show(
            turn.actor, before.app, "" if before.here else before.contact, serial=before.serial, here=before.here
        )
        return await _shown(turn, *again)
    if wish in get_args(SendsBy):
        chosen = await desk.choose(turn.actor, key, _way(wish))
        return _result(turn, chosen.learnt, chosen) if chosen.learnt is not None else Said()
    if wish not in {"yes", "send"}:
        return Said()  # not one of our buttons
    done = await desk.try_reply(turn.actor, key, words.get("learn.text"), send=wish == "send")
    if done.learnt is not None:
        return _result(turn, done.learnt, done)
    ways: tuple[SendsBy, ...] = ("enter", "keyboard_key", "button")
    buttons = tuple((Button(f"learn:{key} {way}", _choice(way, done.tried, words)),) for way in ways)
    return turn.say(Card(words.get("learn.no_button"), (), None, buttons))


def _what_is_wrong(turn: Turn, key: str, shown: ShownChat) -> Said:
    """Ask which part was read wrongly, with a button for each part, and for the side of each of the newest messages."""
    words, page = turn.texts, report(shown.page.page)
    first = max(0, len(page.messages) - MESSAGES)
    sides = [
        (f"learn:{key} wrong sides", words.get(f"learn.is_{other_side(message.side).value}", number=number))
        for number, message in enumerate(page.messages[first:], first + 1)
    ]
    parts = [(f"learn:{key} wrong {part}", say(words.lang, f"wrong.{part}")) for part in PARTS if part != "sides"]
    buttons = tuple((Button(action, label),) for action, label in (*sides, *parts))
    return turn.say(Card(words.get("learn.what_is_wrong"), (), None, buttons))


def other_side(side: Side) -> Side:
    """Return the opposite side of the chat."""
    return Side.THEM if side is Side.ME else Side.ME


def shown_lines(shown: ShownChat, words: Texts) -> tuple[Line, ...]:
    """Return the reading of the chat, and of the list in which it was found."""
    page = report(shown.page.page, words.lang)
    app = shown.app.name_in(words.lang)
    lines = (Line(found_line(page, app, words)), *page_lines(page, app, words))
    if shown.listed is None:
        return lines
    return (*lines, *page_lines(report(shown.listed.page, words.lang), app, words))


def shown_picture(shown: ShownChat, words: Texts) -> Image.Image:
    """Return a picture of the chat with its marks; the list in which it was found is on its left."""
    chat = marked(shown.page.image, shown.page.page, words)
    if shown.listed is None:
        return chat
    rows = marked(shown.listed.image, shown.listed.page, words)
    both = Image.new("RGB", (rows.width + chat.width, max(rows.height, chat.height)))
    both.paste(rows, (0, 0))
    both.paste(chat, (rows.width, 0))
    return both


def _way(word: str) -> SendsBy:
    return next(way for way in get_args(SendsBy) if way == word)


def _choice(way: SendsBy, tried: TriedInput, words: Texts) -> str:
    return words.get(f"learn.by_{way}") + (words.get("learn.guess") if way == tried.sends_by else "")


def _result(turn: Turn, learnt: LearntApp, done: TriedChat) -> Said:
    first, *more = result_lines(learnt, done.shown.app.name_in(turn.texts.lang), done.tried, turn.texts)
    return turn.tell(first, *more)


SUBJECT = Subject(buttons={"learn": _button})
