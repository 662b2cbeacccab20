"""Reads the messages of a chat page in the accessibility tree: whose they are, their kinds and their words.

A row is an avatar with what is beside it. The avatar tells whose message it is. Resource ids change from build to
build, so they are hints: what they say has to agree with the place of a node, and without them the structure is enough.
A row that is not understood becomes an unsure bubble of kind OTHER.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agent_core.apps.profile import AppProfile
from agent_core.devices.base import Node
from agent_core.geometry import Box
from agent_core.perception.compare import name as same
from agent_core.perception.kinds import CARDS, WORDLESS, call_line, is_time, kind_of, may_be_call, named_kind
from agent_core.perception.readings import Bubble, BubbleKind, BubbleState, Side

_SYSTEM = frozenset({"com.android.systemui"})
COLUMN = 0.17  # of the width: the columns of the avatars on the left and on the right
SMALLEST, LARGEST = 0.05, 0.16  # avatars, of the width
PICTURE = 0.12  # of the width: anything larger is not an icon
NOTICE_GAP = 0.2  # of an avatar's height: least gap between a message and a notice below it
LEVEL = 0.15  # of an avatar's height: how far from its upper edge a nickname begins
CENTRED = 0.02  # of the width
BESIDE = 0.06  # of the width: between the avatars' column and a bubble
MARGIN = 0.012  # of the width: how much closer a bubble has to be to one of the columns
ALIKE = 0.03  # of the width: margins this similar tell no side
TOP = 0.097  # of the height: messages begin here if nothing in the tree says so
_IMAGES = ("Image", "Picture")
_PLAYS = re.compile(r"^\d{1,2}:\d{2}(?::\d{2})?$")
_DAY_TIME = re.compile(r"^(?:\S{1,12}\s*)?(?:[上下中]午|凌晨|早上|晚上)?\s*\d{1,2}[:：]\d{2}$")
_QUOTED = re.compile(r"^[^：:\n]{1,40}[：:]\s*(?P<words>.+)$", re.S)
_FILE = re.compile(r"\.[A-Za-z0-9]{1,5}$|^[\d.]+\s*[KMG]?B$", re.I)  # a name, a size
_FAILED = re.compile("发送失败|重新发送|重发")


@dataclass(frozen=True, slots=True)
class Avatar:
    """An avatar beside a message.

    name: of the person; "" if the tree does not give it.
    sure: its description and its place agree.
    """

    node: Node
    side: Side
    name: str
    sure: bool

    @property
    def box(self) -> Box:
        return self.node.box


@dataclass(frozen=True, slots=True)
class Messages:
    """The messages of a page.

    avatars: of the rows that were read.
    hidden: there are rows, but the tree hides their contents.
    """

    bubbles: tuple[Bubble, ...]
    avatars: tuple[Avatar, ...] = ()
    hidden: bool = False


def messages(nodes: Sequence[Node], profile: AppProfile, size: tuple[int, int], area: Box) -> Messages:
    """Return the bubbles within ``area`` (pixels), from the top."""
    inside = [n for n in nodes if n.package not in _SYSTEM and visible(n.box, size) and area.contains(n.box.center)]
    calls, inside = _call_lines(inside, size)
    read = _messages(nodes, inside, profile, size, area)
    return replace(read, bubbles=with_lines(read.bubbles, calls))


def with_lines(bubbles: Sequence[Bubble], lines: Sequence[Bubble]) -> tuple[Bubble, ...]:
    """Merge bubbles and the lines between them, from the top."""
    return tuple(sorted((*bubbles, *lines), key=lambda one: one.box.top if one.box else 0)) if lines else tuple(bubbles)


def _call_lines(nodes: Sequence[Node], size: tuple[int, int]) -> tuple[list[Bubble], list[Node]]:
    """Return the app's lines about calls in the middle of the page, and the nodes without those of such lines.

    Nothing tells whose such a call was. It counts as the customer's, because a call below our last message is
    unanswered.
    """
    width, found = size[0], [node for node in nodes if call_line(node.text)]
    lines = [
        node
        for node in found
        if abs(node.box.center.x - width / 2) <= CENTRED * width and node.box.left >= (COLUMN + BESIDE) * width
    ]
    if not lines:
        return [], list(nodes)
    rest = [
        node
        for node in nodes
        if not any(
            line.box.top <= node.box.center.y <= line.box.bottom and node.box.height <= 3 * line.box.height
            for line in lines
        )
    ]
    return [Bubble(Side.THEM, call_line(line.text), line.box, BubbleKind.CALL) for line in lines], rest


def _messages(
    nodes: Sequence[Node], inside: Sequence[Node], profile: AppProfile, size: tuple[int, int], area: Box
) -> Messages:
    people = _avatars(inside, profile, size, area)
    if people:
        return _by_avatars(inside, people, profile, size, area)
    boxed = [node for node in inside if has_id(node, profile.bubble_ids)]
    if boxed:
        bubbles = _boxed(nodes, boxed, profile, size)
        hidden = not any(bubble.text or bubble.kind in WORDLESS for bubble in bubbles)
        return Messages(tuple(_whole(bubbles, round(TOP * size[1]))), hidden=hidden)
    return Messages(tuple(_guessed(inside, size)))


def has_id(node: Node, ids: Sequence[str]) -> bool:
    """Tell whether the node's resource id, without its package, is one of ``ids``."""
    return bool(node.resource_id) and node.resource_id.rsplit("/", 1)[-1] in ids


def side_of(box: Box, size: tuple[int, int]) -> Side:
    """Return the side of a bubble by its place: ours are closer to the right edge."""
    return Side.ME if size[0] - box.right < box.left else Side.THEM


def visible(box: Box, size: tuple[int, int]) -> bool:
    return box.width > 0 and box.height > 0 and box.intersects(Box(0, 0, *size))


def within(inner: Box, outer: Box) -> bool:
    return (
        outer.left <= inner.left
        and inner.right <= outer.right
        and outer.top <= inner.top
        and inner.bottom <= outer.bottom
    )


# Avatars


def _avatars(nodes: Sequence[Node], profile: AppProfile, size: tuple[int, int], area: Box) -> list[Avatar]:
    found: list[Avatar] = []
    for node in nodes:
        avatar = _avatar(node, profile, size, area)
        if avatar is not None and not any(one.box.intersects(avatar.box) for one in found):
            found.append(avatar)
    return sorted(found, key=lambda one: one.box.top)


def _avatar(node: Node, profile: AppProfile, size: tuple[int, int], area: Box) -> Avatar | None:
    box, width = node.box, size[0]
    cut = box.top <= area.top + 4 or box.bottom >= area.bottom - 4
    square = 0.7 * box.height <= box.width <= 1.4 * box.height or (cut and box.width >= box.height)
    if node.text.strip() or not square or not SMALLEST * width <= box.width <= LARGEST * width:
        return None
    if box.right <= COLUMN * width:
        place = Side.THEM
    elif box.left >= (1 - COLUMN) * width:
        place = Side.ME
    else:
        return None
    said = node.description.strip()
    if said in profile.my_avatar_texts:
        return Avatar(node, place, "", sure=place is Side.ME)
    for pattern in profile.avatar_texts:
        before, _, after = pattern.partition("{name}")
        if said.startswith(before) and said.endswith(after) and len(said) >= len(before) + len(after):
            told = not profile.my_avatar_texts or not said.removesuffix(after)
            name = said[len(before) : len(said) - len(after)]
            return Avatar(node, place, name, sure=told or place is Side.THEM)
    if said == "头像" or has_id(node, profile.avatar_ids):
        return Avatar(node, place, "", sure=True)
    return None


# Rows by their avatars


def _by_avatars(
    nodes: Sequence[Node], people: Sequence[Avatar], profile: AppProfile, size: tuple[int, int], area: Box
) -> Messages:
    left = min((a.box.right for a in people if a.box.center.x * 2 < size[0]), default=0)
    right = max((a.box.left for a in people if a.box.center.x * 2 > size[0]), default=size[0])
    # The columns are the same on both sides.
    columns = (max(left, size[0] - right), min(right, size[0] - left))
    marks = [node for node in nodes if mark_state(node, profile) is not BubbleState.OK]
    inner = [node for node in nodes if _of_message(node, people, columns, size)]
    rows = [n.box for n in nodes if has_id(n, profile.row_ids) and sum(within(a.box, n.box) for a in people) == 1]
    page = _Page(profile, size, columns)
    bubbles: list[Bubble] = []
    told = []
    first = _row_top(people[0], rows)
    above = [node for node in inner if node.box.center.y < first]
    edge = max(area.top, round(TOP * size[1]))
    bubbles += page.without_avatar(above, cut_at=edge)
    for index, avatar in enumerate(people):
        top = _row_top(avatar, rows)
        bottom = _row_top(people[index + 1], rows) if index + 1 < len(people) else area.bottom
        own = next((row for row in rows if within(avatar.box, row)), None)
        here = [node for node in inner if top <= node.box.center.y < bottom]
        inside = [node for node in here if own is None or node.box.center.y < own.bottom]
        beneath = [node for node in here if node not in inside]
        bubble, known = page.row(avatar, [n for n in inside if avatar.side is Side.THEM or n not in marks])
        told.append(known)
        bubbles.append(bubble)
        bubbles += page.without_avatar(beneath)
    bubbles = [_with_state(bubble, marks, profile) for bubble in bubbles]
    hidden = len(told) > 1 and not any(told)
    upper = people[0].box
    cut_avatar = upper.top <= area.top + 4 or 10 * upper.height < 9 * upper.width
    cut = max(edge, upper.top) if cut_avatar else edge
    return Messages(tuple(_whole(bubbles, cut)), tuple(people), hidden)


def _row_top(avatar: Avatar, rows: Sequence[Box]) -> int:
    own = [row.top for row in rows if within(avatar.box, row)]
    near = avatar.box.top - round(NOTICE_GAP * avatar.box.height)
    return min(near, *own) if own else near


def _of_message(node: Node, people: Sequence[Avatar], columns: tuple[int, int], size: tuple[int, int]) -> bool:
    """Tell whether the node is between the columns of the avatars, as a part of a message is."""
    box = node.box
    if any(within(avatar.box, box) or within(box, avatar.box) for avatar in people):
        return False
    return columns[0] <= box.center.x <= columns[1] and box.right < size[0] - 4 and box.width < 0.95 * size[0]


@dataclass(frozen=True, slots=True)
class _Page:
    profile: AppProfile
    size: tuple[int, int]
    columns: tuple[int, int]

    def row(self, avatar: Avatar, nodes: Sequence[Node]) -> tuple[Bubble, bool]:
        """Return the message of a row, and whether the tree says anything about it."""
        beside = [node for node in nodes if node.box.bottom > avatar.box.top + 4]  # above it is the time
        below, named = self._without_header(beside, avatar)
        parts = self._without_notices(below, avatar)
        bubble = self._message(parts, avatar.side, avatar.box)
        told = bool(_leaves(parts))
        return replace(bubble, sure=bubble.sure and avatar.sure and named), told

    def without_avatar(self, nodes: Sequence[Node], *, cut_at: int | None = None) -> list[Bubble]:
        """Return the message without an avatar; it is sure only if its avatar is out of sight above ``cut_at``.

        A node that reaches into the avatars' columns is a strip of the page, and no message.
        """
        between = [n for n in nodes if self.columns[0] - 4 <= n.box.left and n.box.right <= self.columns[1] + 4]
        parts = [node for node in between if not self._notice(node)]
        parts = [node for node in parts if not any(within(o.box, node.box) and self._notice(o) for o in nodes)]
        leaves = _leaves(parts)
        saying = [n for n in leaves if n.text.strip() or n.description.strip() or self._by_id(n) is not None]
        if not saying:
            return []
        box = _around(saying)
        side, sure = self._side_by_place(box)
        cut = cut_at is not None and min(n.box.top for n in parts) <= cut_at + 4
        bubble = self._message(parts, side, box)
        return [replace(bubble, sure=bubble.sure and sure and cut)]

    def _side_by_place(self, box: Box) -> tuple[Side, bool]:
        left, right = box.left - self.columns[0], self.columns[1] - box.right
        sure = min(left, right) <= BESIDE * self.size[0] and abs(left - right) >= MARGIN * self.size[0]
        return (Side.ME if right < left else Side.THEM), sure

    def _without_header(self, nodes: Sequence[Node], avatar: Avatar) -> tuple[list[Node], bool]:
        """Return the nodes without the nickname above the message and what is beside it, and whether that is sure.

        It is sure if the nickname equals the avatar's name, if there is one. In a group it may differ.
        """
        texts = [node for node in nodes if node.text.strip()]
        for node in sorted(texts, key=lambda one: one.box.top):
            alike = avatar.name != "" and same(node.text) == same(avatar.name)
            below = [n for n in _leaves(nodes) if n.box.top >= node.box.bottom - 4 and not self._notice(n)]
            called = alike or has_id(node, self.profile.nickname_ids)
            if called and below and node.box.top <= avatar.box.center.y:
                inner = [n for n in nodes if n.box.center.y > node.box.bottom and n is not node]
                level = abs(node.box.top - avatar.box.top) <= LEVEL * avatar.box.height
                ids = level and any(has_id(n, self.profile.text_ids) for n in inner)
                return inner, alike or ids or not avatar.name
        rest = [node for node in nodes if not has_id(node, self.profile.badge_ids)]
        return (rest, len(rest) == len(nodes)) if _leaves(rest) else (list(nodes), True)

    def _without_notices(self, nodes: Sequence[Node], avatar: Avatar) -> list[Node]:
        """Return the nodes without times and notices below the message, which are centred and separate."""
        kept: list[Node] = []
        lowest = avatar.box.top
        for node in sorted(nodes, key=lambda one: one.box.top):
            beside = node.box.top < avatar.box.bottom and node.box.bottom > avatar.box.top
            apart = node.box.top - lowest >= NOTICE_GAP * avatar.box.height
            held = any(
                other.clickable
                and other is not node
                and within(node.box, other.box)
                and other.box.top < avatar.box.bottom
                and not within(avatar.box, other.box)
                for other in nodes
            )
            if not beside and not held and self._notice(node) and (apart or _tells_time(node.text)):
                continue
            kept.append(node)
            if node.text.strip() or node.description.strip() or _is_image(node):
                lowest = max(lowest, node.box.bottom)
        return kept

    def _notice(self, node: Node) -> bool:
        """Tell whether the node is centred, as times and notices of the app are.

        A bubble over the whole width is centred, too, but it begins at the column of the avatars.
        """
        if not node.text.strip() or has_id(node, self.profile.text_ids):
            return False
        middle = abs(node.box.center.x - self.size[0] / 2) <= CENTRED * self.size[0]
        narrow = node.box.left - self.columns[0] >= BESIDE * self.size[0]
        return middle and (narrow or has_id(node, self.profile.time_ids))

    def _by_id(self, node: Node) -> BubbleKind | None:
        known = (
            (BubbleKind.CALL, self.profile.call_ids),
            (BubbleKind.VOICE, self.profile.voice_ids),
            (BubbleKind.FILE, self.profile.file_ids),
            (BubbleKind.STICKER, self.profile.sticker_ids),
            (BubbleKind.IMAGE, self.profile.picture_ids),
            (BubbleKind.TEXT, self.profile.text_ids),
        )
        return next((kind for kind, ids in known if has_id(node, ids)), None)

    def _message(self, nodes: Sequence[Node], side: Side, place: Box) -> Bubble:
        """Return the message that the nodes of one row form. ``place``: its box if the row holds nothing."""
        held = next((node for node in nodes if has_id(node, self.profile.bubble_ids)), None)
        if held is not None:
            bubble = _held(held, [n for n in nodes if n is not held and within(n.box, held.box)], self.profile, side)
            # A group's nickname is above the layout.
            whole = all(within(n.box, held.box) or n.box.bottom <= held.box.top + 4 for n in _leaves(nodes))
            call = bubble.kind is BubbleKind.TEXT and may_be_call(bubble.text) and any(_is_image(n) for n in nodes)
            return replace(bubble, sure=whole and not call)
        named = {kind: [n for n in nodes if self._by_id(n) is kind] for kind in BubbleKind}
        named = {kind: found for kind, found in named.items() if found}
        leaves = _leaves(nodes)
        texts = [node for node in leaves if node.text.strip()]
        words = "\n".join(node.text.strip() for node in texts)
        box = _around(leaves) if leaves else place
        unknown = Bubble(side, words, box, BubbleKind.OTHER, sure=False)
        if len(named) > 1 and not set(named) <= {BubbleKind.FILE, BubbleKind.IMAGE, BubbleKind.CALL}:
            return unknown
        if BubbleKind.TEXT in named:
            return self._text(named[BubbleKind.TEXT], leaves, unknown)
        if named:
            kind = next(kind for kind in named)
            kind = min(named, key=list(BubbleKind).index) if len(named) > 1 else kind
            return self._named(kind, named[kind], texts, unknown)
        return self._untold(nodes, leaves, unknown)

    def _text(self, named: Sequence[Node], leaves: Sequence[Node], unknown: Bubble) -> Bubble:
        """Return a message whose words an id names. More texts or pictures beside it are a quotation, or a doubt."""
        own = [node for node in named if node.text.strip()]
        others = [n for n in leaves if n not in named and not (own and within(n.box, own[0].box))]
        pictures = [n for n in others if _is_image(n) and _large(n, self.size)]
        if len(own) != 1 or pictures:
            return unknown
        text = own[0].text.strip()
        call = may_be_call(text) and any(_is_image(node) for node in leaves)
        bubble = replace(unknown, text=text, box=own[0].box, kind=kind_of(text), sure=not call)
        if bubble.kind in WORDLESS:
            bubble = replace(bubble, text="")
        more = [node for node in others if node.text.strip()]
        if more:
            return self._quoting(bubble, more)
        # Texts inside a text's own box that are not part of its words are a quotation, whatever their id.
        inside = [n.text.strip() for n in leaves if n is not own[0] and within(n.box, own[0].box)]
        return replace(bubble, quoted=" ".join(said for said in inside if said and said not in text))

    def _quoting(self, bubble: Bubble, more: Sequence[Node]) -> Bubble:
        """Add the quotation to a message: the one further text. With any other text the message is not sure."""
        node = more[0]
        if len(more) > 1 or bubble.box is None:
            return replace(bubble, sure=False)
        found = _QUOTED.match(node.text.strip())
        if self.profile.quotes_below and found and node.box.top >= bubble.box.bottom - 4:
            return replace(bubble, quoted=found["words"].strip())
        if not self.profile.quotes_below and has_id(node, self.profile.quote_ids):
            return replace(bubble, quoted=node.text.strip())
        return replace(bubble, sure=False)

    def _named(self, kind: BubbleKind, named: Sequence[Node], texts: Sequence[Node], unknown: Bubble) -> Bubble:
        """Return a message whose kind an id names and which is not a text."""
        said = next((k for n in named if (k := named_kind(n.description)) is not BubbleKind.OTHER), kind)
        box = _around(named)
        inside = [node for node in texts if node.box.intersects(box)]
        if kind is BubbleKind.IMAGE:
            if any(_PLAYS.match(node.text.strip()) for node in inside):
                return Bubble(unknown.side, "", box, BubbleKind.VIDEO)
            if texts or not any(_is_image(n) or n.description.strip() for n in named):
                return unknown  # words beside a picture, or no picture at all
            return Bubble(unknown.side, "", box, said)
        if kind is BubbleKind.STICKER:
            return unknown if texts else Bubble(unknown.side, "", box, kind)
        if kind in CARDS:
            name = texts[0].text.strip() if texts else ""
            told = any(_FILE.search(node.text.strip()) for node in texts)
            return Bubble(unknown.side, name, box, kind, sure=told)
        words = "\n".join(n.text.strip() for n in inside)
        told = kind_of(words) is kind or (kind is BubbleKind.CALL and may_be_call(words)) or not texts
        return Bubble(unknown.side, words, box, kind, sure=told)

    def _untold(self, nodes: Sequence[Node], leaves: Sequence[Node], unknown: Bubble) -> Bubble:
        """Return a message without a telling id, by the app's description of it and by what it contains."""
        saying = [n for n in nodes if named_kind(n.description) is not BubbleKind.OTHER and not n.text.strip()]
        texts = [node for node in leaves if node.text.strip()]
        kinds = {named_kind(node.description) for node in saying}
        if len(kinds) == 1:
            return self._described(kinds.pop(), saying, texts, unknown)
        if len(texts) != 1 or kinds:
            said = next((n.description.strip() for n in leaves if n.description.strip()), "")
            kind = _of_several(unknown.text) if len(texts) > 1 else BubbleKind.OTHER
            if kind is not BubbleKind.OTHER:
                return replace(unknown, kind=kind, sure=True)
            return replace(unknown, text=unknown.text or said)
        text = texts[0].text.strip()
        kind = kind_of(text)
        others = [n for n in leaves if n is not texts[0] and (n.description.strip() or _is_image(n))]
        doubtful = kind is BubbleKind.TEXT and (may_be_call(text) or bool(others))
        if any(_large(n, self.size) for n in others):
            return unknown
        return replace(unknown, text="" if kind in WORDLESS else text, box=texts[0].box, kind=kind, sure=not doubtful)

    def _described(self, kind: BubbleKind, saying: Sequence[Node], texts: Sequence[Node], unknown: Bubble) -> Bubble:
        """Return a message that the app's description names. Words outside the described nodes make it unsure."""
        box = _around(saying)
        inside = [node for node in texts if within(node.box, box)]
        sure = len(inside) == len(texts)
        if kind in WORDLESS:
            return Bubble(unknown.side, "", box, kind, sure=sure)
        if kind in CARDS:
            return Bubble(unknown.side, inside[0].text.strip() if inside else "", box, kind, sure=sure)
        text = "\n".join(n.text.strip() for n in inside) or saying[0].description.strip()
        return Bubble(unknown.side, text, box, kind, sure=sure)


def _leaves(nodes: Sequence[Node]) -> list[Node]:
    """Return the nodes that hold no others and that say something or show a picture."""
    return [
        node
        for node in nodes
        if (node.text.strip() or node.description.strip() or _is_image(node))
        and (node.text.strip() or not any(o is not node and within(o.box, node.box) and _says(o) for o in nodes))
    ]


def _says(node: Node) -> bool:
    return bool(node.text.strip() or node.description.strip() or _is_image(node))


def _is_image(node: Node) -> bool:
    return any(word in node.class_name for word in _IMAGES)


def _large(node: Node, size: tuple[int, int]) -> bool:
    return min(node.box.width, node.box.height) >= PICTURE * size[0]


def _around(nodes: Sequence[Node]) -> Box:
    return Box(
        min(n.box.left for n in nodes),
        min(n.box.top for n in nodes),
        max(n.box.right for n in nodes),
        max(n.box.bottom for n in nodes),
    )


def _tells_time(text: str) -> bool:
    return is_time(text) or _DAY_TIME.match(text.strip()) is not None


# Marks beside our bubbles


def mark_state(node: Node, profile: AppProfile) -> BubbleState:
    """Return the state that a node beside our bubble shows: a red mark, a spinner; OK if it is neither."""
    if has_id(node, profile.failed_ids) or (_FAILED.search(node.description) and not node.text.strip()):
        return BubbleState.FAILED
    if has_id(node, profile.sending_ids) or node.class_name.endswith("ProgressBar"):
        return BubbleState.SENDING
    return BubbleState.OK


def _with_state(bubble: Bubble, marks: Sequence[Node], profile: AppProfile) -> Bubble:
    if bubble.side is not Side.ME or bubble.box is None:
        return bubble
    states = {mark_state(node, profile) for node in marks if _in_row(node.box, bubble.box)}
    for state in (BubbleState.FAILED, BubbleState.SENDING):
        if state in states:
            return replace(bubble, state=state)
    return bubble


def _in_row(mark: Box, bubble: Box) -> bool:
    return bubble.top - mark.height < mark.center.y < bubble.bottom + mark.height and mark.right <= bubble.right


# Bubbles whose layout has an id, without avatars


def _boxed(nodes: Sequence[Node], boxed: Sequence[Node], profile: AppProfile, size: tuple[int, int]) -> list[Bubble]:
    outer: list[Node] = []
    for node in boxed:
        if not any(within(node.box, other.box) for other in outer):
            outer.append(node)
    marks = [node for node in nodes if mark_state(node, profile) is not BubbleState.OK]
    bubbles = []
    for node in sorted(outer, key=lambda item: item.box.top):
        inner = [n for n in nodes if n is not node and within(n.box, node.box)]
        bubble = _held(node, inner, profile, side_of(node.box, size))
        alike = abs(node.box.left - (size[0] - node.box.right)) < ALIKE * size[0]
        bubbles.append(_with_state(replace(bubble, sure=not alike), marks, profile))
    return bubbles


def _held(node: Node, inner: Sequence[Node], profile: AppProfile, side: Side) -> Bubble:
    """Return the message that a layout holds."""
    quotes = [n for n in inner if has_id(n, profile.quote_ids)]
    kind, text = _content(node, [n for n in inner if n not in quotes])
    quoted = " ".join(n.text.strip() for n in quotes if n.text.strip())
    return Bubble(side=side, text=text, box=node.box, kind=kind, quoted=quoted)


def _content(node: Node, inner: Sequence[Node]) -> tuple[BubbleKind, str]:
    """Return the kind and the words of a bubble: by its own words, the app's description, or its contents."""
    if node.text.strip():
        text = node.text.strip()
        kind = kind_of(text)
        return kind, "" if kind in WORDLESS else text
    texts = [n.text.strip() for n in inner if n.text.strip()]
    kind = named_kind(node.description)
    if kind in WORDLESS:
        return kind, ""
    if kind in CARDS:
        return kind, texts[0] if texts else ""
    text = (
        "\n".join(texts)
        or node.description.strip()
        or next((n.description.strip() for n in inner if n.description.strip()), "")
    )
    if kind is BubbleKind.OTHER:
        # Several texts without a name: a card of some sort, not a person's words.
        kind = kind_of(text) if len(texts) < 2 else _of_several(text)
    if kind is BubbleKind.OTHER and not texts and "Image" in node.class_name:
        kind = BubbleKind.IMAGE
    return kind, "" if kind in WORDLESS else text


def _of_several(text: str) -> BubbleKind:
    if any(call_line(line) for line in text.split("\n")):
        return BubbleKind.CALL
    kind = kind_of(text)
    return BubbleKind.OTHER if kind is BubbleKind.TEXT else kind


def _whole(bubbles: Sequence[Bubble], top: int) -> list[Bubble]:
    """Leave out bubbles that the page's upper edge cuts, unless they are part of what is asked now."""
    cut = [b for b in bubbles if b.box is not None and b.box.top <= top + 4]
    if cut and any(b.side is Side.ME for b in bubbles[len(cut) :]):
        return list(bubbles[len(cut) :])
    return list(bubbles)


# Pages without anything but texts


def _guessed(nodes: Sequence[Node], size: tuple[int, int]) -> list[Bubble]:
    """Return the texts that lean to one side. None is sure to be a message."""
    found = []
    for node in sorted(nodes, key=lambda item: item.box.top):
        box, text = node.box, node.text.strip()
        middle = abs(box.left - (size[0] - box.right)) < 0.06 * size[0] and box.width < 0.6 * size[0]
        if text and not middle:
            found.append(Bubble(side=side_of(box, size), text=text, box=box, kind=kind_of(text), sure=False))
    return found
