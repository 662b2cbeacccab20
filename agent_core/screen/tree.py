"""The accessibility tree as readings and as a chat page, where it is healthy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum

from agent_core.apps.profile import AppProfile
from agent_core.devices.base import Node
from agent_core.geometry import Box
from agent_core.screen.picture import region_box
from agent_core.screen.readings import Bubble, BubbleKind, BubbleState, ChatScreen, Reading, Side, Source

_SYSTEM = frozenset({"com.android.systemui"})
_ROLES = (("EditText", "input"), ("Button", "button"), ("Image", "image"), ("CheckBox", "switch"), ("Switch", "switch"))
# What an empty input says in the place of a text.
_HINT = re.compile(
    r"^(?:说点什么|发消息|发送消息|输入消息|请输入(?:消息|内容)?|按住说话|聊点什么吧?|message|type a message)[.…。]*$",
    re.I,
)
_KINDS = (
    (
        BubbleKind.VOICE,
        re.compile(r"^\[?语音(?:消息)?\]?(?:[\s,，:：]*\d+\s*(?:秒|[\"″”'’]+))?$|^\d{1,2}\s*(?:[\"″”]|'{2}|’’)$"),
    ),
    (BubbleKind.IMAGE, re.compile(r"^\[?(?:图片|照片|相片|image|photo)\]?$", re.I)),
    (BubbleKind.VIDEO, re.compile(r"^\[?(?:短?视频|video)\]?$", re.I)),
    (BubbleKind.STICKER, re.compile(r"^\[?(?:动画表情|表情包?|贴纸|sticker)\]?$", re.I)),
    (
        BubbleKind.RED_PACKET,
        re.compile(r"^\[(?:QQ|微信)?红包\]|^(?:QQ|微信)?红包(?:$|\n)|恭喜发财.*(?:红包|大吉大利)|^\[?转账\]"),
    ),
    (BubbleKind.CALL, re.compile(r"^.{0,3}通话时长\s*\d{1,2}[:：]\d{2}(?:[:：]\d{2})?$")),
    (BubbleKind.FILE, re.compile(r"^\[文件\]")),
    (BubbleKind.LOCATION, re.compile(r"^\[位置\]")),
    (BubbleKind.CARD, re.compile(r"^\[(?:(?:QQ|微信)?小程序|链接|分享|卡片)\]")),
)
# What an app says of a message where its own words are not; a person may well write these words.
_NAMES = (
    (BubbleKind.FILE, re.compile(r"^文件(?:$|\W)")),
    (BubbleKind.LOCATION, re.compile(r"^(?:地理)?位置(?:$|\W)")),
    (BubbleKind.CARD, re.compile(r"^(?:(?:QQ|微信)?小程序|链接|分享|卡片)(?:$|\W)")),
    (BubbleKind.CALL, re.compile(r"^(?:语音|视频)通话(?:$|\W)")),
)


# What names them is no text of theirs.
WORDLESS = frozenset({BubbleKind.IMAGE, BubbleKind.STICKER, BubbleKind.VIDEO})
_CARDS = frozenset({BubbleKind.FILE, BubbleKind.LOCATION, BubbleKind.CARD})  # several texts, the first is the name


class TreeHealth(StrEnum):
    FULL = "full"
    NO_TEXTS = "no_texts"  # nodes, but what they say is hidden
    EMPTY = "empty"


def health(nodes: Sequence[Node] | None, size: tuple[int, int]) -> TreeHealth:
    """How much a tree tells of a screen of ``size`` pixels. The status bar does not count."""
    own = [node for node in nodes or () if node.package not in _SYSTEM and _visible(node.box, size)]
    if len(own) <= 2 and not any(node.text.strip() for node in own):
        return TreeHealth.EMPTY
    texts = sum(1 for node in own if node.text.strip())
    return TreeHealth.FULL if texts >= 2 or texts * 2 >= len(own) else TreeHealth.NO_TEXTS


def readings(nodes: Sequence[Node], size: tuple[int, int]) -> list[Reading]:
    """What the nodes on the screen say, in the tree's order: the text, else the description."""
    found = []
    for node in nodes:
        text = node.text.strip() or node.description.strip()
        if text and _visible(node.box, size):
            found.append(
                Reading(text=text, box=node.box, source=Source.TREE, clickable=node.clickable, role=_role(node))
            )
    return found


def is_hint(text: str) -> bool:
    """Whether ``text`` is what an empty input shows."""
    return bool(_HINT.match(text.strip()))


def kind_of(text: str) -> BubbleKind:
    """The kind of message that a bubble's words tell of."""
    for kind, pattern in _KINDS:
        if pattern.search(text.strip()):
            return kind
    return BubbleKind.TEXT if text.strip() else BubbleKind.OTHER


def named_kind(description: str) -> BubbleKind:
    """The kind that an app's description of a message tells of; OTHER where it tells of none."""
    said = description.strip()
    kind = next((kind for kind, pattern in _NAMES if pattern.search(said)), kind_of(said))
    return BubbleKind.OTHER if kind is BubbleKind.TEXT else kind


def has_id(node: Node, ids: Sequence[str]) -> bool:
    """Whether the node's resource id, whatever its package, is one of ``ids``."""
    return bool(node.resource_id) and node.resource_id.rsplit("/", 1)[-1] in ids


def input_node(nodes: Sequence[Node], profile: AppProfile, size: tuple[int, int]) -> Node | None:
    """The chat input: by id, else the one text field in the lower part of the screen."""
    fields = [node for node in nodes if _visible(node.box, size)]
    named = [node for node in fields if has_id(node, profile.input_ids)]
    if named:
        return named[-1]
    guessed = [n for n in fields if n.class_name.endswith("EditText") and n.box.center.y > 0.35 * size[1]]
    return guessed[0] if len(guessed) == 1 else None


def send_node(nodes: Sequence[Node], profile: AppProfile, field: Node, size: tuple[int, int]) -> Node | None:
    """The Send button: a node with one of the profile's texts, by id or in the row of the input."""
    worded = [n for n in nodes if _visible(n.box, size) and (n.text or n.description).strip() in profile.send_texts]
    named = [node for node in worded if has_id(node, profile.send_ids)]
    beside = [
        node
        for node in worded
        if node.box.left >= field.box.center.x
        and field.box.top - field.box.height < node.box.center.y < field.box.bottom + field.box.height
    ]
    if named or beside:
        return (named or beside)[-1]
    hidden = [n for n in nodes if has_id(n, profile.send_ids) and _visible(n.box, size) and not n.text.strip()]
    return hidden[-1] if hidden else None


def chat(nodes: Sequence[Node], profile: AppProfile, size: tuple[int, int]) -> ChatScreen | None:
    """The chat page that the tree tells of; None where it tells of none, or hides its texts."""
    field = input_node(nodes, profile, size)
    if field is None:
        return None
    title = _title(nodes, profile, size)
    if not title:
        return None
    boxed = [node for node in nodes if has_id(node, profile.bubble_ids) and _visible(node.box, size)]
    bubbles = _bubbles(nodes, boxed, profile, size) if boxed else _guessed(nodes, field, size)
    if boxed and not any(bubble.text or bubble.kind in WORDLESS for bubble in bubbles):
        return None
    bubbles = _whole(bubbles, region_box(profile.messages_region, size).top)
    send = send_node(nodes, profile, field, size)
    draft = field.text
    return ChatScreen(
        title=title,
        bubbles=tuple(bubbles),
        draft="" if is_hint(draft) else draft,
        source=Source.TREE,
        input_box=field.box,
        send_point=send.box.center if send else None,
    )


def title_node(nodes: Sequence[Node], profile: AppProfile, size: tuple[int, int]) -> Node | None:
    """The node that says whose chat it is."""
    upper = [n for n in nodes if n.text.strip() and _visible(n.box, size) and n.box.center.y < 0.16 * size[1]]
    named = [node for node in upper if has_id(node, profile.title_ids)]
    if named:
        return named[0]
    region = region_box(profile.title_region, size)
    inside = [
        node
        for node in upper
        if node.package not in _SYSTEM
        and region.left <= node.box.center.x <= region.right
        and region.top <= node.box.center.y <= region.bottom
        and not node.class_name.endswith(("Button", "EditText"))
    ]
    return inside[0] if inside else None


def _title(nodes: Sequence[Node], profile: AppProfile, size: tuple[int, int]) -> str:
    node = title_node(nodes, profile, size)
    return node.text.strip() if node else ""


def _bubbles(nodes: Sequence[Node], boxed: Sequence[Node], profile: AppProfile, size: tuple[int, int]) -> list[Bubble]:
    outer: list[Node] = []
    for node in boxed:
        if not any(_inside(node.box, other.box) for other in outer):
            outer.append(node)
    marks = {
        BubbleState.FAILED: [n for n in nodes if has_id(n, profile.failed_ids)],
        BubbleState.SENDING: [n for n in nodes if has_id(n, profile.sending_ids)],
    }
    bubbles = []
    for node in sorted(outer, key=lambda item: item.box.top):
        inner = [n for n in nodes if n is not node and _inside(n.box, node.box)]
        quotes = [n for n in inner if has_id(n, profile.quote_ids)]
        kind, text = _content(node, [n for n in inner if n not in quotes])
        quoted = " ".join(n.text.strip() for n in quotes if n.text.strip())
        side = side_of(node.box, size)
        state = BubbleState.OK
        if side is Side.ME:
            state = next((s for s, found in marks.items() if any(_in_row(n.box, node.box) for n in found)), state)
        bubbles.append(Bubble(side=side, text=text, box=node.box, kind=kind, state=state, quoted=quoted))
    return bubbles


def _content(node: Node, inner: Sequence[Node]) -> tuple[BubbleKind, str]:
    """What a bubble is and says: by its own words, by what the app calls it, by what stands in it."""
    if node.text.strip():
        text = node.text.strip()
        kind = kind_of(text)
        return kind, "" if kind in WORDLESS else text
    texts = [n.text.strip() for n in inner if n.text.strip()]
    kind = named_kind(node.description)
    if kind in WORDLESS:
        return kind, ""
    if kind in _CARDS:
        return kind, texts[0] if texts else ""
    text = (
        "\n".join(texts)
        or node.description.strip()
        or next((n.description.strip() for n in inner if n.description.strip()), "")
    )
    if kind is BubbleKind.OTHER:
        # Several texts that nobody names: a card of some sort, no words of a person.
        kind = kind_of(text) if len(texts) < 2 else _of_several(text)
    if kind is BubbleKind.OTHER and not texts and "Image" in node.class_name:
        kind = BubbleKind.IMAGE
    return kind, "" if kind in WORDLESS else text


def _of_several(text: str) -> BubbleKind:
    kind = kind_of(text)
    return BubbleKind.OTHER if kind is BubbleKind.TEXT else kind


def _whole(bubbles: list[Bubble], top: int) -> list[Bubble]:
    """Without the one that the page's upper edge cuts, as long as it is not part of what is asked now."""
    cut = [b for b in bubbles if b.box is not None and b.box.top <= top + 4]
    if cut and any(b.side is Side.ME for b in bubbles[len(cut) :]):
        return bubbles[len(cut) :]
    return bubbles


def _guessed(nodes: Sequence[Node], field: Node, size: tuple[int, int]) -> list[Bubble]:
    """Without ids: texts between title and input that lean to one side."""
    found = []
    for node in sorted(nodes, key=lambda item: item.box.top):
        box, text = node.box, node.text.strip()
        middle = abs(box.left - (size[0] - box.right)) < 0.06 * size[0] and box.width < 0.6 * size[0]
        if text and not middle and box.top > 0.1 * size[1] and box.bottom <= field.box.top and node is not field:
            found.append(Bubble(side=side_of(box, size), text=text, box=box, kind=kind_of(text)))
    return found


def side_of(box: Box, size: tuple[int, int]) -> Side:
    """Ours stand nearer to the right edge."""
    return Side.ME if size[0] - box.right < box.left else Side.THEM


def _in_row(mark: Box, bubble: Box) -> bool:
    return bubble.top - mark.height < mark.center.y < bubble.bottom + mark.height and mark.right <= bubble.right


def _inside(inner: Box, outer: Box) -> bool:
    return (
        outer.left <= inner.left
        and inner.right <= outer.right
        and outer.top <= inner.top
        and inner.bottom <= outer.bottom
    )


def _visible(box: Box, size: tuple[int, int]) -> bool:
    return box.width > 0 and box.height > 0 and box.intersects(Box(0, 0, *size))


def _role(node: Node) -> str:
    return next((role for ending, role in _ROLES if ending in node.class_name), "text" if node.text else "")
