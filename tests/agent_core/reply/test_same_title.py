"""Whether the name in the header is the one that was read, and nothing but the name."""

from __future__ import annotations

from typing import Any

import pytest

from agent_core.apps.profile import profile
from agent_core.devices.base import Frame, Window
from agent_core.perception.chat import read_chat
from agent_core.perception.observer import Observation
from agent_core.reply.sender import same_title
from simulator.phone.apps.looks import LOOKS
from simulator.phone.scenario import MessagePart
from tests.support.drawing import draw
from tests.support.lab import OCR

SAID = [MessagePart(text="请问几天能发货？")]


def frame(look: str, name: str, **page: Any) -> Frame:
    image = draw(look, name, SAID, width=720, **page).image
    return Frame(image, str(hash(image.tobytes())), 0.0)


async def same(look: str, before: dict[str, Any], after: dict[str, Any], name: str = "11") -> bool:
    app = profile(LOOKS[look].app)
    then = frame(look, "11", **before)
    chat = await read_chat(OCR, then, app)
    assert chat is not None
    assert chat.title == "11"
    assert chat.title_box is not None
    seen = Observation(then, Window(app.packages[0]), None, [], chat, 0.0)
    return same_title(seen, frame(look, name, **after), app)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"status": "在线"}, {"status": "对方正在输入..."}),
        ({"status": "在线 - 4G"}, {"status": "在线 - WiFi"}),
        ({"unread": 86}, {"unread": 87}),
        ({"draft": "您好"}, {"draft": ""}),
    ],
)
async def test_what_comes_and_goes_beside_the_name_is_no_other_name(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    assert await same("qq-plain", before, after)


@pytest.mark.parametrize("look", ["qq-plain", "wechat-light"])
@pytest.mark.parametrize("name", ["110", "111", "12", "l1", "11 ·", "十一"])
async def test_another_name_is_seen(look: str, name: str) -> None:
    assert not await same(look, {}, {}, name)


async def test_a_page_of_another_size_is_another() -> None:
    app = profile("qq")
    then = frame("qq-plain", "11")
    seen = Observation(then, Window(app.packages[0]), None, [], await read_chat(OCR, then, app), 0.0)
    wide = draw("qq-plain", "11", SAID, width=1080).image
    assert not same_title(seen, Frame(wide, "wide", 0.0), app)
