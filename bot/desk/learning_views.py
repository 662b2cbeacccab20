"""What a channel can ask about getting to know an app on a phone. See ``bot.desk.views``."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from agent_core.newest import keep_newest
from bot.desk.actors import Actor

if TYPE_CHECKING:
    from agent_core.apps.learnt import AppLook, LearntApp, Part, SendsBy
    from agent_core.apps.profile import AppProfile
    from agent_core.learning import Tried
    from agent_core.observer import SeenPage

MOST_SHOWN = 8


@dataclass(frozen=True)
class ShownChat:
    """A chat as a person is shown it. ``version`` is the app's, ``tree`` how much the accessibility tree tells.

    ``here``: it was in front already, and is not looked for in the list. ``listed``: the list where it was found.
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
    """``learnt`` is None as long as a person has to say what sends a text."""

    shown: ShownChat
    tried: Tried
    learnt: LearntApp | None


@dataclass
class ShownChats:
    """What was shown lately, by key. It holds pictures, and is forgotten when the process ends."""

    chats: OrderedDict[str, tuple[ShownChat, Tried | None]] = field(default_factory=OrderedDict)

    def put(self, key: str, shown: ShownChat, tried: Tried | None = None) -> None:
        keep_newest(self.chats, key, (shown, tried), MOST_SHOWN)


class PhoneLearning(Protocol):
    """The phones of this process, as the learning of apps needs them. Each call takes the phone and gives it back.

    Raises LeaseLost if somebody has the phone, LearningFailed if the app cannot be learnt, and errors of the phone.
    """

    async def show(self, app: AppProfile, contact: str, *, serial: str, here: bool) -> ShownChat:
        """Open the chat (``here``: take the one in front) and read it."""

    async def attempt(self, shown: ShownChat, text: str, *, send: bool) -> Tried:
        """Type a text into the chat that a person has confirmed, and delete it; ``send``: send it first."""

    async def keep(self, shown: ShownChat, sends_by: SendsBy, *, person: str) -> LearntApp:
        """Remember what a person has confirmed."""

    async def correct(self, shown: ShownChat, part: Part, *, person: str) -> LearntApp:
        """Remember that a part of the page was read wrongly: it is in doubt until the app is learnt anew."""


class LearningDesk(Protocol):
    """For owners. NotFound if a ``key`` is forgotten: a chat is remembered until a later one takes its place."""

    async def show(
        self, actor: Actor, app: AppProfile, contact: str, *, serial: str = "", here: bool = False
    ) -> tuple[str, ShownChat]:
        """Read a chat to be confirmed, and its key for what follows."""

    async def attempt(self, actor: Actor, key: str, text: str, *, send: bool) -> TriedChat:
        """The person says that it was read rightly: see what sends a text, and keep it if that is certain."""

    async def choose(self, actor: Actor, key: str, sends_by: SendsBy) -> TriedChat:
        """The person says what sends a text."""

    async def correct(self, actor: Actor, key: str, part: Part) -> ShownChat:
        """The person says that this part was read wrongly."""

    async def shown(self, actor: Actor, key: str) -> ShownChat:
        """What was shown under this key."""
