"""People, invitations, help and settings in the chat, over the real desk."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

import pytest

from bot.channels.chat import commands
from bot.channels.chat.conversation import Conversation
from bot.channels.chat.people import Inviting, PeopleCommand, read_asking, read_invite
from bot.channels.chat.texts import texts
from bot.channels.chat.turn import Incoming, Person, Said
from bot.desk.actors import ChatRef, Role
from bot.desk.desk import Desk
from bot.desk.request_limits import RequestLimit
from storage.people import Audit
from storage.runs import NewRun, Runs
from tests.bot.channels.chat.member import Member, member
from tests.support.shop import PHONE, Shop
from tests.support.talker import shown

GROUP = ChatRef("telegram", "-100", "", "group")


@dataclass
class InGroup(Member):
    where: ChatRef = field(default=GROUP)

    @property
    def chat(self) -> ChatRef:
        return self.where


def there(who: Member, where: ChatRef = GROUP) -> InGroup:
    return InGroup(who.shop, who.actor, number=who.number + 1000, where=where)


@pytest.fixture
async def owner(shop: Shop) -> Member:
    return await member(shop, Role.OWNER, "Chief")


@pytest.fixture
async def anna(shop: Shop, owner: Member) -> Member:
    return await member(shop, Role.OPERATOR, "Anna B")


@pytest.mark.parametrize(
    ("rest", "read"),
    [
        ("", PeopleCommand("list")),
        ("列表", PeopleCommand("list")),
        ("audit", PeopleCommand("audit")),
        ("Anna B", PeopleCommand("show", "Anna B")),
        ("role Anna B viewer", PeopleCommand("role", "Anna B", Role.VIEWER)),
        ("身份 “张 三” 管理员", PeopleCommand("role", "张 三", Role.OWNER)),
        ("role viewer", None),
        ("role Anna god", None),
        ("limit #3 phone S1, S2", PeopleCommand("limit", "#3", phones=("S1", "S2"))),
        ("limit Anna B phone all chat here", PeopleCommand("limit", "Anna B", phones=("all",), chats=("here",))),
        ("限制 张三 群 这里", PeopleCommand("limit", "张三", chats=("这里",))),
        ("limit Anna", None),
        ("limit phone S1", None),
        ("limit Anna phone chat here", None),
        ("remove", None),
        ("移除 「张 三」", PeopleCommand("remove", "张 三")),
        ("revoke 0123456789", PeopleCommand("revoke", "0123456789")),
    ],
)
def test_what_can_be_asked_for(rest: str, read: PeopleCommand | None) -> None:
    assert read_asking(rest) == read


@pytest.mark.parametrize(
    ("rest", "read"),
    [
        ("", Inviting()),
        ("viewer", Inviting(Role.VIEWER)),
        ("2h 管理员", Inviting(Role.OWNER, 2)),
        ("operator 3天", Inviting(hours=72)),
        ("operator soon", None),
        ("operator --phone S1 --chat here", Inviting(phones=("S1",), chats=("here",))),
        ("viewer phone S1 S2 chat -5，-6 2h", Inviting(Role.VIEWER, 2, "", ("S1", "S2"), ("-5", "-6"))),
        ("手机 S1 只读 群 本群", Inviting(Role.VIEWER, phones=("S1",), chats=("本群",))),
        ("operator name Anna Lee 2h", Inviting(hours=2, name="Anna Lee")),
        ("只读 名字 小王 手机 S1", Inviting(Role.VIEWER, name="小王", phones=("S1",))),
        ("operator name", None),
        ("operator phone", None),
        ("operator phone chat own", None),
    ],
)
def test_what_an_invitation_says(rest: str, read: Inviting | None) -> None:
    assert read_invite(rest) == read


async def test_a_colleague_comes_in_by_the_link(shop: Shop, owner: Member) -> None:
    conversation = Conversation(shop.desk, clock=shop.clock, bot_name="desk_bot")
    conversation.start_link = "https://t.me/desk_bot?start="
    chief = Person(owner.actor.user_id, "Chief", "zh")
    said = shown(await conversation.handle(Incoming("text", chief, owner.chat, "k1", "/invite viewer 2h")))
    link = re.search(r"https://t\.me/desk_bot\?start=([A-Za-z0-9_-]{1,64})$", said, re.MULTILINE)
    assert link
    assert f"/start {link[1]}" in said
    new = Person("77", "New", "zh")
    text = f"/start {link[1]}"  # what Telegram makes of the link
    paired = shown(await conversation.handle(Incoming("text", new, ChatRef("telegram", "77"), "k2", text)))
    assert paired.startswith("配对成功，New。你的身份：只读。")
    assert "/run: " not in paired
    again = await conversation.handle(
        Incoming("text", Person("78", "Late", "zh"), ChatRef("telegram", "78"), "k3", text)
    )
    assert "配对码不对或已失效" in shown(again)


async def test_limits_come_with_the_invitation(owner: Member) -> None:
    shop = owner.shop
    said = await owner.say("/invite viewer phone S1 chat own")
    assert "只能用这些手机" in said or "S1" in said
    assert "其本人的私聊" in said
    code = re.search(r"/start (\w+)", said)
    assert code
    assert "S1" in await owner.say("/people")  # stands with the open invitation
    new = await shop.desk.people.pair("telegram", "77", "New", "zh", code[1])
    assert (new.phones, new.chats) == (("S1",), ("telegram:77",))
    assert await shop.desk.people.actor("telegram", "77") == new


async def test_an_invitation_to_a_group_is_told_in_private(owner: Member) -> None:
    conversation = Conversation(owner.shop.desk, clock=owner.shop.clock, bot_name="desk_bot")
    chief = Person(owner.actor.user_id, "Chief", "zh")
    said = await conversation.handle(Incoming("text", chief, GROUP, "k1", "/invite operator chat here"))
    secret, told = said.messages
    assert secret.chat == ChatRef("telegram", owner.actor.user_id)
    assert told.chat == GROUP
    code = re.search(r"/start (\w+)", shown(Said((secret,))))
    assert code
    assert code[1] not in shown(Said((told,)))
    new = await owner.shop.desk.people.pair("telegram", "77", "New", "zh", code[1])
    assert new.chats == (GROUP.key,)
    assert "请在要限制的群里" in await owner.say("/invite chat here")  # in private it would be the owner's own


async def test_an_owner_is_invited_without_limits(owner: Member) -> None:
    assert "管理员不能被限制" in await owner.say("/invite owner phone S1")
    assert await owner.shop.desk.team.invites(owner.actor) == []


async def test_an_invitation_is_not_made_where_others_read_along(owner: Member) -> None:
    assert await there(owner).say("/invite owner") == "请私聊我来邀请，免得别人看到配对码。"
    assert await owner.shop.desk.team.invites(owner.actor) == []


async def test_a_code_is_not_used_up_by_who_is_in(owner: Member, anna: Member) -> None:
    made = await owner.shop.desk.team.invite(owner.actor, Role.OWNER)
    assert "你已经配对过了" in await anna.say(f"/start {made.code}")
    assert len(await owner.shop.desk.team.invites(owner.actor)) == 1
    now = await owner.shop.desk.people.actor("telegram", anna.actor.user_id)
    assert now is not None
    assert now.role is Role.OPERATOR


async def test_the_list_and_an_invitation_taken_back(owner: Member, anna: Member) -> None:
    await owner.say("/invite viewer 2h")
    listed = await owner.say("人员")
    assert "#1 Chief: 管理员 · zh" in listed
    assert "#2 Anna B: 操作员 · zh" in listed
    assert "只读 · Chief 邀请 · 至 " in listed
    revoked = await owner.tap(owner.action("撤销"))
    assert revoked.startswith("(邀请已撤销。)")
    assert "已邀请" not in await owner.say("/people")


async def test_roles_by_buttons_and_by_words(owner: Member, anna: Member) -> None:
    await owner.say("/people")
    await owner.tap(owner.action("Anna B"))
    assert "(已修改。)" in await owner.tap(owner.action("只读"))
    assert "身份: 只读" in await owner.say("/people #2")
    assert "什么都能做" in await owner.tap(owner.action("管理员"))  # asks first
    assert "身份: 只读" in await owner.tap(owner.action("保持不变"))
    assert "身份: 操作员" in await owner.say("/people role Anna B operator")
    assert "这是最后一位管理员" in await owner.say("/people role Chief viewer")


async def test_removing_asks_and_can_be_undone(owner: Member, anna: Member) -> None:
    await owner.say("/people remove Anna B")
    assert owner.said.messages[0].card.title == "移除 Anna B 吗？"
    assert "操作员" in await anna.say("/whoami")  # nothing has happened yet
    await owner.tap(owner.action("移除"))
    assert "只服务于已配对的成员" in await anna.say("/whoami")
    await owner.tap(owner.action("撤回移除"))
    assert "操作员" in await anna.say("/whoami")


async def test_limited_to_this_group_and_one_phone(shop: Shop, owner: Member, anna: Member) -> None:
    await Runs(shop.db).create(NewRun("别处的任务", "S9"))
    here = there(owner)
    assert "仅限聊天: -100" in await here.say(f"/people limit Anna B chat here phone {PHONE}")
    assert "现状" in await there(anna).say("/status")
    assert "别处的任务" not in await there(anna).say("/status")
    assert "别处的任务" in await owner.say("/status")
    assert "给你开通的是别的聊天" in await anna.say("/status")
    assert "这台手机不归你使用" in await there(anna).say("/run -d S9 打开设置")
    whoami = await anna.say("/whoami")
    assert f"仅限手机: {PHONE}" in whoami
    assert "在这里只能看到这些" in whoami
    assert "在这里只能看到这些" not in await there(anna).say("/whoami")
    await owner.say("/people limit #2 chat own phone all")
    assert "现状" in await anna.say("/status")
    assert "你没有权限" in await there(anna).say("/status")
    assert "仅限" not in await owner.say("/people limit #2 chat 全部")


@pytest.mark.parametrize("words", ["/people", "/people remove Chief", "/people audit", "/invite owner", "人员"])
async def test_nobody_but_an_owner(anna: Member, words: str) -> None:
    assert "你的身份是操作员，这需要管理员" in await anna.say(words)


@pytest.mark.parametrize(
    "action",
    [
        "people:gone:1",
        "people:role:2:owner",
        "people:list",
        "people:undo:1",
        "people:revoke:0123456789",
        "people:audit",
    ],
)
async def test_a_button_that_was_made_up_does_nothing(shop: Shop, anna: Member, action: str) -> None:
    before = await shop.desk.people.members("telegram")
    assert "这需要管理员" in await anna.tap(action)
    assert await shop.desk.people.members("telegram") == before
    row = (await Audit(shop.db).refused(1))[0]
    assert (row.actor, row.detail["why"]) == (anna.actor.id, "role")


@pytest.mark.parametrize("action", ["people:role:2:god", "people:", "people:what:2", "people:gone:abc", "people:role"])
async def test_a_button_that_makes_no_sense_is_said_to(shop: Shop, owner: Member, anna: Member, action: str) -> None:
    before = await shop.desk.people.members("telegram")
    await owner.tap(action)
    assert owner.said.alert
    assert await shop.desk.people.members("telegram") == before


async def test_the_owner_sees_what_was_refused(shop: Shop, owner: Member, anna: Member) -> None:
    await anna.say("/people")
    stranger = Person("99", "管理员", "zh")
    conversation = Conversation(shop.desk, clock=shop.clock)
    for number, text in enumerate(["/stop", "/start WRONGONE", "hello"]):
        await conversation.handle(Incoming("text", stranger, ChatRef("telegram", "99"), f"s{number}", text))
    await conversation.handle(Incoming("button", stranger, GROUP, "s9", action="stop:run1"))
    await conversation.handle(Incoming("text", stranger, GROUP, "s10", "/start SECRETCODE"))
    await conversation.handle(Incoming("text", stranger, GROUP, "s11", "people talk here"))
    said = await owner.say("/people audit")
    told = [line.partition(" ")[2].partition(" ")[2] for line in said.splitlines()[1:-1]]
    who = "telegram:99 (管理员)"
    assert told == [
        f"{who}: 打招呼 · 未配对", f"{who}: 点按钮 · 未配对", f"{who}: 发消息 · 未配对", f"{who}: 配对 · 配对码不对",
        f"{who}: 停止任务 · 未配对", "Anna B: 查看成员 · 身份不允许",
    ]  # fmt: skip
    assert "SECRETCODE" not in said


async def test_help_names_what_the_person_may_use(shop: Shop, owner: Member, anna: Member) -> None:
    viewer = await member(shop, Role.VIEWER, "Vera")
    for who, names in (
        (owner, set(commands.COMMANDS)),
        (anna, set(commands.COMMANDS) - {"people", "invite"}),
        (viewer, {name for name in commands.COMMANDS if commands.LEAST.get(name, Role.VIEWER) is Role.VIEWER}),
    ):
        # No planner is set here.
        assert set(re.findall(r"^/(\w+): ", await who.say("/help"), re.MULTILINE)) == names - {"start", "plan"}
    told = await viewer.say("/help /invite")
    assert told.startswith("/invite\n")
    assert "适用身份: 管理员" in told
    assert "你的身份是只读，不能用这个命令。" in told
    assert "/invite 操作员 24小时" not in told
    assert "/invite 操作员 24小时 手机 S1" in await owner.say("/help invite")
    assert "没有命令" in await viewer.say("/help nonsense")


async def test_every_limit_on_a_command_is_on_one_that_exists() -> None:
    assert commands.LEAST.keys() | commands.NOT_IN_GROUPS <= set(commands.COMMANDS)


async def test_the_language_is_the_persons_own(owner: Member) -> None:
    await owner.say("设置")
    changed = await owner.tap(owner.action("English"))
    assert "(From now on I speak English with you.)" in changed
    assert "Role: owner" in await owner.say("/whoami")
    assert "身份" not in await owner.say("/help")
    assert "以后我用中文和你说" in await owner.say("/settings 中文")
    assert "没有“de”这个选项" in await owner.say("/settings lang de")


async def test_thoughts_as_they_come_are_a_persons_own_choice(owner: Member) -> None:
    assert "私聊里实时显示思考: 开" in await owner.say("设置")
    changed = await owner.tap(owner.action("不显示思考"))
    assert "(以后模型的思考只写在卡片里。)" in changed
    assert "私聊里实时显示思考: 关" in await owner.say("/settings")
    assert "边想边给你看" in await owner.say("/settings 思考 开")
    assert "私聊里实时显示思考: 关" in await owner.say("/settings thinking off")
    assert "例如" in await owner.say("/settings thinking")
    assert "例如" in await owner.say("/settings thinking maybe")


async def test_asking_too_much_is_answered_once(shop: Shop, owner: Member) -> None:
    shop.desk = Desk(replace(shop.desk.context, pace=RequestLimit(2)))
    viewer = await member(shop, Role.VIEWER, "Vera")
    said = [await viewer.say(text) for text in ("/help", "hello", "/whoami", "/status", "/help")]
    assert said[2].startswith("太频繁了：一分钟最多 2 条命令。\n")
    assert said[3:] == ["", ""]
    assert "太频繁" in await viewer.tap("screen:")
    assert "现状" in await owner.say("/status")
    shop.clock.move(minutes=1)
    assert "现状" in await viewer.say("/status")


async def test_people_who_talk_in_a_group_are_not_counted(shop: Shop, owner: Member) -> None:
    shop.desk = Desk(replace(shop.desk.context, pace=RequestLimit(1)))
    viewer = there(await member(shop, Role.VIEWER, "Vera"))
    for _ in range(5):
        assert await viewer.say("nice weather") == ""
    assert "现状" in await viewer.say("/status")


def test_the_commands_of_both_languages_fit_telegram() -> None:
    for lang in ("zh", "en"):
        for name in commands.COMMANDS:
            assert re.fullmatch(r"[a-z0-9_]{1,32}", name)
            assert 1 <= len(texts(lang).get(f"command.{name}")) <= 256
