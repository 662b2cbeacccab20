"""How well pages drawn at random over all looks are read: names, signs, texts, emoji, links, cards, scales, widths.

    python -m tests.acceptance.random_pages --pages 5000        the whole of it, about half an hour on two cores
    python -m tests.acceptance.random_pages --pages 200 --seed 7 --save FOLDER

Each page is drawn by the virtual phone and read from its picture alone (``--tree`` adds the tree). A title that is
wrong and sure, and a question that is wrong without a doubt, are what may never be; their pictures are saved. About
half of the pages are ordinary; the others hold one or two rare things (``RARE``), each of which is counted.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from PIL import Image, ImageDraw

from agent_core.apps.profile import profile
from agent_core.devices.base import Frame
from agent_core.perception.compare import Match, compare, normalise
from agent_core.perception.ocr import OcrEngine, use_threads
from agent_core.perception.reader import ScreenReader
from agent_core.perception.readings import Bubble, BubbleKind, ChatScreen, Source
from agent_core.texts.layout import font
from simulator.phone.apps.looks import LOOKS
from simulator.phone.scenario import MessagePart, PhonePart
from simulator.phone.world import Kind, MessageState, Side, Sign
from tests.support.drawing import Drawn, draw

NAMES = [
    "11",
    "12",
    "111",
    "1",
    "小王",
    "1小王",
    "老客户A",
    "老客户B",
    "张三",
    "王经理",
    "李小姐",
    "A店主",
    "上海虹桥机场店王经理的小助手",
    "Tom",
    "Amy Li",
    "11号客户",
    "陈老板",
    "客户2",
    "2",
    "小11",
    "11小",
    "O0",
    "大客户-北京",
    "阿明(杭州)",
    "林先生",
    "110",
    "木木",
]
LINES = [
    "在吗",
    "在吗？",
    "你好",
    "好的",
    "几天能发货？",
    "128元",
    "这个多少钱？",
    "发顺丰还是中通",
    "可以退货吗？",
    "现在下单明天能到吗？",
    "我昨天买的杯子碎了，能不能换一个新的？",
    "有没有红色的，尺码要M",
    "1.5米的和15米的有什么不一样？",
    "收到，谢谢",
    "请问保修多久？",
    "运费谁出？",
    "能开发票吗",
    "Hello, is this in stock?",
    "iPhone 15 Pro Max 的壳有吗",
    "满199减20还能用吗？",
    "我的订单号是202511220001，麻烦查一下到哪里了",
    "看这个 https://example.com/goods/1234 可以吗",
    "嗯",
    "不要了",
    "买3件包邮吗？",
    "充电宝能带上飞机吗？我下周要出差，想问一下这一款的容量是不是在允许的范围里面",
    "已经拆封用过半个月了还能退货吗？",
    "现货订单在付款后48小时内发出，一般当天16点前付款的当天就能寄出。",
    "第一行\n第二行",
    "您好，请问您需要什么帮助？",
]
EMOJI = ["😊", "😂", "👍", "❤", "🎁", "🎉", "🙏"]
RARE_NAMES = [
    *("王　芳", "王　晓芳", "客服　采购部小李", "A  老客户", "小 王", "王  晓芳", "12  北京店", "张三   🌹", "1 1"),
    *("小王💎", "小王 🔹", "小王🤍", "小王❄", "王姐🌹", "💎小王", "小王😊", "11💧", "A🔹店主", "小王 🤍"),
    *("上海虹桥机场店王经理的小助手采购二部", "杭州市西湖区文一西路店长小王二号", "王经理" * 6),
]
# What a recogniser takes for something else, and what apps write of messages that are no text.
SIGNS = [
    "。",
    "？",
    "！",
    "/",
    "…",
    "......",
    "-",
    "~",
    "+1",
    "√",
    "×",
    ".",
    "0",
    "1",
    "7",
    "O",
    "l",
    "一",
    "①",
    "%",
    "、",
]
KIND_WORDS = ["照片", "视频", "语音", "红包", "文件", "图片", "表情包", "贴纸", "已取消", '24"', "未接来电", "位置"]
SCRAPS = ["订单号 202511220001", "运单号 SF1234567890", "实付款 128.00 元", "已签收", "商品编号 A-2210"]
KINDS = [
    Kind.IMAGE,
    Kind.VOICE,
    Kind.FILE,
    Kind.CARD,
    Kind.STICKER,
    Kind.RED_PACKET,
    Kind.CALL,
    Kind.VIDEO,
    Kind.LOCATION,
]
WIDTHS = [720, 1080, 1080, 1080, 1280, 1440]
SCALES = [0.85, 1.0, 1.0, 1.3]
_QUOTED = re.compile(r"'[^;]*'|\"[^;]*\"")
RARE = (
    *("name", "operator", "chip", "overlay", "pair", "emoji", "sign", "kind word", "small photo", "paper", "scrap"),
    *("transcript", "long quotation"),
)
OVERLAYS = ("chip", "ball", "bar")
_EMOJI = re.compile("[\u2190-\u2bff\U0001f000-\U0001faff\ufe0f\u200d]")


@dataclass
class Tally:
    """What came of a number of pages."""

    counts: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    bad: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.counts += other.counts
        self.seconds += other.seconds
        self.bad += other.bad


@dataclass(frozen=True)
class Page:
    """One page, as it is drawn."""

    look: str
    name: str
    messages: tuple[MessagePart, ...]
    more: dict[str, object]
    rare: tuple[str, ...] = ()
    overlay: str = ""

    def draw(self) -> Drawn:
        drawn = draw(self.look, self.name, self.messages, **self.more)  # type: ignore[arg-type]
        image = drawn.image.copy()
        if "pair" in self.rare:
            _move_up(image, drawn, LOOKS[self.look].colors.page)
        if self.overlay:
            _lay_over(image, drawn, self.overlay)
        return replace(drawn, image=image)


def _move_up(image: Image.Image, drawn: Drawn, ground: str) -> None:
    """Move the newest message close under the one above and leave its avatar out, if both are the customer's."""
    bubbles = drawn.truth.bubbles[-2:]
    boxes = [bubble.box for bubble in bubbles if bubble.side.value == "them" and bubble.box is not None]
    if len(boxes) < 2 or drawn.truth.cut:
        return
    above, box = boxes
    newest = image.crop(box.as_tuple())
    margin = round(0.02 * image.width)
    image.paste(ground, (0, box.top - margin // 2, round(0.9 * image.width), box.bottom + margin))
    image.paste(newest, (box.left, above.bottom + margin))


def _lay_over(image: Image.Image, drawn: Drawn, kind: str) -> None:
    """Draw what lies over the newest message but one and the gap below it: a chip, a ball, a thin bar."""
    boxes = [bubble.box for bubble in drawn.truth.bubbles if bubble.box is not None][-2:]
    unit = image.width / 1080
    first, last = boxes[0], boxes[-1]
    top, bottom = first.bottom - round(30 * unit), max(last.top + round(50 * unit), first.bottom + round(40 * unit))
    left, right = {"chip": (780, 1080), "ball": (930, 1040), "bar": (1000, 1050)}[kind]
    box = (round(left * unit), top, round(right * unit), bottom)
    pen = ImageDraw.Draw(image)
    pen.rounded_rectangle(box, (bottom - top) // 2, fill="#ffffff")
    if kind == "chip":
        place = (box[0] + round(40 * unit), (top + bottom) // 2)
        pen.text(place, "12条新消息", font=font(round(34 * unit)), fill="#07a858", anchor="lm")


def page(rng: random.Random, looks: list[str]) -> Page:
    """Return a page at random."""
    look = rng.choice(looks)
    rare = tuple(rng.sample(RARE, rng.choice([1, 1, 2]))) if rng.random() < 0.5 else ()
    messages: list[MessagePart] = []
    ago = 9000.0
    for _ in range(rng.randint(1, 7)):
        ago -= rng.choice([20, 60, 400])
        messages.append(_message(rng, ago))
    for kind in rare:
        ago -= 20
        found = _rare_message(rng, kind, ago)
        if found is not None:
            messages.insert(rng.randint(max(0, len(messages) - 2), len(messages)), found)
    if "overlay" in rare or "pair" in rare:
        messages += [_said(rng.choice(LINES), ago - 10 * index) for index in (1, 2)]
    more: dict[str, object] = {"width": rng.choice(WIDTHS), "font_scale": rng.choice(SCALES)}
    if rng.random() < 0.5:
        more["unread"] = rng.choice([1, 3, 12, 86, 120])
    if rng.random() < 0.3:
        more["signs"] = rng.sample([Sign.ROBOT, Sign.EAR, Sign.BELL, Sign.FIRE, Sign.AI], rng.randint(1, 2))
    if rng.random() < 0.4:
        more["status"] = rng.choice(["在线", "在线 - 4G", "对方正在输入..."])
    if rng.random() < 0.15:
        more["members"] = rng.choice([3, 38, 496])
    if rng.random() < 0.3:
        more["draft"] = rng.choice(["好的，马上为您查询", "hello", "您好", "1"])
        more["keyboard"] = rng.random() < 0.4
    phone: dict[str, object] = {"account": rng.choice(["me", "shop", "desk"])}
    if "operator" in rare:
        phone["operator"] = rng.choice(["中国移动", "中国联通", "中国电信", "中国移动 4G", "CMCC"])
    if rng.random() < 0.06:
        phone[rng.choice(["handwriting", "floating", "wallpaper"])] = True
    if rng.random() < 0.3:
        phone["navigation"] = "buttons"
    more["phone"] = PhonePart.model_validate(phone)
    if more.get("members") and rng.random() < 0.4 and LOOKS[look].app == "wechat":
        more["strip"] = "公告-请先看群公告"
    if "chip" in rare:
        more["chip"] = rng.choice(["↑ 12条新消息", "↓ 3条新消息", "↑ 有人@我"])
    name = rng.choice(RARE_NAMES if "name" in rare else NAMES)
    overlay = rng.choice(OVERLAYS) if "overlay" in rare else ""
    return Page(look, name, tuple(messages), more, rare, overlay)


def _said(text: str, ago: float) -> MessagePart:
    return MessagePart(side=Side.THEM, text=text, ago=ago)


def _rare_message(rng: random.Random, kind: str, ago: float) -> MessagePart | None:
    """Return a message of a rare kind; None if what is rare is no message."""
    wide, high = rng.randint(190, 330), rng.randint(150, 330)
    lines = rng.randint(1, 2)
    match kind:
        case "emoji":
            return _said(rng.choice(EMOJI) * rng.randint(1, 3), ago)
        case "sign":
            return _said(rng.choice(SIGNS), ago)
        case "kind word":
            return _said(rng.choice(KIND_WORDS), ago)
        case "small photo":
            return MessagePart(kind=Kind.IMAGE, size=(wide, high), ago=ago)
        case "paper":
            return MessagePart(kind=Kind.IMAGE, paper=True, ago=ago)
        case "scrap":
            text = "\n".join(rng.sample(SCRAPS, lines))
            size = (rng.randint(400, 540), lines * rng.randint(60, 85) + 30)
            return MessagePart(kind=Kind.IMAGE, paper=True, text=text, size=size, ago=ago)
        case "transcript":
            return MessagePart(kind=Kind.VOICE, text="16", transcript=rng.choice(LINES), ago=ago)
        case "long quotation":
            text = "".join(rng.choice(LINES).replace("\n", "，") for _ in range(rng.randint(6, 22)))
            return MessagePart(kind=Kind.QUOTE, text=text, quoted=rng.choice(LINES).replace("\n", " "), ago=ago)
    return None


def _message(rng: random.Random, ago: float) -> MessagePart:
    side = Side.THEM if rng.random() < 0.6 else Side.ME
    if rng.random() < 0.22:
        kind = rng.choice(KINDS)
        text = {
            Kind.FILE: "产品说明书2026版.pdf",
            Kind.CARD: "新品上架全场八折，点击查看详情",
            Kind.VOICE: "",
            Kind.LOCATION: "文一西路",
        }.get(kind, "")
        return MessagePart(side=side, kind=kind, text=text if kind is not Kind.VOICE else "16", ago=ago)
    text = rng.choice(LINES)
    if rng.random() < 0.15:
        text += rng.choice(EMOJI)
    if rng.random() < 0.1:
        return MessagePart(side=side, kind=Kind.QUOTE, text=text, quoted=rng.choice(LINES).replace("\n", " "), ago=ago)
    state = MessageState.OK
    if side is Side.ME and rng.random() < 0.05:
        state = rng.choice([MessageState.FAILED, MessageState.SENDING])
    return MessagePart(side=side, text=text, state=state, ago=ago)


def plain(text: str) -> str:
    return normalise(_EMOJI.sub("", text))


# A person is shown the page for any of these, so taking one of them for a picture does no harm.
_PICTURED = {BubbleKind.VIDEO, BubbleKind.LOCATION, BubbleKind.STICKER, BubbleKind.FILE, BubbleKind.CARD}


def same_message(seen: Bubble, real: Bubble) -> bool:
    """Whether a message was read right: side, kind and, of a text, its words."""
    if seen.side is not real.side:
        return False
    if real.kind is BubbleKind.TEXT:
        if seen.kind is BubbleKind.STICKER:
            return not plain(real.text)
        return seen.kind is BubbleKind.TEXT and compare(plain(seen.text), plain(real.text)) is not Match.DIFFERENT
    if real.kind in _PICTURED and seen.kind in (BubbleKind.IMAGE, BubbleKind.OTHER):
        return True
    return seen.kind is real.kind


def _name(text: str) -> str:
    """A name as a person compares it: in one form, its blanks kept."""
    return " ".join(normalise(part) for part in text.split())


def verdicts(drawn: Drawn, seen: ChatScreen | None) -> list[str]:
    """Return what is right and wrong of one reading, a word each."""
    truth = drawn.truth
    if seen is None:
        return ["page missed"]
    found = ["page"]
    name = re.sub(r"\(\d+\)$", "", _name(seen.title)) if truth.group else _name(seen.title)
    wanted = _name(truth.title)
    right = (
        name == wanted
        or (name.endswith("…") and wanted.startswith(name.rstrip("….")))
        or (name.endswith("..") and wanted.startswith(name.rstrip(".")))
    )
    found.append(("title right" if right else "title wrong") + (", sure" if seen.title_sure else ""))
    if truth.group != seen.group:
        found.append("group wrong" + (", sure" if seen.sure else ""))
    real = [truth.bubbles[index] for index in truth.question]
    cut = set(truth.cut)
    asked = list(seen.question)
    whole = [bubble for index, bubble in zip(truth.question, real, strict=True) if index not in cut]
    good = len(asked) == len(real) and all(same_message(a, b) for a, b in zip(asked, real, strict=True))
    if not good and cut & set(truth.question):
        good = len(asked) >= len(whole) and all(
            same_message(a, b) for a, b in zip(asked[len(asked) - len(whole) :], whole, strict=True)
        )
    found.append(("question right" if good else "question wrong") + (", no doubt" if seen.sure else ""))
    kinds = [b.kind for b in seen.bubbles]
    if len(kinds) == len(truth.bubbles):
        for mine, other in zip(seen.bubbles, truth.bubbles, strict=True):
            if mine.kind is not other.kind:
                found.append(f"kind: {other.kind.value} read as {mine.kind.value}")
            if mine.state is not other.state:
                found.append(f"state: {other.state.value} read as {mine.state.value}")
    if (seen.draft or "") != (truth.draft or "") and plain(seen.draft or "") != plain(truth.draft or ""):
        found.append("draft wrong" + ("" if not seen.draft_sure else ", sure"))
    if seen.send_state is not truth.send_state:
        found.append(f"send: {truth.send_state.value} read as {seen.send_state.value}")
    return found


def _told(one: Page) -> str:
    """How a page is drawn, but for its messages."""
    phone = one.more.get("phone")
    rest = {key: value for key, value in one.more.items() if key != "phone"}
    more = phone.model_dump(exclude_defaults=True) if isinstance(phone, PhonePart) else ""
    return f"{one.rare} {one.overlay} {rest} {more}"


BAD = ("title wrong, sure", "question wrong, no doubt", "page missed", "group wrong, sure", "draft wrong, sure")


async def run(seeds: list[int], looks: list[str], folder: str, verbose: bool, tree: str = "") -> Tally:
    """Draw and read the pages with these seeds. ``tree``: "" by the picture alone, "both", or "tree" alone."""
    sources = {"": [Source.OCR], "both": [Source.OCR, Source.TREE], "tree": [Source.TREE]}[tree]
    reader = ScreenReader(ocr=OcrEngine(), model=None, sources=sources)
    tally = Tally()
    for seed in seeds:
        one = page(random.Random(seed), looks)
        drawn = one.draw()
        begun = time.perf_counter()
        frame = Frame(drawn.image, str(seed), 0.0)
        seen = await reader.chat(frame, drawn.nodes if tree else None, profile(LOOKS[one.look].app))
        tally.seconds += time.perf_counter() - begun
        found = verdicts(drawn, seen)
        tally.counts.update([*found, f"{one.look}: pages"])
        classes = [f"with {kind}" for kind in one.rare] or ["ordinary"]
        tally.counts.update(f"{name}: pages" for name in classes)
        if seen is not None and seen.title_sure:
            tally.counts.update(f"{name}: title sure" for name in classes)
        if seen is not None and seen.sure:
            tally.counts.update(["read without a doubt", f"{one.look}: without a doubt"])
            tally.counts.update(f"{name}: without a doubt" for name in classes)
        elif seen is not None:
            tally.counts.update({f"doubt: {doubt.kind.value}" for doubt in seen.doubts})
        bad = [word for word in found if word in BAD or (verbose and "wrong" in word)]
        if bad:
            asked = [(b.kind.value, b.text) for b in seen.question] if seen else None
            real = [(drawn.truth.bubbles[i].kind.value, drawn.truth.bubbles[i].text) for i in drawn.truth.question]
            title = seen.title if seen else None
            tally.bad.append(
                f"{seed} {one.look} {_told(one)} {bad}\n"
                f"    title {drawn.truth.title!r} read as {title!r}\n    asked {real}\n"
                f"    read  {asked}\n    doubt {seen.doubts if seen else ''}"
            )
            if folder:
                Path(folder).mkdir(parents=True, exist_ok=True)
                drawn.image.save(Path(folder) / f"{seed}-{one.look}.png")
    return tally


def _run(seeds: list[int], looks: list[str], folder: str, verbose: bool, tree: str) -> Tally:
    use_threads(1)
    return asyncio.run(run(seeds, looks, folder, verbose, tree))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--look", default="", help="looks, with commas; all of them if it is empty")
    parser.add_argument("--save", default="", help="a folder for the pictures of what went wrong")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--verbose", action="store_true", help="tell of what is wrong with a doubt, too")
    parser.add_argument("--tree", choices=["", "both", "tree"], default="", help="read the tree, too, or alone")
    said = parser.parse_args()
    looks = said.look.split(",") if said.look else sorted(LOOKS)
    seeds = list(range(said.seed, said.seed + said.pages))
    whole = Tally()
    if said.jobs < 2:
        whole = _run(seeds, looks, said.save, said.verbose, said.tree)
    else:
        parts = [seeds[index :: said.jobs] for index in range(said.jobs)]
        rest = (looks, said.save, said.verbose, said.tree)
        with ProcessPoolExecutor(said.jobs) as pool:
            for tally in pool.map(_run, parts, *([value] * len(parts) for value in rest)):
                whole.add(tally)
    for line in whole.bad:
        sys.stdout.write(f"{line}\n")
    for word, count in sorted(whole.counts.items()):
        sys.stdout.write(f"{count:6} {100 * count / said.pages:5.1f} %  {word}\n")
    sys.stdout.write(f"{1000 * whole.seconds / said.pages:.0f} ms a page\n")
    never = whole.counts["title wrong, sure"], whole.counts["question wrong, no doubt"]
    return 1 if any(never) else 0


if __name__ == "__main__":
    sys.exit(main())
