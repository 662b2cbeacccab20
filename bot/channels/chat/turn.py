"""What comes in, what goes out, and what one turn is handed. A subject registers itself by these."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, Protocol

from bot.channels.chat import cards
from bot.channels.chat.cards import Card
from bot.channels.chat.texts import Texts
from bot.desk.actors import Actor, ChatRef, MessageRef

if TYPE_CHECKING:  # it loads the database; chats and cards are loaded without it
    from bot.desk.desk import Desk


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Person:
    """Who wrote, as the channel knows them. ``lang`` is an IETF tag."""

    user_id: str
    name: str
    lang: str = ""


@dataclass(frozen=True, slots=True)
class Attached:
    """A document that a person sent: the channel's name for it, the sender's name for it, its size in bytes."""

    id: str
    name: str
    size: int = 0


class Files(Protocol):
    """Where a channel's documents come from."""

    async def fetch(self, file: Attached, at_most: int) -> bytes:
        """What is in it. BadRequest where it is larger than ``at_most`` bytes, or not to be had any more."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """Something a person wrote or tapped.

    ``key`` names it once and for ever (the same one is handed in again where it is not known whether the first time
    took effect). ``reply_to`` is our message that a reply answers, or that carries the tapped button. ``subject`` is
    the text that the tapped message itself is a reply to: the task that was offered.
    """

    kind: Literal["text", "button", "reply"]
    person: Person
    chat: ChatRef
    key: str
    text: str = ""
    action: str = ""
    message_id: str = ""
    reply_to: MessageRef | None = None
    reply_question: str = ""  # the question that the buttons under ``reply_to`` belong to
    subject: str = ""
    phone: str = ""  # the serial of the phone whose place in the channel this is: meant where no other is named
    buttons: tuple[str, ...] | None = None  # of a tap: the actions under its message now; None where nobody knows
    other: str = ""  # what it is besides words and documents ("voice", "photo" …); ``text`` is its caption
    album: str = ""  # several of them that were sent as one
    received_at: datetime | None = None  # when it came; it may have waited since
    document: Attached | None = None  # sent with ``text`` as its caption; of a tap, the one that its message replies to

    def is_shown(self) -> bool:
        """Whether the tapped button is under its message: a client can send any action with any message."""
        return self.buttons is None or self.action in self.buttons


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to say. ``replaces``: our message that this takes the place of, instead of a new one.

    ``once``: a name; what was said under it is not said again. ``shows``: what it is the card of (``run:<id>``); the
    message is remembered as such and kept up to date.
    """

    card: Card
    chat: ChatRef
    reply_to: str = ""
    replaces: MessageRef | None = None
    once: str = ""
    shows: str = ""
    asks: Person | None = None  # whose next words are the answer: the channel opens their input for a reply
    placeholder: str = ""  # what stands in that input before they write


@dataclass(frozen=True, slots=True)
class Said:
    """The answer to one incoming message. A toast is shown where a button was tapped (``alert``: to be closed)."""

    messages: tuple[Outgoing, ...] = ()
    toast: str = ""
    alert: bool = False


# Say something before the answer to a message is ready: how far a long piece of work is.
Show = Callable[[Outgoing], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a paired person. ``rest``: what follows the command's name, as it was written."""

    incoming: Incoming
    actor: Actor
    texts: Texts
    desk: Desk
    now: datetime
    rest: str = ""
    files: Files | None = None
    show: Show | None = None
    start_link: str = ""  # what a code is put behind to be opened by a tap; "" where the channel has no such links

    @property
    def chat(self) -> ChatRef:
        return self.incoming.chat

    async def run_here(self, *, held: bool = False) -> str:
        """The run on the phone whose place this is: the one at work, else the first in line (``held``: that is held).

        "" where there is none.
        """
        runs = [run for run in await self.desk.runs.going(self.actor) if run.serial == self.incoming.phone]
        runs = [run for run in runs if run.held is held or not held]
        at_work = [run for run in runs if run.started_at is not None]
        return next((run.id for run in (*at_work, *runs)), "")

    def say(self, card: Card) -> Said:
        """A new message, as a reply to what was written."""
        return Said((Outgoing(card, self.chat, self.incoming.message_id),))

    def tell(self, title: str, *lines: str) -> Said:
        return self.say(cards.plain(title, *lines))

    def change(self, card: Card, *, toast: str = "") -> Said:
        """Put the card in place of the message whose button was tapped."""
        return Said((Outgoing(card, self.chat, replaces=self.incoming.reply_to),), toast=toast)


@dataclass(frozen=True, slots=True)
class Subject:
    """What a subject adds to the conversation: commands by name, and buttons by what stands before the first colon of
    their action; a button's handler gets what stands after it. Errors of the product may be raised: they are said.

    ``document`` takes the documents that are sent in private without a command.
    """

    commands: Mapping[str, Callable[[Turn], Awaitable[Said]]] = field(default_factory=dict)
    buttons: Mapping[str, Callable[[Turn, str], Awaitable[Said]]] = field(default_factory=dict)
    document: Callable[[Turn], Awaitable[Said]] | None = None
