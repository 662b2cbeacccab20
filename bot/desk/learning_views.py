"""What the desk returns while an owner teaches it an app on a phone."""

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
    tried: TriedInput
    learnt: LearntApp | None


@dataclass
class ShownChats:
    """What was shown lately, by key. It holds pictures, and is forgotten when the process ends."""

    chats: OrderedDict[str, tuple[ShownChat, TriedInput | None]] = field(default_factory=OrderedDict)

    def put(self, key: str, shown: ShownChat, tried: TriedInput | None = None) -> None:
        keep_newest(self.chats, key, (shown, tried), MOST_SHOWN)
