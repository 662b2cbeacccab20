"""People without Telegram: how they get in to the console, and out of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from bot.app.server_names import CONSOLE
from bot.channels.chat.conversation import Conversation
from bot.channels.chat.turn import Incoming, Person
from bot.desk.actors import Actor, ChatRef, Role
from bot.desk.views import OWN_CHAT
from storage.people import Audit, People
from tests.bot.channels.web.console.conftest import TERMINAL, Browser, Shown


@pytest.fixture
async def owner(shown: Shown) -> Actor:
    return await shown.busy.shop.person(Role.OWNER, "Chief")


async def invited(shown: Shown, name: str = "Anna", role: str = "operator", hours: int = 24) -> str:
    """Return the link of an invitation that was made on the page."""
    wish = {"name": name, "role": role, "hours": hours}
    status, made, _ = await shown.browser.ask("POST", "/api/v1/invitations", wish)
    assert (status, made["name"], made["role"]) == (201, name, role)
    link: str = made["link"]
    return link


@pytest.fixture
async def anna(shown: Shown) -> tuple[str, Browser]:
    """Return the id and the browser of an operator who came in by a link."""
    browser = await shown.stranger()
    assert await browser.log_in(await invited(shown)) == 200
    (row,) = [row for row in await People(shown.db).all() if row.name == "Anna"]
    return str(row.id), browser


async def test_a_link_makes_a_member_with_the_name_and_role_of_the_invitation(shown: Shown) -> None:
    link = await invited(shown)
    assert link.startswith(f"{shown.url}{CONSOLE}/login#")
    page = await shown.browser.page("/people")
    assert "Anna" in page
    assert link.partition("#")[2] not in page, "it is told once"
    browser = await shown.stranger()
    status, body, _ = await browser.ask(
        "POST", f"{CONSOLE}/login", {"code": link.partition("#")[2]}, **{"Accept-Language": "en"}
    )
    assert (status, body["name"]) == (200, "Anna")
    assert "Anna · operator" in await browser.page()
    assert (await browser.ask("POST", "/api/v1/runs", {"task": "打开设置"}))[0] == 201
    assert (await browser.get(f"{CONSOLE}/people"))[0] == 403
    (row,) = [row for row in await People(shown.db).all() if row.name == "Anna"]
    assert (row.telegram_id, row.role, row.lang) == (None, "operator", "en")
    written = [(entry.command, entry.detail.get("name")) for entry in await Audit(shown.db).last()]
    assert written.index(("people invite", "Anna")) > written.index(("pair", "Anna"))
    people = (await shown.browser.ask("GET", "/api/v1/people"))[1]["items"]
    assert [each["user"] for each in people if each["name"] == "Anna"] == [""]


async def test_a_used_or_old_invitation_says_what_to_do(shown: Shown) -> None:
    link = await invited(shown, hours=2)
    assert await (await shown.stranger()).log_in(link) == 200
    late = await invited(shown, "Ben", hours=2)
    shown.busy.shop.clock.time += timedelta(hours=2)
    for wrong in (link, late):
        stranger = await shown.stranger()
        code = wrong.partition("#")[2]
        headers = {"Accept-Language": "zh-CN,zh"}
        status, problem, _ = await stranger.ask("POST", f"{CONSOLE}/login", {"code": code}, **headers)
        assert (status, "请找管理员要一个新的" in problem["detail"]) == (403, True)
    assert [row.name for row in await People(shown.db).all()].count("Anna") == 1


async def test_a_code_of_one_way_is_none_of_the_other(shown: Shown, owner: Actor) -> None:
    code = (await invited(shown)).partition("#")[2]
    conversation = Conversation(shown.desk)
    chat = ChatRef("telegram", "77")
    said = await conversation.handle(Incoming("text", Person("77", "Eve"), chat, "k", f"/start {code}"))
    assert "wrong or" in said.messages[0].card.title or "配对码" in said.messages[0].card.title
    bots = await shown.desk.team.invite(owner, Role.OWNER)
    assert await (await shown.stranger()).log_in(f"#{bots.code}") == 403
    assert await (await shown.stranger()).log_in(f"#{code}") == 200, "neither was used up by that"


async def test_who_was_logged_out_gets_a_new_link_from_an_owner(shown: Shown, anna: tuple[str, Browser]) -> None:
    person_id, browser = anna
    path = f"/api/v1/people/{person_id}/console-link"
    assert (await browser.ask("POST", path))[0] == 403, "not by herself"
    await browser.ask("POST", f"{CONSOLE}/logout")
    status, made, _ = await shown.browser.ask("POST", path)
    assert (status, made["name"]) == (200, "Anna")
    shown.busy.shop.clock.time += timedelta(hours=23)
    assert await browser.log_in(made["link"]) == 200
    assert "Anna" in await browser.page()
    assert await (await shown.stranger()).log_in(made["link"]) == 403
    assert ("console link", f"#{person_id}") in {
        (row.command, row.detail.get("person")) for row in await Audit(shown.db).last() if row.actor == "terminal"
    }
    assert (await shown.browser.ask("POST", "/api/v1/people/999/console-link"))[0] == 404


async def test_who_is_removed_or_changed_is_out_and_can_be_put_back(
    shown: Shown, owner: Actor, anna: tuple[str, Browser]
) -> None:
    person_id, browser = anna
    open_link = (await shown.browser.ask("POST", f"/api/v1/people/{person_id}/console-link"))[1]["link"]
    assert (await shown.browser.ask("PATCH", f"/api/v1/people/{person_id}", {"role": "viewer"}))[0] == 200
    assert (await browser.get(CONSOLE, allow_redirects=False))[0] == 303
    assert await browser.log_in(open_link) == 403, "links of before are void"
    link = (await shown.browser.ask("POST", f"/api/v1/people/{person_id}/console-link"))[1]["link"]
    assert await browser.log_in(link) == 200
    assert "Anna · 只读" in await browser.page()
    assert (await shown.browser.ask("DELETE", f"/api/v1/people/{person_id}"))[0] == 200
    assert (await browser.get(CONSOLE, allow_redirects=False))[0] == 303
    assert (await shown.browser.ask("POST", f"/api/v1/people/{person_id}/put-back"))[1]["name"] == "Anna"
    assert (await browser.get(CONSOLE, allow_redirects=False))[0] == 303, "a session does not come back"


async def test_the_first_owner_may_come_by_the_console_alone(shown: Shown) -> None:
    assert await shown.desk.people.first_code() is not None
    browser = await shown.stranger()
    assert await browser.log_in(await invited(shown, "Chief", "owner")) == 200
    assert await shown.desk.people.first_code() is None
    (chief,) = await People(shown.db).all()
    assert [to.chat for to in await shown.desk.digest.alerted()] == [ChatRef("console", str(chief.id))]
    assert [chat.key for chat in await shown.desk.digest.chats()] == [f"console:{chief.id}"]
    assert await shown.desk.people.members("telegram") == []
    status, problem, _ = await shown.browser.ask("DELETE", f"/api/v1/people/{chief.id}")
    assert (status, "last owner" in problem["detail"]) == (400, True)


async def test_limits_of_an_invitation_hold_in_the_console(shown: Shown) -> None:
    made = await shown.desk.team.invite(TERMINAL, Role.OPERATOR, name="Anna", chats=[OWN_CHAT])
    browser = await shown.stranger()
    assert await browser.log_in(made.link) == 200
    (row,) = [row for row in await People(shown.db).all() if row.name == "Anna"]
    assert row.chats == [f"console:{row.id}"]
    chief = replace(await shown.busy.shop.person(Role.OWNER, "Chief"), chat=ChatRef("telegram", "-5", kind="group"))
    await shown.desk.team.limit(chief, f"#{row.id}", chats=["telegram:-5"])
    assert (await browser.get(CONSOLE, allow_redirects=False))[0] == 303
    status, problem, _ = await shown.browser.ask("POST", f"/api/v1/people/{row.id}/console-link")
    assert (status, "may not use the console" in problem["detail"]) == (404, True)


async def test_the_card_of_an_invitation_with_a_name_has_the_link(shown: Shown, owner: Actor) -> None:
    conversation = Conversation(shown.desk)
    chief, chat = Person(owner.user_id, "Chief"), ChatRef("telegram", owner.user_id)
    said = await conversation.handle(Incoming("text", chief, chat, "k", "/invite viewer name Anna"))
    lines = [line.text for line in said.messages[0].card.lines]
    (link,) = [line for line in lines if "#" in line]
    assert not any("/start" in line for line in lines)
    assert await (await shown.stranger()).log_in(link) == 200
