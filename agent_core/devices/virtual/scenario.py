"""Scenario files: the world of a virtual phone, and what happens in it. TOML or JSON.

A small one::

    [[contacts]]
    name = "11"
    history = [{ side = "them", text = "请问几天能发货？", ago = 60, unread = true }]

    [[events]]
    after_sent = "11"
    delay = 2
    contact = "11"
    text = "好的谢谢"

Every field has a default but the name of a contact. A contact of the other chat app is written ``wechat:NAME`` where it
is referred to. Whatever is unknown is refused, with the file and the field.
"""

from __future__ import annotations

import json
import tomllib
from enum import StrEnum
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from agent_core.devices.virtual.world import ContactKind, Kind, MessageState, Side
from agent_core.errors import ConfigInvalid, ConfigMissing

CHAT_APPS = ("qq", "wechat")


class TreeMode(StrEnum):
    FULL = "full"
    NO_TEXTS = "no_texts"  # the nodes are there, their texts are not
    EMPTY = "empty"  # a root and nothing else
    STALE = "stale"  # the tree of an older screen
    FAILING = "failing"  # the dump ends with an error
    SLOW = "slow"  # the dump takes 1.5 s


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


def _usual(usual: object, none: object) -> BeforeValidator:
    """``true`` is the usual strength of a fault, ``false`` and null none."""
    return BeforeValidator(lambda value: usual if value is True else none if value is False or value is None else value)


class Faults(_Part):
    """What is wrong with the phone. ``true`` sets the usual strength, ``false`` ends it."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, validate_assignment=True)

    slow: Annotated[int, Field(ge=0, le=100), _usual(3, 0)] = 0
    """After each change, so many pictures differ before the screen is still."""
    black: bool = False
    """Pictures are black, as of a protected window."""
    asleep: bool = False
    """The screen is off."""
    locked: bool = False
    """The lock screen is in front; a swipe up opens it."""
    dropped: bool = False
    """The adb connection is cut and refused."""
    popup: Annotated[str, Field(max_length=200), _usual("发现新版本，是否立即更新？", "")] = ""
    """A dialog with this text lies over the page until it is closed."""
    stuck_keyboard: bool = False
    """The keyboard types nothing, though it is the current one."""
    ignored_taps: bool = False
    """Taps do nothing."""
    input_denied: bool = False
    """Taps, swipes, keys and texts are refused (INJECT_EVENTS)."""
    ime_refused: bool = False
    """Another input method can not be chosen (the maker's setting is off)."""
    send_fails: bool = False
    """What is sent gets a red mark and does not leave."""
    send_slow: Annotated[float, Field(ge=0, le=600), _usual(3.0, 0.0)] = 0.0
    """What is sent has a spinner for so many seconds."""
    not_logged_in: bool = False
    """QQ shows its login page."""


class PhonePart(_Part):
    serial: Annotated[str, Field(pattern=r"^[A-Za-z0-9._:-]{1,40}$")] = "VPHONE0001"
    model: Annotated[str, Field(min_length=1, max_length=40)] = "VP-1"
    brand: Annotated[str, Field(min_length=1, max_length=40)] = "Virtual"
    size: tuple[Annotated[int, Field(ge=360, le=2160)], Annotated[int, Field(ge=640, le=4800)]] = (1080, 2400)
    """Width and height in pixels; at least 1.6 times as high as wide."""
    sdk: Annotated[int, Field(ge=23, le=40)] = 33
    android: str = "13"
    battery: Annotated[int, Field(ge=0, le=100)] = 87
    apps: list[Literal["qq", "wechat", "payment", "settings"]] = ["qq", "wechat", "payment", "settings"]
    """The apps that are installed beside the launcher."""

    @model_validator(mode="after")
    def _upright(self) -> PhonePart:
        if self.size[1] < self.size[0] * 1.6:
            raise ValueError("size: the height must be at least 1.6 times the width")
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
    """In a group: who wrote it."""

    @model_validator(mode="after")
    def _has_text(self) -> MessagePart:
        if self.kind in (Kind.TEXT, Kind.QUOTE) and not self.text.strip():
            raise ValueError(f"text: a message of kind {self.kind.value} needs one")
        return self


class ContactPart(_Part):
    name: Annotated[str, Field(min_length=1, max_length=60)]
    kind: ContactKind = ContactKind.FRIEND
    app: Literal["qq", "wechat"] = "qq"
    number: Annotated[str, Field(pattern=r"^\d{0,12}$")] = ""
    """The QQ number, by which ``mqqwpa://im/chat?uin=…`` opens the chat."""
    members: Annotated[int, Field(ge=0)] = 0
    """Of a group."""
    draft: str = ""
    """What stands in the chat's input at the start."""
    history: list[MessagePart] = []
    """Oldest first."""

    @property
    def key(self) -> str:
        """How the contact is referred to: its name, with the app before it where that is not QQ."""
        return self.name if self.app == "qq" else f"{self.app}:{self.name}"


class EventPart(_Part):
    """Something that happens once: ``at`` seconds after the start, or ``delay`` seconds after what it names."""

    at: Annotated[float, Field(ge=0)] | None = None
    after_sent: str | None = None
    """After a text of ours left for this contact."""
    after_opened: str | None = None
    """After this contact's chat was opened."""
    after_typed: str | None = None
    """After something was typed into this contact's chat."""
    count: Annotated[int, Field(ge=1)] = 1
    """Of the trigger: the first, second … time."""
    delay: Annotated[float, Field(ge=0)] = 0.0

    do: Literal["receive", "colleague", "recall", "fault", "tree"] = "receive"
    """``colleague``: our account answers from another device. ``recall``: the other side recalls its newest message."""
    contact: str = ""
    text: str = ""
    kind: Kind = Kind.TEXT
    quoted: str = ""
    sender: str = ""
    """In a group: who writes."""
    fault: str = ""
    value: bool | float | str = True
    """The strength of the fault."""
    mode: TreeMode = TreeMode.FULL

    @property
    def trigger(self) -> tuple[str, str]:
        """What it waits for: ("sent" | "opened" | "typed", contact), or ("at", "")."""
        for name in ("sent", "opened", "typed"):
            contact: str | None = getattr(self, f"after_{name}")
            if contact is not None:
                return (name, contact)
        return ("at", "")

    @model_validator(mode="after")
    def _complete(self) -> EventPart:
        given = [
            name for name in ("at", "after_sent", "after_opened", "after_typed") if getattr(self, name) is not None
        ]
        if len(given) != 1:
            raise ValueError("exactly one of at, after_sent, after_opened, after_typed says when")
        if self.do in ("receive", "colleague", "recall") and not self.contact:
            raise ValueError("contact: say whose chat it is")
        if self.do in ("receive", "colleague") and self.kind in (Kind.TEXT, Kind.QUOTE) and not self.text.strip():
            raise ValueError("text: a message needs one")
        if self.do == "fault":
            Faults.model_validate({self.fault: self.value})
        return self


class Scenario(_Part):
    phone: PhonePart = Field(default_factory=PhonePart)
    keyboard: KeyboardPart = Field(default_factory=KeyboardPart)
    faults: Faults = Field(default_factory=Faults)
    tree: TreeMode = TreeMode.FULL
    enter_sends: bool = False
    """Enter sends in a chat; else it makes a new line."""
    contacts: list[ContactPart] = []
    events: list[EventPart] = []

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
                if name and name not in keys:
                    raise ValueError(f"events[{index}]: no contact {name!r}; there are {', '.join(keys) or 'none'}")
        return self


def load_scenario(path: Path) -> Scenario:
    """The scenario of a ``.toml`` or ``.json`` file. ConfigMissing, or ConfigInvalid with the file and the place."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ConfigMissing(f"Scenario file {path} is not there.", advice="Name a .toml or .json file.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigInvalid(f"Scenario file {path} can not be read: {error}.", advice="") from error
    return parse_scenario(text, name=str(path), form="json" if path.suffix.lower() == ".json" else "toml")


def parse_scenario(text: str, *, name: str = "scenario", form: Literal["toml", "json"] = "toml") -> Scenario:
    """The scenario that ``text`` describes; ConfigInvalid says where ``name`` is wrong and what would be allowed."""
    try:
        data: object = json.loads(text) if form == "json" else tomllib.loads(text)
    except ValueError as error:  # both decoders' errors give line and column
        raise ConfigInvalid(f"{name}: not {form.upper()}: {error}.", advice="") from error
    try:
        return Scenario.model_validate(data)
    except ValidationError as error:
        places = "; ".join(_place(item["loc"], item["type"], item["msg"]) for item in error.errors())
        raise ConfigInvalid(f"{name}: {places}.", advice="") from error


def default_scenario() -> Scenario:
    """The shipped one."""
    file = resources.files("agent_core.devices.virtual").joinpath("scenarios", "default.toml")
    return parse_scenario(file.read_text(encoding="utf-8"), name="default.toml")


def _place(location: tuple[int | str, ...], kind: str, message: str) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")
    if kind == "extra_forbidden":
        return f"{path}: there is no such field; allowed are {', '.join(_fields(location[:-1]))}"
    return f"{path}: {message.removeprefix('Value error, ')}" if path else message.removeprefix("Value error, ")


_PARTS: dict[str, type[BaseModel]] = {
    "phone": PhonePart,
    "keyboard": KeyboardPart,
    "faults": Faults,
    "contacts": ContactPart,
    "history": MessagePart,
    "events": EventPart,
}


def _fields(location: tuple[int | str, ...]) -> list[str]:
    """The fields that the part at ``location`` has."""
    names = [part for part in location if isinstance(part, str)]
    return list((_PARTS[names[-1]] if names else Scenario).model_fields)
