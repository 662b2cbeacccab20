"""Between the event log and a channel's messages: how a channel shows cards, and which message shows what."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from bot.channels.chat.cards import Card
from bot.channels.chat.turn import Outgoing
from bot.desk.actors import ChatRef, MessageRef
from bot.desk.views import RunView

if TYPE_CHECKING:
    from bot.desk.desk import Desk


class LiveCard(NamedTuple):
    """The card of a run that is under way."""

    card: Card
    run: RunView


class CardOutlet(Protocol):
    """A channel's way to show cards. A card that names its subject is changed in place.

    channel: its name, also as a consumer of the event log.
    """

    channel: str

    async def put(
        self, message: Outgoing, *, run: RunView | None = None, urgent: bool = False, soundless: bool = False
    ) -> None:
        """Store a message that will be shown.

        run: the message belongs to the topic of its phone, if the channel has topics.
        urgent: it may make a sound in quiet hours. soundless: it never makes one.
        """

    def show_live(self, chat: ChatRef, run_id: str, draw: Callable[[str], Awaitable[LiveCard | None]]) -> None:
        """Bring a run's card up to date soon. ``draw`` returns it for the id of a chat, or None for "no more"."""

    def think(self, run_id: str, chat: ChatRef, text: str) -> bool:
        """Show a thought as it comes. Return False if the run's card has to show it."""

    def thought_over(self, run_id: str) -> None:
        """End the thought of a run."""

    def shows_all(self, card: Card, *, captioned: bool) -> bool:
        """Tell whether all of a card can be read in one message. ``captioned``: it has a picture."""

    def is_away(self, error: Exception) -> bool:
        """Tell whether the store was not reached, but will be later."""

    def wait_after(self, failures: int) -> float:
        """Return the seconds to wait after so many failures in a row, from 1."""

    def safe(self, error: object) -> str:
        """Return an error's words without secrets, for logs."""


class Refs:
    """The messages that show a named subject (``run:<id>``, ``question:<id>``), as the desk remembers them."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def get(self, ref: str) -> MessageRef | None:
        """Return the message; None if none shows it yet."""
        kind, _, name = ref.partition(":")
        if kind == "run":
            return await self._desk.runs.card(name)
        return await self._desk.questions.card(name) if kind == "question" else None

    async def set(self, ref: str, message: MessageRef) -> None:
        kind, _, name = ref.partition(":")
        if kind == "run":
            await self._desk.runs.set_card(name, message)
        elif kind == "question":
            await self._desk.questions.set_card(name, message)

    async def is_over(self, question_id: str) -> bool:
        """Tell whether this question is closed for everybody."""
        view = await self._desk.questions.get(question_id)
        return view is None or not view.open
