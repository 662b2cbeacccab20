"""One look at the phone: a still picture, what is in front, and what can be read from it."""

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
from agent_core.devices.stillness import wait_until_still
from agent_core.errors import ScreenOff, TreeUnavailable
from agent_core.geometry import Box
from agent_core.perception.page_report import ReadPage, read_page, without_secrets
from agent_core.perception.reader import ScreenReader, TreeHealth
from agent_core.perception.readings import ChatScreen, Reading, SendState
from agent_core.perception.redaction import Redaction, cover
from agent_core.ports import Ledger

TreeUse = Literal["auto", "on", "off"]
KEYBOARD_ABOVE = 0.8  # of the screen's height: an input whose lower edge is above has a keyboard below it
PICTURE_TRIES = 3
CURSOR = 120  # a cursor is at most the 120th part of the screen wide; a letter is wider
GIVE_UP_TREE_AFTER = 2  # unhealthy trees of one app in a row, in "auto"


@dataclass(frozen=True)
class Observation:
    """``chat`` is the chat page in front, for apps with a profile; None where it is none or nothing could read it.

    ``unread_below``: it may be one that could not be read, whose input begins here (pixels); None where it is none.
    ``phases``: seconds of ``capture`` (a picture, and what is in front), ``settle`` (until the screen rested) and
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
        """Whether a keyboard stands below the chat's input, which is at the very bottom without one."""
        if self.chat is not None and self.chat.send_state is SendState.KEYBOARD:
            return True
        field = self.chat.input_box if self.chat else None
        return field is not None and field.bottom < KEYBOARD_ABOVE * self.size[1]


@dataclass(frozen=True)
class SeenPage:
    """A screen for people, secrets covered, and what was read of it. ``app``: its name, "" for none with a profile."""

    image: Image.Image = field(repr=False)
    page: ReadPage
    app: str = ""


def changed_width(now: Frame, then: Frame, box: Box) -> int:
    """Return how wide what has changed in the box is, in pixels."""
    area = box.as_tuple()
    changed = ImageChops.difference(now.image.crop(area), then.image.crop(area)).getbbox()
    return 0 if changed is None else changed[2] - changed[0]


def is_same_but_for_a_cursor(now: Frame, then: Frame, box: Box | None = None) -> bool:
    """Return whether two pictures show the same in ``box`` (None: everywhere), but for a cursor that blinks."""
    if now.digest == then.digest:
        return True
    return now.size == then.size and changed_width(now, then, box or Box(0, 0, *now.size)) * CURSOR <= now.size[0]


async def look_for_people(device: Device) -> Image.Image:
    """The phone's screen as it is now, secrets covered, by what can read it without anything installed: the tree."""
    return await Observer(device, ScreenReader(ocr=None, model=None)).picture()


async def read_for_people(device: Device) -> SeenPage:
    """What is read of the phone's screen as it is now, by what can read it without anything installed: the tree."""
    return await Observer(device, ScreenReader(ocr=None, model=None)).page()


class Observer:
    """Looks at one phone. Remembers which apps have no healthy tree, so that it is not asked for in vain."""

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

        ``ledger`` knows what was learnt of the apps on this phone. ``blur`` False: pictures for people show everything.
        """
        self.device = device
        self.reader = reader
        self._ledger = ledger
        self.redaction = Redaction(reader, on=blur)
        self._tree = tree
        self._bad_trees: Counter[str] = Counter()

    async def observe(
        self, profile: AppProfile | None, *, read: bool = True, model_may_read: bool = False
    ) -> Observation:
        """Look once the screen is still. ``profile`` asks for the chat page of that app, ``read`` for texts at all.

        ``model_may_read`` lets a model transcribe the chat page where neither tree nor OCR can. ScreenOff where a
        person has switched the screen off.
        """
        begun = time.monotonic()
        waited = settle = 0.0
        for tries_left in reversed(range(PICTURE_TRIES)):
            asked = time.monotonic()
            still = await wait_until_still(self.device)
            frame = still.frame
            look = await self.device.look()
            settle += still.seconds - still.capturing
            waited += time.monotonic() - asked
            if not look.screen.awake:
                raise ScreenOff("The screen went off.", key="screen_went_off")
            nodes = await self._nodes(look.window, frame) if read or self.redaction.needs_tree else None
            in_app = profile is not None and look.window.package in profile.packages
            # A screen that never rests (a moving sticker) is held against its tree by what both say alone.
            if not (in_app and nodes and still.still and tries_left) or await self._is_of(nodes, frame):
                break
        readings = await self.reader.readings(frame, nodes) if read else []
        chat = None
        if profile is not None and in_app:
            here = await self._of_this_phone(profile)
            chat = await self.reader.chat(frame, nodes, here, use_model=model_may_read)
        self.redaction.saw(frame, look.window.package, nodes, chat)
        now = time.monotonic()
        phases = {"capture": waited - settle, "settle": settle, "read": now - begun - waited}
        return Observation(frame, look.window, nodes, readings, chat, now - begun, phases=phases)

    async def observe_closely(self, profile: AppProfile) -> Observation:
        """As ``observe``; a page of the app that may be a chat and was not read is looked at once more, and a model may
        read it. What may then still be one is told: nobody may act in it as if it were none.
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
        """The chat page in front, by whatever can read it; None where no chat of this app is in front."""
        return (await self.observe(profile, model_may_read=True)).chat

    async def texts_now(self, frame: Frame, window: Window) -> Sequence[Reading]:
        """What can be read of a picture that was taken just now, of this window."""
        return await self.reader.readings(frame, await self._nodes(window, frame))

    async def picture(self) -> Image.Image:
        """The screen as it is now, for people: what they may not see is covered."""
        frame, _, _ = await self._moment(with_tree=self.redaction.needs_tree, certain=self.redaction.on)
        return await self.redaction.over(frame)

    async def page(self) -> SeenPage:
        """The screen as it is now, and what is read of it, for people: what they may not see is covered in both.

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
        """Return the profile for the version of the app that this phone has, with what was learnt of it here."""
        version = await version_of(self.device, profile)
        if not version:
            return profile
        learnt = await self._ledger.learnt(self.device.serial, profile.key, version) if self._ledger else None
        here = resolve(profile.key, version)
        return learnt.on(here) if learnt is not None else here

    async def _moment(self, *, with_tree: bool, certain: bool) -> tuple[Frame, Window, Sequence[Node] | None]:
        """A picture, what was in front as it was taken, and its tree: None if the screen does not rest.

        ``certain``: the picture is of that window for sure, and the redaction is told of it, else it counts as
        sensitive.
        """
        for _ in range(PICTURE_TRIES):
            before = await self.device.window()
            frame = await self.device.screenshot()
            nodes = await self._nodes(before, frame) if with_tree else None
            # A tree, and an app, tell nothing of a picture that was taken of something else.
            still = nodes is None or (await self.device.screenshot()).digest == frame.digest
            if not certain or (still and await self.device.window() == before):
                self.redaction.saw(frame, before.package, nodes)
                return frame, before, nodes
        return frame, before, None

    async def _is_of(self, nodes: Sequence[Node], frame: Frame) -> bool:
        """Return whether the tree counts for the picture: the screen shows the same before and after it was dumped.

        A dump takes seconds on a phone, and what comes in the meantime would stand in the one and not in the other.
        """
        if self.reader.health(nodes, frame) is not TreeHealth.FULL:
            return True  # nothing is read of it
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
