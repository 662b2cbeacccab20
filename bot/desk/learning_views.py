"""The views for an owner who teaches the desk an app on a phone."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agent_core.lru import keep_newest

if TYPE_CHECKING:
    from agent_core.apps.learning import TriedInput
    from agent_core.apps.learnt import AppLook, LearntApp
    from agent_core.apps.profile import AppProfile
    from agent_core.perception.observer import SeenPage

MOST_SHOWN = 8


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


@dataclass
class ShownChats:
    """The chats that were shown last, by key. They hold pictures, and are lost when the process ends."""

    chats: OrderedDict[str, tuple[ShownChat, TriedInput | None]] = field(default_factory=OrderedDict)

    def put(self, key: str, shown: ShownChat, tried: TriedInput | None = None) -> None:
        """Store a shown chat; the oldest is dropped if there are more than MOST_SHOWN."""
        keep_newest(self.chats, key, (shown, tried), MOST_SHOWN)
