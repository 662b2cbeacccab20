"""Apps that are in no map, opened by the label of their icon, as `打开小店助手` asks for it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from agent_core.apps.names import known_on
from agent_core.devices.base import Key, System, TouchWatch
from agent_core.devices.wda.device import WdaDevice
from agent_core.errors import AppNotFound, CommandFailed, LeaseLost
from agent_core.loop.defaults import FreeLease, MemoryLedger
from agent_core.loop.launching import AppLauncher, installed
from agent_core.perception.observer import Observer
from agent_core.perception.reader import ScreenReader
from agent_core.ports import Lease
from agent_core.session import Status
from agent_core.settings import AgentSettings, new_session
from simulator.phone.scenario import OtherAppPart, PhonePart, Scenario, TreeMode
from simulator.phone.wda.server import serve_iphone
from tests.support.lab import FINISH, OCR, Lab, do, lab
from tests.support.model_server import ScriptedModel
from tests.support.ocr import needs_ocr

SHOP, DRAWER, QQ = "com.example.shop", "com.example.drawer", "com.tencent.mobileqq"
LAUNCHER = "com.android.launcher3"


def world(*more: OtherAppPart, tree: TreeMode = TreeMode.FULL) -> Scenario:
    """Two pages of icons beside the first one, and an app that is in the list of all apps alone."""
    many = [OtherAppPart(label=f"应用{n}", package=f"com.example.app{n}") for n in range(20)]
    others = [
        *many,
        OtherAppPart(label="小店助手", package=SHOP),
        OtherAppPart(label="藏宝阁", package=DRAWER, listed_only=True),
        OtherAppPart(label="VIP", package="com.example.vip"),  # its icon says so, too
        *more,
    ]
    return Scenario(tree=tree, phone=PhonePart(others=others))


def opening(
    bench: Lab, ledger: MemoryLedger | None = None, lease: Lease | None = None, allowed: tuple[str, ...] = ()
) -> AppLauncher:
    observer = Observer(bench.device, ScreenReader(ocr=OCR, model=None))
    return AppLauncher(observer, ledger or MemoryLedger(), lease or FreeLease(), allowed=allowed)


def swipes(bench: Lab) -> list[str]:
    """Which way each swipe went so far."""
    ways = []
    for action in bench.phone.report()["actions"]:
        if action["what"] == "swipe":
            (left, top), (right, bottom) = (map(int, place.split(",")) for place in action["detail"].split()[:2])
            ways.append("aside" if abs(left - right) > abs(top - bottom) else "up")
    return ways


def opened(bench: Lab) -> list[str]:
    return bench.phone.report()["opened"]


async def fails(launcher: AppLauncher, name: str, key: str, **values: object) -> AppNotFound:
    with pytest.raises(AppNotFound) as caught:
        await launcher.launch(name)
    assert caught.value.key == key
    told: Mapping[str, object] = caught.value.values
    assert {value: told[value] for value in values} == values
    return caught.value


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("tree", [TreeMode.FULL, pytest.param(TreeMode.EMPTY, marks=needs_ocr)])
async def test_an_app_in_no_map_is_found_by_its_icon_and_opened_at_once_from_then_on(tree: TreeMode) -> None:
    async with lab(world(tree=tree)) as bench:
        ledger = MemoryLedger()
        assert await installed(bench.device, "小店助手") is None
        for app, package in (("小店助手", SHOP), ("藏宝阁", DRAWER), ("VIP", "com.example.vip")):
            await bench.device.launch(QQ)
            await opening(bench, ledger).launch(app)
            assert opened(bench)[-2:] == [QQ, package]
            assert bench.phone.window().package == package
            assert ("up" in swipes(bench)) is (app != "小店助手"), "the list is opened for what is on no page"
        taps = len(bench.phone.report()["taps"])
        before = swipes(bench)
        await opening(bench, ledger).launch(" 小店 助手")
        assert opened(bench)[-1] == SHOP
        assert len(bench.phone.report()["taps"]) == taps, "it was launched by its package"
        assert swipes(bench) == before
        assert taps == 3, "nothing else was tapped on the way"


async def test_what_is_remembered_of_another_phone_or_of_an_app_that_is_gone_is_not_used() -> None:
    async with lab(world()) as bench:
        ledger = MemoryLedger()
        await ledger.keep_label(bench.device.serial, "小店助手", "com.example.gone")
        await ledger.keep_label("another", "小店助手", DRAWER)
        await opening(bench, ledger).launch("小店助手")
        assert opened(bench) == [SHOP]
        assert await ledger.labelled(bench.device.serial, "小店助手") == SHOP


async def test_an_iphone_opens_what_is_in_no_map_by_its_bundle_id_and_by_a_label_of_before() -> None:
    """WebDriverAgent tells no list of apps: only what it is asked for."""
    async with serve_iphone(world()) as running:
        device = WdaDevice("127.0.0.1", running.wda.port, known_apps=lambda: known_on(System.IOS))
        ledger = MemoryLedger()
        launcher = AppLauncher(Observer(device, ScreenReader(ocr=None, model=None)), ledger, FreeLease())
        await launcher.launch(DRAWER)
        await ledger.keep_label(device.serial, "小店助手", SHOP)
        await launcher.launch("小店助手")
        assert running.phone.report()["opened"] == [DRAWER, SHOP]
        assert running.phone.report()["taps"] == [], "no icon was looked for"
        for state in (0, 1):  # it may count an app that is not installed as one that does not run
            running.wda.state_of_missing = state
            await fails(launcher, "com.example.absent", "package_missing", package="com.example.absent")
        await device.close()


async def test_a_known_name_is_found_by_its_icon_if_none_of_its_packages_is_there() -> None:
    clone = OtherAppPart(label="闲鱼", package="com.example.fish")
    async with lab(world(clone)) as bench:
        await opening(bench).launch("闲鱼")
        assert opened(bench) == ["com.example.fish"]
        await fails(opening(bench), "xianyu", "no_icon")


async def test_a_name_that_is_nowhere_is_told_with_the_names_that_are_like_it() -> None:
    async with lab(world()) as bench:
        error = await fails(opening(bench), "小店", "no_icon_similar", app="小店", similar="小店助手")
        assert "小店助手" in str(error)
        assert bench.phone.window().package == LAUNCHER
        await fails(opening(bench), "Wechatt", "no_icon_similar", app="Wechatt", similar="wechat")
        await fails(opening(bench), "Ghostly Banking", "no_icon", app="Ghostly Banking")
        await fails(opening(bench), "com.example.absent", "package_missing", package="com.example.absent")
        assert opened(bench) == []


def pages_of(*places: int) -> list[OtherAppPart]:
    """Apps on two pages; those at ``places`` have one name."""
    return [
        OtherAppPart(label="双胞胎" if n in places else f"应用{n}", package=f"com.example.app{n}") for n in range(24)
    ]


@pytest.mark.parametrize(
    "apps",
    [
        pages_of(3, 4),
        pages_of(3, 22),
        [OtherAppPart(label="双胞胎", package=f"com.example.twin{n}", listed_only=True) for n in range(2)],
    ],
    ids=["on one page", "on two pages", "in the list"],
)
async def test_of_two_icons_with_the_name_none_is_opened(apps: list[OtherAppPart]) -> None:
    async with lab(Scenario(phone=PhonePart(others=apps))) as bench:
        await fails(opening(bench), "双胞胎", "two_icons", app="双胞胎", count=2)
        assert opened(bench) == []


async def test_what_nobody_can_read_is_told() -> None:
    async with lab(world(tree=TreeMode.EMPTY)) as bench:
        observer = Observer(bench.device, ScreenReader(ocr=None, model=None))
        await fails(AppLauncher(observer, MemoryLedger(), FreeLease()), "小店助手", "home_unread")


async def test_an_icon_that_opens_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_core.loop.launching.OPENS_SECONDS", 1.0)
    async with lab(world()) as bench:
        icon = opening(bench)
        monkeypatch.setattr(bench.phone, "launch_app", lambda package: False)
        await fails(icon, "小店助手", "icon_dead")


async def test_what_may_not_be_used_does_not_stay_in_front_and_is_not_remembered() -> None:
    async with lab(world()) as bench:
        ledger = MemoryLedger()
        await fails(opening(bench, ledger, allowed=(QQ,)), "小店助手", "icon_not_allowed", package=SHOP)
        assert bench.phone.window().package == LAUNCHER
        assert await ledger.labelled(bench.device.serial, "小店助手") is None
        await ledger.keep_label(bench.device.serial, "小店助手", SHOP)
        await fails(opening(bench, ledger, allowed=(QQ,)), "小店助手", "icon_not_allowed", package=SHOP)
        assert opened(bench) == [SHOP], "of the second time nothing was opened"
        await opening(bench, ledger, allowed=(QQ, SHOP)).launch("小店助手")
        assert opened(bench) == [SHOP, SHOP]


@pytest.mark.parametrize("package", ["com.miui.securitycenter", "com.android.permissioncontroller"])
async def test_what_may_stand_before_an_app_is_not_remembered_as_the_app(package: str) -> None:
    """On many phones an app that is known by another name asks for a password first, or a dialog asks for a right."""
    lock = OtherAppPart(label="小店锁", package=package)
    async with lab(world(lock)) as bench:
        ledger = MemoryLedger()
        await opening(bench, ledger).launch("小店锁")
        assert opened(bench) == [package]
        assert await ledger.labelled(bench.device.serial, "小店锁") is None


async def test_each_act_is_asked_of_the_lease_and_a_person_ends_it() -> None:
    class Lost:
        checks = 0

        async def check(self) -> None:
            self.checks += 1
            if self.checks == 3:
                raise LeaseLost("gone")

    async with lab(world()) as bench:
        with pytest.raises(LeaseLost):
            await opening(bench, lease=Lost()).launch("小店助手")
        acts = [action["what"] for action in bench.phone.report()["actions"]]
        assert [what for what in acts if what in {"key", "swipe", "tap"}] == ["key", "swipe"]

        observer = Observer(bench.device, ScreenReader(ocr=OCR, model=None))
        with pytest.raises(CommandFailed) as caught:
            await AppLauncher(observer, MemoryLedger(), FreeLease(), TouchWatch(touched=True)).launch("小店助手")
        assert caught.value.key == "touched_looking"
        assert len(bench.phone.report()["actions"]) == len(acts)


async def test_the_dock_is_one_icon_on_every_page() -> None:
    async with lab(world()) as bench:
        launcher = opening(bench)
        assert await launcher.is_there("QQ")
        await bench.device.key(Key.HOME)
        bench.phone.apps = {name: app for name, app in bench.phone.apps.items() if name != QQ}
        await launcher._home_screen.find("QQ")


# -- in a run


async def test_a_task_that_opens_an_app_in_no_map_is_done() -> None:
    async with lab(world()) as bench, ScriptedModel([do('do(action="Launch", app="小店助手")'), FINISH]) as model:
        session = await bench.run(model, "打开小店助手")
        assert session.status is Status.SUCCEEDED
        assert session.steps[0].ok
        assert opened(bench) == [SHOP]


async def test_a_task_that_may_use_qq_alone_opens_nothing_else_by_its_label() -> None:
    """The names of the rules lead to packages; an icon that only bears such a name is none of these apps."""
    false = OtherAppPart(label="闲鱼", package="com.example.fish")
    async with lab(world(false)) as bench:
        session = new_session("看看闲鱼里有什么", bench.device.serial, AgentSettings(), apps=["闲鱼"])
        async with ScriptedModel([do('do(action="Launch", app="闲鱼")'), FINISH]) as model:
            await bench.run(model, session=session)
            told = str(model.requests[1]["messages"][-1])
        assert "com.example.fish" in told
        assert "不许使用" in told
        assert bench.phone.window().package == LAUNCHER


async def test_a_task_that_only_opens_a_known_app_goes_on_if_its_icon_is_there() -> None:
    clone = OtherAppPart(label="闲鱼", package="com.example.fish")
    async with lab(world(clone)) as bench, ScriptedModel([do('do(action="Launch", app="闲鱼")'), FINISH]) as model:
        session = await bench.run(model, "打开闲鱼")
        assert session.status is Status.SUCCEEDED
        assert opened(bench) == ["com.example.fish"]


async def test_of_two_icons_of_a_known_app_the_model_is_told() -> None:
    clones = [OtherAppPart(label="闲鱼", package=f"com.example.fish{n}") for n in range(2)]
    async with lab(world(*clones)) as bench, ScriptedModel([do('do(action="Launch", app="闲鱼")'), FINISH]) as model:
        await bench.run(model, "打开闲鱼")
        assert "手机上有 2 个叫“闲鱼”的图标" in str(model.requests[1]["messages"][-1])
        assert opened(bench) == []
