"""A phone on paper: what a chat app's screen shows, what taps do to it, and what goes wrong, without a pixel too many.

It is the outside of the agent, for tests that need thousands of runs: a ``Device`` whose screens are flat boxes, and
a ``ScreenReader`` that knows what each picture shows. Where it matters it behaves like the virtual phone: rows move
when a message comes, the keyboard pushes messages out of sight, Send may do nothing, fail or be late, what a broadcast
types may not arrive. The world changes only when it is looked at: whoever looks before an act has seen what it acts on.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Hashable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha1
from typing import cast

from PIL import Image, ImageDraw

from agent_core.apps.profile import AppProfile
from agent_core.devices.base import (
    Battery,
    DeviceInfo,
    Frame,
    Key,
    Look,
    LookedPicture,
    Node,
    Notification,
    ScreenState,
    System,
    TouchWatch,
    Window,
    WindowKind,
)
from agent_core.errors import AppNotFound, CommandFailed, TextInputFailed
from agent_core.geometry import Box, Point
from agent_core.perception.reader import ScreenReader
from agent_core.perception.readings import (
    Bubble,
    BubbleKind,
    BubbleState,
    ChatScreen,
    Doubt,
    DoubtKind,
    Reading,
    Side,
    Source,
)
from agent_core.perception.tree import TreeHealth
from simulator.phone.apps.looks import LOOKS

SIZE = (180, 400)
QQ, PAY, WECHAT, SETTINGS = (
    "com.tencent.mobileqq",
    "com.eg.android.AlipayGphone",
    "com.tencent.mm",
    "com.android.settings",
)
LAUNCHER = "com.android.launcher3"
ICONS = {"QQ": QQ, "支付宝": PAY, "微信": WECHAT, "设置": SETTINGS}
VERSION = LOOKS["qq-plain"].version
AI = "智能助理"
PICTURE_SECONDS = 0.25  # what a picture takes
ROW = 36  # pixels of a bubble
LINE = 40  # characters; a longer text takes two rows
VISIBLE = 40  # messages that may be scrolled into sight
CROSSED = "保修多久？"
LATE = 4  # pictures until a late bubble stands there


class Clock:
    """Seconds that pass when something happens, and not otherwise."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Message:
    side: Side
    text: str
    kind: BubbleKind = BubbleKind.TEXT
    state: BubbleState = BubbleState.OK
    from_here: bool = False
    since: int = 0  # the picture before which it came
    due: int = 0  # the picture from which it is seen, or its spinner is gone


@dataclass
class Chat:
    name: str
    messages: list[Message] = field(default_factory=list)
    draft: str = ""


@dataclass(frozen=True)
class Element:
    """Something on the screen. ``name`` says what a tap on it does; the first one around a point is hit."""

    name: str
    box: Box
    text: str = ""
    mark: str = ""  # what is painted besides the text


@dataclass(frozen=True)
class Scene:
    """All that one picture shows."""

    window: Window
    elements: tuple[Element, ...]
    chat: ChatScreen | None = None


@dataclass(frozen=True)
class Happening:
    """Something that comes with the ``at``-th picture."""

    at: int
    what: str  # write, recall, colleague, goto, home, pay, popup, touch, draft
    contact: str = "11"
    text: str = ""
    kind: BubbleKind = BubbleKind.TEXT


@dataclass(frozen=True)
class Flaws:
    """What goes wrong, by the number of the send, of the typing or of the act; ``reads`` by that of the reading."""

    sends: tuple[str, ...] = ()  # ok, ignored, red, late, spin, vanish, crossed (the customer writes in that moment)
    types: tuple[str, ...] = ()  # ok, mute, cut
    acts: tuple[tuple[int, str], ...] = ()  # (number, "before" or "after"): the command fails though it took effect
    reads: tuple[tuple[int, str], ...] = ()  # (number, "blind", "unsure" or "no_draft")
    source: Source = Source.TREE
    enter_sends: bool = False


@dataclass
class Facts:
    """What really happened, for a test."""

    typed: list[tuple[str, str]] = field(default_factory=list)  # where, and what
    touched: list[tuple[str, str, str]] = field(default_factory=list)  # act, package in front, name of what was hit
    opened: list[str] = field(default_factory=list)  # packages that were launched


_PICTURES: OrderedDict[str, Image.Image] = OrderedDict()  # by digest; the newest ones are kept
_KEPT = 256


class PaperPhone:
    """Fits ``Device``. ``chats``: by name, the newest one first in the list."""

    serial = "paper"
    system = System.ANDROID
    round_trips = 0

    def __init__(self, chats: Sequence[Chat], happenings: Sequence[Happening], flaws: Flaws, clock: Clock) -> None:
        self.chats = {chat.name: chat for chat in chats}
        self.order = [chat.name for chat in chats]
        self.facts = Facts()
        self.flaws = flaws
        self._happenings = sorted(happenings, key=lambda one: one.at)
        self._clock = clock
        self._touches = TouchWatch()
        self.front = LAUNCHER
        self.page = "list"  # of QQ: list, search, chat
        self.open = ""  # whose chat
        self.popup = False
        self.focus = ""  # "", "chat" or "search"
        self.keyboard_up = False
        self.scroll = 0  # messages below the lower edge
        self.search = ""
        self.pictures = self.sends = self.types = self.acts = 0
        self._ours = False  # the keyboard is
        self._scenes: dict[str, Scene] = {}
        self._drawn: dict[Hashable, Scene] = {}

    # -- what is seen

    @property
    def chat(self) -> Chat | None:
        return self.chats.get(self.open) if self.front == QQ and self.page == "chat" else None

    def element(self, name: str) -> Element | None:
        """What is on the screen by this name, or whose name begins so."""
        return next((one for one in self.scene().elements if one.name.startswith(name)), None)

    def scene(self) -> Scene:
        """The screen now; the same object while nothing changes."""
        state = self._state()
        if state not in self._drawn:
            self._drawn[state] = self._drawn_anew()
        return self._drawn[state]

    def _state(self) -> Hashable:
        """All that a screen is made of."""
        chats = [(chat.name, chat.draft, *map(self._shown, chat.messages[-VISIBLE:])) for chat in self._in_view()]
        page = (self.front, self.page, self.open, self.popup, self.focus, self.keyboard_up, self.scroll, self.search)
        return page, tuple(self.order), tuple(chats)

    def _shown(self, message: Message) -> Hashable:
        return message.side, message.text, message.kind, message.state, message.due > self.pictures

    def _in_view(self) -> list[Chat]:
        if self.front != QQ:
            return []
        return list(self.chats.values()) if self.page != "chat" else [self.chats.get(self.open) or Chat(self.open)]

    def _drawn_anew(self) -> Scene:
        window = Window(None if self.front == "" else self.front, ".Main", WindowKind.APP)
        elements = self._popup() if self.popup else []
        view = None
        if self.front == LAUNCHER:
            elements += [Element(f"icon:{n}", _box(10 + 42 * i, 100, 36, 36), n) for i, n in enumerate(ICONS)]
        elif self.front != QQ:
            elements += [
                Element("title", _box(30, 18, 90, 16), "确认订单"),
                Element("pay", _box(40, 200, 100, 30), "确认支付"),
            ]
        elif self.page == "chat":
            page, view = self._chat_page()
            elements += page
        else:
            elements += self._list_page()
        return Scene(window, tuple(elements), None if self.popup else view)

    @staticmethod
    def _popup() -> list[Element]:
        return [
            Element("popup:close", _box(30, 320, 40, 24), "关闭"),
            Element("popup:update", _box(100, 320, 50, 24), "立即安装"),
            Element("popup", _box(10, 120, 160, 270), "发现新版本"),
        ]

    def _list_page(self) -> list[Element]:
        names = [*self.order, AI]
        if self.page == "search":
            names = [name for name in names if self.search and self.search in name]
            head = [Element("field", _box(10, 40, 160, 22), self.search, f"{self.focus}{self.keyboard_up}")]
        else:
            head = [Element("title", _box(30, 18, 90, 16), "消息"), Element("search", _box(10, 40, 160, 22), "搜索")]
        for i, name in enumerate(names):
            top = 70 + 40 * i
            said = self.chats[name].messages[-1:] if name in self.chats else []
            head += [
                Element(f"row:{name}", _box(40, top, 80, 16), name),
                Element(f"row:{name}", _box(0, top, 180, 40), said[0].text if said else "", name),
            ]
        return head

    def _chat_page(self) -> tuple[list[Element], ChatScreen]:
        chat = self.chats.get(self.open) or Chat(self.open)
        top = 220 if self.keyboard_up else 350
        field, send = _box(10, top, 130, 24), _box(145, top, 30, 24)
        elements = [
            Element("title", _box(30, 18, 90, 16), self.open),
            Element("call", _box(122, 18, 26, 16), "语音通话"),
            Element("ai", _box(150, 18, 28, 16), "问AI"),
            Element("send", send, "发送"),
            Element("input", field, chat.draft, f"{self.focus}{self.keyboard_up}"),
            Element("more", _box(0, top + 25, 180, 400 - top - 25), "", "keys" if self.keyboard_up else "panel"),
        ]
        shown = [message for message in chat.messages if not self._hidden(message)]
        below = shown[: len(shown) - self.scroll]
        bubbles: list[Bubble] = []
        edge = top - 14
        while below:
            message = below[-1]
            height = ROW * (2 if len(message.text) > LINE else 1)
            if edge - height < 44:
                break
            below.pop()
            edge -= height
            mine = message.side is Side.ME
            box = _box(60 if mine else 8, edge, 112, height - 4)
            state = BubbleState.SENDING if message.due > self.pictures else message.state
            bubbles.insert(0, Bubble(message.side, message.text, box, message.kind, state))
            elements.append(Element("bubble", box, message.text, f"{mine}{message.kind}{state}"))
        cut = bool(below) and all(bubble.side is Side.THEM for bubble in bubbles)
        return elements, ChatScreen(
            self.open,
            tuple(bubbles),
            chat.draft,
            self.flaws.source,
            sure=not cut,
            doubts=(Doubt(DoubtKind.ABOVE),) if cut else (),
            input_box=field,
            send_point=send.center,
            partial=cut,
        )

    def _hidden(self, message: Message) -> bool:
        """A late bubble is not there yet."""
        return message.due > self.pictures and message.state is BubbleState.SENDING and message.from_here

    def seen(self, digest: str) -> Scene:
        return self._scenes[digest]

    # -- Device: looking

    async def screenshot(self) -> Frame:
        self.pictures += 1
        self._clock.now += PICTURE_SECONDS
        while self._happenings and self._happenings[0].at <= self.pictures:
            self._happen(self._happenings.pop(0))
        for chat in self.chats.values():
            for message in chat.messages:
                if message.due and message.due <= self.pictures and message.state is BubbleState.SENDING:
                    message.state = BubbleState.OK
        scene = self.scene()
        digest = str(hash(scene))
        self._scenes[digest] = scene
        return Frame(_painted(scene, digest), digest, self._clock())

    async def observe(self) -> LookedPicture:
        return LookedPicture(await self.screenshot(), await self.look())

    async def look(self) -> Look:
        return Look(self.scene().window, ScreenState(awake=True, locked=False))

    async def battery(self) -> Battery:
        return Battery()

    def start_apps_afresh(self) -> None:
        pass

    async def window(self) -> Window:
        return self.scene().window

    async def screen(self) -> ScreenState:
        return ScreenState(awake=True, locked=False)

    async def tree(self) -> Sequence[Node]:
        return []

    async def info(self) -> DeviceInfo:
        return DeviceInfo(self.serial, "paper", SIZE, 33)

    async def notifications(self) -> Sequence[Notification]:
        return []

    async def packages(self, *, fresh: bool = False, also: Sequence[str] = ()) -> Sequence[str]:
        return list(ICONS.values())

    async def properties(self, *names: str) -> Mapping[str, str]:
        return {}

    async def app_version(self, package: str) -> str | None:
        return VERSION

    # -- Device: acting

    async def tap(self, point: Point) -> None:
        await self._act("tap", point)

    async def double_tap(self, point: Point) -> None:
        await self._act("double_tap", point)

    async def long_press(self, point: Point, seconds: float = 1.0) -> None:
        await self._act("long_press", point)

    async def swipe(self, start: Point, end: Point, seconds: float = 0.4) -> None:
        self._failing("before")
        self.facts.touched.append(("swipe", self.front, ""))
        chat = self.chat
        if chat is not None and not self.popup:
            moved = round((end.y - start.y) / ROW)
            self.scroll = max(0, min(self.scroll + moved, len(chat.messages) - 4))
        self._failing("after")

    async def key(self, key: Key) -> None:
        self._failing("before")
        self.facts.touched.append((f"key:{key.value}", self.front, ""))
        if key is Key.HOME:
            self._go(LAUNCHER)
        elif key is Key.BACK:
            self._back()
        elif key is Key.ENTER and self.focus == "chat" and self.chat is not None:
            if self.flaws.enter_sends:
                self._send(self.chat)
            else:
                self.chat.draft += "\n"
        self._failing("after")

    async def send_action(self) -> None:
        await self.key(Key.ENTER)

    async def launch(self, package: str) -> None:
        if package not in ICONS.values():
            raise AppNotFound(f"{package} is not installed.")
        self._failing("before")
        self.facts.opened.append(package)
        self._go(package)

    async def open_url(self, url: str, package: str) -> None:
        raise CommandFailed("There are no numbers on this phone.")

    @asynccontextmanager
    async def keyboard(self) -> AsyncIterator[PaperPhone]:
        self._ours = True
        try:
            yield self
        finally:
            self._ours = False

    async def confirm(self, *, arrived: bool) -> None: ...

    async def clear(self) -> None:
        self._failing("before")
        if self.focus == "chat" and self.chat is not None:
            self.chat.draft = ""
        elif self.focus == "search":
            self.search = ""

    async def type(self, text: str) -> None:
        self._failing("before", TextInputFailed("scripted"))
        flaw = _nth(self.flaws.types, self.types)
        self.types += 1
        text = {"mute": "", "cut": text[: len(text) // 2]}.get(flaw, text)
        if not text or not self._ours:
            return
        if self.focus == "chat" and self.chat is not None:
            self.chat.draft += text
            self.facts.typed.append((self.chat.name, text))
        elif self.focus == "search":
            self.search += text
            self.facts.typed.append(("search", text))
        else:
            self.facts.typed.append((f"nowhere in {self.front}", text))

    async def recover(self) -> None:
        self._ours = False

    async def wake(self) -> None:
        return None

    @asynccontextmanager
    async def kept_awake(self) -> AsyncIterator[None]:
        yield

    @asynccontextmanager
    async def touch_watch(self, watch: TouchWatch | None = None) -> AsyncIterator[TouchWatch]:
        self._touches = watch or TouchWatch()
        try:
            yield self._touches
        finally:
            self._touches = TouchWatch()

    async def leave(self) -> None:
        return None

    async def close(self) -> None:
        return None

    # -- what acts do

    def _failing(self, when: str, error: Exception | None = None) -> None:
        if when == "before":
            self.acts += 1
        if (self.acts, when) in self.flaws.acts:
            raise error or CommandFailed("scripted")

    async def _act(self, act: str, point: Point) -> None:
        self._failing("before")
        hit = next((one for one in self.scene().elements if one.box.contains(point)), None)
        name = hit.name if hit else ""
        self.facts.touched.append((act, self.front, name))
        if act == "tap":
            self._tapped(name)
        self._failing("after")

    def _tapped(self, name: str) -> None:
        kind, _, of = name.partition(":")
        match kind:
            case "popup":
                self.popup = not of
            case "icon":
                self._go(ICONS[of])
            case "row":
                self.enter(of)
            case "search":
                self.page, self.focus, self.keyboard_up = "search", "search", True
            case "field":
                self.focus, self.keyboard_up = "search", True
            case "input":
                self.focus, self.keyboard_up, self.scroll = "chat", True, 0
            case "ai":
                self.enter(AI)
            case "send" if self.chat is not None:
                self._send(self.chat)
            case _:
                pass

    def _send(self, chat: Chat) -> None:
        if not chat.draft:
            return
        flaw = _nth(self.flaws.sends, self.sends)
        self.sends += 1
        if flaw == "ignored":
            return
        text, chat.draft = chat.draft, ""
        if flaw == "vanish":
            return
        if flaw == "crossed":
            self.receive(chat.name, CROSSED)
        state = {"red": BubbleState.FAILED, "late": BubbleState.SENDING}.get(flaw, BubbleState.OK)
        due = self.pictures + LATE if flaw in {"late", "spin"} else 0
        chat.messages.append(Message(Side.ME, text, state=state, from_here=True, due=due))
        self._first(chat.name)

    def _back(self) -> None:
        if self.popup:
            self.popup = False
        elif self.keyboard_up:
            self.keyboard_up, self.focus = False, ""
        elif self.front != LAUNCHER and (self.front != QQ or self.page == "list"):
            self._go(LAUNCHER)
        else:
            self.page, self.search = "list", ""

    def _go(self, package: str) -> None:
        self.front, self.keyboard_up, self.focus = package, False, ""

    def enter(self, name: str) -> None:
        """The chat with ``name`` comes to the front."""
        self.front, self.page, self.open = QQ, "chat", name
        self.keyboard_up, self.focus, self.scroll = False, "", 0

    def _first(self, name: str) -> None:
        self.order.remove(name)
        self.order.insert(0, name)

    # -- what happens by itself

    def _happen(self, one: Happening) -> None:
        chat = self.chats[one.contact]
        match one.what:
            case "write":
                self.receive(one.contact, one.text, one.kind)
            case "colleague":
                chat.messages.append(Message(Side.ME, one.text))
                self._first(chat.name)
            case "recall":
                theirs = [message for message in chat.messages if message.side is Side.THEM]
                if theirs:
                    chat.messages.remove(theirs[-1])
            case "goto":
                self.enter(one.contact)
            case "home":
                self._go(LAUNCHER)
            case "pay":
                self._go(PAY)
            case "popup":
                self.popup = True
            case "touch":
                self._touches.touched = True
            case "draft":
                chat.draft = one.text

    def receive(self, name: str, text: str, kind: BubbleKind = BubbleKind.TEXT) -> None:
        """A customer writes."""
        self.chats[name].messages.append(Message(Side.THEM, text, kind, since=self.pictures))
        self._first(name)


class PaperReader(ScreenReader):
    """Reads what the pictures of ``phone`` show, with the phone's flaws of reading."""

    def __init__(self, phone: PaperPhone) -> None:
        super().__init__(ocr=None, model=None)
        self._phone = phone
        self.reads = 0

    def health(self, nodes: Sequence[Node] | None, frame: Frame) -> TreeHealth:
        return TreeHealth.FULL

    async def readings(self, frame: Frame, nodes: Sequence[Node] | None) -> list[Reading]:
        source = self._phone.flaws.source
        return [Reading(one.text, one.box, source) for one in self._phone.seen(frame.digest).elements if one.text]

    async def chat(
        self, frame: Frame, nodes: Sequence[Node] | None, profile: AppProfile, *, use_model: bool = True
    ) -> ChatScreen | None:
        self.reads += 1
        chat = self._phone.seen(frame.digest).chat
        flaw = next((flaw for number, flaw in self._phone.flaws.reads if number == self.reads), "")
        if chat is None or flaw == "blind":
            return None
        if flaw == "unsure":
            return replace(chat, sure=False, doubts=(Doubt(DoubtKind.MESSAGE, "smudged"),), partial=False)
        return replace(chat, draft=None) if flaw == "no_draft" else chat

    async def unread_below(
        self,
        frame: Frame,
        nodes: Sequence[Node] | None,
        profile: AppProfile,
        readings: Sequence[Reading],
        *,
        use_model: bool = True,
    ) -> int | None:
        """The box of the input is seen though nothing else of a chat is."""
        chat = self._phone.seen(frame.digest).chat
        return chat.input_box.top if chat is not None and chat.input_box is not None else None


def _painted(scene: Scene, digest: str) -> Image.Image:
    """Each element a flat box in a colour of its own."""
    image = _PICTURES.get(digest)
    if image is None:
        image = Image.new("RGB", SIZE, "#f1f1f1")
        draw = ImageDraw.Draw(image)
        for one in reversed(scene.elements):
            ink = sha1(f"{one.name}{one.text}{one.mark}".encode(), usedforsecurity=False).digest()
            draw.rectangle(one.box.as_tuple(), fill=cast("tuple[int, int, int]", tuple(ink[:3])))
        _PICTURES[digest] = image
        while len(_PICTURES) > _KEPT:
            _PICTURES.popitem(last=False)
    return image


def _box(left: int, top: int, width: int, height: int) -> Box:
    return Box(left, top, left + width, top + height)


def _nth(flaws: Sequence[str], number: int) -> str:
    return flaws[number] if number < len(flaws) else "ok"
