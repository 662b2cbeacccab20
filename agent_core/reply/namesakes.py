"""Decides which of several rows with the contact's name, in a list or search results, is the contact's."""

from __future__ import annotations

from collections.abc import Sequence

from PIL import Image

from agent_core.apps.profile import AppProfile
from agent_core.geometry import Box
from agent_core.loop import questions
from agent_core.loop.outcome import ActResult
from agent_core.perception.compare import Likeness, fold, without_status
from agent_core.perception.lists import ChatRow
from agent_core.perception.observer import Observation, Observer
from agent_core.perception.readings import ChatScreen
from agent_core.policies.right_chat import row_likeness
from agent_core.ports import Ledger
from agent_core.reply.outcome import ask
from agent_core.session import RowMark, Session

_SIDE = 6  # pixels of an avatar's print, across and down
_SAME = 10  # average difference of levels between the pixels of two prints of one avatar


class Namesakes:
    """The reader of the rows in front for one run, which asks a person if two of them have the contact's name.

    The choice is stored with what distinguishes the rows; the avatar identifies the row in the next run.
    """

    def __init__(self, session: Session, profile: AppProfile, observer: Observer, ledger: Ledger) -> None:
        self._session = session
        self._profile = profile
        self._observer = observer
        self._ledger = ledger
        self._read: tuple[str, list[ChatRow]] = ("", [])
        self._previews: dict[str, str] = {}  # of rows with nothing unread

    async def rows(self, seen: Observation) -> list[ChatRow]:
        """Return the rows on the page in front; none if it is a chat or not a page of the app."""
        if seen.chat is not None or seen.window.package not in self._profile.packages:
            return []
        if self._read[0] != seen.frame.digest:
            found = await self._observer.reader.rows(seen.frame, seen.nodes)
            self._read = (seen.frame.digest, [row for row in found if row.avatar is not None or row.time])
            for row in self._read[1]:
                self._previews[row.name] = "" if row.is_new else fold(row.preview)
        return self._read[1]

    def was_read(self, chat: ChatScreen) -> bool:
        """Tell whether the list showed nothing unread in this chat and its newest message is still the same."""
        preview = self._previews.get(without_status(chat.title), "")
        return bool(preview) and chat.newest is not None and fold(chat.newest.text).startswith(preview)

    async def chosen(self) -> RowMark | None:
        """Return the features of the contact's row, if a person ever distinguished it from others of its name."""
        gate = self._session.gate
        if gate.row is None and gate.contact:
            gate.row = await self._ledger.chosen_row(self._session.serial, self._profile.key, gate.contact)
        return gate.row

    async def row(self, seen: Observation) -> ChatRow | None:
        """Return the contact's row if a person once told it from others of its name; None if it is not certain.

        A row with nothing to compare is the contact's if it is the only one and a person has chosen a row in this run.
        """
        same, mark = await self._told(seen)
        if mark is None:
            return None
        known = _known(same, mark, seen.frame.image)
        blank = len(same) == 1 and self._session.gate.row_told and not self._differ(same, mark, seen)
        return same[0] if known is None and blank else known

    async def strangers(self, seen: Observation) -> list[ChatRow]:
        """Return the rows in front that have the contact's name but another avatar."""
        same, mark = await self._told(seen)
        return [] if mark is None else self._differ(same, mark, seen)

    async def ask(self, seen: Observation) -> ActResult | None:
        """Ask a person if rows in front have the contact's name and nothing decides which is meant; else return None.

        A single row is asked about if other rows are known to have its name and it shows nothing to compare.
        """
        same, mark = await self._told(seen)
        if len(same) < (2 if mark is None else 1) or await self.row(seen) is not None:
            return None
        if len(same) == 1 and mark is not None and self._differ(same, mark, seen):
            return None
        marks = [_mark(row, seen.frame.image) for row in same]
        return ask(self._session, questions.which_row(self._session, marks), "run.waiting", seen.frame)

    async def _told(self, seen: Observation) -> tuple[list[ChatRow], RowMark | None]:
        """Return the rows with the contact's name, and the features of the right one if a person ever chose it."""
        same = self._same(await self.rows(seen))
        return same, await self.chosen() if same else None

    @staticmethod
    def _differ(rows: Sequence[ChatRow], mark: RowMark, seen: Observation) -> list[ChatRow]:
        """Return the rows whose avatar is visible and differs from that of ``mark``."""
        prints = [(row, _print(seen.frame.image, row.avatar)) for row in rows if mark.avatar]
        return [row for row, avatar in prints if avatar and not _same_avatar(avatar, mark.avatar)]

    def _same(self, rows: Sequence[ChatRow]) -> list[ChatRow]:
        contact = self._session.gate.contact
        return [row for row in rows if row_likeness(row, contact) is Likeness.SAME and not row.called]


def _mark(row: ChatRow, image: Image.Image) -> RowMark:
    return RowMark(avatar=_print(image, row.avatar), preview=row.preview, time=row.time)


def _known(rows: Sequence[ChatRow], mark: RowMark, image: Image.Image) -> ChatRow | None:
    """Return the one row with the avatar of ``mark``, or None.

    If there are several, or no avatar, preview and time must match, too.
    """
    alike = [row for row in rows if _same_avatar(_print(image, row.avatar), mark.avatar)]
    if len(alike) > 1 or not mark.avatar:
        alike = [row for row in alike if (row.preview, row.time) == (mark.preview, mark.time)]
    return alike[0] if len(alike) == 1 else None


def _print(image: Image.Image, avatar: Box | None) -> str:
    """Return a print of an avatar without its upper right, which shows the number of unread messages."""
    if avatar is None:
        return ""
    inner = (
        avatar.left + avatar.width // 8,
        avatar.top + avatar.height * 3 // 8,
        avatar.left + avatar.width * 5 // 8,
        avatar.bottom - avatar.height // 8,
    )
    small = image.crop(inner).convert("RGB").resize((_SIDE, _SIDE), Image.Resampling.BOX)
    return small.tobytes().hex()


def _same_avatar(one: str, other: str) -> bool:
    left, right = bytes.fromhex(one), bytes.fromhex(other)
    if not left or len(left) != len(right):
        return left == right
    return sum(abs(a - b) for a, b in zip(left, right, strict=True)) <= _SAME * len(left)
