"""What a person is here, and what they have chosen for themselves."""

from __future__ import annotations

from dataclasses import replace

from bot.chat.cards import Button, Card, Line
from bot.chat.texts import LANGUAGES, Texts, texts
from bot.chat.turn import Said, Subject, Turn
from bot.desk.port import Actor

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


async def whoami(turn: Turn) -> Said:
    words, actor = turn.texts, turn.actor
    lines = [
        Line(words.get(f"role.{actor.role.value}"), words.get("whoami.role")),
        Line(actor.user_id, words.get("whoami.user"), "code"),
        Line(words.get("whoami.lang_name"), words.get("whoami.lang")),
        *limit_lines(words, actor.phones, actor.chats),
    ]
    if actor.chats and turn.chat.key not in actor.chats:
        lines.append(Line(words.get("whoami.not_here")))
    return turn.say(Card(words.get("whoami.title", name=actor.name), tuple(lines)))


def limit_lines(words: Texts, phones: tuple[str, ...], chats: tuple[str, ...]) -> tuple[Line, ...]:
    """What a person is limited to; nothing where they are not."""
    lines = (
        Line(", ".join(phones), words.get("people.phones"), "code"),
        Line(", ".join(chat.partition(":")[2] for chat in chats), words.get("people.chats"), "code"),
    )
    return tuple(line for line in lines if line.text)


async def settings(turn: Turn) -> Said:
    """``/settings`` or ``/settings [lang] LANGUAGE``."""
    *_, asked = turn.rest.lower().split() or [""]
    if not asked:
        return turn.say(_card(turn.texts, turn.actor))
    return turn.say(await _spoken(turn, _LANGUAGES.get(asked, asked)))


async def tapped(turn: Turn, value: str) -> Said:
    card = await _spoken(turn, value.removeprefix("lang:"))
    return turn.change(card, toast=card.title)


async def _spoken(turn: Turn, lang: str) -> Card:
    actor = await turn.desk.team.speak(turn.actor, lang)
    words = texts(actor.lang)
    return replace(_card(words, actor), title=words.get("settings.changed"))


def _card(words: Texts, actor: Actor) -> Card:
    row = tuple(Button(f"settings:lang:{lang}", texts(lang).get("whoami.lang_name")) for lang in LANGUAGES)
    return Card(
        words.get("settings.title"), (Line(words.get("whoami.lang_name"), words.get("whoami.lang")),), None, (row,)
    )


SUBJECT = Subject(commands={"whoami": whoami, "settings": settings}, buttons={"settings": tapped})
