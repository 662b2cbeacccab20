"""Looks at the phone: notifications, one picture, and the contents of the list only if the picture changed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b

import structlog

from agent_core.apps.profile import AppProfile
from agent_core.devices.base import Device, Frame, Key, LookedPicture, Node, Notification, WindowKind
from agent_core.devices.waiting import wait_until_still
from agent_core.errors import CommandFailed, ScreenOff, TreeUnavailable
from agent_core.geometry import Box, Point
from agent_core.loop.defaults import FreeLease
from agent_core.perception.compare import fingerprint, without_status
from agent_core.perception.lists import ChatRow, is_list_page, tabs
from agent_core.perception.observer import TreeUse
from agent_core.perception.reader import ScreenReader
from agent_core.perception.readings import ChatScreen, Reading, Side
from agent_core.perception.tree import TreeHealth
from agent_core.ports import Lease
from agent_core.sweep.result import IN_CHAT, ListMemory, LookOutcome, UnreadLook, Waiting
from agent_core.sweep.rows import FoundRow, digest, notes_digest, own_notes

MOST_PAGES = 6
MOST_WAYS = 6  # actions on the way to the list; after these it counts as unreachable
STATUS = 0.05  # of the screen's height: the clock and the battery are above this

log = structlog.get_logger(__name__)


async def look_for_unread(
    device: Device,
    reader: ScreenReader,
    profile: AppProfile,
    *,
    before: ListMemory | None = None,
    known: Sequence[str] = (),
    people: Sequence[str] = (),
    lease: Lease | None = None,
    tree: TreeUse = "auto",
    most_pages: int = MOST_PAGES,
    keep: Callable[[Waiting], Awaitable[None]] | None = None,
) -> UnreadLook:
    """Find out who has written in this app. No model is asked, nothing is typed, only ways to the list are tapped.

    The app is left on its list. Raises errors of the phone, and LeaseLost.

    before: what the last look remembered; if the list still looks the same, nothing is read.
    known: complete names of contacts.
    people: contacts that runs have dealt with, who are never taken for groups.
    keep: is told of new messages in the chat that was open, before that chat is left: afterwards nothing shows it.
    """
    found = FoundRow(profile, known, people)
    looking = _Looking(device, reader, profile, before, found, lease or FreeLease(), tree, most_pages, keep)
    return await looking.look()


@dataclass(slots=True)
class _Page:
    """One screen of the app and what was read of it. ``readings`` is None if nothing can read it."""

    frame: Frame
    nodes: Sequence[Node] | None
    readings: Sequence[Reading] | None
    rows: Sequence[ChatRow] = ()
    chat: ChatScreen | None = None
    is_list: bool = False


class _Looking:
    def __init__(
        self,
        device: Device,
        reader: ScreenReader,
        profile: AppProfile,
        before: ListMemory | None,
        found: FoundRow,
        lease: Lease,
        tree: TreeUse,
        most_pages: int,
        keep: Callable[[Waiting], Awaitable[None]] | None,
    ) -> None:
        self._keep = keep
        self._device, self._reader, self._profile, self._lease = device, reader, profile, lease
        self._before, self._most_pages = before, most_pages
        self._trees = tree != "off" and not (tree == "auto" and before is not None and before.no_tree)
        self._tree_failed = False
        self._found = found
        self._calls_before = device.round_trips
        self._pages = 0

    async def look(self) -> UnreadLook:
        notes = await self._notifications()
        shown = await self._observe()
        before = self._before
        noted = notes_digest(notes)
        if before is not None and before.notes == noted and self._in_front(shown) and self._is_as(before, shown):
            return UnreadLook(
                LookOutcome.UNCHANGED, before.waiting, before.seen, before.aside, calls=self._calls, memory=before
            )
        page = await self._to_list(shown)
        if page is None or page.readings is None:
            self._found.add_notes(notes)
            outcome = LookOutcome.NO_LIST if page is None else LookOutcome.UNREADABLE
            return self._result(outcome, None)
        first = print_of(page.frame)
        await self._read_all(page, notes)
        self._found.add_notes(notes)
        memory = ListMemory(
            first,
            noted,
            self._found.in_order(),
            tuple(self._found.aside.values()),
            tuple(self._found.seen),
            no_tree=not self._trees or self._tree_failed,
        )
        return self._result(LookOutcome.READ, memory)

    @staticmethod
    def _is_as(before: ListMemory, shown: LookedPicture) -> bool:
        return before.picture == print_of(shown.frame)

    def _result(self, outcome: LookOutcome, memory: ListMemory | None) -> UnreadLook:
        found = self._found
        return UnreadLook(
            outcome,
            found.in_order(),
            tuple(found.seen),
            tuple(found.aside.values()),
            self._pages,
            self._calls,
            memory,
        )

    @property
    def _calls(self) -> int:
        return self._device.round_trips - self._calls_before

    # To the list ------------------------------------------------------------------------------------------------------

    async def _to_list(self, shown: LookedPicture) -> _Page | None:
        """Go to the list of chats and return it; a page without readings if nothing can read it; None if not found."""
        for _ in range(MOST_WAYS):
            if not self._in_front(shown):
                shown = await self._bring_app(shown)
                continue
            page = await self._read(shown.frame)
            if page.readings is None or page.is_list:
                return page
            if page.chat is not None:
                await self._note_open_chat(page.chat)
            tab = self._tab(page)
            if tab is not None and page.chat is None:
                shown = await self._act(shown, partial(self._device.tap, tab))
            else:
                shown = await self._act(shown, partial(self._device.key, Key.BACK))
        return None

    async def _bring_app(self, shown: LookedPicture) -> LookedPicture:
        if shown.look.window.kind is WindowKind.SHADE:
            return await self._act(shown, partial(self._device.key, Key.BACK))
        if shown.look.window.kind is WindowKind.LOCK:
            await self._lease.check()
            await self._device.wake()
        package = self._profile.package_among(await self._device.packages())
        return await self._act(shown, partial(self._device.launch, package))

    async def _note_open_chat(self, chat: ChatScreen) -> None:
        """Note messages in the chat that was open: they are not unread for the app, but they are for us."""
        newest = chat.newest
        if newest is not None and newest.side is Side.THEM and chat.title:
            called = without_status(chat.title)
            self._found.add_open_chat(called, IN_CHAT + digest(fingerprint(chat)))
            if self._keep is not None and called in self._found.waiting:
                await self._keep(self._found.waiting[called])

    def _tab(self, page: _Page) -> Point | None:
        """Return the place of the tab that leads to the list; None if there is none."""
        mine = tabs(page.readings or (), self._profile, page.frame.size)
        return next((tab.box.center for tab in mine if tab.text.strip() in self._profile.list_tabs), None)

    # The list ---------------------------------------------------------------------------------------------------------

    async def _read_all(self, page: _Page, notes: Sequence[Notification]) -> None:
        """Read this page, and those around it while more is unread than was found."""
        self._add(page, notes)
        at = 0  # pages below the first
        for direction in (-1, 1):
            while self._pages < self._most_pages and await self._more(page):
                moved = await self._scroll(page, direction)
                if moved is None:
                    break
                at, page = at + direction, moved
                self._add(page, notes)
            if direction < 0 and at < 0:
                at = 0  # the list begins here
        while at > 0 and (moved := await self._scroll(page, -1, read=False)) is not None:
            at, page = at - 1, moved

    def _add(self, page: _Page, notes: Sequence[Notification]) -> None:
        self._pages += 1
        self._found.add_rows(page.rows, page.nodes or (), notes)

    async def _more(self, page: _Page) -> bool:
        """Tell whether the app counts more than was found.

        A tab's mark without a number stands for muted chats, or has a number that cannot be read.
        """
        width, height = page.frame.size
        tab = self._tab(page) or Point(width // 8, round(0.96 * height))
        area = Box(tab.x - width // 9, tab.y - width // 8, tab.x + width // 9, min(height, tab.y + width // 20))
        counts = [
            int(text.rstrip("+"))
            for reading in page.readings or ()
            if area.contains(reading.box.center) and (text := reading.text.strip()).rstrip("+").isdecimal()
        ]
        count, dot = await self._reader.counted(page.frame, area)
        if max(counts, default=count) > self._found.unread:
            return True
        return dot and not self._found.unread and not self._found.dots

    async def _scroll(self, page: _Page, direction: int, *, read: bool = True) -> _Page | None:
        """Scroll to the next page below (1) or above (-1). None if the list ends."""
        width, height = page.frame.size
        low, high = Point(width // 2, round(0.8 * height)), Point(width // 2, round(0.3 * height))
        start, end = (low, high) if direction > 0 else (high, low)
        await self._lease.check()
        await self._device.swipe(start, end)
        still = await wait_until_still(self._device, before=page.frame.digest)
        if print_of(still.frame) == print_of(page.frame):
            return None
        moved = await self._read(still.frame) if read else _Page(still.frame, None, ())
        return moved if not read or moved.is_list else None

    # Looking ----------------------------------------------------------------------------------------------------------

    async def _notifications(self) -> list[Notification]:
        try:
            return own_notes(await self._device.notifications(), self._profile)
        except CommandFailed as error:  # some makers refuse it; the list tells the same
            log.info("notifications_not_read", serial=self._device.serial, error=str(error))
            return []

    async def _observe(self) -> LookedPicture:
        try:
            return await self._device.observe()
        except ScreenOff:
            await self._lease.check()
            await self._device.wake()
            return await self._device.observe()

    async def _act(self, shown: LookedPicture, act: Callable[[], Awaitable[None]]) -> LookedPicture:
        await self._lease.check()
        await act()
        await wait_until_still(self._device, before=shown.frame.digest)
        return await self._observe()

    def _in_front(self, shown: LookedPicture) -> bool:
        window = shown.look.window
        return window.kind is WindowKind.APP and window.package in self._profile.packages

    async def _read(self, frame: Frame) -> _Page:
        nodes = await self._nodes(frame)
        healthy = nodes if nodes is not None and self._reader.health(nodes, frame) is TreeHealth.FULL else None
        if healthy is None and not self._reader.reads_pictures:
            return _Page(frame, nodes, None)
        if healthy is not None:
            page = await self._as_list(frame, nodes, healthy)
            if page.is_list and self._is_drawn(page):
                return page
        chat = await self._reader.chat(frame, healthy, self._profile, use_model=False)
        if chat is not None and not chat.sure and healthy is not None and self._reader.reads_pictures:
            healthy = None  # it may be the tree of another screen
            chat = await self._reader.chat(frame, None, self._profile, use_model=False)
        if chat is not None:
            return _Page(frame, nodes, (), chat=chat)
        return await self._as_list(frame, nodes, healthy)

    async def _as_list(self, frame: Frame, nodes: Sequence[Node] | None, healthy: Sequence[Node] | None) -> _Page:
        readings = await self._reader.readings(frame, healthy)
        rows = await self._reader.rows(frame, healthy)
        return _Page(frame, nodes, readings, rows, is_list=is_list_page(rows, readings, self._profile, frame.size))

    @staticmethod
    def _is_drawn(page: _Page) -> bool:
        """Tell whether the picture shows the rows of the tree, which may be the tree of the screen before."""
        return 2 * sum(row.avatar is not None and row.avatar_seen for row in page.rows) >= len(page.rows)

    async def _nodes(self, frame: Frame) -> Sequence[Node] | None:
        if not self._trees:
            return None
        try:
            nodes = await self._device.tree()
        except TreeUnavailable:
            self._tree_failed = True
            return None
        self._tree_failed = self._reader.health(nodes, frame) is not TreeHealth.FULL
        return nodes


def print_of(frame: Frame) -> str:
    """Return a digest of what the picture shows below the status bar."""
    width, height = frame.size
    shown = frame.image.crop((0, round(STATUS * height), width, height))
    return blake2b(shown.tobytes(), digest_size=16).hexdigest()
