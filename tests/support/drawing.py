"""Draw one chat page of the virtual phone, without a server, and tell what a perfect reader would read from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from PIL import Image

from agent_core.devices.base import Node
from agent_core.geometry import Box
from agent_core.perception.readings import Bubble, BubbleKind, BubbleState, SendState, Side
from simulator.phone import display
from simulator.phone.apps.looks import LOOKS
from simulator.phone.phone import VirtualPhone
from simulator.phone.scenario import ContactPart, MessagePart, PhonePart, Scenario
from simulator.phone.widgets import EDIT, WIDTH, Element
from simulator.phone.world import Chat, ContactKind, Message, Sign
from simulator.phone.world import Kind as WorldKind

NOW = datetime(2026, 11, 22, 20, 15, tzinfo=UTC)
_ASPECT = 2400 / 1080


@dataclass(frozen=True)
class Truth:
    """What a perfect reader says of the page. Boxes are in pixels.

    title: the name alone, without count, signs and unread pill.
    bubbles: the messages that are seen, from the top to the bottom, with their whole text and the box that is seen.
    cut: indexes in ``bubbles`` of messages of which a part is out of sight.
    question: indexes in ``bubbles`` of the other side's newest messages since our last one.
    draft: what stands in the input; None if there is no input (the bar to hold and talk).
    """

    title: str
    group: bool
    members: int
    bubbles: tuple[Bubble, ...]
    cut: tuple[int, ...]
    question: tuple[int, ...]
    draft: str | None
    send_state: SendState
    title_box: Box
    input_box: Box | None
    send_box: Box | None
    keyboard_icon: Box | None


@dataclass(frozen=True)
class Drawn:
    image: Image.Image
    nodes: list[Node]
    truth: Truth
    phone: VirtualPhone


def draw(
    look: str,
    name: str,
    messages: Sequence[MessagePart],
    *,
    unread: int = 0,
    signs: Sequence[Sign] = (),
    status: str = "",
    members: int = 0,
    strip: str = "",
    chip: str = "",
    draft: str = "",
    keyboard: bool = False,
    scroll: int = 0,
    font_scale: float = 1.0,
    width: int = 1080,
    height: int | None = None,
    phone: PhonePart | None = None,
    now: datetime = NOW,
) -> Drawn:
    """Draw the chat with ``name``.

    look: a key of LOOKS; its app is the one that is drawn.
    messages: oldest first, as ``MessagePart(side=…, text=…, kind=…, ago=seconds)``.
    unread: messages that wait in other chats, which makes the pill beside the back arrow.
    members: more than 0 makes it a group.
    keyboard: the input is focused, so that the keyboard covers the lower part.
    scroll: how far the page is scrolled up from its end, in units of a page 1080 wide.
    width, height: in pixels; the height is that of a 1080×2400 screen if none is given.
    phone: other settings of the phone; its size and font scale are replaced.
    """
    app = LOOKS[look].app
    kind = ContactKind.GROUP if members else ContactKind.FRIEND
    contacts = [
        ContactPart(
            name=name,
            app=app,
            kind=kind,
            members=members,
            history=list(messages),
            signs=list(signs),
            status=status,
            strip=strip,
            chip=chip,
            draft=draft,
        )
    ]
    if unread:
        contacts.append(ContactPart(name="\u200bother", app=app, unread=unread))
    part = (phone or PhonePart()).model_copy(
        update={"size": (width, height or round(width * _ASPECT)), "font_scale": font_scale}
    )
    drawn = VirtualPhone(Scenario(phone=part, look=look, contacts=contacts), clock=lambda: now)
    drawn.show_chat(name if app == "qq" else f"{app}:{name}")
    drawn.scroll_chat(scroll)
    field = drawn.chat_field()
    if keyboard and field is not None:
        drawn.focus_on(field)
    scene = drawn.scene()
    return Drawn(
        display.paint(scene, drawn.size),
        display.nodes(scene, drawn.size),
        _truth(drawn, scene, look, contacts[0]),
        drawn,
    )


@dataclass(frozen=True)
class Row:
    """A row of the list as a perfect reader says it. ``marked``: a count or a red dot; ``box`` in pixels."""

    name: str
    unread: int
    marked: bool
    preview: str
    box: Box


@dataclass(frozen=True)
class DrawnList:
    image: Image.Image
    nodes: list[Node]
    rows: tuple[Row, ...]
    phone: VirtualPhone


def draw_list(
    look: str,
    contacts: Sequence[ContactPart],
    *,
    notices: Sequence[str] = (),
    scroll: int = 0,
    font_scale: float = 1.0,
    width: int = 1080,
    height: int | None = None,
    now: datetime = NOW,
) -> DrawnList:
    """Draw the list of conversations. ``contacts`` belong to the look's app; ``notices`` are rows that are no chats."""
    app = LOOKS[look].app
    size = (width, height or round(width * _ASPECT))
    scenario = Scenario(
        phone=PhonePart(size=size, font_scale=font_scale), look=look, contacts=list(contacts), wechat_rows=list(notices)
    )
    phone = VirtualPhone(scenario, clock=lambda: now)
    phone.launch_app(PACKAGES[app])
    phone.scroll_chat(scroll)
    scene = phone.scene()
    scale = size[0] / WIDTH
    rows = []
    for element in scene.page:
        box = element.visible()
        if isinstance(element.about, Chat) and box is not None:
            chat = element.about
            preview = chat.newest.summary if chat.newest else ""
            pixels = Box(*(round(edge * scale) for edge in box))
            rows.append(Row(chat.name, chat.unread, chat.unread > 0, preview, pixels))
    return DrawnList(display.paint(scene, size), display.nodes(scene, size), tuple(rows), phone)


PACKAGES = {"qq": "com.tencent.mobileqq", "wechat": "com.tencent.mm"}


def _truth(phone: VirtualPhone, scene: display.Scene, key: str, contact: ContactPart) -> Truth:
    look = LOOKS[key]
    elements = list(scene.page)
    scale = phone.size[0] / WIDTH

    def pixels(element: Element) -> Box:
        box = element.visible() or element.box
        return Box(*(round(edge * scale) for edge in box))

    def named(id_: str) -> Element | None:
        return next((element for element in elements if element.id == id_), None)

    shown = [element for element in elements if isinstance(element.about, Message) and element.visible()]
    bubbles = [_bubble(element.about, pixels(element)) for element in shown if isinstance(element.about, Message)]
    question: list[int] = []
    for index in reversed(range(len(bubbles))):
        if bubbles[index].side is Side.ME:
            break
        question.insert(0, index)
    title = next(element for element in elements if element.id == look.ids.title)
    field = next((element for element in elements if element.kind == EDIT), None)
    send = named(look.ids.send)
    keyboard = next((element for element in elements if element.description == "切换到键盘"), None)
    draft = None if field is None else field.text
    return Truth(
        contact.name,
        contact.kind is ContactKind.GROUP,
        contact.members,
        tuple(bubbles),
        tuple(index for index, element in enumerate(shown) if element.visible() != element.box),
        tuple(question),
        draft,
        _send_state(phone, send, draft),
        pixels(title),
        None if field is None else pixels(field),
        None if send is None else pixels(send),
        None if keyboard is None else pixels(keyboard),
    )


def _send_state(phone: VirtualPhone, send: Element | None, draft: str | None) -> SendState:
    if send is not None:
        return SendState.ON if (draft or "").strip() else SendState.DIMMED
    keys = [element.text for element in phone.scene().system] if phone.keyboard_shown() else []
    return SendState.KEYBOARD if "发送" in keys else SendState.ABSENT


_KINDS = {
    WorldKind.TEXT: BubbleKind.TEXT,
    WorldKind.QUOTE: BubbleKind.TEXT,
    **{kind: BubbleKind(kind.value) for kind in WorldKind if kind.value in {kind.value for kind in BubbleKind}},
}


def _bubble(message: Message, box: Box) -> Bubble:
    kind = _KINDS[message.kind]
    text = message.call if kind is BubbleKind.CALL else message.text if kind in _READ else message.transcript
    state = BubbleState(message.state.value)
    return Bubble(Side(message.side.value), text, box, kind, state, message.quoted)


_READ = (BubbleKind.TEXT, BubbleKind.FILE, BubbleKind.LOCATION, BubbleKind.CARD)
