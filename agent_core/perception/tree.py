"""Turns a healthy accessibility tree into readings and a chat page.

Title, input and Send are found by their places. The ids of the profile are hints: they change from build to build, and
an id may mean another thing in the next one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from agent_core.apps.profile import AppProfile
from agent_core.devices.base import Node
from agent_core.geometry import Box, Point
from agent_core.perception.compare import counts_members
from agent_core.perception.kinds import is_hint
from agent_core.perception.readings import Bubble, ChatScreen, Doubt, DoubtKind, Reading, SendState, Side, Source
from agent_core.perception.tree_rows import Messages, has_id, messages, visible, within

_SYSTEM = frozenset({"com.android.systemui"})
_ROLES = (("EditText", "input"), ("Button", "button"), ("Image", "image"), ("CheckBox", "switch"), ("Switch", "switch"))
_LISTS = ("RecyclerView", "ListView")
_BACK = re.compile(r"^(?:返回|后退|向上导航|转到上一层级|Back\b|Navigate up)", re.I)
_BACK_TEXT = re.compile(r"^(?:返回|消息|微信)\s*(?:[(（]\d+\+?[)）])?$")  # beside the arrow in older versions
_PILL = re.compile(r"^\d{1,3}\+?$")  # the unread count of other chats, beside the arrow
_COUNT = re.compile(r"^[(（]\d{1,6}[)）]$")
_STATUS = re.compile(
    r"^(?:(?:手机|电脑|平板|iphone|ipad|[2345]g|wi-?fi|wlan)?\s?在线|离线|离开|忙碌|隐身|请勿打扰|q我吧|听歌中|online|offline|away|busy)"
    r"(?:[\s\-–—]+(?:[2345]g|wi-?fi|wlan|手机|电脑))?$|^(?:对方)?正在(?:输入|讲话|说话)(?:中)?[.…。]*$",
    re.I,
)
HEADER = (0.02, 0.125)  # of the height: the middle of a header lies here
AROUND = 0.045  # of the height: how far a header's texts are from the middle of the back arrow
BELOW = 0.0075  # of the height: a text this far below the middle of the arrow is not a name
TALLER = 1.2  # how much taller a name is than a tag beside it
ICONS = 0.75  # of the width: the icons on the right begin here
LOWER = 0.35  # of the height: an input above this is a search field


class TreeHealth(StrEnum):
    FULL = "full"
    NO_TEXTS = "no_texts"  # there are nodes, but their texts are hidden
    EMPTY = "empty"


def health(nodes: Sequence[Node] | None, size: tuple[int, int]) -> TreeHealth:
    """Return how much a tree says about a screen of ``size`` pixels. The status bar does not count."""
    own = [node for node in nodes or () if node.package not in _SYSTEM and visible(node.box, size)]
    if len(own) <= 2 and not any(node.text.strip() for node in own):
        return TreeHealth.EMPTY
    texts = sum(1 for node in own if node.text.strip())
    return TreeHealth.FULL if texts >= 2 or texts * 2 >= len(own) else TreeHealth.NO_TEXTS


def readings(nodes: Sequence[Node], size: tuple[int, int]) -> list[Reading]:
    """Return the texts of the visible nodes, in the tree's order: the text, else the description."""
    found = []
    for node in nodes:
        text = node.text.strip() or node.description.strip()
        if text and visible(node.box, size):
            found.append(
                Reading(text=text, box=node.box, source=Source.TREE, clickable=node.clickable, role=_role(node))
            )
    return found


# The header


@dataclass(frozen=True, slots=True)
class _Header:
    """The header of a chat. ``sure``: only one text can be the name. ``bottom``: of the whole header, in pixels."""

    title: Node
    sure: bool
    group: bool
    bottom: int


def title_node(nodes: Sequence[Node], profile: AppProfile, size: tuple[int, int]) -> Node | None:
    """Return the node with the name of the chat; None if there is none."""
    header = _header(nodes, profile, size)
    return header.title if header else None


def _header(nodes: Sequence[Node], profile: AppProfile, size: tuple[int, int]) -> _Header | None:
    """Return the header: the name is right of the back arrow, left of the icons, above a status line."""
    width, height = size
    own = [node for node in nodes if node.package not in _SYSTEM and visible(node.box, size)]
    back = _back(own, profile, size)

    def beside(node: Node) -> bool:
        y = node.box.center.y
        if back is not None:
            return abs(y - back.box.center.y) <= AROUND * height
        return HEADER[0] * height <= y <= HEADER[1] * height

    rows = _list(own, profile, size)
    band = [
        node
        for node in own
        if beside(node) and node.box.height < 2 * AROUND * height and not (rows and within(node.box, rows.box))
    ]
    icons = [n for n in band if not n.text.strip() and n.box.left > ICONS * width and (n.clickable or n.description)]
    edge = min((n.box.left for n in icons), default=width)
    texts = [
        node
        for node in band
        if node.text.strip()
        and node is not back
        and not node.class_name.endswith("EditText")
        and node.box.left < min(edge, ICONS * width)
        and (back is None or within(back.box, node.box) or not within(node.box, back.box))
    ]
    lines = _lines(texts)
    if not lines:
        return None
    line = lines[0]
    tallest = max(lines, key=lambda one: max(n.box.height for n in one))
    counts = [n for n in line if _COUNT.match(n.text.strip()) and any(o.box.right <= n.box.left + 4 for o in line)]
    names = _names([node for node in line if node not in counts], back)
    title, sure = _of_names(names, profile)
    text = title.text.strip()
    low = back is not None and title.box.center.y - back.box.center.y > BELOW * height and len(lines) == 1
    sure = sure and tallest is line and not low and not _STATUS.match(text)
    group = bool(counts) or (profile.counts_in_title and counts_members(text))
    bottoms = [n.box.bottom for n in (*texts, *icons, *([back] if back else []))]
    bottom = max(bottoms) if rows is None or rows.box.top <= title.box.bottom else min(max(bottoms), rows.box.top)
    return _Header(title, sure, group, bottom)


def _back(nodes: Sequence[Node], profile: AppProfile, size: tuple[int, int]) -> Node | None:
    upper = [
        node
        for node in nodes
        if node.box.left < 0.1 * size[0] and node.box.width < 0.3 * size[0] and node.box.center.y < HEADER[1] * size[1]
    ]
    told = [node for node in upper if _BACK.match(node.description.strip())]
    named = [node for node in upper if has_id(node, profile.back_ids) and not node.text.strip()]
    return next(iter(told or named), None)


def _lines(texts: Sequence[Node]) -> list[list[Node]]:
    """Return the texts line by line from the top, each line from the left."""
    lines: list[list[Node]] = []
    for node in sorted(texts, key=lambda one: one.box.top):
        for line in lines:
            shared = min(node.box.bottom, line[0].box.bottom) - max(node.box.top, line[0].box.top)
            if 2 * shared >= min(node.box.height, line[0].box.height):
                line.append(node)
                break
        else:
            lines.append([node])
    return [sorted(line, key=lambda one: one.box.left) for line in lines]


def _names(line: Sequence[Node], back: Node | None) -> list[Node]:
    """Return the texts of a line that may be the name: without one at the back arrow that belongs to it."""
    first, rest = line[0], line[1:]
    text = first.text.strip()
    unread = re.search(r"\d+\+?$", back.description.strip()) if back else None
    belongs = (unread is not None and _PILL.match(text) and unread[0] == text) or _BACK_TEXT.match(text)
    return list(rest) if rest and belongs else list(line)


def _of_names(names: Sequence[Node], profile: AppProfile) -> tuple[Node, bool]:
    """Return the name, and whether no other text of the line can be it: a tag after it is smaller."""
    tallest = max(names, key=lambda node: node.box.height)
    others = [node for node in names if node is not tallest]
    if all(tallest.box.height >= TALLER * node.box.height for node in others):
        # A name may consist of digits, and so does the unread count.
        return tallest, not (others and any(node.box.right <= tallest.box.left for node in others))
    named = [node for node in names if has_id(node, profile.title_ids)]
    return (named[0] if len(named) == 1 else names[0]), False


# The input and Send


def input_node(nodes: Sequence[Node], profile: AppProfile, size: tuple[int, int]) -> Node | None:
    """Return the chat input: the text field in the lower part of the screen; of several, the one with a known id."""
    fields = [
        node
        for node in nodes
        if visible(node.box, size) and node.box.center.y > LOWER * size[1] and "EditText" in node.class_name
    ]
    if len(fields) == 1:
        return fields[0]
    named = [node for node in fields if has_id(node, profile.input_ids)]
    return named[-1] if named else None


def send_node(nodes: Sequence[Node], profile: AppProfile, field: Node, size: tuple[int, int]) -> Node | None:
    """Return the Send button: a node with one of the profile's texts, right of the input, in its row or the next."""
    worded = [
        node
        for node in nodes
        if visible(node.box, size)
        and (node.text or node.description).strip() in profile.send_texts
        and node.box.left >= field.box.center.x
        and node.box.bottom > field.box.top
        and node.box.center.y < field.box.bottom + field.box.height
    ]
    named = [node for node in worded if has_id(node, profile.send_ids)]
    if worded:
        return (named or worded)[-1]
    # A tree without texts. An id that other versions use for ＋ says nothing there.
    ids = [one for one in profile.send_ids if one not in profile.more_ids]
    silent = [
        n for n in nodes if has_id(n, ids) and visible(n.box, size) and not n.text.strip() and not n.description.strip()
    ]
    return silent[-1] if silent else None


def _send_state(send: Node | None, nodes: Sequence[Node], draft: str | None) -> SendState:
    if send is None:
        return SendState.ABSENT
    clickable = send.clickable or any(
        node.clickable and within(send.box, node.box) and node.box.width <= 2 * send.box.width for node in nodes
    )
    return SendState.ON if send.enabled and clickable and draft else SendState.DIMMED


def voice_bar(nodes: Sequence[Node], profile: AppProfile, size: tuple[int, int]) -> Node | None:
    """Return the hold-to-talk bar, which may take the input's place."""
    words = {re.sub(r"\s", "", text) for text in profile.voice_bar_texts}
    found = [
        node
        for node in nodes
        if visible(node.box, size)
        and node.box.center.y > 2 * LOWER * size[1]
        and re.sub(r"\s", "", node.text or node.description) in words
    ]
    return found[-1] if found else None


def _keyboard_icon(nodes: Sequence[Node], bar: Node) -> Point | None:
    """Return where a tap brings the input back: left of the bar."""
    beside = [
        node
        for node in nodes
        if not node.text.strip()
        and abs(node.box.center.y - bar.box.center.y) < bar.box.height
        and node.box.right <= bar.box.left + 8
        and node.box.height <= 2 * bar.box.height
    ]
    told = [node for node in beside if "键盘" in node.description or "keyboard" in node.description.lower()]
    nearest = max(told or beside, key=lambda node: node.box.right, default=None)
    return nearest.box.center if nearest else None


# The page


def chat(nodes: Sequence[Node], profile: AppProfile, size: tuple[int, int]) -> ChatScreen | None:
    """Return the chat page in the tree; None if there is none, or the tree hides its texts."""
    field = input_node(nodes, profile, size)
    bar = voice_bar(nodes, profile, size) if field is None else None
    lowest = field or bar
    header = _header(nodes, profile, size)
    if lowest is None or header is None:
        return None
    read = messages(nodes, profile, size, _area(nodes, profile, header.bottom, lowest, size))
    if read.hidden:
        return None
    send = send_node(nodes, profile, field, size) if field else None
    draft = _draft(field)
    state = _send_state(send, nodes, draft)
    doubts = _doubts(header, read.bubbles)
    return ChatScreen(
        title=header.title.text.strip(),
        bubbles=read.bubbles,
        draft=draft,
        source=Source.TREE,
        sure=not doubts,
        doubts=tuple(doubts),
        input_box=field.box if field else None,
        send_point=send.box.center if send else None,
        title_sure=header.sure,
        title_box=header.title.box,
        group=header.group or _several(read),
        # If there is no Send although the input has a text, the text may be words of the app.
        draft_sure=field is not None and not (draft and state is SendState.ABSENT),
        send_box=send.box if send else None,
        send_state=state,
        keyboard_icon=_keyboard_icon(nodes, bar) if bar else None,
    )


def _area(nodes: Sequence[Node], profile: AppProfile, top: int, lowest: Node, size: tuple[int, int]) -> Box:
    """Return the area of the messages: in the list below the header, else between header and input."""
    found = _list(nodes, profile, size)
    upper = max(top, found.box.top) if found else top
    return Box(0, min(upper, lowest.box.top - 1), size[0], lowest.box.top)


def _list(nodes: Sequence[Node], profile: AppProfile, size: tuple[int, int]) -> Node | None:
    """Return the list with the rows of the page. It may reach under header and input, but not over both."""
    lists = [
        node
        for node in nodes
        if (node.class_name.endswith(_LISTS) or has_id(node, profile.messages_ids))
        and node.box.width >= 0.8 * size[0]
        and 0.2 * size[1] <= node.box.height
        and node.box.top >= HEADER[0] * size[1]
    ]
    return max(lists, key=lambda node: node.box.height, default=None)


def _draft(field: Node | None) -> str | None:
    if field is None:
        return None
    return "" if is_hint(field.text) else field.text


def _several(read: Messages) -> bool:
    """Tell whether more than one other person writes here."""
    return len({one.name for one in read.avatars if one.side is Side.THEM and one.name}) > 1


def _doubts(header: _Header, bubbles: Sequence[Bubble]) -> list[Doubt]:
    """Return why the page is not sure. Messages above our last one are not asked any more."""
    doubts = [] if header.sure else [Doubt(DoubtKind.HEADER)]
    last = max((i for i, b in enumerate(bubbles) if b.side is Side.ME and b.sure), default=-1)
    doubts += [Doubt(DoubtKind.NODES, bubble.text) for bubble in bubbles[last + 1 :] if not bubble.sure]
    return list(dict.fromkeys(doubts))


def _role(node: Node) -> str:
    return next((role for ending, role in _ROLES if ending in node.class_name), "text" if node.text else "")
