"""The result of a cheap look, and the memory of it for the next one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

IN_CHAT = "chat:"  # prefix of the state of messages in the chat that was open


class LookOutcome(StrEnum):
    READ = "read"
    UNCHANGED = "unchanged"  # the list looks as it did last time: nothing was read
    UNREADABLE = "unreadable"  # neither the tree nor OCR can read the list
    NO_LIST = "no_list"  # the app does not get to its list of chats (login, a dialog)


class Aside(StrEnum):
    """The reason for not answering a row with something unread."""

    GROUP = "group"
    SERVICE = "service"  # the app's own account, or its built-in AI
    CUT_OFF = "cut_off"  # only the beginning of the name is readable
    LOOK_ALIKE = "look_alike"  # the name looks like a contact's, with other letters


@dataclass(frozen=True, slots=True)
class Waiting:
    """Somebody who has written.

    state: changes when they write again.
    place: the greater, the lower the row in the list, and the older the message.
    unread: 0 if unknown, or seen in the open chat.
    """

    contact: str
    state: str
    place: int = 0
    unread: int = 0


@dataclass(frozen=True, slots=True)
class SetAside:
    """A row with something unread that is not answered.

    sender, state: digests, for a row that only seems to tell who wrote; "" if there are other signs.
    """

    name: str  # as it is in the list
    why: Aside
    sender: str = ""
    state: str = ""

    def told_by(self, before: SetAside) -> bool:
        """Tell whether people who were told of ``before`` need not be told of this one.

        If another name is before the colon, it is a group indeed. If it is the same one, it may be a customer.
        """
        return self.name == before.name and (self.state == before.state or self.sender != before.sender)


@dataclass(frozen=True, slots=True)
class ListMemory:
    """The memory of the last look.

    picture, notes: digests of the list's pixels and of the app's notifications.
    no_tree: the accessibility tree said nothing about the list, so it is not requested again.
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
        """Read the stored form; None for another release's, so that the next sweep starts from scratch."""
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
    """The findings of one look.

    waiting: in the order in which they wait: who has waited longest first.
    seen: the names of rows without anything unread.
    calls: round trips to the phone.
    memory: None if it is not to be kept.
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
