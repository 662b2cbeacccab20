"""A person's own role and limits, their settings, and the link that logs them in to the console."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlsplit

from agent_core.proxies import is_loopback
from agent_core.texts import Listed
from bot.channels.chat import digest
from bot.channels.chat.cards import Button, Card, Line
from bot.channels.chat.texts import LANGUAGES, TERMINAL, Texts, texts
from bot.channels.chat.turn import Said, Subject, Turn

_LANGUAGES = {
    "zh": "zh",
    "中文": "zh",
    "汉语": "zh",
    "chinese": "zh",
    "en": "en",
    "英文": "en",
    "英语": "en",
    "english": "en",
}

_THINKING = frozenset({"thinking", "thoughts", "思考"})
_SWITCH = {"on": True, "开": True, "打开": True, "显示": True, "off": False, "关": False, "关闭": False, "隐藏": False}


async def whoami(turn: Turn) -> Said:
    """Handle ``/whoami``."""
    words, actor = turn.texts, turn.actor
    lines = [
        Line(words.get(f"role.{actor.role.value}"), words.get("whoami.role")),
        *([] if actor.user_id == TERMINAL else [Line(actor.user_id, words.get("whoami.user"), "code")]),
        Line(words.get("whoami.lang_name"), words.get("whoami.lang")),
        *limit_lines(words, await turn.desk.phones.names(actor.phones), actor.chats),
    ]
    if actor.chats and turn.chat.key not in actor.chats:
        lines.append(Line(words.get("whoami.not_here")))
    return turn.say(Card(words.get("whoami.title", name=words.person(actor.name)), tuple(lines)))


def limit_lines(words: Texts, phones: tuple[str, ...], chats: tuple[str, ...]) -> tuple[Line, ...]:
    """Return a person's limits, phones by their names; nothing if they are not limited."""
    lines = (
        Line(Listed(phones).joined(words.lang), words.get("people.phones")),
        Line(Listed(chat.partition(":")[2] for chat in chats).joined(words.lang), words.get("people.chats"), "code"),
    )
    return tuple(line for line in lines if line.text)


async def settings(turn: Turn) -> Said:
    """Handle ``/settings``, ``/settings [lang] LANGUAGE`` and ``/settings thinking on``."""
    first, *_, asked = turn.rest.lower().split() * 2 or [""] * 2
    if not asked:
        return turn.say(await _card(turn))
    if first in _THINKING:
        if asked not in _SWITCH:
            return turn.tell(turn.texts.get("settings.usage"))
        return turn.say(await _streamed(turn, wanted=_SWITCH[asked]))
    return turn.say(await _spoken(turn, _LANGUAGES.get(asked, asked)))


async def tapped(turn: Turn, value: str) -> Said:
    """Handle a button of the settings card."""
    name, _, chosen = value.rpartition(":")
    card = await (_streamed(turn, wanted=chosen == "on") if name == "thinking" else _spoken(turn, chosen))
    return turn.change(card, toast=card.title)


async def _spoken(turn: Turn, lang: str) -> Card:
    actor = await turn.desk.team.speak(turn.actor, lang)
    words = texts(actor.lang)
    return replace(await _card(replace(turn, actor=actor, texts=words)), title=words.get("settings.changed"))


async def _streamed(turn: Turn, *, wanted: bool) -> Card:
    actor = await turn.desk.team.stream(turn.actor, wanted)
    said = "settings.thinking_changed_on" if wanted else "settings.thinking_changed_off"
    return replace(await _card(replace(turn, actor=actor)), title=turn.texts.get(said))


def _thinking_row(turn: Turn) -> tuple[Line, tuple[Button, ...]]:
    """Return whether the person sees the model's thoughts as they come, and the button that changes it."""
    words, on = turn.texts, turn.actor.streams
    button = Button(
        f"settings:thinking:{'off' if on else 'on'}",
        words.get("settings.hide_thinking" if on else "settings.show_thinking"),
    )
    said = words.get("settings.thinking_on" if on else "settings.thinking_off")
    return Line(said, words.get("settings.thinking")), (button,)


async def _card(turn: Turn) -> Card:
    words = turn.texts
    lines, buttons = await digest.setting_row(turn)
    row = tuple(Button(f"settings:lang:{lang}", texts(lang).get("whoami.lang_name")) for lang in LANGUAGES)
    spoken = Line(words.get("whoami.lang_name"), words.get("whoami.lang"))
    thoughts, switch = _thinking_row(turn)
    return Card(words.get("settings.title"), (spoken, thoughts, *lines), None, (row, switch, *buttons))


async def console(turn: Turn) -> Said:
    """Handle ``/console``."""
    words = turn.texts
    if turn.chat.kind != "private":
        return turn.tell(words.get("console.private_only"))
    link = await turn.desk.console.link(turn.actor)
    lines = (Line(link, "", "secret"), Line(words.get("console.hint")), *reach_lines(words, link))
    return turn.say(Card(words.get("console.title"), lines))


def reach_lines(words: Texts, link: str) -> tuple[Line, ...]:
    """Return the setting to change if a link opens only on the machine that phonedesk runs on."""
    return (Line(words.get("console.here_only")),) if is_loopback(urlsplit(link).hostname or "") else ()


SUBJECT = Subject(commands={"whoami": whoami, "settings": settings, "console": console}, buttons={"settings": tapped})
