"""The looks of the chat apps: the differences between versions, themes and settings of QQ and WeChat, as data.

Sizes are in units of a page 1080 wide. The measures come from public screenshots and view-hierarchy dumps of QQ 9 and
WeChat 8; ids are those of one build each, because both apps rename them with every build.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

from agent_core.apps.learnt import AppLook, LearntApp

Page = Literal["list", "contacts", "moments", "channels", "me", "search", "chat", "ai"]


class Bar(StrEnum):
    """The kind of bar below the messages."""

    CLASSIC = "classic"  # QQ: the input with Send beside it, always; five icons below
    PLAIN = "plain"  # QQ: a voice icon, the input, face and ＋; Send takes the place of ＋ after typing
    WECHAT = "wechat"  # WeChat: the same with round icons; it can be a bar to hold and talk


@dataclass(frozen=True, slots=True)
class Colors:
    page: str
    header: str
    bar: str
    input: str
    line: str  # between header, page and bar
    ink: str
    grey: str  # times, tips, nicknames
    icon: str
    mine: str
    mine_ink: str
    mine_link: str
    mine_quote: str  # the ground of a quotation inside a bubble
    theirs: str
    theirs_link: str
    theirs_quote: str
    quote_ink: str  # of a quotation outside the bubble
    card: str
    accent: str
    send: str
    send_dimmed: str
    pill: str  # the unread count beside the back arrow
    badge: str  # unread counts of the list
    list_page: str
    search: str  # the search entry of the list


@dataclass(frozen=True, slots=True)
class Geometry:
    header: int  # its bottom
    title_y: int
    title_size: int
    avatar: int  # its size
    margin: int  # between an avatar and the screen's edge
    edge: int  # between a bubble and the screen's edge, on the side of the avatar
    text_width: int  # of the widest line
    text_size: int
    line: int
    pad_x: int
    pad_y: int
    radius: int
    tail: int  # how far the bubble's tail reaches towards the avatar; 0 for none
    row_gap: int


@dataclass(frozen=True, slots=True)
class Ids:
    """Resource ids of one build, without the package."""

    back: str
    title: str
    count: str  # of a group's members; "" if it is a part of the title
    status: str
    messages: str
    row: str
    avatar: str
    nickname: str
    time: str
    tip: str
    text: str
    quote: str
    picture: str
    sticker: str
    voice: str
    file: str
    file_name: str
    card: str
    call: str
    failed: str
    sending: str
    input: str
    send: str
    plus: str
    row_box: str  # of the list: a row, and its parts
    row_inner: str
    row_name: str
    row_preview: str
    row_time: str
    row_count: str
    row_dot: str
    tab: str
    search: str  # the way to the search, and its input
    search_input: str
    search_result: str


@dataclass(frozen=True, slots=True)
class Activities:
    list: str
    chat: str
    search: str
    update: str
    login: str


@dataclass(frozen=True, slots=True)
class Look:
    key: str
    app: Literal["qq", "wechat"]
    version: str  # of the app
    colors: Colors
    geometry: Geometry
    ids: Ids
    activities: Activities
    bar: Bar
    dark: bool = False
    title_centered: bool = False
    round_avatars: bool = False
    twelve_hours: bool = False  # times as 晚上8:34 instead of 20:34
    mic_in_input: bool = False
    voice_first: bool = False  # chats begin with the bar to hold and talk
    enter_sends: bool = False  # the setting 回车键发送消息: never a Send button
    hidden_tree: bool = False  # ordinary accessibility services see one node without a place
    wallpaper: bool = False
    skin: bool = False  # own bubbles have a picture for a ground
    tabs: tuple[tuple[str, Page], ...] = ()  # of the list, with the pages that they show

    def learnt(self) -> LearntApp:
        """Return the desk's knowledge of the app after its owner has shown it a chat in this look."""
        look = AppLook(mine=self.colors.mine, theirs=self.colors.theirs)
        return LearntApp(self.app, self.version, "enter" if self.enter_sends else "button", (look,))


_QQ_COLORS = Colors(
    page="#f0f0f2",
    header="#f5f6fa",
    bar="#f7f7f7",
    input="#ffffff",
    line="#ebecf0",
    ink="#1b1c1e",
    grey="#95979b",
    icon="#1b1c1e",
    mine="#0099ff",
    mine_ink="#ffffff",
    mine_link="#cfe9ff",
    mine_quote="#0083dc",
    theirs="#ffffff",
    theirs_link="#2d77e5",
    theirs_quote="#f2f3f5",
    quote_ink="#95979b",
    card="#ffffff",
    accent="#0099ff",
    send="#0099ff",
    send_dimmed="#80c8fb",
    pill="#e3e4e8",
    badge="#fe4833",
    list_page="#ffffff",
    search="#f0f1f4",
)

_QQ_DARK = replace(
    _QQ_COLORS,
    page="#0d0e10",
    header="#1a1b1d",
    bar="#1a1b1d",
    input="#2a2b2e",
    line="#26272a",
    ink="#e4e5e8",
    grey="#76787d",
    icon="#d5d6d9",
    mine="#0f6cc7",
    mine_link="#a9d3ff",
    mine_quote="#0d5aa6",
    theirs="#26272a",
    theirs_link="#4d94ff",
    theirs_quote="#323337",
    card="#26272a",
    send="#0f80e0",
    send_dimmed="#164166",
    pill="#303135",
    list_page="#1a1b1d",
    search="#2a2b2e",
)

_WECHAT_COLORS = Colors(
    page="#ededed",
    header="#ededed",
    bar="#f7f7f7",
    input="#ffffff",
    line="#dcdcdc",
    ink="#1a1a1a",
    grey="#a3a3a3",
    icon="#191919",
    mine="#95ec69",
    mine_ink="#1a1a1a",
    mine_link="#576b95",
    mine_quote="#e1e1e1",
    theirs="#ffffff",
    theirs_link="#576b95",
    theirs_quote="#e1e1e1",
    quote_ink="#737373",
    card="#ffffff",
    accent="#07c160",
    send="#07c160",
    send_dimmed="#07c160",
    pill="#dcdcdc",
    badge="#fa5151",
    list_page="#ffffff",
    search="#ffffff",
)

_WECHAT_DARK = replace(
    _WECHAT_COLORS,
    page="#111111",
    header="#111111",
    bar="#1e1e1e",
    input="#262626",
    line="#2a2a2a",
    ink="#d5d5d5",
    grey="#6f6f6f",
    icon="#d5d5d5",
    mine="#3eb575",
    mine_ink="#06150c",
    mine_link="#25436b",
    mine_quote="#1e1e1e",
    theirs="#2c2c2c",
    theirs_link="#7d90a9",
    theirs_quote="#1e1e1e",
    quote_ink="#8a8a8a",
    card="#2c2c2c",
    pill="#2c2c2c",
    list_page="#191919",
    search="#262626",
)

_QQ_GEOMETRY = Geometry(
    header=261,
    title_y=192,
    title_size=46,
    avatar=107,
    margin=33,
    edge=161,
    text_width=688,
    text_size=46,
    line=62,
    pad_x=26,
    pad_y=23,
    radius=24,
    tail=0,
    row_gap=47,
)

_WECHAT_GEOMETRY = Geometry(
    header=251,
    title_y=187,
    title_size=48,
    avatar=108,
    margin=33,
    edge=171,
    text_width=674,
    text_size=45,
    line=62,
    pad_x=33,
    pad_y=27,
    radius=10,
    tail=14,
    row_gap=44,
)

_QQ_IDS = Ids(
    back="ivTitleBtnLeft",
    title="371",
    count="372",
    status="38j",
    messages="yfn",
    row="root",
    avatar="avatar",
    nickname="mjq",
    time="f24",
    tip="gsk",
    text="mjn",
    quote="v0o",
    picture="mjw",
    sticker="mjv",
    voice="wqe",
    file="mk2",
    file_name="mk4",
    card="mkc",
    call="mkr",
    failed="mik",
    sending="mil",
    input="input",
    send="send_btn",
    plus="fun_btn",
    row_box="o8n",
    row_inner="o8c",
    row_name="title",
    row_preview="o9b",
    row_time="o9r",
    row_count="khc",
    row_dot="khd",
    tab="kbi",
    search="et_search_keyword",
    search_input="et_search_keyword",
    search_result="title",
)

# Another build: the ids of the title and of texts are others, everything else is named alike.
_QQ_IDS_2 = replace(_QQ_IDS, title="20r", count="20s", text="sbl", voice="wqr", nickname="mj3")

_WECHAT_IDS = Ids(
    back="actionbar_up_indicator",
    title="obn",
    count="",
    status="",
    messages="bp0",
    row="bn1",
    avatar="bk1",
    nickname="brc",
    time="br1",
    tip="br4",
    text="bkl",
    quote="bqn",
    picture="bkg",
    sticker="bkm",
    voice="bs4",
    file="bju",
    file_name="bj2",
    card="bk6",
    call="bkl",
    failed="bpu",
    sending="bpv",
    input="bkk",
    send="bql",
    plus="bjz",
    row_box="cj1",
    row_inner="cj0",
    row_name="kbq",
    row_preview="ht5",
    row_time="otg",
    row_count="o_u",
    row_dot="a_h",
    tab="icon_tv",
    search="jha",
    search_input="d98",
    search_result="odf",
)

_WECHAT_IDS_2 = replace(_WECHAT_IDS, input="o4q", send="b8k", search_input="cd7", row_box="cj0", row_inner="cj2")

_QQ_ACTIVITIES = Activities(
    list=".activity.SplashActivity",
    chat=".activity.SplashActivity",
    search=".search.activity.UniteSearchActivity",
    update=".upgrade.activity.UpgradeActivity",
    login=".activity.LoginActivity",
)

_WECHAT_ACTIVITIES = Activities(
    list=".ui.LauncherUI",
    chat=".ui.chatting.ChattingUI",
    search=".plugin.fts.ui.FTSMainUI",
    update=".plugin.upgrade.ui.AppUpgradeUI",
    login=".plugin.account.ui.LoginUI",
)

_PLAIN = Look(
    key="qq-plain",
    app="qq",
    version="9.3.50",
    colors=replace(_QQ_COLORS, mine="#4397f7", mine_quote="#3a85db", send="#4397f7"),
    geometry=_QQ_GEOMETRY,
    ids=_QQ_IDS,
    activities=_QQ_ACTIVITIES,
    bar=Bar.PLAIN,
    round_avatars=True,
    twelve_hours=True,
    tabs=(("消息", "list"), ("频道", "channels"), ("联系人", "contacts"), ("动态", "moments")),
)
_CLASSIC = replace(
    _PLAIN,
    key="qq-classic",
    version="9.1.31",
    colors=_QQ_COLORS,
    ids=_QQ_IDS_2,
    bar=Bar.CLASSIC,
    twelve_hours=False,
)
_LIGHT = Look(
    key="wechat-light",
    app="wechat",
    version="8.0.78",
    colors=_WECHAT_COLORS,
    geometry=_WECHAT_GEOMETRY,
    ids=_WECHAT_IDS,
    activities=_WECHAT_ACTIVITIES,
    bar=Bar.WECHAT,
    title_centered=True,
    mic_in_input=True,
    tabs=(("微信", "list"), ("通讯录", "contacts"), ("发现", "moments"), ("我", "me")),
)
_ALL = (
    _PLAIN,
    _CLASSIC,
    replace(
        _CLASSIC,
        key="qq-2023",
        version="9.0.8",
        colors=replace(_QQ_COLORS, page="#e6ebf7", header="#eff1f8", bar="#eff1f8", ink="#000000"),
    ),
    replace(_PLAIN, key="qq-dark", colors=_QQ_DARK, dark=True),
    replace(
        _CLASSIC,
        key="qq-skin",
        colors=replace(_QQ_COLORS, mine="#ffd9e6", mine_ink="#5a2a3c", mine_link="#b0306a", mine_quote="#f7c3d6"),
        wallpaper=True,
        skin=True,
    ),
    _LIGHT,
    replace(_LIGHT, key="wechat-dark", colors=_WECHAT_DARK, dark=True),
    replace(_LIGHT, key="wechat-voice", version="8.0.50", ids=_WECHAT_IDS_2, voice_first=True, mic_in_input=False),
    replace(
        _LIGHT,
        key="wechat-enter",
        version="8.0.58",
        ids=_WECHAT_IDS_2,
        activities=replace(_WECHAT_ACTIVITIES, chat=".ui.LauncherUI"),
        enter_sends=True,
        hidden_tree=True,
        mic_in_input=False,
    ),
    replace(_LIGHT, key="wechat-wallpaper", wallpaper=True),
)
LOOKS: dict[str, Look] = {look.key: look for look in _ALL}
DEFAULT_LOOKS: dict[str, str] = {"qq": "qq-plain", "wechat": "wechat-light"}
