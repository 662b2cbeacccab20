"""Learns an app on a phone: opens and reads a chat that its owner names, and types and deletes a text.

It touches no chat but the named one: it leaves other chats by Back. It sends nothing without an instruction.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import structlog

from agent_core.apps.learnt import AppLook, SendsBy
from agent_core.apps.profile import AppProfile
from agent_core.devices.base import Device, Key, TextInput, TouchWatch
from agent_core.errors import LearningFailed, PhonedeskError, ScreenOff
from agent_core.geometry import Point
from agent_core.perception.compare import same_name
from agent_core.perception.lists import ChatRow, is_list_page, tabs
from agent_core.perception.observer import Observation, Observer, SeenPage
from agent_core.perception.readings import ChatScreen, SendState, Side
from agent_core.perception.tree import TreeHealth
from agent_core.ports import Lease
from agent_core.reply.match import is_bubble_of, is_draft

MOST_WAYS = 8  # acts on the way to the chat
MOST_PAGES = 6  # pages of the list that are searched for it
ARRIVES_SECONDS = 8.0
SWIPE_SECONDS = 0.6  # slow enough not to fling

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class ReadChat:
    """The named chat as it was read.

    tree: how much the accessibility tree says about it.
    listed: the list, as people may see it, on which the chat was found; None if the chat was already in front.
    """

    seen: Observation
    chat: ChatScreen
    look: AppLook
    tree: TreeHealth
    listed: SeenPage | None = None


@dataclass(frozen=True, slots=True)
class TriedInput:
    """The result of typing. ``sent``: whether the text was seen to arrive; None if none was sent."""

    sends_by: SendsBy
    sent: bool | None = None


class AppLearning:
    """The learning of an app on one phone that we have leased.

    Raises LearningFailed if the app cannot be learnt, and errors of the phone.
    """

    def __init__(
        self,
        observer: Observer,
        profile: AppProfile,
        lease: Lease,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._observer = observer
        self._profile = profile
        self._lease = lease
        self._clock = clock
        self._listed: SeenPage | None = None

    @property
    def _device(self) -> Device:
        return self._observer.device

    # Reading

    async def open_chat(self, contact: str) -> ReadChat:
        """Open the chat with ``contact`` from the app's list and read it."""
        for _ in range(MOST_WAYS):
            seen = await self._look()
            if seen.window.package not in self._profile.packages:
                await self._lease.check()
                await self._device.launch(self._profile.package_among(await self._device.packages()))
            elif seen.chat is not None:
                if same_name(seen.chat.title, contact, drawn=seen.chat.drawn):
                    return await self._read(seen, contact)
                await self._key(Key.BACK)
            else:
                await self._towards(seen, contact)
        raise self._failed("learn_no_way", f"The chat with {contact} did not come to the front.", contact=contact)

    async def in_front(self, contact: str = "") -> ReadChat:
        """Read the chat that is in front, which must be the one with ``contact`` if that is given."""
        return await self._read(await self._look(), contact)

    async def _towards(self, seen: Observation, contact: str) -> None:
        """Act once towards the chat from a page that is not a chat."""
        rows: Sequence[ChatRow] = await self._observer.reader.rows(seen.frame, seen.nodes)
        if not self._named(rows, contact) and is_list_page(rows, seen.readings, self._profile, seen.size):
            rows = await self._further(rows, seen.size, contact)
        found = self._named(rows, contact)
        if len(found) > 1:
            raise self._failed("learn_two_chats", f"Two chats are called {contact}.", contact=contact)
        if found:
            self._listed = await self._observer.page()
            await self._tap(found[0].box.center)
            return
        ours = tabs(seen.readings, self._profile, seen.size)
        tab = next((tab for tab in ours if tab.text.strip() in self._profile.list_tabs), None)
        if tab is not None:
            await self._tap(tab.box.center)
        else:
            await self._key(Key.BACK)

    async def _further(self, rows: Sequence[ChatRow], size: tuple[int, int], contact: str) -> Sequence[ChatRow]:
        """Scroll down the list to the page that has the contact, and return its rows."""
        width, height = size
        for _ in range(MOST_PAGES):
            await self._lease.check()
            low, high = Point(width // 2, round(0.72 * height)), Point(width // 2, round(0.32 * height))
            await self._device.swipe(low, high, SWIPE_SECONDS)
            seen = await self._look()
            before, rows = rows, await self._observer.reader.rows(seen.frame, seen.nodes)
            if self._named(rows, contact):
                return rows
            if not rows or [row.name for row in rows] == [row.name for row in before]:
                break  # the end of the list, or another page
        said = f"{contact} does not stand on the first pages of the list of chats."
        raise self._failed("learn_not_listed", said, contact=contact, pages=MOST_PAGES)

    @staticmethod
    def _named(rows: Sequence[ChatRow], contact: str) -> list[ChatRow]:
        return [row for row in rows if same_name(row.name, contact, drawn=True)]

    async def _read(self, seen: Observation, contact: str) -> ReadChat:
        if seen.keyboard_up:
            await self._key(Key.BACK)
            seen = await self._look()
        chat = seen.chat
        if chat is None:
            raise self._failed("learn_no_chat", "No chat of the app could be read on the screen.")
        if contact and not same_name(chat.title, contact, drawn=chat.drawn):
            said = f"The chat in front is {chat.title!r}, not {contact}."
            raise self._failed("learn_other_chat", said, title=chat.title, contact=contact)
        if chat.group:
            raise self._failed("learn_group", f"{chat.title} is a group.", contact=chat.title)
        from agent_core.perception.app_look import look_of  # needs NumPy, so it is loaded when a picture is read

        look = await asyncio.to_thread(look_of, seen.frame.image, chat, self._profile)
        return ReadChat(seen, chat, look, self._observer.reader.health(seen.nodes, seen.frame), self._listed)

    # Typing

    async def type_and_delete(self, read: ReadChat, text: str, *, send: bool = False) -> TriedInput:
        """Type ``text`` into the input, find the control that sends it, and delete it again; if ``send`` is True, send
        it first.

        The input must be empty. The person's keyboard is restored afterwards, in every outcome.
        """
        chat = await self._with_input(read)
        if chat.draft:
            raise self._failed("learn_draft", f"A text stands in the input already: {chat.draft!r}.", draft=chat.draft)
        if chat.input_box is None:
            raise self._failed("learn_no_input", "The input was not found.")
        async with self._device.touch_watch() as touches:
            await self._tap(chat.input_box.center)
            focused = self._same(await self._look(), read)
            by_key = focused.send_state is SendState.KEYBOARD
            try:
                async with self._device.keyboard() as keyboard:
                    tried = await self._tried(keyboard, read, text, touches, by_key=by_key, send=send)
            finally:
                await self._hide_keyboard(read)
        return tried

    async def _tried(
        self, keyboard: TextInput, read: ReadChat, text: str, touches: TouchWatch, *, by_key: bool, send: bool
    ) -> TriedInput:
        """Type, send if requested, and delete; after a touch the input is a person's and is left as it is."""
        try:
            tried = await self._typed(keyboard, read, text, by_key)
            if send and not touches.touched:
                tried = await self._sent(keyboard, read, text, tried.sends_by)
        except PhonedeskError as error:
            if touches.touched:
                raise self._text_left(read, text, error) from error
            try:
                await self._delete(keyboard, read)
            except PhonedeskError:
                raise self._text_left(read, text, error) from error
            raise
        if not touches.touched:  # the input was empty, so its text is ours
            await self._delete(keyboard, read)
            return tried
        seen = (await self._look()).chat
        empty = seen is not None and same_name(seen.title, read.chat.title) and seen.draft == ""
        if empty and tried.sent:
            return tried
        touched = self._failed("learn_touched", "Somebody touched the phone.")
        raise touched if empty else self._text_left(read, text, touched)

    def _text_left(self, read: ReadChat, text: str, why: PhonedeskError) -> LearningFailed:
        """Return an error that says why it failed, and that the typed text may be in the input."""
        said = f"{why.message} {text!r} may stand in the input of the chat with {read.chat.title}."
        return self._failed("learn_text_left", said, why=why, draft=text, contact=read.chat.title)

    async def _with_input(self, read: ReadChat) -> ChatScreen:
        """Return the chat with its text input, after switching back from a hold-to-talk bar."""
        chat = self._same(await self._look(), read)
        if chat.keyboard_icon is not None:
            await self._tap(chat.keyboard_icon)
            chat = self._same(await self._look(), read)
        return chat

    async def _typed(self, keyboard: TextInput, read: ReadChat, text: str, by_key: bool) -> TriedInput:
        """Type the text and find the control that sends it; the text stays in the input."""
        await self._lease.check()
        await keyboard.type(text)
        chat = self._same(await self._look(), read)
        arrived = is_draft(chat.draft or "", text, chat.source)
        await keyboard.confirm(arrived=arrived)
        if not arrived:
            said = f"The text did not get into the input, which shows {chat.draft!r}."
            raise self._failed("learn_not_typed", said, draft=chat.draft or "")
        if chat.send_state is SendState.ON and chat.send_point is not None:
            way: SendsBy = "button"
        else:
            way = "keyboard_key" if by_key or chat.send_state is SendState.KEYBOARD else "enter"
        return TriedInput(way)

    async def _sent(self, keyboard: TextInput, read: ReadChat, text: str, way: SendsBy) -> TriedInput:
        """Send the typed text and see whether it arrives."""
        seen = self._same(await self._look(), read)
        await self._lease.check()
        if way == "button" and seen.send_point is not None:
            await keyboard.tap(seen.send_point)
        elif way == "keyboard_key":
            await keyboard.send_action()
        else:
            await keyboard.key(Key.ENTER)
        until, arrived = self._clock() + ARRIVES_SECONDS, False
        while not arrived and self._clock() < until:
            chat = self._same(await self._look(), read)
            newest = chat.newest
            arrived = not chat.draft and newest is not None and newest.side is Side.ME
            arrived = arrived and newest is not None and is_bubble_of(newest, text, chat)
        return TriedInput(way, sent=arrived)

    async def _delete(self, keyboard: TextInput, read: ReadChat) -> None:
        """Empty the input, if the chat is still the named one."""
        if not self._same(await self._look(), read).draft:
            return
        await self._lease.check()
        await keyboard.clear()
        left = self._same(await self._look(), read).draft
        if left:
            raise self._failed("learn_not_deleted", "The text that was typed could not be deleted.", draft=left)

    async def _hide_keyboard(self, read: ReadChat) -> None:
        with suppress(PhonedeskError):
            seen = await self._look()
            if seen.keyboard_up and seen.chat is not None and same_name(seen.chat.title, read.chat.title):
                await self._key(Key.BACK)

    # Acting

    def _same(self, seen: Observation, read: ReadChat) -> ChatScreen:
        """Return the chat in front. Raises LearningFailed if it is not the chat that was read."""
        chat = seen.chat
        if chat is None or not same_name(chat.title, read.chat.title):
            said = f"The chat with {read.chat.title} is not in front any more."
            raise self._failed("learn_left", said, contact=read.chat.title)
        return chat

    async def _look(self) -> Observation:
        try:
            return await self._observer.observe(self._profile, model_may_read=True)
        except ScreenOff:
            await self._lease.check()
            await self._device.wake()
            return await self._observer.observe(self._profile, model_may_read=True)

    async def _tap(self, point: Point) -> None:
        await self._lease.check()
        await self._device.tap(point)

    async def _key(self, key: Key) -> None:
        await self._lease.check()
        await self._device.key(key)

    def _failed(self, key: str, said: str, **values: object) -> LearningFailed:
        return LearningFailed(said, advice=None, key=key, app=self._profile.known_as, **values)
