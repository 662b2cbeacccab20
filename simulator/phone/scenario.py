"""Scenario files: the world of a virtual phone, and the events in it. TOML or JSON.

A small one::

    [[contacts]]
    name = "11"
    history = [{ side = "them", text = "请问几天能发货？", ago = 60, unread = true }]

    [[events]]
    after_sent = "11"
    delay = 2
    contact = "11"
    text = "好的谢谢"

Every field has a default except the name of a contact. A contact of the other chat app is referred to as
``wechat:NAME``. Unknown fields are refused, with the file and the field.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from itertools import combinations
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from simulator.phone.apps.looks import DEFAULT_LOOKS, LOOKS
from simulator.phone.world import ContactKind, Kind, MessageState, Side, Sign


class TreeMode(StrEnum):
    FULL = "full"
    NO_TEXTS = "no_texts"  # the nodes are there, their texts are not
    EMPTY = "empty"  # a root and nothing else
    STALE = "stale"  # the tree of an older screen
    FAILING = "failing"  # the dump ends with an error
    SLOW = "slow"  # the dump takes 1.5 s
    HIDDEN = "hidden"  # one node without a place, as WeChat shows itself to ordinary services


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


def _usual(usual: object, none: object) -> BeforeValidator:
    """Return a validator: ``true`` is the usual strength of a fault, ``false`` and null none."""
    return BeforeValidator(lambda value: usual if value is True else none if value is False or value is None else value)


class Faults(_Part):
    """Faults of the phone. ``true`` sets the usual strength, ``false`` ends it."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, validate_assignment=True)

    slow: Annotated[int, Field(ge=0, le=100), _usual(3, 0)] = 0
    """The number of pictures that differ after each change, before the screen is still."""
    black: bool = False
    """Pictures are black, as those of a protected window."""
    asleep: bool = False
    """The screen is off."""
    locked: bool = False
    """The lock screen is in front; a swipe up opens it, or asks for the PIN if the phone has one."""
    dropped: bool = False
    """The adb connection is cut and refused."""
    unauthorized: bool = False
    """The phone has not allowed this computer (adb and hdc; an iPhone refuses the connection)."""
    offline: bool = False
    """The phone takes the connection and says nothing: adb shows it as offline."""
    rotation: Annotated[int, Field(ge=0, le=3), _usual(1, 0)] = 0
    """The number of quarter turns: 1 and 3 lie on a side, with the page small in the middle between black bars."""
    two_displays: Annotated[Literal["", "first", "second"], _usual("second", "")] = ""
    """The phone has two displays, of which this one is on, as a folded phone's outer one."""
    capture: Annotated[Literal["", "fails", "half", "warns"], _usual("fails", "")] = ""
    """A picture fails, comes half, or has a warning of the system before it."""
    no_focus: Annotated[Literal["", "null", "unsaid"], _usual("null", "")] = ""
    """The window manager names no focused window (``null``), or says nothing of focus at all (``unsaid``)."""
    sleeps: bool = False
    """The screen goes off by itself, screen_off_timeout after it was last used, unless the settings keep it on."""
    popup: Annotated[str, Field(max_length=200), _usual("发现新版本，是否立即更新？", "")] = ""
    """A dialog with this text lies over the page until it is closed."""
    update: Annotated[Literal["", "buttons", "picture"], _usual("buttons", "")] = ""
    """A chat app's update dialog: ``buttons`` (立即升级, 稍后处理) or ``picture`` (马上升级; a picture closes it)."""
    app_update: Annotated[Literal["", "installing", "installed"], _usual("installing", "")] = ""
    """The chat apps are updated: they do not start until that is over (``installing``), or have another version and
    another look now (``installed``). Android ends them each time."""
    stuck_keyboard: bool = False
    """The keyboard types nothing, though it is the current one."""
    ignored_taps: bool = False
    """Taps do nothing."""
    input_denied: bool = False
    """Taps, swipes, keys and texts are refused (INJECT_EVENTS)."""
    clipboard: Annotated[
        Literal["", "denied", "ignored", "no_paste", "killed", "killed_late", "cut"], _usual("denied", "")
    ] = ""
    """Pasting fails: the clipboard is refused or keeps what it has, the key does nothing, the program is killed before
    or after the key, or the field takes the first 20 characters only."""
    ime_refused: Annotated[Literal["", "set", "list"], _usual("set", "")] = ""
    """Another input method can not be chosen or enabled, or not even be listed (the maker's setting is off)."""
    settings_denied: bool = False
    """Settings can not be changed over adb (WRITE_SECURE_SETTINGS)."""
    install_denied: bool = False
    """Apps can not be installed over adb (the maker's setting is off)."""
    send_fails: bool = False
    """A sent message gets a red mark and does not leave."""
    send_slow: Annotated[float, Field(ge=0, le=600), _usual(3.0, 0.0)] = 0.0
    """A sent message shows a spinner for this many seconds."""
    not_logged_in: bool = False
    """QQ shows its login page."""
    banner: bool = False
    """Chat apps say under the title that there is no network. Messages fail only with send_fails."""
    getevent_denied: bool = False
    """The touch panel's events can not be read."""
    hidden_previews: bool = False
    """Notifications of chat apps show neither the sender nor the text."""


AppName = Literal["qq", "wechat", "payment", "settings", "browser"]
Version = Annotated[str, Field(pattern=r"^[0-9A-Za-z._-]{1,30}$")]


class OtherAppPart(_Part):
    """An app that shows its name and nothing else."""

    label: Annotated[str, Field(min_length=1, max_length=20)]
    """The name below its icon."""
    package: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$", max_length=100)]
    listed_only: bool = False
    """It has no icon on the pages of the home screen, only in the list of all apps, which a swipe up opens."""


class PhonePart(_Part):
    serial: Annotated[str, Field(pattern=r"^[A-Za-z0-9._:-]{1,40}$")] = "VPHONE0001"
    model: Annotated[str, Field(min_length=1, max_length=40)] = "VP-1"
    brand: Annotated[str, Field(min_length=1, max_length=40)] = "Virtual"
    size: tuple[Annotated[int, Field(ge=360, le=2160)], Annotated[int, Field(ge=640, le=4800)]] = (1080, 2400)
    """Width and height in pixels; at least 1.6 times as high as wide."""
    override_size: tuple[Annotated[int, Field(ge=360, le=2160)], Annotated[int, Field(ge=640, le=4800)]] | None = None
    """The size that ``wm size`` set in place of ``size``; pictures and places then have this size."""
    override_density: Annotated[int, Field(ge=120, le=900)] | None = None
    """The density that ``wm density`` set; it is reported and changes nothing."""
    sdk: Annotated[int, Field(ge=23, le=40)] = 33
    """Before 24 adb tells no exit codes, before 30 refused input is refused in other words."""
    android: str = "13"
    battery: Annotated[int, Field(ge=0, le=100)] = 87
    pin: Annotated[str, Field(pattern=r"^(\d{4,16})?$")] = ""
    """The PIN of the lock screen; after five wrong ones it takes none for 30 s. Empty: no PIN."""
    account: Annotated[str, Field(min_length=1, max_length=30)] = "本店客服"
    """Our own name in the chat apps. Our avatar depends on it."""
    font_scale: Annotated[float, Field(ge=0.7, le=1.6)] = 1.0
    """The system's font size: 0.85, 1.0, 1.3 …"""
    handwriting: bool = False
    """The system's font is a hand-written one."""
    wallpaper: bool = False
    """Chats have a picture behind their messages, whatever their look."""
    operator: Annotated[str, Field(max_length=20)] = ""
    """The mobile operator's name, which some phones show at the left of the status bar."""
    floating: bool = False
    """A small window of another app lies over every page."""
    navigation: Literal["gestures", "buttons"] = "gestures"
    """The controls at the lower edge of the screen: a bar for gestures, or three buttons."""
    apps: list[AppName] = ["qq", "wechat", "payment", "settings", "browser"]
    """The apps that are installed beside the launcher."""
    app_versions: dict[Literal["qq", "wechat", "payment"], Version] = {}
    """The version of an app, if it is not the usual one."""

    others: list[OtherAppPart] = []
    """Further apps, on the pages right of the first one."""

    @model_validator(mode="after")
    def _upright(self) -> PhonePart:
        packages = [other.package for other in self.others]
        for package in packages:
            if packages.count(package) > 1:
                raise ValueError(f"others: {package} stands there twice")
        for name, size in (("size", self.size), ("override_size", self.override_size)):
            if size is not None and size[1] < size[0] * 1.6:
                raise ValueError(f"{name}: the height must be at least 1.6 times the width")
        return self


class KeyboardPart(_Part):
    adb_installed: bool = True
    """ADB Keyboard is installed."""
    current: Literal["sogou", "adb"] = "sogou"
    """The input method at the start."""
    needs_package: bool = False
    """Broadcasts without ``-p com.android.adbkeyboard`` are dropped, as newer Androids do."""


class MessagePart(_Part):
    side: Side = Side.THEM
    text: Annotated[str, Field(max_length=20_000)] = ""
    kind: Kind = Kind.TEXT
    ago: Annotated[float, Field(ge=0)] = 0.0
    """Seconds before the start."""
    unread: bool = False
    state: MessageState = MessageState.OK
    quoted: str = ""
    sender: str = ""
    """In a group: the sender."""
    quoted_sender: str = ""
    """The sender of the quoted message; the other side, if empty."""
    transcript: str = ""
    """For a voice message: the text that the app shows below it."""
    detail: str = ""
    """For a file its size, for a card its description."""
    footer: str = ""
    """For a card: the line with its source."""
    paper: bool = False
    """An image that is mostly white, with small text: the screenshot of an order, or of the lines in ``text``."""
    size: tuple[Annotated[int, Field(ge=60, le=700)], Annotated[int, Field(ge=60, le=1200)]] | None = None
    """For an image: its width and height on a page 1080 wide."""

    @model_validator(mode="after")
    def _has_text(self) -> MessagePart:
        _need_text(self.kind, self.text)
        return self


class ContactPart(_Part):
    name: Annotated[str, Field(min_length=1, max_length=60)]
    kind: ContactKind = ContactKind.FRIEND
    app: Literal["qq", "wechat"] = "qq"
    number: Annotated[str, Field(pattern=r"^\d{0,12}$")] = ""
    """The QQ number, by which ``mqqwpa://im/chat?uin=…`` opens the chat."""
    members: Annotated[int, Field(ge=0)] = 0
    """The number of members of a group."""
    draft: str = ""
    """The text in the chat's input at the start."""
    unread: Annotated[int, Field(ge=0, le=9999)] = 0
    """Unread messages, if they are more than the history holds."""
    signs: list[Sign] = []
    """Small pictures behind the name: robot, ear, bell, fire, ai."""
    status: Annotated[str, Field(max_length=40)] = ""
    """The line under the name, in QQ: "在线", "对方正在输入..."."""
    strip: Annotated[str, Field(max_length=200)] = ""
    """The notice that is pinned under the header, in WeChat."""
    chip: Annotated[str, Field(max_length=20)] = ""
    """The pill at the page's right edge that leads to other messages: "↑ 12条新消息" under the header, others above the
    input.
    """
    muted: bool = False
    """No notifications; in the list a red dot in place of the count."""
    special: bool = False
    """A special friend of QQ: the notifications begin with [特别关心]."""
    history: list[MessagePart] = []
    """Oldest first."""

    @property
    def key(self) -> str:
        """The name by which files refer to the contact, with the app before it if that is not QQ."""
        return self.name if self.app == "qq" else f"{self.app}:{self.name}"


class EventPart(_Part):
    """Something that happens once: ``at`` seconds after the start, or ``delay`` seconds after what it names."""

    at: Annotated[float, Field(ge=0)] | None = None
    before_sent: str | None = None
    """At the moment in which a text of ours leaves for this contact: the event's message is above that text."""
    after_sent: str | None = None
    """After a text of ours left for this contact."""
    after_opened: str | None = None
    """After this contact's chat was opened."""
    after_typed: str | None = None
    """After something was typed into this contact's chat."""
    after_looked: str | None = None
    """After a client took a picture of this contact's chat, or of the chat list (``list``)."""
    after_model: Annotated[int, Field(ge=1)] | None = None
    """Before the model is asked for the first, second … time."""
    count: Annotated[int, Field(ge=1)] = 1
    """The occurrence of the trigger that counts: the first, second … time. after_model has its own."""
    delay: Annotated[float, Field(ge=0)] = 0.0

    do: Literal[
        "receive",
        "colleague",
        "recall",
        "fault",
        "tree",
        "person_tap",
        "person_open",
        "person_type",
        "notification_open",
        "notification",
        "status",
    ] = "receive"
    """``colleague``: our account answers from another device. ``recall``: the other side recalls its newest message.
    ``person_…``: a finger on the glass taps, opens the contact's chat, types into the chat in front.
    ``notification_open``: the app goes to the contact's chat by itself. ``notification``: the app notifies of something
    that is not a message. ``status``: the line under the contact's name becomes the text."""
    contact: str = ""
    text: str = ""
    kind: Kind = Kind.TEXT
    quoted: str = ""
    sender: str = ""
    """In a group: the sender."""
    app: Literal["qq", "wechat"] = "qq"
    """The app of the notification."""
    title: Annotated[str, Field(max_length=60)] = ""
    """The title of a notification."""
    fault: str = ""
    value: bool | float | str = True
    """The strength of the fault."""
    mode: TreeMode = TreeMode.FULL
    x: Annotated[float, Field(ge=0, le=1000)] | None = None
    """For a person's tap: 0–1000 from the left."""
    y: Annotated[float, Field(ge=0, le=1000)] | None = None
    """For a person's tap: 0–1000 from the top."""
    on: str = ""
    """For a person's tap, in place of x and y: the text to tap."""

    @property
    def trigger(self) -> tuple[str, str]:
        """The trigger: (leaves, sent, opened, typed or looked; contact), ("model", "") or ("at", "")."""
        if self.after_model is not None:
            return ("model", "")
        if self.before_sent is not None:
            return ("leaves", self.before_sent)
        for name in ("sent", "opened", "typed", "looked"):
            contact: str | None = getattr(self, f"after_{name}")
            if contact is not None:
                return (name, contact)
        return ("at", "")

    @property
    def times(self) -> int:
        """The occurrence of the trigger at which it happens."""
        return self.after_model or self.count

    @model_validator(mode="after")
    def _complete(self) -> EventPart:
        given = [name for name in _WHEN if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"exactly one of {', '.join(_WHEN)} says when")
        if self.do in _OF_A_CONTACT and not self.contact:
            raise ValueError("contact: say whose chat it is")
        if self.do in ("receive", "colleague"):
            _need_text(self.kind, self.text)
        if self.do == "notification" and not self.title:
            raise ValueError("title: say what the notification is called")
        if self.do == "person_type" and not self.text:
            raise ValueError("text: say what is typed")
        if self.do == "person_tap" and (self.x is None or self.y is None) != bool(self.on):
            raise ValueError("on: a tap is at x and y, or on a text")
        if self.do == "fault":
            Faults.model_validate({self.fault: self.value})
        return self


_WHEN = ("at", "before_sent", "after_sent", "after_opened", "after_typed", "after_looked", "after_model")
_OF_A_CONTACT = ("receive", "colleague", "recall", "person_open", "notification_open", "status")
_WITH_TEXT = (Kind.TEXT, Kind.QUOTE, Kind.FILE, Kind.CARD, Kind.TIP)
CHAT_LIST = "list"  # of after_looked


def _need_text(kind: Kind, text: str) -> None:
    if kind in _WITH_TEXT and not text.strip():
        raise ValueError(f"text: a message of kind {kind.value} needs one")


def looks_by_app(keys: Sequence[str]) -> dict[str, str]:
    """Return the looks ``keys`` by their apps. Raises ValueError if one is unknown or two are of one app."""
    for key in keys:
        if key not in LOOKS:
            raise ValueError(f"no look {key!r}; there are {', '.join(LOOKS)}")
    for first, second in combinations(keys, 2):
        if LOOKS[first].app == LOOKS[second].app:
            raise ValueError(f"{first!r} and {second!r} are both looks of {LOOKS[first].app}")
    return {LOOKS[key].app: key for key in keys}


class Scenario(_Part):
    phone: PhonePart = Field(default_factory=PhonePart)
    keyboard: KeyboardPart = Field(default_factory=KeyboardPart)
    faults: Faults = Field(default_factory=Faults)
    look: str | list[str] = []
    """The look of the chat apps: one of LOOKS, or one for each app."""
    tree: TreeMode = TreeMode.FULL
    enter_sends: bool = False
    """Enter sends in a chat; else it makes a new line."""
    wechat_rows: list[Annotated[str, Field(min_length=1, max_length=60)]] = []
    """Rows of WeChat's list that are not chats: "Windows 微信已登录", "折叠置顶聊天"."""
    contacts: list[ContactPart] = []
    events: list[EventPart] = []

    @property
    def looks(self) -> dict[str, str]:
        """The look of each chat app, by the app."""
        return DEFAULT_LOOKS | looks_by_app([self.look] if isinstance(self.look, str) else self.look)

    @field_validator("look")
    @classmethod
    def _known_looks(cls, look: str | list[str]) -> str | list[str]:
        looks_by_app([look] if isinstance(look, str) else look)
        return look

    @model_validator(mode="after")
    def _names(self) -> Scenario:
        keys = [contact.key for contact in self.contacts]
        for key in keys:
            if keys.count(key) > 1:
                raise ValueError(f"contacts: {key!r} stands there twice")
        for index, contact in enumerate(self.contacts):
            if contact.app not in self.phone.apps:
                raise ValueError(f"contacts[{index}]: its app {contact.app!r} is not among phone.apps")
        for index, event in enumerate(self.events):
            for name in (event.contact, event.trigger[1]):
                if name and name not in keys and not (event.after_looked == name == CHAT_LIST):
                    raise ValueError(f"events[{index}]: no contact {name!r}; there are {', '.join(keys) or 'none'}")
        return self
