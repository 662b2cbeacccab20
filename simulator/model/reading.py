"""Reading a chat completions request: task, past calls, the newest screen.

The model knows nothing else of the phone.
"""

from __future__ import annotations

import base64
import binascii
import io
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from PIL import Image, ImageChops
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent_core.actions import parse_reply
from agent_core.actions.write import to_autoglm
from agent_core.errors import ActionParseError
from agent_core.perception.ocr import OcrEngine
from agent_core.texts import Lang

_CALL = re.compile(r"<answer>\s*(.*?)\s*(?:</answer>|$)", re.IGNORECASE | re.DOTALL)
_INFO_MARK = "** Screen Info **"
# Width of a character of a chat's text in thousandths of the screen's width, if no box is given.
_WIDE_CHAR, _NARROW_CHAR = 41, 22
MAX_PIXELS = 16_000_000  # a larger picture is refused: it is not a screen


class BadRequest(ValueError):
    """The request is not a chat completion that this model can read."""


class _ImageUrl(BaseModel):
    url: str


class _Part(BaseModel):
    type: str
    text: str = ""
    image_url: _ImageUrl | None = None


class _Message(BaseModel):
    role: str
    content: str | list[_Part] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content if part.type == "text")
        return self.content or ""

    @property
    def picture(self) -> str:
        parts = self.content if isinstance(self.content, list) else []
        return next((part.image_url.url for part in parts if part.image_url), "")


class ChatRequest(BaseModel):
    """The fields of the request's body that count here."""

    model: str = Field(min_length=1)
    messages: list[_Message] = Field(min_length=1)
    stream: bool = False
    stream_options: dict[str, Any] | None = None


class _Element(BaseModel):
    model_config = ConfigDict(extra="ignore")

    text: str = ""
    x: int
    y: int
    role: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """One text on the screen; everything in thousandths of its width and height."""

    text: str
    x: int
    y: int
    role: str = ""
    left: int = 0
    right: int = 0


@dataclass(frozen=True, slots=True)
class View:
    """A request, read. ``seen`` from the top; None if only a picture was given.

    ``instruction`` is set for a plain request (no Screen Info): then there is no task.
    """

    task: str = ""
    current_app: str = ""
    observation: str = ""
    seen: tuple[Seen, ...] | None = None
    picture: Image.Image | None = field(default=None, repr=False)
    calls: tuple[str, ...] = ()
    instruction: str = ""
    lang: Lang = "zh"


def _language(request: ChatRequest) -> Lang:
    """Return the language that the system prompt begins in; Chinese without one."""
    prompt = next((message.text for message in request.messages if message.role == "system"), "")
    head = prompt.strip().partition("\n")[0]
    return "en" if head.isascii() and head else "zh"


def read_request(request: ChatRequest) -> View:
    """Read a request. Raises BadRequest if it has no user message, or a broken picture."""
    users = [message for message in request.messages if message.role == "user"]
    if not users:
        raise BadRequest("the request has no user message")
    newest = users[-1]
    lang = _language(request)
    picture = _picture(newest.picture) if newest.picture else None
    info = _screen_info(newest.text)
    if info is None:
        return View(picture=picture, instruction=newest.text, lang=lang)
    calls = [_call(message.text) for message in request.messages if message.role == "assistant"]
    return View(
        task=_task(users[0].text),
        current_app=str(info.get("current_app") or ""),
        observation=str(info.get("last_observation") or "") if len(users) > 1 else "",
        seen=_with_avatars(_elements(info.get("elements")), picture),
        picture=picture,
        calls=tuple(filter(None, calls)),
        lang=lang,
    )


def _call(turn: str) -> str:
    """Return the call in a past turn, as this model would have written it, whatever its form; "" for none."""
    found = _CALL.search(turn)
    if found:
        return found.group(1)
    try:
        return to_autoglm(parse_reply(turn, "auto").action)
    except ActionParseError:
        return ""


def _screen_info(text: str) -> dict[str, Any] | None:
    """Return the JSON object at the end of a user's message."""
    start = text.rfind("\n\n{")
    try:
        data = json.loads(text[start:]) if start >= 0 else None
    except json.JSONDecodeError:
        return None
    return data if isinstance(data, dict) and "current_app" in data else None


def _task(text: str) -> str:
    start = text.rfind("\n\n{")
    task = text[:start] if start >= 0 else text
    return task.replace(_INFO_MARK, "").strip()


def _elements(data: object) -> tuple[Seen, ...] | None:
    if not isinstance(data, list):
        return None
    try:
        listed = [_Element.model_validate(item) for item in data]
    except ValidationError as error:
        raise BadRequest(f"the elements are not in the known form: {error.error_count()} errors") from None
    return tuple(_placed(item) for item in listed)


def _with_avatars(seen: tuple[Seen, ...] | None, picture: Image.Image | None) -> tuple[Seen, ...] | None:
    """Add the avatars of the picture to elements that were read from it, because those do not include avatars."""
    if not seen or picture is None or any(item.role for item in seen):
        return seen
    return tuple(sorted([*seen, *_avatars(picture)], key=lambda item: item.y))


def _placed(item: _Element) -> Seen:
    half = sum(_NARROW_CHAR if char.isascii() else _WIDE_CHAR for char in item.text) // 2
    return Seen(item.text.strip(), item.x, item.y, item.role, max(0, item.x - half), min(1000, item.x + half))


def _picture(url: str) -> Image.Image:
    head, _, data = url.partition(",")
    if not head.startswith("data:image/") or not head.endswith(";base64"):
        raise BadRequest("a picture must be a data URL")
    try:
        image = Image.open(io.BytesIO(base64.b64decode(data, validate=True)))
        if image.width * image.height > MAX_PIXELS:
            raise BadRequest("the picture is too large")
        return image.convert("RGB")
    except (binascii.Error, OSError) as error:
        raise BadRequest(f"the picture cannot be read: {error}") from None


AVATAR = "avatar"  # the role of an avatar, which only a picture shows: a square or a disc beside a message
_COLUMNS = ((0.03, 0.13), (0.87, 0.97))  # the columns of avatars, as shares of the width
_AVATAR_SIZES = (0.07, 0.14)  # of the width
_ACROSS = 16  # how many pixels of a column are looked at in each row
_UNLIKE = 10  # of 255, in any colour: the least by which a pixel differs from the page's ground


async def read_picture(engine: OcrEngine, picture: Image.Image) -> tuple[Seen, ...]:
    """Return the lines and the avatars of a picture, from the top."""
    width, height = picture.size
    lines = [reading for reading in await engine.read(picture) if reading.text and reading.confidence >= 0.5]
    seen = [
        Seen(
            line.text,
            round(line.box.center.x * 1000 / width),
            round(line.box.center.y * 1000 / height),
            "",
            round(line.box.left * 1000 / width),
            round(line.box.right * 1000 / width),
        )
        for line in lines
    ]
    return tuple(sorted([*seen, *_avatars(picture)], key=lambda item: item.y))


def _avatars(picture: Image.Image) -> list[Seen]:
    """Return the avatars at both edges; none if the ground behind them is a picture, too."""
    width, height = picture.size
    found = []
    for left, right in _COLUMNS:
        strip = picture.crop((round(left * width), 0, round(right * width), height)).resize((_ACROSS, height))
        ground = Counter(zip(*[iter(strip.tobytes())] * 3, strict=True)).most_common(1)[0][0]
        channels = ImageChops.difference(strip, Image.new("RGB", strip.size, ground)).split()
        unlike = ImageChops.lighter(ImageChops.lighter(channels[0], channels[1]), channels[2]).tobytes()
        start = None
        for y in range(height + 1):
            row = unlike[y * _ACROSS : (y + 1) * _ACROSS]
            drawn = sum(value > _UNLIKE for value in row) >= _ACROSS // 4
            if drawn and start is None:
                start = y
            elif not drawn and start is not None:
                if _AVATAR_SIZES[0] * width <= y - start <= _AVATAR_SIZES[1] * width:
                    middle = round((left + right) * 500)
                    found.append(Seen("", middle, round((start + y) * 500 / height), AVATAR))
                start = None
    return found


_KEY_ROWS = ("QWERTYUIOP", "ASDFGHJKL", "ZXCVBNM")


def without_keyboard(seen: Sequence[Seen]) -> tuple[Seen, ...]:
    """Return the items above the keys of a keyboard, if one is shown; else all."""
    keys = [item for item in seen if item.y > 500 and any(_letters(item) in row for row in _KEY_ROWS if _letters(item))]
    if sum(len(_letters(item)) for item in keys) < 8:
        return tuple(seen)
    top = min(item.y for item in keys) - 15
    return tuple(item for item in seen if item.y < top)


def _letters(item: Seen) -> str:
    return item.text.replace(" ", "").upper()


@dataclass(frozen=True, slots=True)
class SeenBubble:
    text: str
    mine: bool


# Between two lines of one bubble, at most, in thousandths of the height; two bubbles are further apart.
_LINE_PITCH = 42
_NOT_TEXT = re.compile(
    r"^(?:\[?(?:图片|照片|动画表情|表情|视频)\]?|语音\s*\d+\s*秒|\d{1,2}\s*[\"″”]|(?:QQ|微信)?红包|发送中|发送失败|头像)$"
)
_MOMENT = re.compile(
    r"^(?:(?:昨天|前天|星期.|周.|\d+月\d+日|\d{4}年.*|[上中下]午|凌晨|早上|清晨|傍晚|晚上)\s*)*\d{1,2}:\d{2}$"
)


_WIDE = 480  # of 1000: wider than any notice
_THEIR_LEFT = 195  # where texts of the other side begin at the latest
_BESIDE = 16  # between the middles of an avatar and of the first line beside it, at most
_AVATAR = re.compile(r"头像$|的资料卡$|^我的资料卡$")


def bubbles(seen: Sequence[Seen], *, top: int, bottom: int) -> list[SeenBubble]:
    """Return the text bubbles between two heights, the newest last. The avatar beside its first line shows a bubble's
    side.

    Without avatars the other side's bubbles are left of the middle.
    """
    avatars = [item for item in seen if _is_avatar(item) and top < item.y < bottom]
    from_tree = any(item.role and item.role != AVATAR for item in seen)
    groups: list[list[Seen]] = []
    for item in seen:
        outside = not top < item.y < bottom or item.x < 120 or item.x > 880 or item.role in {"image", "input", AVATAR}
        if outside or not item.text or _NOT_TEXT.match(item.text) or _MOMENT.match(item.text):
            continue
        last = groups[-1][-1] if groups else None
        if last is not None and from_tree and item.y < last.y:
            continue  # lies inside the last bubble: its quotation
        together = last is not None and not from_tree and 0 <= item.y - last.y < _LINE_PITCH
        if together and abs(item.left - groups[-1][0].left) < 60:
            groups[-1].append(item)
        else:
            groups.append([item])
    found = []
    for group in groups:
        mine = _is_mine(group, avatars, from_tree=from_tree)
        if mine is not None:
            found.append(SeenBubble("".join(line.text for line in group), mine=mine))
    return found


def _is_avatar(item: Seen) -> bool:
    return item.role == AVATAR or (item.role == "image" and _AVATAR.search(item.text) is not None)


def _is_mine(group: Sequence[Seen], avatars: Sequence[Seen], *, from_tree: bool) -> bool | None:
    """Tell whether a bubble is our own; None for times and notices, which are in the middle."""
    first, widest = group[0], max(group, key=lambda line: line.right - line.left)
    beside = [avatar for avatar in avatars if abs(avatar.y - first.y) <= _BESIDE]
    wide = widest.right - widest.left > _WIDE
    if not beside and abs(widest.x - 500) <= 20 and not wide:
        return None
    if from_tree and not beside:  # an element of the tree is a whole bubble, however high
        beside = [avatar for avatar in avatars if avatar.y <= first.y]
    if beside:
        return beside[-1].x > 500
    # A bubble that fills its row has its middle near the screen's; then its left edge tells whose it is.
    return widest.left > _THEIR_LEFT if wide and not from_tree else widest.x > 500
