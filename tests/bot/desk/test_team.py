"""Invitations, roles, limits and removals at the desk."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from agent_core.errors import RateLimited
from bot.desk.actors import AccessDenied, Actor, BadRequest, NotFound, Role
from bot.desk.desk import Desk
from bot.desk.people import new_code, plain_name
from bot.desk.request_limits import WRONG_OF_ONE
from storage.people import Audit, People
from tests.support.shop import CHAT, PHONE, Shop


@pytest.fixture
async def owner(shop: Shop) -> Actor:
    return await shop.person(Role.OWNER, "Owner A")


async def comes(shop: Shop, user: str, code: str) -> Actor:
    return await shop.desk.people.pair("telegram", user, f"Person {user}", "zh", code)


async def test_an_invitation_has_its_role_and_its_time_and_is_used_once(shop: Shop, owner: Actor) -> None:
    made = await shop.desk.team.invite(owner, Role.VIEWER, 2)
    other = await shop.desk.team.invite(owner, Role.OPERATOR, 2)
    assert (made.role, made.by, made.expires_at - made.created_at) == (
        Role.VIEWER,
        "Owner A",
        other.expires_at - other.created_at,
    )
    assert made.code.isalnum()
    assert len(made.code) <= 64
    open_ones = await shop.desk.team.invites(owner)
    assert {invite.id for invite in open_ones} == {made.id, other.id}
    assert made.code not in str(open_ones)
    assert (await comes(shop, "5", made.code)).role is Role.VIEWER
    with pytest.raises(AccessDenied):
        await comes(shop, "6", made.code)
    assert [invite.id for invite in await shop.desk.team.invites(owner)] == [other.id]
    shop.clock.move(hours=2)
    with pytest.raises(AccessDenied):
        await comes(shop, "6", other.code)
    assert await shop.desk.team.invites(owner) == []
    refused = [(row.command, row.detail["name"]) for row in await Audit(shop.db).refused()]
    assert refused == [("pair", "Person 6")] * 2


async def test_an_invitation_can_be_revoked(shop: Shop, owner: Actor) -> None:
    made, kept = [await shop.desk.team.invite(owner, Role.OPERATOR) for _ in range(2)]
    assert (await shop.desk.team.revoke(owner, f" #{made.id.upper()} ")).role is Role.OPERATOR
    with pytest.raises(AccessDenied):
        await comes(shop, "5", made.code)
    for unknown in (made.id, "", "%", "0123456789", made.id[:5]):
        with pytest.raises(NotFound):
            await shop.desk.team.revoke(owner, unknown)
    assert [invite.id for invite in await shop.desk.team.invites(owner)] == [kept.id]


@pytest.mark.parametrize("hours", [0, -1, 721, float("nan"), float("inf")])
async def test_a_time_that_is_none(shop: Shop, owner: Actor, hours: float) -> None:
    with pytest.raises(BadRequest):
        await shop.desk.team.invite(owner, Role.OPERATOR, hours)


async def test_too_many_wrong_codes_and_a_good_invitation_is_not_looked_at(shop: Shop, owner: Actor) -> None:
    made = await shop.desk.team.invite(owner, Role.OWNER)
    for _ in range(WRONG_OF_ONE):
        with pytest.raises(AccessDenied):
            await comes(shop, "5", "WRONGONE")
    with pytest.raises(RateLimited):
        await comes(shop, "5", made.code)
    assert [(row.who, row.command, row.why) for row in await shop.desk.team.refused(owner)] == [
        ("telegram:5 (Person 5)", "pair", "rate"),
        *[("telegram:5 (Person 5)", "pair", "code")] * WRONG_OF_ONE,
    ]


async def test_who_is_in(shop: Shop, owner: Actor) -> None:
    anna = await shop.person(Role.OPERATOR, "Anna")
    shop.clock.move(hours=1)
    await shop.desk.status(anna)
    seen = {person.name: person for person in await shop.desk.team.people(owner)}
    assert (seen["Anna"].role, seen["Anna"].user_id, seen["Anna"].lang) == (Role.OPERATOR, anna.user_id, "en")
    assert seen["Anna"].seen == shop.clock.time
    assert seen["Anna"].since < shop.clock.time
    assert str(seen["Anna"].since.tzinfo) == "Asia/Shanghai"
    assert (await shop.desk.team.find(owner, "anna")).id == anna.id
    assert (await shop.desk.team.find(owner, f"＃{anna.id}")).name == "Anna"


async def test_a_name_that_two_have_is_refused(shop: Shop, owner: Actor) -> None:
    await shop.person(Role.VIEWER, "Owner A")
    with pytest.raises(BadRequest, match="Several"):
        await shop.desk.team.remove(owner, "Owner A")
    with pytest.raises(NotFound):
        await shop.desk.team.set_role(owner, "Nobody", Role.VIEWER)
    assert len(await shop.desk.team.people(owner)) == 2


async def test_a_role_holds_at_once(shop: Shop, owner: Actor) -> None:
    anna = await shop.person(Role.VIEWER, "Anna")
    assert (await shop.desk.team.set_role(owner, "Anna", Role.OPERATOR)).role is Role.OPERATOR
    now = await shop.desk.people.actor("telegram", anna.user_id)
    assert now is not None
    await shop.desk.runs.start(now, "打开设置", chat=CHAT, serial=PHONE)


async def test_the_last_owner_stays_owner(shop: Shop, owner: Actor) -> None:
    for call in (shop.desk.team.set_role(owner, "Owner A", Role.VIEWER), shop.desk.team.remove(owner, "Owner A")):
        with pytest.raises(BadRequest, match="last owner"):
            await call
    second = await shop.person(Role.OWNER, "Owner B")
    done = await asyncio.gather(
        shop.desk.team.set_role(owner, f"#{second.id}", Role.VIEWER),
        shop.desk.team.set_role(second, f"#{owner.id}", Role.VIEWER),
        return_exceptions=True,
    )
    assert sum(isinstance(result, BadRequest) for result in done) == 1
    assert [person.role for person in await shop.desk.team.people(owner)].count(Role.OWNER) == 1


async def test_who_is_no_owner_any_more_has_left_no_way_in(shop: Shop, owner: Actor) -> None:
    second = await shop.person(Role.OWNER, "Owner B")
    for lose in (shop.desk.team.set_role(owner, "Owner B", Role.OPERATOR), shop.desk.team.remove(owner, "Owner B")):
        mine = await shop.desk.team.invite(owner, Role.VIEWER)
        theirs = await shop.desk.team.invite(second, Role.OWNER)
        await lose
        with pytest.raises(AccessDenied):
            await comes(shop, "5", theirs.code)
        assert mine.id in {invite.id for invite in await shop.desk.team.invites(owner)}


async def test_limits_are_set_lifted_and_kept_apart(shop: Shop, owner: Actor) -> None:
    anna = await shop.person(Role.OPERATOR, "Anna")
    await shop.desk.team.limit(owner, "Anna", phones=["S1", "S2", "S1"])
    view = await shop.desk.team.limit(owner, "Anna", chats=[CHAT.key])
    assert (view.phones, view.chats) == (("S1", "S2"), (CHAT.key,))
    now = await shop.desk.people.actor("telegram", anna.user_id)
    assert now is not None
    assert (now.phones, now.chats) == (view.phones, view.chats)
    view = await shop.desk.team.limit(owner, "Anna", phones=[])
    assert (view.phones, view.chats) == ((), (CHAT.key,))
    row = await People(shop.db).get(int(anna.id))
    assert row is not None
    assert row.serials is None  # not a list of nothing: that would be everybody's phones as well, but odd


@pytest.mark.parametrize(
    "limits",
    [{"phones": ["NOPE"]}, {"phones": ["S1", "$(id)"]}, {"chats": ["here"]}, {"chats": ["telegram:-999"]}],
)
async def test_what_names_no_phone_and_no_chat(shop: Shop, owner: Actor, limits: dict[str, list[str]]) -> None:
    await shop.person(Role.OPERATOR, "Anna")
    with pytest.raises((BadRequest, NotFound)) as refused:
        await shop.desk.team.limit(owner, "Anna", **limits)
    if refused.value.key == "unknown_phone":
        assert refused.value.values["known"] == "127.0.0.1:16002, S1, S2, Pixel 8"
    with pytest.raises((BadRequest, NotFound)):
        await shop.desk.team.invite(owner, Role.VIEWER, phones=limits.get("phones", ()), chats=limits.get("chats", ()))
    with pytest.raises(BadRequest, match="never limited"):
        await shop.desk.team.limit(owner, "Owner A", phones=["S1"])


async def test_phones_are_named_as_people_call_them_and_may_be_away(shop: Shop, owner: Actor) -> None:
    await shop.person(Role.OPERATOR, "Anna")
    desk = Desk(replace(shop.desk.context, names={"S2": "Front desk"}))
    shop.attached.clear()
    view = await desk.team.limit(owner, "Anna", phones=["front desk", "S1"])
    assert (view.phones, view.phone_names) == (("S2", "S1"), ("Front desk", "S1"))
    made = await desk.team.invite(owner, Role.VIEWER, phones=["S2"], chats=["own", "telegram:77"])
    assert (made.phones, made.phone_names) == (("S2",), ("Front desk",))


async def test_what_was_refused_is_told_in_the_owners_zone(shop: Shop, owner: Actor) -> None:
    await shop.desk.people.turned_away("telegram", "9", "Nobody", "run")
    (row,) = await shop.desk.team.refused(owner)
    assert row.at == shop.clock.time
    assert str(row.at.tzinfo) == "Asia/Shanghai"


async def test_a_removal_takes_hold_at_once_and_can_be_undone(shop: Shop, owner: Actor) -> None:
    anna = await shop.person(Role.OPERATOR, "Anna")
    await shop.desk.team.limit(owner, "Anna", phones=["S1"], chats=[CHAT.key])
    before = await shop.desk.people.actor("telegram", anna.user_id)
    since = (await shop.desk.team.find(owner, "Anna")).since
    gone = await shop.desk.team.remove(owner, "Anna")
    assert gone.id == anna.id
    assert await shop.desk.people.actor("telegram", anna.user_id) is None
    with pytest.raises(NotFound):
        await shop.desk.team.remove(owner, "Anna")
    back = await shop.desk.team.undo_remove(owner, gone.id)
    assert (back.id, back.since) == (anna.id, since)
    assert await shop.desk.people.actor("telegram", anna.user_id) == before
    with pytest.raises(BadRequest, match="in again"):
        await shop.desk.team.undo_remove(owner, gone.id)


async def test_only_ones_own_newest_removal_can_be_undone(shop: Shop, owner: Actor) -> None:
    anna, bert = await shop.person(Role.OPERATOR, "Anna"), await shop.person(Role.OPERATOR, "Bert")
    second = await shop.person(Role.OWNER, "Owner B")
    await shop.desk.team.remove(owner, "Anna")
    await shop.desk.team.remove(owner, "Bert")
    for who, person in ((owner, anna), (second, bert)):
        with pytest.raises(BadRequest, match="nothing to undo"):
            await shop.desk.team.undo_remove(who, person.id)
    await comes(shop, bert.user_id, await new_code(shop.db, Role.VIEWER, created_by="test"))
    with pytest.raises(BadRequest, match="in again"):
        await shop.desk.team.undo_remove(owner, bert.id)
    now = await shop.desk.people.actor("telegram", bert.user_id)
    assert now is not None
    assert now.role is Role.VIEWER


async def test_a_person_chooses_their_language(shop: Shop, owner: Actor) -> None:
    assert (await shop.desk.team.speak(owner, "zh")).lang == "zh"
    now = await shop.desk.people.actor("telegram", owner.user_id)
    assert now is not None
    assert now.lang == "zh"
    with pytest.raises(BadRequest):
        await shop.desk.team.speak(owner, "de")
    with pytest.raises(BadRequest):
        await shop.desk.team.speak(replace(owner, id="terminal"), "en")


async def test_a_person_chooses_whether_thoughts_are_shown_as_they_come(shop: Shop, owner: Actor) -> None:
    assert owner.streams
    assert not (await shop.desk.team.stream(owner, False)).streams
    for kept in (False, True):
        now = await shop.desk.people.actor("telegram", owner.user_id)
        assert now is not None
        assert now.streams is kept
        await shop.desk.team.stream(owner, True)
    with pytest.raises(BadRequest):
        await shop.desk.team.stream(replace(owner, id="terminal"), True)


async def test_a_language_can_be_chosen_before_there_is_an_owner(shop: Shop) -> None:
    first = await shop.person(Role.VIEWER, "Anna")
    assert (await shop.desk.team.speak(first, "zh")).lang == "zh"


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("Anna\n\u202eowner", "Anna owner"),
        ("  张 三 ", "张 三"),
        ("x" * 99, "x" * 64),
        ("\u200b", ""),
        ("👩\u200d💻", "👩💻"),
    ],
)
def test_a_name_is_one_line_without_tricks(given: str, name: str) -> None:
    assert plain_name(given) == name
