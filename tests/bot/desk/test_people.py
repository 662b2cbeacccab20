from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from io import StringIO
from zoneinfo import ZoneInfo

import pytest

from agent_core.errors import InputRejected, RateLimited
from bot.channels.chat.conversation import Conversation
from bot.channels.chat.texts import texts
from bot.channels.chat.turn import Incoming, Person
from bot.channels.cli.terminal.activity import Activity
from bot.channels.cli.terminal.console import Console
from bot.desk.actors import AccessDenied, Actor, ChatRef, Role
from bot.desk.people import CODE_ALPHABET, CODE_LENGTH, new_code
from bot.desk.request_limits import WRONG_OF_ALL, WRONG_OF_ONE
from storage.events import Events
from storage.people import Audit
from tests.support.shop import CHAT, Shop, make_shop

PRIVATE = ChatRef("telegram", "9")


async def guess(shop: Shop, user: str, code: str = "WRONG") -> Actor:
    return await shop.desk.people.pair("telegram", user, "Guesser", "zh", code)


async def guess_wrong(shop: Shop, user: str, times: int) -> None:
    for _ in range(times):
        with pytest.raises(AccessDenied):
            await guess(shop, user)


async def test_the_first_code_makes_an_owner_and_is_used_up(shop: Shop) -> None:
    code = await shop.desk.people.first_code()
    assert code is not None
    assert len(code) == CODE_LENGTH
    assert set(code) <= set(CODE_ALPHABET)
    owner = await shop.desk.people.pair("telegram", "42", "Chief", "zh-hans", f" {code.lower()} ")
    assert (owner.role, owner.name, owner.lang, owner.user_id) == (Role.OWNER, "Chief", "zh", "42")
    assert await shop.desk.people.actor("telegram", "42") == owner
    assert await shop.desk.people.first_code() is None
    with pytest.raises(AccessDenied):
        await guess(shop, "43", code)


async def test_with_the_owner_there_the_codes_of_earlier_starts_open_nothing(shop: Shop) -> None:
    earlier = await shop.desk.people.first_code()
    code = await shop.desk.people.first_code()
    assert earlier is not None
    assert code is not None
    with pytest.raises(AccessDenied):
        await guess(shop, "41", earlier)
    invited = await new_code(shop.db, Role.OPERATOR, created_by="terminal")
    await guess(shop, "42", code)
    assert (await guess(shop, "43", invited)).role is Role.OPERATOR


async def test_a_code_has_its_role_and_its_day(shop: Shop) -> None:
    code = await new_code(shop.db, Role.VIEWER, created_by="test")
    other = await new_code(shop.db, Role.VIEWER, created_by="test")
    assert (await guess(shop, "1", code)).role is Role.VIEWER
    shop.clock.move(hours=24)
    with pytest.raises(AccessDenied):
        await guess(shop, "2", other)


async def test_strangers_are_nobody(shop: Shop) -> None:
    await shop.person(Role.OWNER)
    for channel, user in [("telegram", "999"), ("web", "101"), ("telegram", "abc"), ("telegram", "")]:
        assert await shop.desk.people.actor(channel, user) is None
    code = await new_code(shop.db, Role.OWNER, created_by="test")
    for channel, user in [("web", "5"), ("telegram", "abc")]:
        with pytest.raises(AccessDenied):
            await shop.desk.people.pair(channel, user, "X", "en", code)
    assert (await guess(shop, "5", code)).role is Role.OWNER  # the code was not used up by them


async def test_a_wrong_code_before_anybody_is_paired_says_where_the_code_is_and_a_pairing_is_shown(shop: Shop) -> None:
    for key in ("wrong_first_code", "wrong_code"):
        with pytest.raises(AccessDenied) as caught:
            await shop.desk.people.pair("telegram", "6", "X", "en", "WRONG")
        assert caught.value.key == key
        for lang in ("zh", "en"):
            assert ("phonedesk serve" in texts(lang).error(caught.value)) is (key == "wrong_first_code")
        code = await new_code(shop.db, Role.OWNER, created_by="test")
        await shop.desk.people.pair("telegram", "5", "Anna", "en", code)
    (event, *_) = [row for row in await Events(shop.db).after(0) if row.kind == "paired"]
    for lang, role in (("zh", "管理员"), ("en", "owner")):
        shown = StringIO()
        activity = Activity(shop.desk, Console(file=shown, width=200), texts(lang), ZoneInfo("Asia/Shanghai"))
        await activity._show(event)
        assert "Anna" in shown.getvalue()
        assert role in shown.getvalue()


async def test_wrong_codes_of_one_person_are_limited(shop: Shop) -> None:
    code = await new_code(shop.db, Role.OPERATOR, created_by="test")
    await guess_wrong(shop, "7", WRONG_OF_ONE)
    with pytest.raises(RateLimited, match=r"too many wrong pairing codes\. Try again in 15 min"):
        await guess(shop, "7", code)
    shop.clock.move(minutes=14, seconds=30)
    with pytest.raises(RateLimited, match="1 min"):
        await guess(shop, "7", code)
    assert (await guess(shop, "8", await new_code(shop.db, Role.VIEWER, created_by="t"))).role is Role.VIEWER
    shop.clock.move(seconds=30)
    assert (await guess(shop, "7", code)).role is Role.OPERATOR  # the code was not looked at, so not used up


async def test_tries_while_limited_do_not_prolong_it(shop: Shop) -> None:
    await guess_wrong(shop, "7", WRONG_OF_ONE)
    for _ in range(3):
        shop.clock.move(minutes=4)
        with pytest.raises(RateLimited):
            await guess(shop, "7")
    shop.clock.move(minutes=3)
    await guess_wrong(shop, "7", WRONG_OF_ONE)  # and the old ones count no more
    with pytest.raises(RateLimited):
        await guess(shop, "7")


async def test_slow_mistakes_are_no_guessing(shop: Shop) -> None:
    for _ in range(4):
        await guess_wrong(shop, "7", WRONG_OF_ONE - 1)
        shop.clock.move(minutes=15)
    await guess_wrong(shop, "7", 1)


async def test_who_is_in_begins_anew(shop: Shop) -> None:
    await guess_wrong(shop, "7", WRONG_OF_ONE - 1)
    await guess(shop, "7", await new_code(shop.db, Role.VIEWER, created_by="t"))
    await guess_wrong(shop, "7", WRONG_OF_ONE - 1)


async def test_wrong_codes_of_all_people_are_limited(shop: Shop) -> None:
    code = await new_code(shop.db, Role.OPERATOR, created_by="test")
    for number in range(WRONG_OF_ALL):
        await guess_wrong(shop, str(1000 + number), 1)
        shop.clock.move(minutes=1)
    with pytest.raises(RateLimited, match="10 min"):
        await guess(shop, "7", code)
    shop.clock.move(minutes=10)
    assert (await guess(shop, "7", code)).role is Role.OPERATOR


async def test_guesses_at_the_same_time_are_counted_too(shop: Shop) -> None:
    results = await asyncio.gather(*(guess(shop, "7") for _ in range(20)), return_exceptions=True)
    assert sum(isinstance(result, AccessDenied) for result in results) == WRONG_OF_ONE
    assert sum(isinstance(result, RateLimited) for result in results) == 20 - WRONG_OF_ONE


async def test_a_restart_begins_anew(shop: Shop, url: str) -> None:
    await guess_wrong(shop, "7", WRONG_OF_ONE)
    restarted = make_shop(url, shop.clock)
    try:
        await guess_wrong(restarted, "7", 1)
    finally:
        await restarted.db.close()


async def test_the_audit_log_tells_of_each_try_and_holds_no_code(shop: Shop) -> None:
    code = await new_code(shop.db, Role.OPERATOR, created_by="test")
    await guess(shop, "6", code)
    await guess_wrong(shop, "7", WRONG_OF_ONE)
    with pytest.raises(RateLimited):
        await guess(shop, "7")
    rows = await Audit(shop.db).last()
    assert [(row.actor, row.allowed) for row in rows] == [("telegram:7", False)] * 6 + [("telegram:6", True)]
    assert rows[0].detail == {"name": "Guesser", "limited": True}
    assert "WRONG" not in str(rows)
    assert code not in str(rows)


@pytest.mark.parametrize(("lang", "said"), [("zh", "配对码错得太多了"), ("en", "too many wrong pairing codes")])
async def test_the_chat_says_it_politely(shop: Shop, lang: str, said: str) -> None:
    talk = Conversation(shop.desk)
    told = []
    for number in range(WRONG_OF_ONE + 1):
        incoming = Incoming("text", Person("7", "Guesser", lang), PRIVATE, f"k{number}", "/start WRONGONE")
        told.append((await talk.handle(incoming)).messages[0].card.title)
    assert len(set(told[:-1])) == 1
    assert said in told[-1]
    assert "15 分钟" in told[-1] or "15 min" in told[-1]


CALLS: dict[str, tuple[Role, Callable[[Shop, Actor], Awaitable[object]]]] = {
    "run": (Role.OPERATOR, lambda shop, who: shop.desk.runs.start(who, "打开设置", chat=CHAT)),
    "stop": (Role.OPERATOR, lambda shop, who: shop.desk.runs.stop(who)),
    "answer": (Role.OPERATOR, lambda shop, who: shop.desk.questions.answer(who, "q", choice="x")),
    "status": (Role.VIEWER, lambda shop, who: shop.desk.status(who)),
    "schedule add": (Role.OWNER, lambda shop, who: shop.desk.schedules.add(who, "* * * * *", "x", chat=CHAT)),
    "schedule list": (Role.VIEWER, lambda shop, who: shop.desk.schedules.all(who)),
    "schedule pause": (Role.OWNER, lambda shop, who: shop.desk.schedules.pause(who, "1")),
    "schedule resume": (Role.OWNER, lambda shop, who: shop.desk.schedules.resume(who, "1")),
    "schedule remove": (Role.OWNER, lambda shop, who: shop.desk.schedules.remove(who, "1")),
}


@pytest.mark.parametrize("command", CALLS)
async def test_rights_hold_for_each_call_and_are_written_down(shop: Shop, command: str) -> None:
    least, call = CALLS[command]
    for role, rank in {Role.VIEWER: 0, Role.OPERATOR: 1, Role.OWNER: 2}.items():
        who = await shop.person(role)
        if command in {"schedule pause", "schedule resume", "schedule remove"} and role is Role.OWNER:
            await shop.desk.schedules.add(who, "0 9 * * *", "打开设置", chat=CHAT)
        denied = rank < {Role.VIEWER: 0, Role.OPERATOR: 1, Role.OWNER: 2}[least]
        if denied:
            with pytest.raises(AccessDenied, match=least.value):
                await call(shop, who)
        else:
            await call(shop, who)
        row = (await Audit(shop.db).last(1))[0]
        assert (row.command, row.actor, row.channel, row.allowed) == (command, who.id, "telegram", not denied)


async def test_what_is_no_task_is_refused(shop: Shop) -> None:
    owner = await shop.person(Role.OWNER)
    with pytest.raises(InputRejected):
        await shop.desk.runs.start(owner, " ", chat=CHAT)
    with pytest.raises(InputRejected):
        await shop.desk.schedules.add(owner, "* * * * *", "a\x07b", chat=CHAT)


async def test_an_operator_who_pairs_first_does_not_void_the_owners_code(shop: Shop) -> None:
    code = await shop.desk.people.first_code()
    assert code is not None
    await guess(shop, "50", await new_code(shop.db, Role.OPERATOR, created_by="terminal"))
    assert (await guess(shop, "51", code)).role is Role.OWNER
    assert await shop.desk.people.first_code() is None
