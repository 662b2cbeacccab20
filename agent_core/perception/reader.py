"""Reads a screen with the best source for each question. It never touches a device."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b

from agent_core.apps.profile import AppProfile
from agent_core.devices.base import Frame, Node
from agent_core.geometry import Box
from agent_core.model.base import Model
from agent_core.perception import badges, picture, popups, tree
from agent_core.perception.compare import normalise
from agent_core.perception.lists import ChatRow, chat_rows, count_unread, read_number, tree_rows, without_marks
from agent_core.perception.ocr import OcrEngine
from agent_core.perception.readings import ChatScreen, Doubt, DoubtKind, Reading, Source
from agent_core.perception.transcribe import Transcriber
from agent_core.perception.tree import TreeHealth

BANNER = 0.16  # of the screen's height: notifications slide in here


class ScreenReader:
    """A reader of frames and nodes that the caller provides.

    ocr: an engine whose extra is not installed is not used.
    sources: limits what is used (None: everything that is available).
    """

    def __init__(self, *, ocr: OcrEngine | None, model: Model | None, sources: Sequence[Source] | None = None) -> None:
        allowed = set(Source) if sources is None else set(sources)
        self._tree = Source.TREE in allowed
        self._ocr = ocr if ocr is not None and Source.OCR in allowed and ocr.available() else None
        self._transcriber = Transcriber(model) if model is not None and Source.MODEL in allowed else None

    def health(self, nodes: Sequence[Node] | None, frame: Frame) -> TreeHealth:
        """Tell whether the tree has anything to say about the content of the frame."""
        return tree.health(nodes, frame.size)

    async def readings(self, frame: Frame, nodes: Sequence[Node] | None) -> list[Reading]:
        """Return the texts of the screen from its best source: a healthy tree, else OCR, else none."""
        healthy = self._healthy(nodes, frame)
        if healthy is not None:
            return tree.readings(healthy, frame.size)
        if self._ocr is not None:
            return await self._ocr.read(frame.image, digest=frame.digest)
        return []

    @property
    def reads_pictures(self) -> bool:
        """True if texts can be read here without the tree."""
        return self._ocr is not None

    async def texts(self, frame: Frame, nodes: Sequence[Node] | None) -> list[Reading] | None:
        """Return the texts with their places, as ``readings`` does, or None if nothing can read them.

        A tree covers only the app's window. A notification that slides in over its top is read by OCR, if it is
        installed and something is drawn there that the tree does not contain.
        """
        healthy = self._healthy(nodes, frame)
        if healthy is None:
            return await self.readings(frame, nodes) if self._ocr is not None else None
        found = tree.readings(healthy, frame.size)
        strip = Box(0, 0, frame.size[0], round(BANNER * frame.size[1]))
        if self._ocr is not None and await asyncio.to_thread(popups.strange, frame.image, healthy, strip):
            digest = blake2b(frame.image.crop(strip.as_tuple()).tobytes(), digest_size=16).hexdigest()
            found += await self._ocr.read(frame.image, strip, digest=digest)
        return found

    async def rows(self, frame: Frame, nodes: Sequence[Node] | None) -> list[ChatRow]:
        """Return the rows of a list of chats or of search results, from the top."""
        healthy = self._healthy(nodes, frame)
        if healthy is not None:
            return await count_unread(tree_rows(healthy, frame), frame, self._ocr)
        if self._ocr is None:
            return []
        readings = await without_marks(await self.readings(frame, nodes), frame, self._ocr)
        return await count_unread(chat_rows(readings, frame), frame, self._ocr)

    async def counted(self, frame: Frame, area: Box) -> tuple[int, bool]:
        """Return the highest count of the red marks in ``area``, and whether there is a mark without a number."""
        marks = badges.red_marks(frame.image, area)
        counts = [await read_number(mark, frame, self._ocr) for mark in marks]
        return max(counts, default=0), any(not mark.number for mark in marks)

    async def chat(
        self, frame: Frame, nodes: Sequence[Node] | None, profile: AppProfile, *, use_model: bool = True
    ) -> ChatScreen | None:
        """Return the chat page in front, or None if it is none. ``sure`` says whether its sources agree.

        use_model: False asks no model, even if nothing else can read the page.
        """
        seen = await self._chat(frame, nodes, profile, use_model=use_model)
        return seen and _with_said_wrong(seen, profile.said_wrong)

    async def _chat(
        self, frame: Frame, nodes: Sequence[Node] | None, profile: AppProfile, *, use_model: bool
    ) -> ChatScreen | None:
        healthy = self._healthy(nodes, frame)
        if healthy is not None:
            seen = tree.chat(healthy, profile, frame.size)
            if seen is not None:
                return await self._borne_out(seen, healthy, frame, profile, self._transcriber if use_model else None)
        if self._ocr is not None:
            from agent_core.perception import chat as pages  # needs NumPy, so it is loaded when a picture is read

            second = self._transcriber if use_model else None
            return await pages.read_chat(self._ocr, frame, profile, second)
        if use_model and self._transcriber is not None and healthy is None:
            from agent_core.perception.vision import read_by_model

            return await read_by_model(self._transcriber, frame, (nodes or ()) if self._tree else (), profile)
        return None

    async def unread_below(
        self,
        frame: Frame,
        nodes: Sequence[Node] | None,
        profile: AppProfile,
        readings: Sequence[Reading],
        *,
        use_model: bool = True,
    ) -> int | None:
        """Return the row (pixels) at which the input begins, for an unread page that may be a chat; None if it is none.

        A page that nothing can read may be one.

        use_model: False asks no model.
        """
        healthy = self._healthy(nodes, frame)
        told = healthy or nodes or () if self._tree else ()
        field = tree.input_node(told, profile, frame.size) or tree.voice_bar(told, profile, frame.size)
        if field is not None:
            return field.box.top
        if healthy is not None:
            return None
        from agent_core.perception.layout import input_top

        top = await asyncio.to_thread(input_top, frame.image)
        if top is not None:
            return top
        half = frame.size[1] // 2
        if readings:
            ours = {normalise(text) for text in profile.send_texts}
            sends = [r.box for r in readings if r.box.center.y > half and normalise(r.text) in ours]
            return min((send.top for send in sends), default=None)
        if use_model and self._transcriber is not None:
            crop = frame.image.crop((0, half, *frame.size))
            return None if await self._transcriber.draft(crop) == (True, None) else half
        return half

    def _healthy(self, nodes: Sequence[Node] | None, frame: Frame) -> Sequence[Node] | None:
        if not self._tree or nodes is None:
            return None
        return nodes if self.health(nodes, frame) is TreeHealth.FULL else None

    async def _borne_out(
        self,
        seen: ChatScreen,
        nodes: Sequence[Node],
        frame: Frame,
        profile: AppProfile,
        second: Transcriber | None,
    ) -> ChatScreen:
        title = tree.title_node(nodes, profile, frame.size)
        from agent_core.perception import chat as pages

        if self._ocr is not None:
            return await pages.checked(self._ocr, seen, title.box if title else None, frame, profile, second)
        seen, torn = pages.placed(seen, frame.image, profile)
        new = [*_blank_doubts(seen, title.box if title else None, frame), *torn]
        return replace(seen, sure=False, doubts=(*seen.doubts, *new), torn=bool(torn)) if new else seen


def _with_said_wrong(seen: ChatScreen, parts: Sequence[str]) -> ChatScreen:
    """Add a doubt for each part that a person said is read wrongly on this phone."""
    doubts = [Doubt(DoubtKind.SAID_WRONG, part) for part in parts if part != "list"]
    if not doubts:
        return seen
    return replace(
        seen,
        sure=False,
        partial=False,
        doubts=(*seen.doubts, *doubts),
        title_sure=seen.title_sure and "title" not in parts,
        draft_sure=seen.draft_sure and "input" not in parts,
    )


def _blank_doubts(seen: ChatScreen, title: Box | None, frame: Frame) -> list[Doubt]:
    """Return doubts if the picture shows nothing where the tree has the title or the newest message (without OCR)."""
    newest = seen.newest.box if seen.newest else None
    return [
        Doubt(kind)
        for kind, box in ((DoubtKind.NO_INK_TITLE, title), (DoubtKind.NO_INK_MESSAGE, newest))
        if box is not None and not picture.has_ink(frame.image, box)
    ]
