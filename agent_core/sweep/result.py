"""What a cheap look gives, and what the next one remembers of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

IN_CHAT = "chat:"  # begins the state of what was seen in the chat that stood open


class LookOutcome(StrEnum):
    READ = "read"
    UNCHANGED = "unchanged"  # the list looks as it did the last time: nothing was read
    UNREADABLE = "unreadable"  # neither the tree nor OCR tells what stands there
    NO_LIST = "no_list"  # the app does not come to its list of chats (login, a dialogue)


class Aside(StrEnum):
    """Why a row with something unread is nobody to be answered."""

    GROUP = "group"
    SERVICE = "service"  # the app's own account, or its built-in AI
    CUT_OFF = "cut_off"  # only the beginning of the name can be read
    LOOK_ALIKE = "look_alike"  # the name looks like a contact's, in other letters


@dataclass(frozen=True, slots=True)
class Waiting:
    """Somebody who has written. ``state`` is another one once they write again. ``place``: a lower row is a higher one,
    and an older message. ``unread`` 0: not known, or seen in the open chat.
    """

    contact: str
    state: str
    place: int = 0
    unread: int = 0


@dataclass(frozen=True, slots=True)
class SetAside:
    """``sender`` and ``state``, digests: of a row that only seems to tell who wrote; "" where more shows what it is."""

    name: str  # as it stands in the list
    why: Aside
    sender: str = ""
    state: str = ""

    def told_by(self, before: SetAside) -> bool:
        """Whether people who were told of ``before`` need not be told of this one.

        Where another name stands before the colon it is a group indeed. Where the same one does, it may be a customer.
        """
        return self.name == before.name and (self.state == before.state or self.sender != before.sender)


@dataclass(frozen=True, slots=True)
class ListMemory:
    """The last look: ``picture`` and ``notes`` are digests of the list's pixels and of the app's notifications.

    ``no_tree``: the accessibility tree told nothing of the list, so it is not asked for again.
    """

    picture: str
    notes: str
    waiting: tuple[Waiting, ...] = ()
    aside: tuple[SetAside, ...] = ()
    seen: tuple[str, ...] = ()
    no_tree: bool = False

    def data(self) -> dict[str, Any]:
        return {
            "picture": self.picture,
            "notes": self.notes,
            "waiting": [[one.contact, one.state, one.place, one.unread] for one in self.waiting],
            "aside": [[one.name, one.why.value, one.sender, one.state] for one in self.aside],
            "seen": list(self.seen),
            "no_tree": self.no_tree,
        }

    @classmethod
    def of(cls, data: Mapping[str, Any] | None) -> ListMemory | None:
        """None for what another release wrote, which is looked at anew."""
        try:
            return (
                None
                if not data
                else cls(
                    picture=str(data["picture"]),
                    notes=str(data["notes"]),
                    waiting=tuple(Waiting(str(n), str(s), int(p), int(u)) for n, s, p, u in data["waiting"]),
                    aside=tuple(SetAside(str(n), Aside(why), str(by), str(s)) for n, why, by, s in data["aside"]),
                    seen=tuple(map(str, data["seen"])),
                    no_tree=bool(data["no_tree"]),
                )
            )
        except (KeyError, TypeError, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class UnreadLook:
    """``seen``: the rows where nothing is unread. ``calls``: round trips to the phone. ``memory`` None: not to be kept.

    ``waiting`` is in the order in which they wait: who has waited longest first.
    """

    outcome: LookOutcome
    waiting: tuple[Waiting, ...] = ()
    seen: tuple[str, ...] = ()
    aside: tuple[SetAside, ...] = ()
    pages: int = 0
    calls: int = 0
    memory: ListMemory | None = field(default=None, repr=False)

    @property
    def readable(self) -> bool:
        return self.outcome in (LookOutcome.READ, LookOutcome.UNCHANGED)
