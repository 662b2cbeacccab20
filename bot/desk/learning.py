"""Learning an app on a phone, step by step with an owner: show, confirm, try, keep."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from uuid import uuid4

from agent_core.lru import keep_newest
from bot.desk.actors import Actor, BadRequest, NotFound, Role, no_phone
from bot.desk.context import DeskContext, DeskService

if TYPE_CHECKING:
    from agent_core.apps.learning import TriedInput
    from agent_core.apps.learnt import AppLook, LearntApp, Part, SendsBy
    from agent_core.apps.profile import AppProfile
    from agent_core.perception.observer import SeenPage
    from bot.app.learning import CoreLearning

MOST_SHOWN = 8  # chats that are remembered


@dataclass(frozen=True)
class ShownChat:
    """A chat as it is shown to a person.

    version: the app's. tree: how much the accessibility tree tells.
    here: the chat was in front already, and is not looked for in the list. listed: the list in which it was found.
    """

    serial: str
    app: AppProfile
    version: str
    contact: str
    here: bool
    look: AppLook
    tree: str
    page: SeenPage
    listed: SeenPage | None = None


@dataclass(frozen=True)
class TriedChat:
    """A chat whose input was tried. ``learnt`` is None as long as a person must still name the control that sends."""

    shown: ShownChat
    tried: TriedInput
    learnt: LearntApp | None


class DeskLearning(DeskService):
    """The service for learning apps, for owners. A chat that was shown is kept under a ``key`` until newer ones replace
    it.

    Raises NotFound if the key is no longer kept, LeaseLost if somebody else has the phone, and LearningFailed if the
    app cannot be learnt.
    """

    def __init__(self, context: DeskContext) -> None:
        super().__init__(context)
        # By key. They hold pictures, and are lost when the process ends.
        self._shown: OrderedDict[str, tuple[ShownChat, TriedInput | None]] = OrderedDict()

    async def show(
        self, actor: Actor, app: AppProfile, contact: str, *, serial: str = "", here: bool = False
    ) -> tuple[str, ShownChat]:
        """Read a chat, and return its key and the reading, to be confirmed. ``here``: take the chat in front."""
        entries = await self.context.entries()
        book = await self._book(entries)
        serial = book.serial(serial or self.context.serial)
        wanted = self._phone_for(actor, serial, book) if actor.phones else serial
        await self._allow(actor, Role.OWNER, "learn", phone=wanted, serial=wanted, app=app.key)
        phones = self._phones()
        if wanted and wanted not in {entry.serial for entry in entries}:
            raise no_phone(wanted)
        shown = await phones.show(app, contact, serial=wanted, here=here)
        key = uuid4().hex[:8]
        keep_newest(self._shown, key, (shown, None), MOST_SHOWN)
        return key, shown

    async def try_reply(self, actor: Actor, key: str, text: str, *, send: bool) -> TriedChat:
        """Try the input of a chat that was read correctly, and store the control that sends if that is certain."""
        shown, _ = await self._of(actor, key, "learn.confirm")
        tried = await self._phones().try_input(shown, text, send=send)
        keep_newest(self._shown, key, (shown, tried), MOST_SHOWN)
        if tried.sends_by != "button" and not tried.sent:
            return TriedChat(shown, tried, None)
        return TriedChat(shown, tried, await self._phones().keep(shown, tried.sends_by, person=actor.name))

    async def choose(self, actor: Actor, key: str, sends_by: SendsBy) -> TriedChat:
        """Store the control that sends, as the person says."""
        shown, tried = await self._of(actor, key, "learn.choose")
        if tried is None:
            raise _forgotten()
        learnt = await self._phones().keep(shown, sends_by, person=actor.name)
        return TriedChat(shown, replace(tried, sends_by=sends_by), learnt)

    async def correct(self, actor: Actor, key: str, part: Part) -> ShownChat:
        """Store that this part was read wrongly, and return the chat."""
        shown, _ = await self._of(actor, key, "learn.correct")
        await self._phones().correct(shown, part, person=actor.name)
        return shown

    async def shown(self, actor: Actor, key: str) -> ShownChat:
        """Return the chat that was shown under this key."""
        return (await self._of(actor, key, "learn.shown"))[0]

    async def _of(self, actor: Actor, key: str, command: str) -> tuple[ShownChat, TriedInput | None]:
        found = self._shown.get(key)
        await self._allow(actor, Role.OWNER, command, phone=found[0].serial if found else None)
        if found is None:
            raise _forgotten()
        return found

    def _phones(self) -> CoreLearning:
        if self.context.learning is None:
            raise BadRequest(
                "No phone is worked by this process.",
                advice="Run phonedesk apps learn on the machine that has the phone.",
                key="learn_elsewhere",
            )
        return self.context.learning


def _forgotten() -> NotFound:
    return NotFound("This is not remembered any more.", advice="Begin again.", key="learn_forgotten")
