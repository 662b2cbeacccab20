"""The world behind the screen: contacts, their chats, and their messages with times. Plain data and time."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class Side(StrEnum):
    ME = "me"
    THEM = "them"


class Kind(StrEnum):
    TEXT = "text"
    IMAGE = "image"
    VOICE = "voice"
    STICKER = "sticker"
    RED_PACKET = "red_packet"
    QUOTE = "quote"  # a text that quotes another
    VIDEO = "video"
    FILE = "file"  # its text is the name
    LOCATION = "location"  # its text is the place
    CARD = "card"  # a link or a mini-program; its text is the title
    CALL = "call"  # its text is the app's line about a call
    TIP = "tip"  # a grey line in the middle
    RECALLED = "recalled"


class MessageState(StrEnum):
    OK = "ok"
    SENDING = "sending"
    FAILED = "failed"


class ContactKind(StrEnum):
    FRIEND = "friend"
    GROUP = "group"
    BAIT = "bait"  # the app's own AI, in the guise of a contact


class Sign(StrEnum):
    """A small picture behind a contact's name."""

    ROBOT = "robot"
    EAR = "ear"
    BELL = "bell"
    FIRE = "fire"
    AI = "ai"  # the grey block "AI"


@dataclass(slots=True, eq=False)
class Message:
    side: Side
    text: str
    kind: Kind
    time: datetime
    state: MessageState = MessageState.OK
    quoted: str = ""  # the quoted text
    sender: str = ""  # in a group, who wrote it
    from_here: bool = False  # it left through this phone's input
    quoted_sender: str = ""  # whose text a quote quotes; the other side's, if it is not said
    transcript: str = ""  # of a voice message: the text below it
    detail: str = ""  # of a file its size, of a card its description
    footer: str = ""  # of a card: its source
    paper: bool = False  # an image that is a white page with small text
    size: tuple[int, int] | None = None  # of an image, in units
    done_at: datetime | None = None  # when SENDING ends

    @property
    def summary(self) -> str:
        """The message's text in a chat list."""
        match self.kind:
            case Kind.IMAGE:
                return "[图片]"
            case Kind.VOICE:
                return f'[语音] {self.seconds}"'
            case Kind.STICKER:
                return "[动画表情]"
            case Kind.RED_PACKET:
                return f"[QQ红包]{self.text or '恭喜发财'}"
            case Kind.VIDEO:
                return "[视频]"
            case Kind.FILE:
                return f"[文件]{self.text}"
            case Kind.LOCATION:
                return f"[位置]{self.text}"
            case Kind.CARD:
                return f"[小程序]{self.text}"
            case Kind.CALL:
                return "[语音通话]"
            case Kind.RECALLED:
                return self.notice
            case _:
                return self.text

    @property
    def call(self) -> str:
        """The text in the bubble of a call."""
        return self.text or "通话时长 01:20"

    @property
    def notice(self) -> str:
        """The grey line of a message that was recalled."""
        return "你撤回了一条消息" if self.side is Side.ME else "对方撤回了一条消息"

    @property
    def seconds(self) -> int:
        """The length of a voice message: its text, if that is a number."""
        return int(self.text) if self.text.isdecimal() and len(self.text) < 3 else 5


@dataclass(slots=True, eq=False)
class Chat:
    name: str
    kind: ContactKind = ContactKind.FRIEND
    number: str = ""  # the QQ number
    members: int = 0  # of a group
    messages: list[Message] = field(default_factory=list)
    unread: int = 0
    signs: tuple[Sign, ...] = ()  # behind the name
    status: str = ""  # under the name, in QQ
    strip: str = ""  # the notice that is pinned under a group's header, in WeChat
    muted: bool = False
    special: bool = False  # its notifications begin with [特别关心], in QQ
    chip: str = ""  # at the page's right edge, leads to messages that are out of sight

    @property
    def title(self) -> str:
        return f"{self.name}({self.members})" if self.kind is ContactKind.GROUP else self.name

    @property
    def newest(self) -> Message | None:
        return self.messages[-1] if self.messages else None

    def settle(self, now: datetime) -> list[Message]:
        """End the spinners whose time is over: the messages that have left now."""
        done = [
            message
            for message in self.messages
            if message.state is MessageState.SENDING and message.done_at is not None and message.done_at <= now
        ]
        for message in done:
            message.state = MessageState.OK
        return done

    def recall(self, side: Side, text: str = "") -> Message | None:
        """Recall the side's newest message (with this text, if one is given)."""
        for message in reversed(self.messages):
            if message.side is side and message.kind is not Kind.RECALLED and text in ("", message.text):
                message.kind = Kind.RECALLED
                return message
        return None


@dataclass(slots=True)
class World:
    """The chats of one app. Names are unique in it."""

    chats: dict[str, Chat] = field(default_factory=dict)
    account: str = "我"  # our own name
    notices: tuple[str, ...] = ()  # rows of the list other than chats

    def by_time(self) -> list[Chat]:
        """Return the chats with messages, the newest first."""
        filled = [chat for chat in self.chats.values() if chat.messages]
        return sorted(filled, key=lambda chat: chat.messages[-1].time, reverse=True)

    def search(self, words: str) -> list[Chat]:
        """Return every chat whose name or number holds ``words``."""
        return [chat for chat in self.chats.values() if words in chat.name or words == chat.number] if words else []
