"""Reads the chat page for an answer: without a keyboard over it, and as far up as the question goes."""

from __future__ import annotations

from dataclasses import replace

import structlog

from agent_core.devices.base import Key
from agent_core.geometry import Point
from agent_core.perception.compare import same_name
from agent_core.perception.observer import Observation
from agent_core.perception.readings import Bubble, ChatScreen, Side
from agent_core.reply.match import same_text
from agent_core.reply.sender import ReplyContext

log = structlog.get_logger(__name__)

PAGES_UP = 4  # how far a question is followed; a longer one is left to a person
SWIPE_SECONDS = 0.6  # slow enough not to fling
FLICK_SECONDS = 0.15  # flings to the very end of the page
EDGE = 24  # letters that a line at the edge of a view may have
ANCHOR = 32  # letters by which two views of a text are aligned


class ChatLooks:
    """The reader of the chat in front for one run. It touches the phone only to close a keyboard and to scroll."""

    def __init__(self, context: ReplyContext) -> None:
        self._context = context
        self._keyboard_stays = False  # Back did not close it

    async def surer(self, seen: Observation) -> Observation:
        """Read the chat again if it is not sure.

        The tree may have been older than the picture, a keyboard may hide the question, or a long question needs
        scrolling.
        """
        whole = await self.whole(seen)
        return whole if whole.chat is not None and whole.chat.sure else await self._context.look()

    async def whole(self, seen: Observation) -> Observation:
        """Return the page without a keyboard, and with the upper part of the question if it is out of sight.

        The keyboard must not hide the page's upper half, because messages are recognised by those above them.
        """
        if seen.keyboard_up and not self._keyboard_stays:
            await self._context.lease.check()
            await self._context.device.key(Key.BACK)
            seen = await self._context.look()
            self._keyboard_stays = seen.chat is None or seen.keyboard_up
        if seen.chat is not None and seen.chat.partial:
            return await self._scrolled(seen, seen.chat, Side.ME)
        return seen

    async def above_ours(self, seen: Observation) -> Observation:
        """Return the page with the messages above our newest texts, if those fill the screen."""
        seen = await self.whole(seen)
        if seen.chat is None or any(bubble.side is Side.THEM for bubble in seen.chat.bubbles):
            return seen
        return await self._scrolled(seen, seen.chat, Side.THEM)

    async def lowest(self, seen: Observation) -> Observation:
        """Return the page at its lower end, in case the model or a person has scrolled it up."""
        before = seen.chat
        for _ in range(PAGES_UP):
            await self._swipe(seen, up=False, seconds=FLICK_SECONDS)
            seen = await self._context.look()
            if before is None or seen.chat is None or not same_name(seen.chat.title, before.title):
                break
            if _said(seen.chat) == _said(before):
                break
            before = seen.chat
        return seen

    async def _scrolled(self, seen: Observation, bottom: ChatScreen, until: Side) -> Observation:
        """Scroll up until a bubble of ``until`` appears, and back down.

        Returns the page with all bubbles joined, or the current one if that fails.
        """
        bubbles, swipes, begun = list(bottom.bubbles), 0, False
        while swipes < PAGES_UP and not begun:
            await self._swipe(seen, up=True)
            swipes += 1
            page = (await self._context.look()).chat
            if page is None or not same_name(page.title, bottom.title):
                return await self._context.look()  # somebody has left the chat: do not touch anything there
            joined = joined_bubbles(page.bubbles, bubbles, bottom)
            if joined is None:
                break
            begun = any(bubble.side is until for bubble in joined)
            if joined == bubbles:
                begun = True  # the chat begins here
            bubbles = joined
        for _ in range(swipes + 1):
            await self._swipe(seen, up=False)
        now = await self._context.look()
        same = now.chat is not None and now.chat.partial == bottom.partial
        if not begun or now.chat is None or not same or now.chat.bubbles[1:] != bottom.bubbles[1:]:
            log.info("not_read_whole", swipes=swipes)
            return now
        chat = replace(now.chat, bubbles=tuple(bubbles), sure=True, doubts=(), partial=False)
        return replace(now, chat=chat)

    async def _swipe(self, seen: Observation, *, up: bool, seconds: float = SWIPE_SECONDS) -> None:
        await self._context.lease.check()
        width, height = seen.size
        high, low = Point(width // 2, round(0.25 * height)), Point(width // 2, round(0.62 * height))
        start, end = (high, low) if up else (low, high)
        await self._context.device.swipe(start, end, seconds)


def _said(chat: ChatScreen) -> list[tuple[Side, str]]:
    return [(bubble.side, bubble.text) for bubble in chat.bubbles]


def joined_bubbles(page: tuple[Bubble, ...], below: list[Bubble], chat: ChatScreen) -> list[Bubble] | None:
    """Join the bubbles of a page further up with those below; None if they do not fit together.

    The first bubble below may be cut off, and so may the last one above.
    """

    def alike(one: Bubble, other: Bubble) -> bool:
        same = one.side is other.side and one.kind is other.kind
        return same and same_text(one.text, other.text, chat.source)

    known = below[1:]  # complete bubbles
    for start in range(len(page)):
        overlap = page[start:]
        count = min(len(overlap), len(known))
        if count and all(alike(a, b) for a, b in zip(overlap[:count], known, strict=False)):
            return [*page[:start], *known]
    # No complete bubble is on that page, so it must end within the cut-off one.
    last = page[-1] if page else None
    if last is None or not below or last.side is not below[0].side or last.kind is not below[0].kind:
        return None
    text = joined_text(last.text, below[0].text)
    return None if text is None else [*page[:-1], replace(last, text=text), *known]


def joined_text(upper: str, lower: str) -> str | None:
    """Join two views of one long text, or return None without overlap. Lines at their edges may be cut or misread."""
    for start in range(EDGE, max(EDGE, len(lower) - ANCHOR) + 1, ANCHOR // 2):
        anchor = lower[start : start + ANCHOR]
        if len(anchor) == ANCHOR and upper.count(anchor) == 1:
            return upper[: upper.index(anchor)] + lower[start:]
    return None
