"""``/console`` in the chat, over the real desk."""

from __future__ import annotations

import re

import pytest

from bot.channels.chat.conversation import Conversation
from bot.channels.chat.turn import Incoming, Person
from bot.desk.actors import ChatRef, Role
from tests.bot.channels.chat.member import member
from tests.support.shop import Shop
from tests.support.talker import shown


@pytest.fixture
def at_an_address(shop: Shop) -> Shop:
    shop.desk.context.console_url = "http://127.0.0.1:1/console"
    return shop


async def test_an_owner_gets_a_link_that_logs_them_in(at_an_address: Shop) -> None:
    owner = await member(at_an_address, Role.OWNER, "店主")
    await owner.say("控制台")
    (link,) = [line.text for line in owner.said.messages[0].card.lines if line.kind == "secret"]
    address, _, code = link.partition("#")
    assert address == "http://127.0.0.1:1/console/login"
    begun = await at_an_address.desk.console.log_in(code)
    assert (begun.actor.name, begun.actor.role, begun.actor.channel) == ("店主", Role.OWNER, "console")


async def test_a_link_to_this_machine_says_that_it_opens_only_there(at_an_address: Shop) -> None:
    owner = await member(at_an_address, Role.OWNER, "店主")
    for asked in ("/console", "/invite 操作员 名字 小王"):
        assert "PHONEDESK_WEB__PUBLIC_URL" in await owner.say(asked)
    at_an_address.desk.context.console_url = "https://desk.example.com/console"
    for asked in ("/console", "/invite 操作员 名字 小李"):
        assert "PHONEDESK_WEB__PUBLIC_URL" not in await owner.say(asked)


async def test_everybody_gets_their_own_and_no_group_reads_one(at_an_address: Shop) -> None:
    owner = await member(at_an_address, Role.OWNER)
    operator = await member(at_an_address, Role.OPERATOR)
    code = re.findall(r"/login#(\S+)", await operator.say("/console"))[0]
    assert (await at_an_address.desk.console.log_in(code)).actor.role is Role.OPERATOR
    group = ChatRef("telegram", "-100", kind="group")
    person = Person(owner.actor.user_id, owner.actor.name, "zh")
    conversation = Conversation(at_an_address.desk, clock=at_an_address.clock)
    said = await conversation.handle(Incoming("text", person, group, "k", text="/console", message_id="5"))
    assert "私聊" in shown(said)
    assert "/login#" not in shown(said)
