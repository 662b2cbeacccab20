"""The types of the conversation: incoming and outgoing messages, a turn, and a subject with its handlers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, Protocol

from bot.channels.chat import cards
from bot.channels.chat.cards import Card
from bot.channels.chat.texts import Texts
from bot.desk.actors import Actor, ChatRef, MessageRef

if TYPE_CHECKING:  # it loads the database, which chats and cards do without
    from bot.desk.desk import Desk


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Person:
    """A person as the channel knows them. ``lang`` is an IETF tag."""

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
    """A channel's access to the documents that people send."""

    async def fetch(self, file: Attached, at_most: int) -> bytes:
        """Return the document's bytes. Raises BadRequest if it has more than ``at_most`` bytes or is gone."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """Something a person wrote or tapped.

    key: names it for ever. The same one comes again if it is not known whether the first time took effect.
    reply_to: our message that a reply answers, or that has the tapped button.
    subject: the text that the tapped message itself replies to, for example the task that was offered.
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
    phone: str = ""  # the serial of the phone that this topic belongs to; it is meant if no other is named
    buttons: tuple[str, ...] | None = None  # of a tap: the actions under its message now; None if not known
    other: str = ""  # its kind if it is neither text nor document ("voice", "photo" …); ``text`` is its caption
    album: str = ""  # the id of the album that it was sent in
    received_at: datetime | None = None  # when it came; it may have waited since
    document: Attached | None = None  # with ``text`` as its caption; of a tap, the document that its message replies to

    def is_shown(self) -> bool:
        """Tell whether the tapped button is under its message: a client can send any action with any message."""
        return self.buttons is None or self.action in self.buttons


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to send.

    replaces: our message to edit instead of sending a new one.
    once: a name under which only one message is ever sent.
    shows: the subject whose card it is (``run:<id>``). The message is stored as this card and kept up to date.
    changes: it only changes what its subject shows already, or is about to; without that, it is dropped.
    """

    card: Card
    chat: ChatRef
    reply_to: str = ""
    replaces: MessageRef | None = None
    once: str = ""
    shows: str = ""
    changes: bool = False
    asks: Person | None = None  # the channel opens this person's input for a reply
    placeholder: str = ""  # of that input


@dataclass(frozen=True, slots=True)
class Said:
    """The answer to an incoming message. ``toast``: shown at a tapped button; ``alert``: the person must close it."""

    messages: tuple[Outgoing, ...] = ()
    toast: str = ""
    alert: bool = False


# Says something before the answer to a message is ready, such as the progress of long work.
Show = Callable[[Outgoing], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Turn:
    """A message of a paired person. ``rest``: the text after the command's name, as it was written."""

    incoming: Incoming
    actor: Actor
    texts: Texts
    desk: Desk
    now: datetime
    rest: str = ""
    files: Files | None = None
    show: Show | None = None
    start_link: str = ""  # the beginning of a link with a pairing code; "" if the channel has no such links

    @property
    def chat(self) -> ChatRef:
        """The chat that the message is in."""
        return self.incoming.chat

    async def run_here(self, *, held: bool = False) -> str:
        """Return the id of the run on the phone of this topic: the active one, else the first in the queue.

        held: only runs that are held. Returns "" if there is none.
        """
        runs = [run for run in await self.desk.runs.going(self.actor) if run.serial == self.incoming.phone]
        runs = [run for run in runs if run.held is held or not held]
        at_work = [run for run in runs if run.started_at is not None]
        return next((run.id for run in (*at_work, *runs)), "")

    def say(self, card: Card) -> Said:
        """Return a card as a new message that replies to the person's."""
        return Said((Outgoing(card, self.chat, self.incoming.message_id),))

    def tell(self, title: str, *lines: str) -> Said:
        """Return texts as a new message that replies to the person's."""
        return self.say(cards.plain(title, *lines))

    def change(self, card: Card, *, toast: str = "") -> Said:
        """Return a card that replaces the message whose button was tapped."""
        return Said((Outgoing(card, self.chat, replaces=self.incoming.reply_to),), toast=toast)


@dataclass(frozen=True, slots=True)
class Subject:
    """A subject's part of the conversation. Handlers may raise our own errors, which become an answer.

    commands: handlers by the command's name.
    buttons: handlers by the part of the action before the first colon; a handler gets the part after it.
    """

    commands: Mapping[str, Callable[[Turn], Awaitable[Said]]] = field(default_factory=dict)
    buttons: Mapping[str, Callable[[Turn, str], Awaitable[Said]]] = field(default_factory=dict)
