"""Observes the phone: a still picture, the window in front, and the reading of both."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from PIL import Image, ImageChops

from agent_core.apps.learnt import version_of
from agent_core.apps.profile import AppProfile, profile_of_package, resolve
from agent_core.devices.base import Device, Frame, Node, Window
from agent_core.devices.waiting import Still, wait_until_still
from agent_core.errors import ScreenOff, TreeUnavailable
from agent_core.geometry import Box
from agent_core.perception.page_report import ReadPage, read_page, without_secrets
from agent_core.perception.reader import ScreenReader
from agent_core.perception.readings import ChatScreen, Reading, SendState
from agent_core.perception.redaction import Redaction, cover
from agent_core.perception.tree import TreeHealth
from agent_core.ports import Ledger

TreeUse = Literal["auto", "on", "off"]
KEYBOARD_ABOVE = 0.8  # of the screen's height: an input that ends above this has a keyboard below it
PICTURE_TRIES = 3
MOVING = 0.5  # of the screen; if more than that moves, nothing is known about it
CURSOR = 120  # a cursor is at most 1/120 of the screen wide; a letter is wider
AHEAD_SECONDS = 1.0  # a picture that was begun longer ago than this is not used
EFFECT_SECONDS = 0.15  # how long the effect of an act may take to begin to show
GIVE_UP_TREE_AFTER = 2  # unhealthy trees of one app in a row, in "auto"


@dataclass(frozen=True)
class Observation:
    """The result of one observation.

    chat: the chat page in front, for apps with a profile; None if it is none or nothing could read it.
    unread_below: the row (pixels) at which the input begins if this may be an unread chat; None if it is not a chat.
    phases: seconds for ``capture`` (the picture and what is in front), ``settle`` (until the screen was still) and
    ``read`` (tree, OCR, model).
    """

    frame: Frame
    window: Window
    nodes: Sequence[Node] | None
    readings: Sequence[Reading]
    chat: ChatScreen | None
    seconds: float
    unread_below: int | None = None
    phases: Mapping[str, float] = field(default_factory=dict)

    @property
    def size(self) -> tuple[int, int]:
        return self.frame.size

    @property
    def keyboard_up(self) -> bool:
        """True if a keyboard is open below the chat's input, which is at the very bottom without one."""
        if self.chat is not None and self.chat.send_state is SendState.KEYBOARD:
            return True
        field = self.chat.input_box if self.chat else None
        return field is not None and field.bottom < KEYBOARD_ABOVE * self.size[1]


@dataclass(frozen=True)
class SeenPage:
    """A screen for people, with secrets covered, and what was read of it.

    app: its name; "" if the app has no profile.
    """

    image: Image.Image = field(repr=False)
    page: ReadPage
    app: str = ""


def changed_width(now: Frame, then: Frame, box: Box) -> int:
    """Return the width in pixels of the area inside ``box`` that has changed."""
    area = box.as_tuple()
    changed = ImageChops.difference(now.image.crop(area), then.image.crop(area)).getbbox()
    return 0 if changed is None else changed[2] - changed[0]


def moving_part(now: Frame, then: Frame, before: Box | None = None) -> Box | None:
    """Return the box around all that has changed; None if that is most of the screen, or the screen was turned.

    before: what had changed until ``then``.
    """
    if now.size != then.size:
        return None
    boxes = [before.as_tuple()] if before is not None else []
    if (found := ImageChops.difference(now.image, then.image).getbbox()) is not None:
        boxes.append(found)
    left, top, right, bottom = zip(*boxes, strict=True) if boxes else ((0,),) * 4
    box = Box(min(left), min(top), max(right), max(bottom))
    return box if box.width * box.height <= MOVING * now.size[0] * now.size[1] else None


def is_same_but_for_a_cursor(now: Frame, then: Frame, box: Box | None = None) -> bool:
    """Tell whether two pictures are the same in ``box`` (None: everywhere), except for a blinking cursor."""
    if now.digest == then.digest:
        return True
    return now.size == then.size and changed_width(now, then, box or Box(0, 0, *now.size)) * CURSOR <= now.size[0]


def screen_for_people(device: Device) -> Observer:
    """Return what shows the phone's screen with secrets covered, found by the tree, which needs nothing installed."""
    return Observer(device, ScreenReader(ocr=None, model=None))


async def read_for_people(device: Device) -> SeenPage:
    """Return the tree's reading of the phone's current screen."""
    return await screen_for_people(device).page()


@dataclass(frozen=True, slots=True)
class _Read:
    """A screen whose tree was read, for people. ``moving``: the part that changed meanwhile."""

    frame: Frame
    window: Window
    nodes: Sequence[Node]
    moving: Box | None = None


class Observer:
    """The observer of one phone. It remembers which apps have no healthy tree, so that none is requested in vain."""

    def __init__(
        self,
        device: Device,
        reader: ScreenReader,
        *,
        ledger: Ledger | None = None,
        tree: TreeUse = "auto",
        blur: bool = True,
    ) -> None:
        """Make an observer of ``device``.

        ledger: knows what was learnt about the apps on this phone.
        tree: "auto" stops requesting an app's tree after two unhealthy ones in a row.
        blur: False shows everything in pictures for people.
        """
        self.device = device
        self.reader = reader
        self._ledger = ledger
        self.redaction = Redaction(reader, on=blur)
        self._tree = tree
        self._bad_trees: Counter[str] = Counter()
        self._read: _Read | None = None  # the newest of ``picture``
        self._newest = ""  # the digest of the newest screen that ``picture`` did not know
        self._ahead: asyncio.Task[Still] | None = None  # see ``look_ahead``
        self._ahead_since = 0.0  # monotonic

    def look_ahead(self, before: Frame | None = None) -> None:
        """Begin to take the next observation's picture, while the caller stores the last step.

        before: the screen before an action whose effect is awaited for a moment.
        """
        digest = before.digest if before is not None else None
        waiting = wait_until_still(self.device, before=digest, patience=EFFECT_SECONDS)
        self._ahead, self._ahead_since = asyncio.create_task(waiting, name="look-ahead"), time.monotonic()

    async def end_look_ahead(self) -> None:
        """Drop a picture that was begun and that nobody has asked for."""
        if self._ahead is not None:
            self._ahead.cancel()
            await asyncio.gather(self._ahead, return_exceptions=True)
            self._ahead = None

    async def _still(self) -> Still:
        if self._ahead is not None and self._ahead.done() and time.monotonic() - self._ahead_since > AHEAD_SECONDS:
            await self.end_look_ahead()  # whatever held the run up, the phone went on
        ahead, self._ahead = self._ahead, None
        return await (ahead if ahead is not None else wait_until_still(self.device))

    async def observe(
        self, profile: AppProfile | None, *, read: bool = True, model_may_read: bool = False
    ) -> Observation:
        """Observe as soon as the screen is still.

        Raises ScreenOff if a person has switched the screen off.

        profile: the app whose chat page is wanted.
        read: whether texts are read at all.
        model_may_read: whether a model may transcribe the chat page if neither tree nor OCR can read it.
        """
        capture = settle = reading = 0.0
        for tries_left in reversed(range(PICTURE_TRIES)):
            still = await self._still()
            begun = time.monotonic()
            frame, look = still.frame, still.look
            settle += still.seconds - still.capturing
            capture += still.capturing
            if not look.screen.awake:
                raise ScreenOff("The screen went off.", key="screen_went_off")
            nodes = await self._nodes(look.window, frame) if read or self.redaction.needs_tree else None
            in_app = profile is not None and look.window.package in profile.packages
            # A screen that never rests (a moving sticker) is compared with its tree only by what both say.
            of_one_moment = not (in_app and nodes and still.still and tries_left) or await self._is_of(nodes, frame)
            reading += time.monotonic() - begun
            if of_one_moment:
                break
        begun = time.monotonic()
        readings = await self.reader.readings(frame, nodes) if read else []
        chat = None
        if profile is not None and in_app:
            here = await self._of_this_phone(profile)
            chat = await self.reader.chat(frame, nodes, here, use_model=model_may_read)
        self.redaction.saw(frame, look.window.package, nodes, chat)
        reading += time.monotonic() - begun
        phases = {"capture": capture, "settle": settle, "read": reading}
        return Observation(frame, look.window, nodes, readings, chat, sum(phases.values()), phases=phases)

    async def observe_closely(self, profile: AppProfile) -> Observation:
        """Observe, and if a page of the app may be an unread chat, observe once more with a model's help.

        If it may still be a chat, ``unread_below`` says so: nobody may act in it as if it were none.
        """
        seen = await self.observe(profile)
        if seen.chat is not None or seen.window.package not in profile.packages:
            return seen
        if await self._unread_below(seen, profile, model_may_read=False) is None:
            return seen
        again = await self.observe(profile, model_may_read=True)
        phases = {name: seconds + again.phases.get(name, 0.0) for name, seconds in seen.phases.items()}
        again = replace(again, seconds=seen.seconds + again.seconds, phases=phases)
        if again.chat is not None or again.window.package not in profile.packages:
            return again
        below = await self._unread_below(again, profile, model_may_read=True)
        return replace(again, unread_below=below)

    async def _unread_below(self, seen: Observation, profile: AppProfile, *, model_may_read: bool) -> int | None:
        here = await self._of_this_phone(profile)
        return await self.reader.unread_below(seen.frame, seen.nodes, here, seen.readings, use_model=model_may_read)

    async def chat(self, profile: AppProfile) -> ChatScreen | None:
        """Return the chat page in front, by whatever can read it; None if no chat of this app is in front."""
        return (await self.observe(profile, model_may_read=True)).chat

    async def texts_now(self, frame: Frame, window: Window) -> Sequence[Reading]:
        """Return the reading of a picture of this window that was taken just now."""
        return await self.reader.readings(frame, await self._nodes(window, frame))

    async def picture(self) -> Image.Image:
        """Return the current screen for people, with everything covered that they may not see.

        A screen that was shown before by this observer costs one call. Of a screen that moves, the part that moves is
        covered until it rests, because nobody knows yet what stands there.
        """
        frame, _, _ = await self._moment(with_tree=self.redaction.needs_tree, certain=self.redaction.on, known=True)
        return await self.redaction.over(frame)

    async def page(self) -> SeenPage:
        """Return the current screen and what is read of it for people, with secrets covered in both.

        Raises ExtraMissing if nothing here can read it.
        """
        frame, window, nodes = await self._moment(with_tree=True, certain=True)
        profile = profile_of_package(window.package)
        here = await self._of_this_phone(profile) if profile else None
        page = await read_page(self.reader, frame, nodes, here) if here else ReadPage()
        covered = await self.redaction.boxes(frame)
        image = await asyncio.to_thread(cover, frame.image, covered) if covered else frame.image
        return SeenPage(image, without_secrets(page, covered), profile.name if profile else "")

    async def _of_this_phone(self, profile: AppProfile) -> AppProfile:
        """Return the profile for the app's version on this phone, with what was learnt about it here."""
        version = await version_of(self.device, profile)
        if not version:
            return profile
        learnt = await self._ledger.learnt(self.device.serial, profile.key, version) if self._ledger else None
        here = resolve(profile.key, version)
        return learnt.on(here) if learnt is not None else here

    async def _moment(
        self, *, with_tree: bool, certain: bool, known: bool = False
    ) -> tuple[Frame, Window, Sequence[Node] | None]:
        """Return a picture, the window in front when it was taken, and its tree, None if the screen does not rest.

        certain: make sure that the picture is of that window, and tell the redaction so; otherwise the picture counts
        as sensitive.
        known: a screen of which the redaction knows what to cover needs nothing else.
        """
        for _ in range(PICTURE_TRIES):
            looked = await self.device.observe()
            before, frame = looked.look.window, looked.frame
            if known and self.redaction.knows(frame):
                return frame, before, None
            if known and await self._still_moves(frame, before):
                return frame, before, None
            nodes = await self._nodes(before, frame) if with_tree else None
            # Neither a tree nor an app says anything about a picture of something else.
            after = await self.device.screenshot() if nodes is not None else frame
            still = after.digest == frame.digest
            moving = await asyncio.to_thread(moving_part, after, frame) if known and not still else None
            if nodes is not None and moving is not None and await self.device.window() == before:
                self.redaction.saw(after, before.package, nodes, moving=moving)
                self._read = _Read(after, before, nodes, moving)
                return after, before, nodes
            if not certain or (still and await self.device.window() == before):
                self.redaction.saw(frame, before.package, nodes)
                if known and nodes is not None:
                    self._read = _Read(frame, before, nodes)
                return frame, before, nodes
        return frame, before, None

    async def _still_moves(self, frame: Frame, window: Window) -> bool:
        """Tell whether only a part of the screen moves since its tree was read, which is then covered.

        A screen that rests is read anew, so that all of it is shown.
        """
        rests, self._newest = frame.digest == self._newest, frame.digest
        read = self._read
        if rests or read is None or read.window != window:
            return False
        moving = await asyncio.to_thread(moving_part, frame, read.frame, read.moving)
        if moving is not None:
            self.redaction.saw(frame, window.package, read.nodes, moving=moving)
        return moving is not None

    async def _is_of(self, nodes: Sequence[Node], frame: Frame) -> bool:
        """Tell whether the tree belongs to the picture: the screen is the same before and after the dump.

        A dump takes seconds on a phone; whatever appears meanwhile would be in the tree or in the picture, but not in
        both.
        """
        if self.reader.health(nodes, frame) is not TreeHealth.FULL:
            return True  # nothing is read from it
        return is_same_but_for_a_cursor(frame, await self.device.screenshot())

    async def _nodes(self, window: Window, frame: Frame) -> Sequence[Node] | None:
        package = window.package or ""
        if self._tree == "off" or (self._tree == "auto" and self._bad_trees[package] >= GIVE_UP_TREE_AFTER):
            return None
        try:
            nodes = await self.device.tree()
        except TreeUnavailable:
            self._bad_trees[package] += 1
            return None
        if self.reader.health(nodes, frame) is TreeHealth.FULL:
            self._bad_trees[package] = 0
        else:
            self._bad_trees[package] += 1
        return nodes
