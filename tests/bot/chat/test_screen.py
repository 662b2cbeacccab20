from __future__ import annotations

import pytest

from bot.chat.cards import Card, screen_action
from bot.chat.conversation import Conversation, Incoming, Person
from bot.chat.screen import read_screen
from bot.desk.actors import Actor, ChatRef, Role
from tests.bot.chat.memory_desk import NOW, MemoryDesk

CHAT = ChatRef("telegram", "11")


@pytest.mark.parametrize(
    ("rest", "read"),
    [
        ("", ("", False)),
        ("S1", ("S1", False)),
        ("file", ("", True)),
        ("S1 文件", ("S1", True)),
        ("“S1” File", ("S1", True)),
        ("file S1", ("file S1", False)),
    ],
)
def test_what_is_meant(rest: str, read: object) -> None:
    assert read_screen(rest) == read


@pytest.mark.parametrize("serial", ["", "S1", "127.0.0.1:5555", "x" * 70])
def test_buttons_are_short_enough_and_read_back(serial: str) -> None:
    for file in (False, True):
        action = screen_action(serial, file=file)
        assert len(action.encode()) <= 64
        assert read_screen(action.partition(":")[2]) == (serial if len(serial) < 50 else "", file)


async def test_a_photo_and_the_file_of_it() -> None:
    desk = MemoryDesk(picture=b"jpeg")
    desk.people["telegram", "11"] = Actor("p1", "telegram", "11", "Operator A", "zh", Role.VIEWER)
    conversation = Conversation(desk, clock=lambda: NOW)

    async def card_of(**incoming: str) -> Card:
        kind = "button" if "action" in incoming else "text"
        said = await conversation.handle(Incoming(kind, Person("11", "A"), CHAT, "k", **incoming))  # type: ignore[arg-type]  # one of its kinds, and texts
        return said.messages[0].card

    photo = await card_of(text="/screen S1")
    assert (photo.picture, photo.document) == (b"jpeg", None)
    labels = [button.label for row in photo.buttons for button in row]
    assert labels == ["看屏幕", "原图"]
    for asked in ({"action": "screen:S1 file"}, {"text": "/screen S1 file"}):
        file = await card_of(**asked)
        assert file.picture is None
        assert file.document is not None
        assert (file.document.name, file.document.data) == ("screen-20261120-093000.jpg", b"jpeg")
    assert (await card_of(action="screen")).picture == b"jpeg"
