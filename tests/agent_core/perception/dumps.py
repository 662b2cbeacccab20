"""Pages of real apps as ``uiautomator dump`` prints them: written by hand from what is known of their trees.

Names and words are invented. Boxes are those of screens of 1080×2400 (QQ) and 1440×3120 (WeChat) pixels.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import quoteattr

from agent_core.devices.adb.capture import parse_tree
from agent_core.devices.base import Node

QQ_PACKAGE, WECHAT_PACKAGE = "com.tencent.mobileqq", "com.tencent.mm"
QQ_SIZE, WECHAT_SIZE = (1080, 2400), (1440, 3120)
Place = tuple[int, int, int, int]


@dataclass(frozen=True)
class Tag:
    """A node with those inside it."""

    box: Place
    id: str = ""
    text: str = ""
    desc: str = ""
    kind: str = "TextView"
    click: bool = False
    enabled: bool = True
    inner: tuple[Tag, ...] = ()

    def xml(self, package: str) -> str:
        resource = f"{package}:id/{self.id}" if self.id else ""
        kind = self.kind if "." in self.kind else f"android.widget.{self.kind}"
        left, top, right, bottom = self.box
        inside = "".join(tag.xml(package) for tag in self.inner)
        return (
            f"<node text={quoteattr(self.text)} resource-id={quoteattr(resource)} class={quoteattr(kind)} "
            f'package="{package}" content-desc={quoteattr(self.desc)} clickable="{str(self.click).lower()}" '
            f'enabled="{str(self.enabled).lower()}" focused="false" '
            f'bounds="[{left},{top}][{right},{bottom}]">{inside}</node>'
        )


def dump(package: str, *tags: Tag, root: Place = (0, 0, 1080, 2400)) -> str:
    window = Tag(root, kind="FrameLayout", inner=tags)
    return f'<?xml version="1.0" encoding="UTF-8"?><hierarchy rotation="0">{window.xml(package)}</hierarchy>'


def nodes(xml: str, size: tuple[int, int]) -> tuple[Node, ...]:
    return parse_tree(xml, size)


def ids(xml: str) -> list[str]:
    return sorted(set(re.findall(r'resource-id="[^"]*?:id/([^"]+)"', xml)))


def without_id(xml: str, name: str) -> str:
    return re.sub(rf'resource-id="[^"]*?:id/{re.escape(name)}"', 'resource-id=""', xml)


def with_ids(xml: str, others: dict[str, str]) -> str:
    """Return the page of a build that names its nodes otherwise."""
    return re.sub(r'(resource-id="[^"]*?:id/)([^"]+)"', lambda found: f'{found[1]}{others[found[2]]}"', xml)


def without_ids(xml: str) -> str:
    return re.sub(r'resource-id="[^"]*"', 'resource-id=""', xml)


# QQ 9, NT


def qq_header(
    name: str = "顾客甲",
    *,
    count: str = "",
    status: str = "",
    pill: str = "",
    name_id: str = "371",
    kind: str = "TextView",
) -> tuple[Tag, ...]:
    """The arrow ends at 70; a name begins at 104 without the count of what is unread elsewhere, else right of it."""
    left = 104 if not pill else 210
    top, bottom = (148, 202) if status else (170, 224)
    right = left + 50 * len(name)
    found = [
        Tag((0, 90, 1080, 261), kind="RelativeLayout"),
        Tag(
            (20, 165, 90, 235), "ueq", desc=f"返回消息未读{pill}" if pill else "返回消息", kind="ImageView", click=True
        ),
    ]
    if pill:
        found.append(Tag((96, 174, 190, 224), "pil", pill))
    found.append(Tag((left, top, right, bottom), name_id, name, kind=kind))
    if count:
        found.append(Tag((right, top, right + 90, bottom), "cnt", f"({count})", desc=count))
    if status:
        found.append(Tag((104, 204, 104 + 30 * len(status), 251), "sta", status))
    found += [
        Tag((860, 160, 940, 240), "ca1", desc="语音通话", kind="ImageView", click=True),
        Tag((970, 160, 1050, 240), "ca2", desc="聊天设置", kind="ImageView", click=True),
    ]
    return tuple(found)


def qq_avatar(side: str, top: int, name: str = "顾客甲") -> Tag:
    """The picture of a person, with what the app says of it."""
    box = (33, top, 140, top + 107) if side == "them" else (940, top, 1047, top + 107)
    said = "我的资料卡" if side == "me" else f"{name}的资料卡"
    return Tag(box, "ava", desc=said, kind="ImageView", click=True)


def qq_row(
    side: str, top: int, *content: Tag, height: int = 180, time: str = "", name: str = "顾客甲", card: str = ""
) -> Tag:
    """A row: a time above, an avatar, what stands beside it. ``card``: the nickname that a group shows."""
    inner = []
    if time:
        inner.append(Tag((440, top - 80, 640, top - 40), "f24", time))
    inner.append(qq_avatar(side, top, name))
    if card:
        inner.append(Tag((161, top, 161 + 36 * len(card), top + 40), "mjq", card))
        inner.append(Tag((180 + 36 * len(card), top + 2, 260 + 36 * len(card), top + 38), "vor", "LV5"))
    return Tag(
        (0, top - (100 if time else 20), 1080, top + height), "root", kind="RelativeLayout", inner=(*inner, *content)
    )


def qq_text(side: str, top: int, text: str, *, name_id: str = "mjn", wide: bool = False) -> Tag:
    width = 740 if wide else min(740, 70 + 44 * len(text))
    box = (161, top, 161 + width, top + 110) if side == "them" else (919 - width, top, 919, top + 110)
    return Tag(box, name_id, text, click=True)


def qq_bar(draft: str = "", *, classic: bool = False) -> tuple[Tag, ...]:
    """The plain bar has no Send before something is typed; the classic one has it dimmed, with icons below."""
    if not classic:
        more = Tag((990, 2130, 1060, 2200), "fun_btn", desc="更多功能", kind="ImageView", click=True)
        send = Tag((920, 2120, 1060, 2205), "send_btn", "发送", kind="Button", click=True)
        return (
            Tag((0, 2093, 1080, 2400), "bar", kind="LinearLayout"),
            Tag((40, 2130, 110, 2200), "mic", desc="语音", kind="ImageView", click=True),
            Tag((157, 2115, 819, 2215), "input", draft, kind="EditText", click=True),
            Tag((840, 2130, 910, 2200), "fac", desc="表情", kind="ImageView", click=True),
            send if draft else more,
        )
    tools = ["语音", "相册", "拍照", "表情", "更多功能"]
    return (
        Tag((0, 2070, 1080, 2400), "bar", kind="LinearLayout"),
        Tag((53, 2090, 836, 2190), "input", draft, kind="EditText", click=True),
        Tag((895, 2090, 1022, 2190), "send_btn", "发送", kind="Button", click=bool(draft), enabled=bool(draft)),
        *(
            Tag(
                (60 + 210 * i, 2230, 140 + 210 * i, 2310),
                "fun_btn" if i == 4 else "too",
                desc=name,
                kind="ImageView",
                click=True,
            )
            for i, name in enumerate(tools)
        ),
    )


def qq_list(*rows: Tag) -> Tag:
    return Tag((0, 261, 1080, 2070), "lst", kind="androidx.recyclerview.widget.RecyclerView", inner=rows)


def qq(*rows: Tag, header: Sequence[Tag] | None = None, bar: Sequence[Tag] | None = None) -> str:
    return dump(
        QQ_PACKAGE, *(qq_header() if header is None else header), qq_list(*rows), *(qq_bar() if bar is None else bar)
    )


ANSWERED = (
    qq_row("them", 400, qq_text("them", 400, "有货吗"), time="昨天 14:05"),
    qq_row("me", 600, qq_text("me", 600, "有的，今天就能发")),
)
ASKS = qq_row("them", 820, qq_text("them", 820, "几天能发货？"), time="下午3:20")

QQ_TEXT = qq(*ANSWERED, ASKS)
QQ_STATUS = qq(*ANSWERED, ASKS, header=qq_header(status="手机在线 - 4G"))
QQ_PILL = qq(*ANSWERED, ASKS, header=qq_header("12", pill="86"), bar=qq_bar(classic=True))
QQ_BUTTON = qq(*ANSWERED, ASKS, header=qq_header(kind="Button", status="在线"))
QQ_PICTURE = qq(
    *ANSWERED,
    qq_row("them", 820, Tag((161, 820, 561, 1220), "mjw", desc="图片", kind="ImageView", click=True), height=420),
)
QQ_VOICE = qq(
    *ANSWERED,
    qq_row(
        "them",
        820,
        Tag(
            (161, 820, 461, 930),
            "wqe",
            kind="RelativeLayout",
            click=True,
            inner=(Tag((180, 850, 230, 900), "wqi", kind="ImageView"), Tag((250, 850, 330, 900), "wqr", '7"')),
        ),
    ),
)
QQ_CALL = qq(
    *ANSWERED,
    qq_row(
        "them",
        820,
        Tag(
            (161, 820, 561, 930),
            "mkr",
            kind="LinearLayout",
            click=True,
            inner=(
                Tag((180, 850, 230, 900), "mki", kind="ImageView"),
                Tag((250, 850, 520, 900), "mkt", "未接听，点击回拨"),
            ),
        ),
    ),
)
QQ_GROUP = qq(
    qq_row("them", 400, qq_text("them", 450, "谁有尺码表"), time="14:05", name="顾客甲", card="顾客甲", height=200),
    qq_row("me", 680, qq_text("me", 680, "我发一下")),
    qq_row("them", 900, qq_text("them", 950, "几天能发货？"), name="顾客乙", card="顾客乙", height=200),
    header=qq_header("买家群", count="3"),
)
QQ_STICKER = qq(
    *ANSWERED, qq_row("them", 820, Tag((161, 820, 461, 1120), "stk", kind="ImageView", click=True), height=320)
)

# QQ up to 8.9: the layout of a message has an id, Send is called as the ＋ of today


def _old_row(side: str, top: int, text: str, height: int = 180) -> Tag:
    words = qq_text(side, top, text, name_id="chat_item_content_layout")
    box = (33, top, 140, top + 107) if side == "them" else (940, top, 1047, top + 107)
    face = Tag(box, "chat_item_head_icon", desc="头像", kind="ImageView", click=True)
    return Tag((0, top - 20, 1080, top + height), kind="RelativeLayout", inner=(face, words))


QQ_OLD = dump(
    QQ_PACKAGE,
    Tag((0, 130, 150, 250), "ivTitleBtnLeft", "消息(3)"),
    Tag((300, 160, 780, 220), "title_old", "顾客甲"),
    Tag((970, 150, 1050, 230), "ivTitleBtnRightImage", desc="聊天设置", kind="ImageView", click=True),
    Tag(
        (0, 261, 1080, 2070),
        "listView1",
        kind="AbsListView",
        inner=(
            Tag((440, 320, 640, 360), "chat_item_time_stamp", "14:05"),
            _old_row("them", 400, "有货吗"),
            _old_row("me", 600, "有的，今天就能发"),
            _old_row("them", 820, "几天能发货？"),
        ),
    ),
    Tag((53, 2090, 836, 2190), "input", "好", kind="EditText", click=True),
    Tag((895, 2090, 1022, 2190), "fun_btn", "发送", kind="Button", click=True),
)

# WeChat


def wechat_row(side: str, top: int, *content: Tag, height: int = 220, time: str = "", card: str = "") -> Tag:
    inner = []
    if time:
        inner.append(Tag((600, top - 110, 840, top - 50), "br1", time))
    name = "店家" if side == "me" else card or "顾客甲"
    box = (44, top, 188, top + 144) if side == "them" else (1252, top, 1396, top + 144)
    inner.append(Tag(box, "bk1", desc=f"{name}头像", kind="ImageView", click=True))
    if card:
        inner.append(Tag((228, top - 4, 228 + 44 * len(card), top + 46), "brc", card))
    return Tag(
        (0, top - (130 if time else 20), 1440, top + height), "bn1", kind="RelativeLayout", inner=(*inner, *content)
    )


def wechat_text(side: str, top: int, text: str, *, wide: bool = False, lines: int = 1) -> Tag:
    width = 988 if wide else min(988, 90 + 60 * len(text))
    bottom = top + 73 + 83 * lines
    box = (228, top, 228 + width, bottom) if side == "them" else (1212 - width, top, 1212, bottom)
    return Tag(box, "bkl", text, click=True)


def wechat_header(title: str = "顾客甲", *, tag: str = "") -> tuple[Tag, ...]:
    width = 64 * len(title)
    left = 720 - width // 2
    found = [
        Tag((30, 170, 120, 260), "actionbar_up_indicator", desc="返回", kind="ImageView", click=True),
        Tag((left, 176, left + width, 256), "obn", title),
    ]
    if tag:
        found.append(Tag((left + width + 10, 194, left + width + 80, 240), "tag", tag))
    return (*found, Tag((1300, 170, 1400, 260), "coz", desc="聊天信息", kind="ImageView", click=True))


def wechat_bar(draft: str = "", *, voice: bool = False) -> tuple[Tag, ...]:
    end = (
        Tag((1250, 2950, 1400, 3050), "bql", "发送", kind="Button", click=True)
        if draft
        else Tag((1300, 2950, 1400, 3050), "bjz", desc="更多功能按钮，已折叠", kind="ImageButton", click=True)
    )
    face = Tag((1150, 2950, 1240, 3050), "bjx", desc="表情", kind="ImageButton", click=True)
    if voice:
        return (
            Tag((40, 2950, 140, 3050), "bjy", desc="切换到键盘", kind="ImageButton", click=True),
            Tag((173, 2940, 1123, 3060), "ptt", "按住 说话", kind="Button", click=True),
            face,
            end,
        )
    return (
        Tag((40, 2950, 140, 3050), "bjy", desc="切换到按住说话", kind="ImageButton", click=True),
        Tag((173, 2940, 1123, 3060), "bkk", draft, kind="EditText", click=True),
        face,
        end,
    )


def wechat(*rows: Tag, header: Sequence[Tag] | None = None, bar: Sequence[Tag] | None = None) -> str:
    listed = Tag((0, 280, 1440, 2914), "bp0", kind="androidx.recyclerview.widget.RecyclerView", inner=rows)
    return dump(
        WECHAT_PACKAGE,
        *(wechat_header() if header is None else header),
        listed,
        *(wechat_bar() if bar is None else bar),
        root=(0, 0, 1440, 3120),
    )


WECHAT_ANSWERED = (
    wechat_row("them", 460, wechat_text("them", 460, "有货吗"), time="昨天 晚上8:15"),
    wechat_row(
        "me",
        760,
        wechat_text("me", 760, "有的，您要哪一款都可以今天发出的，放心拍就好", wide=True, lines=2),
        height=300,
    ),
)
WECHAT_ASKS = wechat_row("them", 1200, wechat_text("them", 1200, "几天能发货？"), time="14:05")
WECHAT_TEXT = wechat(*WECHAT_ANSWERED, WECHAT_ASKS)
WECHAT_WIDE = wechat(
    *WECHAT_ANSWERED,
    wechat_row(
        "them",
        1200,
        wechat_text("them", 1200, "几天能发货？我这边周末要用，来得及吗，麻烦看一下谢谢", wide=True, lines=2),
        height=300,
    ),
)
WECHAT_TYPED = wechat(*WECHAT_ANSWERED, WECHAT_ASKS, bar=wechat_bar("付款后48小时内发出。"))
WECHAT_VOICE_BAR = wechat(*WECHAT_ANSWERED, WECHAT_ASKS, bar=wechat_bar(voice=True))
WECHAT_TAG = wechat(*WECHAT_ANSWERED, WECHAT_ASKS, header=wechat_header(tag="AI"))
WECHAT_GROUP = wechat(
    wechat_row("them", 460, wechat_text("them", 520, "谁有尺码表"), card="顾客甲"),
    wechat_row("me", 800, wechat_text("me", 800, "我发一下")),
    wechat_row("them", 1100, wechat_text("them", 1160, "几天能发货？"), card="顾客乙"),
    header=wechat_header("买家群(5)"),
)
WECHAT_QUOTE = wechat(
    *WECHAT_ANSWERED,
    wechat_row(
        "them",
        1200,
        wechat_text("them", 1200, "这个呢"),
        Tag((228, 1370, 800, 1450), "quo", "店家：有的，今天就能发"),
        height=300,
    ),
)
WECHAT_FILE = wechat(
    *WECHAT_ANSWERED,
    wechat_row(
        "them",
        1200,
        Tag((260, 1230, 700, 1290), "bju", "尺码表.xlsx"),
        Tag((260, 1330, 420, 1370), "bj2", "36.5 KB"),
        Tag((760, 1230, 880, 1370), "ico", kind="ImageView"),
        height=260,
    ),
)
WECHAT_PICTURE = wechat(
    *WECHAT_ANSWERED,
    wechat_row("them", 1200, Tag((228, 1200, 628, 1700), "bkg", desc="图片", kind="ImageView"), height=540),
)
WECHAT_STICKER = wechat(
    *WECHAT_ANSWERED, wechat_row("them", 1200, Tag((228, 1200, 568, 1540), "bkm", kind="ImageView"), height=360)
)
WECHAT_HIDDEN = (
    '<?xml version="1.0" encoding="UTF-8"?><hierarchy rotation="0"><node text="" resource-id="" '
    f'class="android.widget.FrameLayout" package="{WECHAT_PACKAGE}" content-desc="" bounds="[0,0][0,0]" /></hierarchy>'
)
