"""Tells from the rows of a list of chats, and from an app's notifications, who is waiting.

The notifications of QQ and WeChat: QQ writes "昵称" or "昵称(2条新消息)", with "[特别关心]" before it for some; a
group's text is "昵称: 内容". Others are "QQ空间动态(共1条未读)" and "关联QQ号 (3条新消息)". WeChat: the text of one
message has no prefix; several are "[2条]昵称: 内容", also in a chat of two, in which 昵称 is the title. Both can hide
the writer: "你收到了2条新消息". An unknown form says that there are messages but not whose, so the list of chats is
read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from agent_core.apps.profile import AppProfile
from agent_core.devices.base import Node, Notification
from agent_core.geometry import Box
from agent_core.perception.compare import Likeness, counts_members, fold, likeness, name, same_name
from agent_core.perception.lists import ChatRow, described_name, with_preview
from agent_core.sweep.result import Aside, SetAside, Waiting

_CUT = re.compile(r"(?:…|\.{2,3}|⋯)$")
_SENDER = re.compile(r"^([^：:\s]{1,20})([：:]\s*\S)")  # a group's row tells who wrote
_CLOCK_OR_LINK = re.compile(r"\d[：:]\s*\d|[：:]//")  # 10:30, 1:1, https://
# Words that people themselves write before a colon. They are nobody's name.
_LABEL = re.compile(
    r"(?:地址|单号|订单|编号|型号|货号|尺码|尺寸|规格|颜色|数量|价格|单价|总价|电话|手机|手机号|姓名|名字|收件人|收货人|邮箱|邮编|微信|微信号|链接"
    r"|网址|账号|账户|备注|时间|日期|问题|款式|品名|商品|产品|品牌|重量|身高|体重|店铺|快递|发票|抬头|税号|内容|主题|转发|回复|补充|另外|比如|例如|如下"
    r"|address|order|size|colou?r|model|phone|link|price|question)(?:信息|号码|是|为)?$"
    r"|^(?:问|答|你好|您好|在吗|请问|想问|亲|老板|客服|谢谢|name|hello|hi)(?:啊|呀|一下|下)?$",
    re.IGNORECASE,
)
_GROUP = re.compile(r"群聊$|...群$")  # 李卫群 and 张群 are people
_AVATARS_OF = ("头像", "的资料卡")  # how the apps describe an avatar
_CLOCK = re.compile(r"\d{1,2}[:：]\d{2}")
NOWHERE = Box(0, 0, 1, 1)
_MESSAGES = re.compile(r"消息|message", re.IGNORECASE)
_COUNTED = re.compile(
    r"\s*[(（]\s*(?:\d+\+?\s*条(?:新|未读)消息|共\s*\d+\+?\s*条未读|\d+\+?\s*(?:new |unread )?messages?)\s*[)）]$",
    re.IGNORECASE,
)
_CARED_FOR = re.compile(r"^\[特别关[心注]\]\s*")
# Text that may belong to an app's format, and not to a name.
_STRANGE = re.compile(
    r"^[\[【][^\]】]*[\]】]|[(（][^()（）]*(?:条|消息|未读|messages?)[^()（）]*[)）]$|\d+\s*[条则].{0,4}(?:消息|未读)"
    r"|^[你您](?:收到|有).*消息$",
    re.IGNORECASE,
)
_SEVERAL = re.compile(r"^\[(\d{1,4})\+?条(?:新消息)?\]\s*")
_COLON = re.compile(r"[：:]\s*")


def _set_aside(row: ChatRow, called: str, why: Aside, state: str) -> SetAside:
    """Make the entry, with the sender if that is the one weak sign that makes the row a group."""
    sender = sender_in(row, called) if why is Aside.GROUP else ""
    if not sender or _GROUP.search(called) or row.called or counts_members(called):
        return SetAside(called, why)
    return SetAside(called, why, digest(fold(sender)), state)


def digest(*parts: str) -> str:
    return blake2b("\n".join(parts).encode(), digest_size=12).hexdigest()


def state_of(row: ChatRow) -> str:
    """Return a digest that changes when the contact writes again.

    A day's name is left out, because it changes at midnight by itself. So is a draft, which is our own.
    """
    clock = row.time if _CLOCK.search(row.time) else ""
    return digest("row", str(row.unread), "" if row.draft else fold(row.preview), clock)


def own_notes(notes: Sequence[Notification], profile: AppProfile) -> list[Notification]:
    return [note for note in notes if note.package in profile.packages]


def notes_digest(notes: Sequence[Notification]) -> str:
    return digest(*sorted(f"{note.key}|{note.title}|{note.text}" for note in notes))


def whole_name(row: ChatRow, known: Sequence[str], nodes: Sequence[Node], notes: Sequence[str]) -> str | None:
    """Return the contact's full name; None if it is unknown or may be one of several.

    A name that is cut off in the row is searched for in nodes, notifications and known names.
    """
    written = row.name.strip()
    if not _CUT.search(written):
        exact = [one for one in known if same_name(written, one)]
        alike = [one for one in known if fold(one) == fold(written)]
        return exact[0] if exact else alike[0] if len(alike) == 1 and row.confidence < 1.0 else written
    start = name(_CUT.sub("", written))
    inside = [
        said
        for node in nodes
        if row.box.contains(node.box.center)
        for said in (described_name(node.description) or node.description.strip(), node.text.strip())
        if not said.endswith(_AVATARS_OF)
    ]
    for source in (inside, notes, known):
        full = {one for one in source if name(one).startswith(start) and not _CUT.search(one) and name(one) != start}
        if full:
            return full.pop() if len(full) == 1 else None
    return None


def aside_of(
    row: ChatRow, called: str, known: Sequence[str], profile: AppProfile, people: Sequence[str] = ()
) -> Aside | None:
    """Return why this row is not answered; None for a contact.

    A group may have a contact's name, so the app's own signs of a group count. Weaker signs (a name that ends like a
    group's, a word before a colon) do not count for ``known`` contacts, nor for ``people`` whose chats a run has opened
    or answered before.
    """
    if any(same_name(called, service) for service in (*profile.service_rows, *profile.ai_entries)):
        return Aside.SERVICE
    if row.called or row.sender:
        return Aside.GROUP
    likely = {likeness(called, one) for one in (*known, *people)}
    if Likeness.SAME in likely:
        return None
    if Likeness.ALIKE in {likeness(called, one) for one in known}:
        return Aside.LOOK_ALIKE
    group = counts_members(called) or _GROUP.search(called) or sender_in(row, called)
    return Aside.GROUP if group else None


def sender_in(row: ChatRow, called: str) -> str:
    """Return who wrote, if the row tells it as a group's does; "" if that is the contact, or no nickname."""
    if row.sender:
        return row.sender
    found = _SENDER.match(row.preview)
    if found is None or row.draft or same_name(found[1], called):
        return ""
    if _CLOCK_OR_LINK.search(row.preview[: found.end(2) + 1]) or _LABEL.search(found[1]):
        return ""
    return found[1]


@dataclass
class FoundRow:
    """The contacts seen up to now, over all pages and the notifications."""

    profile: AppProfile
    known: Sequence[str]
    people: Sequence[str] = ()

    def __post_init__(self) -> None:
        self.waiting: dict[str, Waiting] = {}
        self.aside: dict[str, SetAside] = {}
        self.seen: dict[str, None] = {}
        self._rows: set[tuple[str, str]] = set()  # with what each row says, because a group may have a contact's name
        self.unread = 0  # as the app counts on the tab: muted chats have a dot, and are not counted
        self.dots = False

    def add_rows(self, rows: Sequence[ChatRow], nodes: Sequence[Node], notes: Sequence[Notification]) -> None:
        told = [told_by(note, self.profile, self.known).row for note in notes]
        senders = [row.name for row in told if row is not None]
        for row in rows:
            called = whole_name(row, self.known, nodes, senders)
            shown = called or row.name
            state = state_of(row)
            if (shown, state) in self._rows:
                continue  # the last row of one page is the first of the next
            self._rows.add((shown, state))
            if not row.is_new:
                if row.time and shown not in self.waiting:  # "Windows 微信已登录" is nobody's chat
                    self.seen[shown] = None
                continue
            self.unread += 0 if row.dot else row.unread
            self.dots = self.dots or row.dot
            why = Aside.CUT_OFF if called is None else aside_of(row, called, self.known, self.profile, self.people)
            if why is not None:
                self.aside.setdefault(shown, _set_aside(row, shown, why, state))
                continue
            self.seen.pop(shown, None)
            other = self.waiting.get(shown)
            if other is None:
                self.waiting[shown] = Waiting(shown, state, len(self.waiting) + 1, max(1, row.unread))
            else:  # two with one name: their run asks which is meant
                self.waiting[shown] = replace(
                    other, state=digest(*sorted((other.state, state))), unread=other.unread + max(1, row.unread)
                )

    def add_notes(self, notes: Sequence[Notification]) -> None:
        """Add those who are named by a notification but not by a row. The newest notification is the first."""
        for note in notes:
            row = told_by(note, self.profile, self.known).row
            if row is None or row.name in self.waiting or row.name in self.aside or row.name in self.seen:
                continue
            why = aside_of(row, row.name, self.known, self.profile, self.people)
            state = digest("note", fold(note.text))
            if why is not None:
                self.aside[row.name] = _set_aside(row, row.name, why, state)
            else:
                self.waiting[row.name] = Waiting(row.name, state, len(self.waiting) + 1)

    def add_open_chat(self, contact: str, state: str) -> None:
        """Add the contact of the chat in front: nothing there is unread, whatever they wrote last."""
        why = aside_of(ChatRow(contact, NOWHERE), contact, self.known, self.profile, self.people)
        if why is not None:
            self.aside[contact] = SetAside(contact, why)
        else:
            self.waiting[contact] = Waiting(contact, state)

    def in_order(self) -> tuple[Waiting, ...]:
        return tuple(sorted(self.waiting.values(), key=lambda one: -one.place))


@dataclass(frozen=True, slots=True)
class Told:
    """The contents of a notification.

    row: a row as the list would show it; None if it names nobody.
    messages: there are messages even if it names nobody, so the list of chats knows more.
    """

    row: ChatRow | None = None
    messages: bool = False


def told_by(note: Notification, profile: AppProfile, known: Sequence[str] = ()) -> Told:
    """Read one notification of the app. ``known``: complete names of contacts; one of them is a name in any form."""
    title, text = note.title.strip(), note.text.strip()
    called = _CARED_FOR.sub("", _COUNTED.sub("", title)).strip()
    if any(same_name(title, one) for one in known):
        called = title
    elif not called or called in (profile.name, *profile.aliases):
        return Told(messages=bool(_MESSAGES.search(f"{title} {text}")))
    elif _STRANGE.search(called) and not any(same_name(called, one) for one in known):
        return Told(messages=True)
    row = ChatRow(called, NOWHERE, 1)
    several = _SEVERAL.match(text)
    if several is None:
        return Told(with_preview(row, text), messages=True)
    rest, count = text[several.end() :], int(several[1])
    own = name(called, drawn=True)
    if name(rest, drawn=True).startswith(f"{own}:"):  # the app may write a wide or a narrow colon
        words = _COLON.split(rest, maxsplit=own.count(":") + 1)[-1]
        return Told(ChatRow(called, NOWHERE, count, words), messages=True)
    colon = _COLON.search(rest)
    if colon is None:
        return Told(messages=True)
    return Told(ChatRow(called, NOWHERE, count, rest, sender=rest[: colon.start()].strip()), messages=True)


@dataclass(frozen=True, slots=True)
class Noted:
    """The writers of new messages, as the notifications name them.

    contacts: each with a state that changes when they write again, as far as the phone reports the time.
    nameless: the state of notifications about messages of unknown senders; "" if there are none.
    """

    contacts: Mapping[str, str] = field(default_factory=dict)
    nameless: str = ""


def noted(
    notes: Sequence[Notification],
    profile: AppProfile,
    *,
    known: Sequence[str] = (),
    targets: Sequence[str] | None = None,
    people: Sequence[str] = (),
) -> Noted:
    """Read this app's notifications among all of the phone's.

    known: complete names of contacts.
    targets: who is wanted; None for every contact that is neither a group nor an account of the app.
    people: are never taken for groups.
    """
    contacts: dict[str, list[str]] = {}
    nameless: list[str] = []
    for note in own_notes(notes, profile):
        said = f"{note.key}|{fold(note.text)}|{note.updated_ms}"
        told = told_by(note, profile, known)
        row = told.row
        called = whole_name(row, known, (), ()) if row is not None else None
        if row is None or called is None:  # hidden, of several people, or a name that is cut off
            nameless += [said] if told.messages else []
        elif (why := aside_of(row, called, known, profile, people)) is not None:
            nameless += [said] if why is Aside.LOOK_ALIKE else []  # the look at the list tells people of it
        elif targets is None or any(same_name(called, name) for name in targets):
            contacts.setdefault(called, []).append(said)
    states = {called: digest("note", *sorted(said)) for called, said in contacts.items()}
    return Noted(states, digest("nameless", *sorted(nameless)) if nameless else "")
