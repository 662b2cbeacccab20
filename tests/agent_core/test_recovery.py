"""Runs that go nowhere: what the model is told, and that a person is asked long before the steps are used up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from PIL import Image, ImageDraw

from agent_core.actions import types
from agent_core.actions.types import Action
from agent_core.apps.profile import profile
from agent_core.devices.base import Frame, Window
from agent_core.geometry import Box, Point
from agent_core.loop.guard import RepeatWatch
from agent_core.perception.observer import Observation
from agent_core.perception.popups import kinds, popup_in
from agent_core.perception.readings import Reading, Source
from agent_core.policies import PolicyName, Situation, policies_of, review
from agent_core.session import Answer, GateState, QuestionKind, Session, Status, StepRecord
from tests.support.lab import BACK, FINISH, Lab, do
from tests.support.model_server import ScriptedModel

SETTINGS = do('do(action="Launch", app="设置")')
TAP = do('do(action="Tap", element=[500,300])')
WAIT = do('do(action="Wait", duration=0)')


def told(model: ScriptedModel, words: str) -> list[int]:
    """The requests (from 0) whose newest message says ``words``."""
    return [n for n, request in enumerate(model.requests) if words in str(request["messages"][-1])]


def stuck(session: Session) -> str:
    assert session.status is Status.WAITING
    assert session.question is not None
    assert session.question.kind is QuestionKind.STUCK
    return session.question.text


async def test_a_phone_that_ignores_taps(bench_lab: Lab) -> None:
    """What to do instead is said, then a person is asked, after 8 of 100 steps at most."""
    bench_lab.phone.set_fault("ignored_taps", True)
    taps = [do(f'do(action="Tap", element=[{500 + n % 3 * 9},{300 + n % 2 * 9}])') for n in range(99)]
    async with ScriptedModel([SETTINGS, *taps]) as model:
        session = await bench_lab.run(model, "打开设置里的蓝牙", max_steps=100)
        assert told(model, "请确认目标的中心再点") == [2, 3]
        assert told(model, "连续 3 次操作，画面都没有任何变化")
    assert "6 次" in stuck(session)
    assert len(session.steps) <= 8


async def test_a_dialog_that_the_model_does_not_close(bench_lab: Lab) -> None:
    """It is told what it is and by which button it is left; what it accepts is put to a person."""
    bench_lab.phone.set_fault("popup", True)
    accept = do('do(action="Tap", element=[690,540])')  # 立即更新
    away = [do(f'do(action="Tap", element=[{100 + 90 * n},100])') for n in range(99)]
    bench_lab.people.answers = [Answer(choice="deny", by="店长")]
    async with ScriptedModel([accept, *away]) as model:
        session = await bench_lab.run(model, "看看", max_steps=100)
        assert told(model, "应用更新的提示") == [0, 1, 3]  # anew behind the question
        assert told(model, "点“关闭”关掉它") == [0, 1, 3]
    assert bench_lab.people.asked[0].kind is QuestionKind.SENSITIVE_TAP
    assert "立即更新" in bench_lab.people.asked[0].text
    assert not [a for a in bench_lab.phone.report()["actions"] if a["what"] == "dialog_accepted"]
    assert len(session.steps) <= 10
    stuck(session)


async def test_waiting_and_an_app_that_comes_by_itself(bench_lab: Lab) -> None:
    async def surprise() -> None:
        await bench_lab.phone.launch("com.eg.android.AlipayGphone")

    bench_lab.knowledge.before = surprise
    look_up = do('do(action="GET_KNOWLEDGE_DATA", query="x")')
    async with ScriptedModel([SETTINGS, WAIT, WAIT, WAIT, look_up, BACK, FINISH]) as model:
        session = await bench_lab.run(model, "看看设置")
        assert told(model, "已经连续等待 3 次") == [4]
        assert told(model, "不是这个任务打开的") == [5]
    assert session.status is Status.SUCCEEDED
    assert session.setbacks.told == {"waits": 1, "app": 1}


async def test_a_person_lets_it_go_on(bench_lab: Lab) -> None:
    """Asked again only when as much has gone nowhere once more."""
    bench_lab.people.answers = [Answer(choice="go_on", by="店长"), Answer(choice="stop", by="店长")]
    async with ScriptedModel([do('do(action="Note", message="一")')] * 30) as model:
        session = await bench_lab.run(model, "等一等", max_steps=100)
    assert session.status is Status.FAILED
    assert [question.kind for question in bench_lab.people.asked] == [QuestionKind.STUCK] * 2
    assert len(session.steps) <= 14


async def test_a_reply_that_cannot_be_read_is_told_three_times_and_then_to_a_person(bench_lab: Lab) -> None:
    wrong = do('do(action="Tap", element=[500,1400])')
    async with ScriptedModel([wrong] * 9) as model:
        session = await bench_lab.run(model, "看看")
        assert told(model, "element=[500, 1400] is outside the picture. Both numbers go from 0 to 1000") == [1, 2]
    assert "连续 3 次" in stuck(session)
    assert len(session.steps) == 3
    assert not any(step.ok for step in session.steps)
    assert "tap" not in {action["what"] for action in bench_lab.phone.report()["actions"]}


SIZE = (540, 1200)
ASKS = "com.android.permissioncontroller.permission.ui.GrantPermissionsActivity"


def reading(text: str, x: int = 30, y: int = 0, width: int = 200) -> Reading:
    return Reading(text, Box(x, y, x + width, y + 40), Source.TREE)


def picture(*, dimmed: bool) -> Frame:
    image = Image.new("RGB", SIZE, (120, 120, 120) if dimmed else (255, 255, 255))
    ImageDraw.Draw(image).rectangle((60, 400, 480, 760), "white")
    return Frame(image, "d", 0.0)


def closing(y: int, role: str = "image") -> Reading:
    """A picture without words that closes a dialog."""
    return Reading("关闭", Box(400, y, 440, y + 40), Source.TREE, role=role)


QQ = "com.tencent.mobileqq"
UPGRADES = QQ + ".upgrade.activity.UpgradeActivity"


def dialog(*texts: str) -> list[Reading]:
    """The first text above, the others as buttons below it, side by side."""
    buttons = [reading(text, 80 + 130 * n, 680, 110) for n, text in enumerate(texts[1:])]
    return [reading("首页", 30, 100), reading(texts[0], 80, 500, 380), *buttons]


DIALOGS: list[tuple[Window, list[Reading], bool, tuple[str, str]]] = [
    (Window("com.shop"), dialog("发现新版本，是否立即更新？", "关闭", "立即更新"), True, ("update", "关闭")),
    (Window("com.shop"), dialog("请阅读《用户协议》和《隐私政策》", "不同意", "同意"), True, ("consent", "不同意")),
    (Window("android"), dialog("商城 屡次停止运行", "关闭应用"), True, ("crash", "关闭应用")),
    (Window("com.android.packageinstaller"), dialog("是否安装此应用？", "取消", "安装"), True, ("install", "取消")),
    (Window("com.android.permissioncontroller", ASKS), dialog("要允许QQ访问位置吗？", "仅在使用中允许", "拒绝"), False,
     ("permission", "拒绝")),
]  # fmt: skip
# The app's own, as QQ shows them.
OWN_DIALOGS: list[tuple[Window, list[Reading], bool, tuple[str, str]]] = [
    (Window(QQ), dialog("QQ新体验来了", "稍后处理", "立即升级"), True, ("update", "稍后处理")),
    (Window(QQ), [*dialog("QQ新体验来了", "马上升级"), closing(410)], True, ("update", "关闭")),
    (Window(QQ), [*dialog("QQ新体验来了", "马上升级"), closing(330)], True, ("update", "关闭")),  # floats over it
    (Window(QQ, UPGRADES), dialog("QQ新体验来了", "稍后处理", "立即升级"), False, ("update", "稍后处理")),
]  # fmt: skip
NO_DIALOGS: list[tuple[Window, list[Reading], bool]] = [
    (Window("com.shop"), dialog("发现新版本，是否立即更新？", "关闭", "立即更新"), False),  # nothing is dimmed: a page
    (Window("com.android.settings"),
     [reading("个性化广告推荐", 30, 300), reading("关闭", 450, 300, 60), reading("WLAN 下自动下载新版本", 30, 400),
      reading("关闭", 450, 402, 60)], True),  # a label and its value
    (Window("com.news"), dialog("广告", "关闭"), True),
    (Window("com.android.settings"), dialog("要停止运行此服务吗？", "取消", "确定"), True),
    (Window("com.android.permissioncontroller", "x.ManagePermissionsActivity"),
     dialog("要允许QQ访问位置吗？", "仅在使用中允许", "不允许"), False),
    (Window("com.android.permissioncontroller", ASKS), dialog("要允许QQ访问位置吗？", "不允许"), False),
    (Window("com.android.packageinstaller"), dialog("要卸载此应用吗？", "取消", "确定"), True),
    (Window("com.shop"),
     [*dialog("发现新版本", "关闭"), *(reading(f"第{n}行", 80, 410 + 20 * n) for n in range(12))], True),  # a page
    (Window(QQ), [*dialog("QQ新体验来了", "马上升级"), closing(100)], True),  # far above: of the page behind
    (Window(QQ), [*dialog("QQ新体验来了", "马上升级"), closing(410, role="")], True),  # no picture
    (Window(QQ), dialog("QQ新体验来了", "稍后处理", "立即升级"), False),
    (Window(None), [], True),
]  # fmt: skip


@pytest.mark.parametrize(
    ("window", "texts", "dimmed", "expected"), DIALOGS + OWN_DIALOGS, ids=lambda value: str(value)[:20]
)
def test_dialogs_are_known(window: Window, texts: list[Reading], dimmed: bool, expected: tuple[str, str]) -> None:
    found = popup_in(window, texts, picture(dimmed=dimmed))
    assert found is not None
    assert (found.kind, found.leave) == expected
    assert found.belongs_to("更新、安装，给权限；看看隐私政策；强行停止运行")
    assert not found.belongs_to("给张三发消息")


@pytest.mark.parametrize(("window", "texts", "dimmed"), NO_DIALOGS)
def test_pages_that_say_the_same_are_no_dialogs(window: Window, texts: list[Reading], dimmed: bool) -> None:
    assert popup_in(window, texts, picture(dimmed=dimmed)) is None


def test_what_the_hint_names_is_let_through() -> None:
    """Each button that leaves a dialog of the app itself; over it, those of the phone's own, and nothing else."""
    frame, qq = picture(dimmed=True), profile("qq")

    def allowed(window: Window, readings: list[Reading], button: str, policy: PolicyName) -> bool:
        place = next(one.box.center for one in readings if one.text == button)
        reply = policy is PolicyName.REPLY
        gate = GateState(enabled=True, contact="11") if reply else GateState()
        situation = Situation(
            qq if reply else None, window, SIZE, gate, readings, apps=() if reply else ("QQ",), frame=frame
        )
        tap = types.Tap(element=Point(place.x, place.y).to_relative(SIZE))
        judgement = review(tap, situation, policies_of(policy))
        return judgement.action == tap and not judgement.verdicts

    for policy in (PolicyName.REPLY, PolicyName.CAREFUL):
        for kind in kinds():
            for button in kind.leave:
                assert allowed(Window("com.tencent.mobileqq"), dialog("什么", button), button, policy), (button, policy)
        for window, texts, dimmed, (kind_name, leave) in DIALOGS:
            over = kind_name in {"permission", "install", "crash"}
            assert allowed(window, texts, leave, policy) is over, (kind_name, dimmed)
            others = [one.text for one in texts if one.text != leave]
            assert not any(allowed(window, texts, one, policy) for one in others)


async def test_whoever_is_asked_about_refusals_reads_which_rule_refused_not_what_the_model_was_told(
    bench_lab: Lab,
) -> None:
    launches = [do(f'do(action="Launch", app="{app}")') for app in ("设置", "淘宝", "支付宝") * 4]
    async with ScriptedModel(launches) as model:
        session = await bench_lab.run(model, "QQ回复联系人11", max_steps=30)
        assert told(model, "这个任务只能使用 QQ")
    text = stuck(session)
    assert text.endswith("最后一次：被规则拦住（只用任务里的应用）")
    assert "没有打开" not in text


@dataclass
class Told:
    asked: list[int]  # the steps (from 1) in which a person was asked
    hints: list[tuple[int, str]]


Step = tuple[Action | None, str, str, bool, list[str]]  # proposal, digest, package, ok, texts of the screen


def walk(step: Callable[[int], Step], count: int = 100) -> Told:
    """Run ``count`` steps past the watch, as the agent does; a person always says go on."""
    session = Session(run_id="r", task="看看")
    watch, told = RepeatWatch(session), Told([], [])
    for n in range(count):
        action, digest, package, ok, texts = step(n)
        frame = Frame(Image.new("RGB", (20, 40)), digest, 0.0)
        readings = [reading(text, 0, 100 + 50 * row) for row, text in enumerate(texts)]
        hint = watch.look(Observation(frame, Window(package), None, readings, None, 0.0), "")
        if hint:
            told.hints.append((n + 1, hint))
        result = watch.count(action, Observation(frame, Window(package), None, readings, None, 0.0))
        if result is not None and result.question is not None:
            told.asked.append(n + 1)
            session.questions.append(result.question)
        done = ok and result is None and action is not None
        dumped = action.model_dump(mode="json") if action else None
        session.steps.append(
            StepRecord(index=n + 1, action=dumped if done else None, asked=dumped, ok=done, package=package)
        )
    return told


def tap(x: int, y: int) -> Action:
    return types.Tap(element=(x, y))


def anywhere(n: int) -> Action:
    return tap(100 + 37 * n % 800, 300 + 53 * n % 400)


SWIPE = types.Swipe(start=(500, 800), end=(500, 200))
SHOP = "com.shop"
LOOPS: dict[str, tuple[Callable[[int], Step], int]] = {
    "tap, wait": (lambda n: (types.Wait() if n % 2 else anywhere(n), "s", SHOP, True, ["a"]), 13),
    "two taps on a video": (lambda n: (tap(800 if n % 2 else 200, 300), f"d{n}", SHOP, True, ["a"]), 25),
    "swipe, tap on a video": (lambda n: (SWIPE if n % 2 else tap(800, 300), f"d{n}", SHOP, True, []), 25),
    "tap, back on a video": (lambda n: (types.Back() if n % 2 else tap(5, 3), f"d{n}", SHOP, True, [str(n % 2)]), 30),
    "one tap on a video": (lambda n: (tap(500 + n % 20, 300), f"d{n}", SHOP, True, ["a"]), 17),
    "refused": (lambda n: (anywhere(n), "s", SHOP, False, []), 9),
    "refused where all moves": (lambda n: (anywhere(n), f"d{n}", SHOP, False, [str(n)]), 9),
    "no such app": (lambda n: (types.Launch(app=f"a{n}"), "s", SHOP, False, []), 9),
    "no summary": (lambda n: (types.CallAPI(instruction=f"{n}"), "s", SHOP, False, []), 9),
    "unreadable, refused": (lambda n: (None if n % 2 else anywhere(n), "s", SHOP, False, []), 9),
    "notes": (lambda n: (types.Note(message=f"{n}"), "s", SHOP, True, []), 13),
    "summaries": (lambda n: (types.CallAPI(instruction=f"{n}"), "s", SHOP, True, []), 13),
    "knowledge": (lambda n: (types.GetKnowledgeData(query=f"{n}"), "s", SHOP, True, []), 13),
    "types": (lambda n: (types.Type(text=f"{n}"), f"d{n}", SHOP, True, []), 25),
    "five taps by turns": (lambda n: (tap(n % 5 * 100, 300), f"d{n}", SHOP, True, [str(n % 5)]), 36),
    "waits, still": (lambda n: (types.Wait(duration=20), "s", SHOP, True, []), 6),
    "waits, moving": (lambda n: (types.Wait(duration=1), f"d{n}", SHOP, True, ["a"]), 31),
    "an end that is refused": (lambda n: (types.Finish(message=f"{n}"), "s", SHOP, False, []), 4),
}
GOOD: dict[str, tuple[Callable[[int], Step], int]] = {
    "a download": (lambda n: (types.Wait(duration=10), f"d{n}", SHOP, True, ["下载中"]), 25),
    "a short wait": (lambda n: (types.Wait(duration=1), "s", SHOP, True, ["a"]), 8),
    "a number counted up": (lambda n: (tap(800, 500), f"d{n}", SHOP, True, [str(n)]), 40),
    "pages of a book": (lambda n: (tap(900, 500), f"d{n}", SHOP, True, [f"第{n}页"]), 40),
    "pages that nothing reads": (lambda n: (tap(900, 500), f"d{n}", SHOP, True, []), 35),
    "a long list": (lambda n: (SWIPE, f"d{n}", SHOP, True, [str(n)]), 50),
    "a list with notes": (lambda n: (SWIPE if n % 2 else types.Note(), f"d{n // 2}", SHOP, True, [str(n // 2)]), 50),
    "each of a list": (
        lambda n: (types.Back() if n % 2 else tap(500, 100 + n * 8), f"d{n}", SHOP, True, [str(n) if n % 2 else "表"]),
        50,
    ),
    "a feed with adverts": (lambda n: (SWIPE, f"d{n}", SHOP, True, [f"新闻{n}", "广告", "关闭"]), 30),
    "an end after refusals": (lambda n: (anywhere(n) if n < 8 else types.Finish(), "s", SHOP, False, []), 9),
    "help after refusals": (lambda n: (anywhere(n) if n < 8 else types.TakeOver(), "s", SHOP, n == 8, []), 9),
    "a question after still acts": (
        lambda n: (anywhere(n) if n < 6 else types.Interact(question="哪个？"), "s", SHOP, True, []), 7,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_what_goes_nowhere_ends_at_a_person(name: str) -> None:
    """At the latest in the step named; once more when as much has gone nowhere again."""
    step, latest = LOOPS[name]
    first, second = walk(step).asked[:2]
    assert first <= latest
    assert second - first <= latest + 1


@pytest.mark.parametrize("name", GOOD)
def test_who_gets_on_is_not_disturbed(name: str) -> None:
    step, count = GOOD[name]
    assert walk(step, count).asked == []


def test_the_same_act_beside_a_banner_is_called_out_before_a_person_is_asked() -> None:
    told = walk(LOOPS["one tap on a video"][0], 17)
    assert [n for n, hint in told.hints if "没有读到任何新的文字" in hint] == [4, 7, 10, 13, 16]
    assert not any(
        "没有读到" in hint for name in ("a number counted up", "a download") for _, hint in walk(*GOOD[name]).hints
    )


def test_an_app_that_was_opened_by_a_tap_is_named_once() -> None:
    def photos(n: int) -> Step:
        if n % 3 == 0:
            return tap(900, 900 - n), f"c{n}", "com.tencent.mobileqq", True, [f"c{n}"]
        return tap(200 + n * 10, 300 + n), f"g{n}", "com.miui.gallery", True, [f"g{n}"]

    told = walk(photos, 30)
    assert told.asked == []
    assert [(n, "上一个动作打开的" in hint) for n, hint in told.hints] == [(2, True)]


def test_an_app_that_a_person_put_in_front_may_stay() -> None:
    def comes(since: int) -> Callable[[int], Step]:
        return lambda n: (types.Note(message=f"{n}"), f"d{n}", "com.other" if n >= since else SHOP, n > 8, [str(n)])

    assert walk(comes(9), 20) == Told([9], [])  # while the person was asked
    assert [n for n, _ in walk(comes(12), 20).hints] == [13]


def test_a_dialog_of_which_the_task_speaks_is_no_surprise() -> None:
    session = Session(run_id="r", task="把商城更新到新版本")
    seen = Observation(picture(dimmed=True), Window(SHOP), None, DIALOGS[0][1], None, 0.0)
    assert RepeatWatch(session).look(seen, "") == ""
    session.task = "看看订单"
    assert "点“关闭”关掉它" in RepeatWatch(session).look(seen, "")
    session.apps = ["QQ"]  # the gate would refuse that tap
    assert "关闭" not in RepeatWatch(session).look(seen, "")
