"""``phonedesk doctor`` against real parts: a virtual phone behind adb, model, knowledge and Bot API over HTTP."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import re
import socket
import sqlite3
import string
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import resources
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa
from aiohttp import web
from structlog.testing import capture_logs

import bot.app.doctor.examine
from agent_core.devices.adb.power import AWAKE_MARKER
from agent_core.devices.adb.server import open_adb
from agent_core.devices.adb.setup import MARKER as SETUP_MARKER
from agent_core.errors import ConfigError, DeviceOffline
from agent_core.perception.ocr import OcrEngine
from bot.app.core import open_core
from bot.app.doctor.exam import Exam
from bot.app.doctor.examine import CHECKS, Check, CheckResult, CheckStatus, examine
from bot.app.doctor.phone import asks_for_secret
from bot.app.doctor.report import DoctorVerdict
from bot.app.doctor.texts import catalogue
from bot.app.knowledge import own_entries
from bot.app.phones import OwnPhones
from bot.app.settings.layers import Settings
from bot.app.settings.loading import load
from bot.channels.chat.texts import LANGUAGES, Lang
from knowledge.entries import Entry, sample_entries
from simulator.model.server import MODEL_NAME, start_demo_model
from simulator.phone.adbd import Auth
from simulator.phone.phone import VirtualPhone
from simulator.phone.scenario import Faults, KeyboardPart, PhonePart, Scenario, TreeMode
from simulator.phone.server import RunningPhone, serve
from simulator.telegram import FakeTelegram
from storage.engine import Database
from storage.leases import Leases
from storage.model_calls import UsageTotals, Used
from tests.support import forked
from tests.support.adb import AdbServerProcess, adb_server
from tests.support.apk import keyboard_apk
from tests.support.environment import without_settings
from tests.support.knowledge import open_knowledge
from tests.support.model_server import Reply, Script, ScriptedModel
from tests.support.model_server import Status as HttpStatus
from tests.support.ocr import needs_ocr

SECRET = "plain-looking-secret-value"
PHONE = (
    "settings",
    "database",
    "adb",
    "phone",
    "authorised",
    "screen",
    "screenshot",
    "keyboard",
    "input",
    "app",
    "learnt",
    "tree",
)
MODEL = ("settings", "model", "model_name", "model_vision")
BOT = ("settings", "token", "webhook")


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings but the test's."""
    without_settings(monkeypatch, tmp_path)


@pytest.fixture
def adb() -> Any:
    with adb_server() as server:
        yield server


def free_port() -> int:
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        return int(chosen.getsockname()[1])


def of(*keys: str) -> tuple[Check, ...]:
    return tuple(check for check in CHECKS if check.key in keys)


async def look(
    settings: Settings | ConfigError, *keys: str, serial: str = "", mend: bool = False, lang: Lang = "en"
) -> dict[str, CheckResult]:
    return {r.check: r async for r in examine(settings, serial=serial, lang=lang, mend=mend, checks=of(*keys))}


def said(results: dict[str, CheckResult]) -> dict[str, str]:
    """Only what is neither ok nor a mere note."""
    well = (CheckStatus.OK, CheckStatus.NOTE)
    return {key: result.status.value for key, result in results.items() if result.status not in well}


def changes(phone: VirtualPhone) -> dict[str, Any]:
    """What a doctor must not change."""
    report = phone.report()
    return copy.deepcopy(
        {
            "settings": dict(phone.settings),
            "faults": phone.faults.model_dump(),
            "screen": phone.screen(),
            "window": phone.window(),
            **{key: report[key] for key in ("sent", "drafts", "opened", "taps", "typed")},
        }
    )


@asynccontextmanager
async def phone_of(scenario: Scenario | None = None, auth: Auth = "none") -> AsyncIterator[RunningPhone]:
    """A phone; afterwards it is as it was."""
    async with serve(scenario or Scenario(), auth=auth) as running:
        before = changes(running.phone)
        yield running
        assert changes(running.phone) == before


def at(adb: AdbServerProcess, serial: str = "", **more: Any) -> Settings:
    return load(device={"serial": serial, "adb_port": adb.port, **more})


# -- the phone


async def test_a_good_phone_passes_everything(adb: AdbServerProcess) -> None:
    async with phone_of() as running:
        results = await look(at(adb, running.address), *PHONE)
    assert said(results) == {}
    assert list(results) == list(PHONE)
    assert results["learnt"].status is CheckStatus.NOTE  # not known yet is not well
    assert "WeChat " in results["learnt"].seen
    assert "微信" not in str(results)
    assert running.address in results["phone"].seen
    assert "VP-1, Android 13, 1080×2400" in results["authorised"].seen
    assert re.match(r"QQ \d", results["app"].seen)


async def test_versions_of_apps_in_which_nobody_is_asked_are_known(adb: AdbServerProcess) -> None:
    async with phone_of() as running:
        settings = at(adb, running.address)
        seen = (await look(settings, *PHONE))["learnt"].seen
        versions = [
            f"{app} {found[1]}"
            for app, name in (("qq", "QQ"), ("wechat", "WeChat"))
            if (found := re.search(rf"{name} ([\d.]+\d)", seen))
        ]
        assert len(versions) == 2
        run = settings.run.model_copy(update={"checked_versions": tuple(versions)})
        assert (await look(settings.model_copy(update={"run": run}), *PHONE))["learnt"].status is CheckStatus.OK


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize(
    ("faults", "expected", "advice"),
    [
        (Faults(asleep=True), {"screen": "warning", "screenshot": "skipped", "tree": "skipped"}, "power button"),
        (Faults(locked=True), {"screen": "warning", "tree": "skipped"}, "Screen lock"),
        (Faults(black=True), {"screenshot": "failed"}, "protected window"),
        (Faults(ime_refused="set"), {"keyboard": "warning"}, "USB debugging (security settings)"),
        (Faults(ime_refused="set", clipboard="denied"), {"keyboard": "failed"}, "USB debugging (security settings)"),
        (Faults(ime_refused="list"), {"keyboard": "warning"}, "USB debugging (security settings)"),
        (Faults(input_denied=True), {"input": "failed"}, "USB debugging (security settings)"),
    ],
    ids=lambda value: next(iter(value.model_dump(exclude_defaults=True))) if isinstance(value, Faults) else "",
)
async def test_what_is_wrong_with_the_phone_is_named(
    adb: AdbServerProcess, faults: Faults, expected: dict[str, str], advice: str
) -> None:
    async with phone_of(Scenario(faults=faults)) as running:
        results = await look(at(adb, running.address), *PHONE)
    assert said(results) == expected
    assert advice in results[next(iter(expected))].advice


async def test_a_phone_of_the_settings_that_is_not_there_is_named(adb: AdbServerProcess) -> None:
    results = await look(at(adb, "abc"), "adb", "phone")
    assert said(results) == {"phone": "failed"}
    assert "abc" in results["phone"].seen
    assert "PHONEDESK_DEVICE__SERIAL" in results["phone"].advice


async def test_texts_are_pasted_without_adb_keyboard(adb: AdbServerProcess) -> None:
    async with phone_of(Scenario(keyboard=KeyboardPart(adb_installed=False))) as running:
        results = await look(at(adb, running.address), *PHONE)
        assert running.phone.clipboard == ""
        assert said(results) == {}
        assert "by pasting" in results["keyboard"].seen
        running.phone.set_fault("clipboard")
        results = await look(at(adb, running.address), *PHONE)
        running.phone.set_fault("clipboard", False)
    assert said(results) == {"keyboard": "failed"}
    assert "phonedesk doctor --fix" in results["keyboard"].advice


async def test_the_owners_keyboard_stays_while_a_run_has_the_phone(adb: AdbServerProcess) -> None:
    async with phone_of() as running:
        settings = at(adb, running.address)
        settings.data_dir.mkdir()
        db = Database(settings.url)
        await db.migrate()
        assert await Leases(db).acquire(running.address, "somebody")
        await db.close()
        results = await look(settings, *PHONE, "setup")
        assert said(results) == {"keyboard": "skipped", "input": "skipped", "setup": "skipped"}
        assert [action for action in running.phone.report()["actions"] if action["what"] == "input_method"] == []


async def test_a_screen_that_is_off_is_turned_on_if_that_is_wanted(adb: AdbServerProcess) -> None:
    async with serve(Scenario(faults=Faults(asleep=True))) as running:
        results = await look(at(adb, running.address), *PHONE, mend=True)
        assert running.phone.screen().awake
    assert said(results) == {}
    assert results["screen"].seen == "mended; on and not locked."
    assert [key for key, result in results.items() if result.mending] == ["screen"]


async def test_a_screen_of_a_phone_at_work_is_left_alone(adb: AdbServerProcess) -> None:
    async with phone_of(Scenario(faults=Faults(asleep=True))) as running:
        settings = at(adb, running.address)
        settings.data_dir.mkdir()
        db = Database(settings.url)
        await db.migrate()
        assert await Leases(db).acquire(running.address, "somebody")
        await db.close()
        screen = (await look(settings, *PHONE, mend=True))["screen"]
        assert screen.status is CheckStatus.WARNING
        assert "is in use" in screen.seen


async def test_fix_sets_up_what_the_owner_chose_not_what_a_dead_run_left(adb: AdbServerProcess) -> None:
    async with serve(Scenario()) as running:
        running.phone.set_setting("global", "stay_on_while_plugged_in", "7")
        running.phone.set_setting("global", AWAKE_MARKER, "8/60000#dead")
        settings = at(adb, running.address)
        async with open_core(settings) as core:
            held: list[list[str]] = []

            def changed(namespace: str, key: str, value: str | None) -> None:
                if key == SETUP_MARKER:
                    held.append(leased(settings))
                put(namespace, key, value)

            put, running.phone.set_setting = running.phone.set_setting, changed  # type: ignore[method-assign]
            assert (await look(settings, *PHONE, "setup", mend=True))["setup"].mending
            assert held == [[running.address]]
            assert running.phone.settings["global", "stay_on_while_plugged_in"] == "15"
            await OwnPhones(core).undo(running.address)
            assert running.phone.settings["global", "stay_on_while_plugged_in"] == "8"


def leased(settings: Settings) -> list[str]:
    """The phones that somebody has now, read at once beside the event loop."""
    with sqlite3.connect(sa.make_url(settings.url).database or "") as db:
        return [serial for (serial,) in db.execute("SELECT serial FROM leases WHERE owner LIKE 'doctor-%'")]


async def test_fix_sets_the_phone_up_as_devices_setup_does(adb: AdbServerProcess, tmp_path: Path) -> None:
    keyboard_apk(tmp_path / "ADBKeyboard.apk")
    faults = Faults(clipboard="denied")
    async with serve(Scenario(keyboard=KeyboardPart(adb_installed=False), faults=faults)) as running:
        before = dict(running.phone.settings)
        settings = at(adb, running.address)
        seen = await look(settings, *PHONE, "setup")
        assert said(seen) == {"keyboard": "failed"}
        assert "phonedesk devices setup" in seen["setup"].seen
        assert running.phone.settings == before
        mended = await look(settings, *PHONE, "setup", mend=True)
        assert said(mended) == {}
        assert mended["keyboard"].mending
        assert running.phone.settings["global", "window_animation_scale"] == "0"
        async with open_core(settings) as core:
            await OwnPhones(core).undo(running.address)
        assert running.phone.settings == before


async def test_a_refusal_is_explained_by_the_phones_brand(adb: AdbServerProcess) -> None:
    faults = Faults(input_denied=True, ime_refused="set")
    async with phone_of(Scenario(phone=PhonePart(brand="OPPO"), faults=faults)) as running:
        results = await look(at(adb, running.address), *PHONE)
    assert said(results) == {"keyboard": "failed", "input": "failed"}
    for key in ("keyboard", "input"):
        assert "Disable permission monitoring" in results[key].advice


async def test_a_keyboard_that_cannot_be_installed_says_why(adb: AdbServerProcess, tmp_path: Path) -> None:
    faults = Faults(clipboard="denied")
    async with phone_of(Scenario(keyboard=KeyboardPart(adb_installed=False), faults=faults)) as running:
        results = await look(at(adb, running.address), *PHONE, mend=True)
        assert "Mending failed" not in results["keyboard"].seen  # there is no file to install
        assert not any(result.mending for result in results.values())
        (tmp_path / "ADBKeyboard.apk").write_bytes(b"no package")
        results = await look(at(adb, running.address), *PHONE, mend=True)
    assert said(results) == {"keyboard": "failed"}
    assert "Mending failed" in results["keyboard"].seen
    assert results["keyboard"].mending


@pytest.mark.skipif(os.name != "posix", reason="there are no such rights elsewhere")
async def test_secrets_that_others_can_read_are_told_and_closed(tmp_path: Path) -> None:
    for name, text in ((".env", "PHONEDESK_MODEL__API_KEY=k\n"), ("phonedesk.toml", '[telegram]\ntoken = "1:a"\n')):
        file = tmp_path / name
        file.write_text(text)
        file.chmod(0o644)
        results = await look(load(), "settings")
        assert said(results) == {"settings": "warning"}
        assert name in results["settings"].seen
        assert said(await look(load(), "settings", mend=True)) == {}
        assert file.stat().st_mode & 0o777 == 0o600
        file.unlink()
    (tmp_path / ".env").write_text("PHONEDESK_LANG=en\n")  # no secret
    assert said(await look(load(), "settings")) == {}


async def test_no_qq(adb: AdbServerProcess) -> None:
    async with phone_of(Scenario(phone=PhonePart(apps=["wechat", "settings"]))) as running:
        results = await look(at(adb, running.address), *PHONE)
    assert said(results) == {"app": "failed"}
    assert "com.tencent.mobileqq" in results["app"].seen


@pytest.mark.parametrize(
    ("mode", "words"), [(TreeMode.EMPTY, "none"), (TreeMode.NO_TEXTS, "no texts"), (TreeMode.FAILING, "idle state")]
)
async def test_a_tree_that_is_of_no_use_is_a_warning(adb: AdbServerProcess, mode: TreeMode, words: str) -> None:
    async with phone_of(Scenario(tree=mode)) as running:
        results = await look(at(adb, running.address), *PHONE)
    assert said(results) == {"tree": "warning"}
    assert words in results["tree"].seen
    assert "pictures" in results["tree"].advice


async def test_an_unauthorized_phone(adb: AdbServerProcess) -> None:
    async with phone_of(auth="unauthorized") as running:
        results = await look(at(adb, running.address), *PHONE)
    assert results["phone"].status is CheckStatus.OK
    assert results["authorised"].status is CheckStatus.FAILED
    assert "Always allow" in results["authorised"].advice
    for key in PHONE[5:]:
        assert results[key].status is CheckStatus.SKIPPED
        assert "“Authorised” has to be mended first" in results[key].seen


async def test_a_dropped_phone(adb: AdbServerProcess) -> None:
    async with phone_of(Scenario(faults=Faults(dropped=True))) as running:
        results = await look(at(adb, running.address), *PHONE)
    assert results["phone"].status is CheckStatus.FAILED
    assert running.address in results["phone"].seen
    assert "PHONEDESK_DEVICE__CONNECT" in results["phone"].advice
    # the cause is named, not the last link of the chain
    assert "“Phone attached”" in results["tree"].seen


async def test_no_phone_and_a_wrong_serial_and_several(adb: AdbServerProcess) -> None:
    assert "No phone" in (await look(at(adb), *PHONE))["phone"].seen
    async with phone_of() as one, phone_of() as two, await open_adb(port=adb.port) as server:
        await server.connect(one.address)
        assert "not among" in (await look(at(adb, "NOSUCH"), *PHONE))["phone"].seen
        await server.connect(two.address)
        several = (await look(at(adb), *PHONE))["phone"]
        assert several.status is CheckStatus.FAILED
        assert one.address in several.seen
        assert two.address in several.seen
        assert "--device" in several.advice
        chosen = (await look(at(adb), *PHONE, serial=two.address))["phone"]  # as --device
        assert chosen.status is CheckStatus.OK
        assert chosen.seen.startswith(two.address)


async def test_adb_program_missing(adb: AdbServerProcess) -> None:
    still = (await look(at(adb, adb_path="/nowhere/adb"), "settings", "adb"))["adb"]
    assert still.status is CheckStatus.WARNING
    none = load(device={"adb_port": free_port(), "adb_path": "/nowhere/adb"})
    gone = await look(none, "settings", "adb", "phone")
    assert gone["adb"].status is CheckStatus.FAILED
    assert "PHONEDESK_DEVICE__ADB_PATH" in gone["adb"].advice
    assert gone["phone"].status is CheckStatus.SKIPPED


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("      showing=true\n      secure=true\n      dreaming=false\n", True),
        ("      secure=false\n", False),
        ("      mSimSecure=true\n", None),
        ("", None),
    ],
)
def test_whether_the_lock_screen_has_a_secret(text: str, answer: bool | None) -> None:
    assert asks_for_secret(text) is answer


# -- the model


def asking(url: str, name: str = "scripted", **more: Any) -> Settings:
    return load(model={"base_url": url, "name": name, "api_key": SECRET, **more})


@needs_ocr
async def test_the_demo_model_is_well() -> None:
    model = await start_demo_model()
    try:
        assert said(await look(asking(model.url, MODEL_NAME), *MODEL)) == {}
    finally:
        await model.close()


async def test_a_model_that_is_down() -> None:
    results = await look(asking(f"http://127.0.0.1:{free_port()}/v1"), *MODEL)
    assert said(results) == {"model": "failed", "model_name": "skipped", "model_vision": "skipped"}
    assert "PHONEDESK_MODEL__BASE_URL" in results["model"].advice
    assert "PHONEDESK_" not in results["model"].seen


async def test_each_fallback_is_asked() -> None:
    async with ScriptedModel(["OK"], repeat_last=True) as good, ScriptedModel([HttpStatus(401, SECRET)]) as bad:
        one = {"base_url": good.url, "name": "good"}
        results = await look(load(model={"fallbacks": [one, {**one, "name": "other"}]}), "settings", "fallbacks")
        assert said(results) == {}
        assert "good, other" in results["fallbacks"].seen
        settings = load(model={"fallbacks": [one, {"base_url": bad.url, "name": "bad", "api_key": SECRET}]})
        results = await look(settings, "settings", "fallbacks")
        assert said(results) == {"fallbacks": "warning"}
        assert "bad: HTTP 401" in results["fallbacks"].seen
        assert SECRET not in results["fallbacks"].seen
        text_only = {"fallbacks": [{**one, "vision": False}]}
        unseeing = load(model=text_only, observe={"elements": False})
        results = await look(unseeing, "settings", "fallbacks")
        assert said(results) == {"fallbacks": "warning"}
        assert "PHONEDESK_OBSERVE__ELEMENTS" in results["fallbacks"].advice
        assert said(await look(load(model=text_only), "settings", "fallbacks")) == {}


async def test_the_planner_is_asked_and_a_price_that_a_limit_needs_is_missed() -> None:
    async with ScriptedModel(["OK"], repeat_last=True) as good:
        plans = {"base_url": good.url, "name": "plans"}
        results = await look(load(planner=plans, limits={"day_cost": 5}), "settings", "planner", "prices")
        assert said(results) == {"prices": "warning"}
        assert "plans" in results["prices"].seen
    results = await look(load(planner=plans, limits={"day_cost": 5}, price={"tokens_in": 1}), "planner", "prices")
    assert said(results) == {"planner": "warning"}
    assert "PHONEDESK_PLANNER__BASE_URL" in results["planner"].advice


async def test_the_address_of_a_model_that_is_down_is_told_without_what_is_secret_in_it() -> None:
    port = free_port()
    for login in ("someone:pw1", "tok"):  # too short, or in the wrong place, for the masking that comes after
        results = await look(asking(f"http://{login}@127.0.0.1:{port}/v1?k=tok"), *MODEL)
        assert f"http://127.0.0.1:{port}/v1 " in results["model"].seen
        assert "pw1" not in results["model"].seen
        assert "tok" not in results["model"].seen


@pytest.mark.parametrize("lang", LANGUAGES)
async def test_a_wrong_key_is_told_as_a_run_tells_it_without_the_key(lang: Lang) -> None:
    async with ScriptedModel([], api_key="another") as model:
        results = await look(asking(model.url), *MODEL, lang=lang)
    result = results["model"]
    assert result.status is CheckStatus.FAILED
    assert "401" in result.seen
    assert result.seen.startswith("模型服务不接受密钥" if lang == "zh" else "The model server does not accept the key")
    assert result.advice == ("检查 PHONEDESK_MODEL__API_KEY。" if lang == "zh" else "Check PHONEDESK_MODEL__API_KEY.")
    assert SECRET not in str(results)


@pytest.mark.parametrize("lang", LANGUAGES)
async def test_an_address_without_its_version_is_named_with_the_right_one(lang: Lang) -> None:
    async with ScriptedModel(["OK"], repeat_last=True) as model:
        assert model.url.endswith("/v1")
        results = await look(asking(model.url.removesuffix("/v1")), *MODEL, lang=lang)
    assert results["model"].status is CheckStatus.FAILED
    assert "/v1" in results["model"].seen
    assert model.url in results["model"].advice
    assert "Error code" not in str(results)
    assert results["model"].seen[-1] in "。."


@pytest.mark.parametrize("lang", LANGUAGES)
async def test_a_missing_key_is_the_first_thing_that_is_said(lang: Lang) -> None:
    """Of an endpoint that is known it is said without asking there."""
    missing = load(model={"base_url": "https://open.bigmodel.cn/api/paas/v4", "name": "autoglm-phone", "api_key": ""})
    async with ScriptedModel([], api_key="another") as model:
        other = load(model={"base_url": model.url, "name": "scripted"})
        for settings, where in ((missing, "bigmodel.cn"), (other, "401")):
            result = (await look(settings, *MODEL, lang=lang))["model"]
            assert result.status is CheckStatus.FAILED
            assert result.seen.startswith("没有填 API 密钥" if lang == "zh" else "There is no API key")
            assert where in result.seen
            assert "PHONEDESK_MODEL__API_KEY" in result.advice


def blind(body: dict[str, Any]) -> Reply:
    """Texts only; a picture is refused."""
    pictured = any(isinstance(message["content"], list) for message in body["messages"])
    return HttpStatus(400, "image_url is not supported") if pictured else "OK"


@pytest.mark.parametrize("script", ["I see 1234.", blind], ids=["guesses", "refuses"])
async def test_a_blind_model(script: Script) -> None:
    async with ScriptedModel([script], repeat_last=True) as model:
        assert said(await look(asking(model.url), *MODEL)) == {"model_vision": "warning"}
        settings = asking(model.url).model_copy(update={"observe": load(observe={"elements": False}).observe})
        assert said(await look(settings, *MODEL)) == {"model_vision": "failed"}
        if callable(script):
            assert said(await look(asking(model.url, vision=False), *MODEL)) == {"model_vision": "skipped"}


@pytest.mark.parametrize("vision", [True, False])
async def test_a_wrong_model_name(vision: bool) -> None:
    async with ScriptedModel([HttpStatus(404, "no such model")], repeat_last=True) as model:
        results = await look(asking(model.url, "scirpted", vision=vision), *MODEL)
        assert said(results) == {"model_name": "failed", "model_vision": "skipped"}
        assert "such as scripted" in results["model_name"].advice
    async with ScriptedModel(["4719"], repeat_last=True) as model:  # one that takes any name
        results = await look(asking(model.url, "scirpted", vision=vision), *MODEL)
        assert results["model_name"].status is CheckStatus.WARNING


async def test_a_model_that_is_there_and_fails() -> None:
    async with ScriptedModel([HttpStatus(400, "out of memory")], repeat_last=True) as model:
        results = await look(asking(model.url), *MODEL)
    assert said(results) == {"model_vision": "failed"}
    assert "out of memory" in results["model_vision"].seen


@pytest.mark.parametrize(
    ("reply", "seen", "advice"),
    [
        (HttpStatus(402, "no money"), "HTTP 402", "Top up"),
        (HttpStatus(429, "slow down", headers={"Retry-After": "7"}), "HTTP 429", "lower the rate"),
    ],
)
async def test_what_a_model_answers_is_reported_at_once_as_in_a_run(reply: HttpStatus, seen: str, advice: str) -> None:
    async with ScriptedModel([reply], repeat_last=True) as model:
        found = (await look(asking(model.url), *MODEL))["model_vision"]
    assert found.status is CheckStatus.FAILED
    assert seen in found.seen
    assert advice in found.advice


# -- the knowledge base


async def test_a_dify_server_that_refuses_the_key() -> None:
    async def refuse(_: web.Request) -> web.Response:
        body = {"code": "unauthorized", "message": f"no access for {SECRET}", "status": 401}
        return web.json_response(body, status=401)

    app = web.Application()
    app.router.add_post("/v1/datasets/set1/retrieve", refuse)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    dify = {"provider": "dify", "base_url": f"http://127.0.0.1:{runner.addresses[0][1]}", "dataset_id": "set1"}
    try:
        result = (await look(load(knowledge={**dify, "token": SECRET}), "settings", "knowledge"))["knowledge"]
    finally:
        await runner.cleanup()
    assert result.status is CheckStatus.FAILED
    assert "PHONEDESK_KNOWLEDGE__TOKEN" in result.advice
    assert SECRET not in str(result)
    missing = (await look(load(knowledge={**dify, "dataset_id": ""}), "settings", "knowledge"))["knowledge"]
    assert missing.status is CheckStatus.FAILED
    assert "dify" in missing.seen
    assert "PHONEDESK_KNOWLEDGE__DATASET_ID" in missing.advice


async def test_the_embedded_store(tmp_path: Path) -> None:
    async def seen(**more: Any) -> CheckResult:
        settings = load(data_dir=tmp_path / "d", knowledge=more)
        return (await look(settings, "settings", "knowledge"))["knowledge"]

    before = await seen(sample=True)
    assert before.status is CheckStatus.WARNING
    assert "made-up shop" in before.seen
    assert "every question goes to a person" in (await seen()).seen
    assert not (tmp_path / "d").exists()
    (tmp_path / "d").mkdir()
    file = tmp_path / "d" / "phonedesk.sqlite3"
    base = await open_knowledge(file)
    await base.seed_sample_if_empty()
    for sample in (True, False):  # what is in it already stays
        filled = await seen(sample=sample)
        assert filled.status is CheckStatus.WARNING
        assert "made-up shop" in filled.seen
        assert "kb import" in filled.advice
        assert "PHONEDESK_KNOWLEDGE__SAMPLE" in filled.advice
        assert "kb delete" in filled.advice
    await base.add(Entry(question="几天能发货", answer="两天", live=False))
    assert (await seen()).status is CheckStatus.WARNING  # it is not sent yet
    await base.add(Entry(question="几天能发货", answer="两天"))
    await base.close()
    both = await seen()
    assert (both.status, both.seen) == (
        CheckStatus.OK,
        f"Embedded, {len(sample_entries()) + 1} entries live, 1 waiting for approval.",
    )
    file.write_bytes(b"this is no database" * 100)
    broken = await seen()
    assert broken.status is CheckStatus.FAILED
    assert "PHONEDESK_DATA_DIR" in broken.advice


async def test_a_file_of_entries_from_before_is_told(tmp_path: Path) -> None:
    (tmp_path / "knowledge.sqlite3").write_bytes(b"entries")
    settings = load(data_dir=tmp_path)
    result = (await look(settings, "settings", "knowledge"))["knowledge"]
    assert result.status is CheckStatus.WARNING
    assert str(tmp_path / "knowledge.sqlite3") in result.seen
    assert "phonedesk kb export" in result.advice
    assert "phonedesk kb import" in result.advice
    with capture_logs() as logs:
        own_entries(settings, Database(settings.url))
    assert [(log["event"], log["file"]) for log in logs] == [
        ("knowledge_file_not_read", str(tmp_path / "knowledge.sqlite3"))
    ]


async def test_entries_that_all_wait_answer_nobody(tmp_path: Path) -> None:
    base = await open_knowledge(tmp_path / "phonedesk.sqlite3")
    await base.add(Entry(question="几天能发货", answer="两天", live=False))
    await base.close()
    result = (await look(load(data_dir=tmp_path), "settings", "knowledge"))["knowledge"]
    assert result.status is CheckStatus.WARNING
    assert "1 waiting for approval" in result.seen
    assert "phonedesk kb approve" in result.advice


# -- the bot


def bot_at(tg: FakeTelegram, token: str = "", **more: Any) -> Settings:
    return load(telegram={"token": token or tg.token, "api_base_url": tg.root, **more})


async def test_the_bot_by_polling() -> None:
    async with FakeTelegram() as tg:
        results = await look(bot_at(tg), *BOT)
        assert said(results) == {}
        assert results["token"].seen.startswith("@")
        tg.world.webhook.url = "https://elsewhere.example/hook"
        results = await look(bot_at(tg), *BOT)
        assert said(results) == {"webhook": "warning"}
        assert "elsewhere.example" in results["webhook"].seen
        assert tg.world.webhook.url  # it is still there


async def test_a_wrong_token_and_none() -> None:
    wrong = "123456789:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    async with FakeTelegram() as tg:
        results = await look(bot_at(tg, wrong), *BOT)
        assert said(results) == {"token": "failed", "webhook": "skipped"}
        assert "@BotFather" in results["token"].advice
        assert wrong not in str(results)
        assert said(await look(load(), *BOT)) == {"token": "skipped", "webhook": "skipped"}
        port = tg.port
    gone = load(telegram={"token": wrong, "api_base_url": f"http://127.0.0.1:{port}"})
    results = await look(gone, *BOT)
    assert said(results) == {"token": "failed", "webhook": "skipped"}
    for word in (f"http://127.0.0.1:{port} ", "PHONEDESK_TELEGRAM__API_BASE_URL"):
        assert word in results["token"].seen
    assert "https://api.telegram.org" in results["token"].advice


async def test_the_bot_by_webhook() -> None:
    base = f"https://127.0.0.1:{free_port()}"  # nobody is there: what is sent does not get through
    ours = f"{base}/telegram/webhook"
    async with FakeTelegram() as tg:

        async def webhook(**more: Any) -> CheckResult:
            return (await look(bot_at(tg, mode="webhook", **more), *BOT))["webhook"]

        assert (await webhook(webhook_url=ours)).status is CheckStatus.WARNING  # not registered
        tg.world.webhook.url = ours
        assert (await webhook(webhook_url=ours)).status is CheckStatus.OK
        assert (await webhook(webhook_url=f"{base}/")).status is CheckStatus.OK
        assert (await webhook(webhook_url="https://127.0.0.1:1")).status is CheckStatus.WARNING
        tg.world.webhook.last_error = "Wrong response from the webhook: 502 Bad Gateway"
        assert (await webhook(webhook_url=ours)).status is CheckStatus.WARNING
        tg.world.updates.append({"update_id": 1})
        failing = await webhook(webhook_url=ours)
        assert failing.status is CheckStatus.FAILED
        assert re.search("502|Connection failed", failing.seen)  # the first try may have been made


# -- this machine


async def test_the_database(tmp_path: Path) -> None:
    async def seen(**more: Any) -> CheckResult:
        return (await look(load(**more), "settings", "database"))["database"]

    home = tmp_path / "d"
    assert (await seen(data_dir=home)).status is CheckStatus.OK
    assert not home.exists()
    home.mkdir()
    db = Database(load(data_dir=home).url)
    await db.migrate()
    assert "version" in (await seen(data_dir=home)).seen
    limited = load(data_dir=home, limits={"day_calls": 2})
    for calls, status in ((1, CheckStatus.OK), (1, CheckStatus.FAILED)):
        await UsageTotals(db).add(db.now().astimezone(ZoneInfo(limited.timezone)).date(), "m", Used(calls=calls))
        found = (await look(limited, "settings", "database", "limits"))["limits"]
        assert (found.status, "PHONEDESK_LIMITS__DAY_CALLS" in found.advice) == (status, status is CheckStatus.FAILED)
    async with db.write() as connection:
        await connection.execute(sa.text("UPDATE alembic_version SET version_num = '0020'"))
    found = await seen(data_dir=home)
    assert (found.status, "0020" in found.seen, "PHONEDESK_DATABASE_URL" in found.advice) == (
        CheckStatus.FAILED,
        True,
        True,
    )
    async with db.write():  # somebody is writing
        assert (await seen(data_dir=home)).status is CheckStatus.FAILED
    await db.close()
    (home / "phonedesk.sqlite3").write_bytes(b"this is no database" * 100)
    assert (await seen(data_dir=home)).status is CheckStatus.FAILED
    (tmp_path / "file").write_text("")
    barred = await seen(data_dir=tmp_path / "file" / "d")
    assert barred.status is CheckStatus.FAILED
    assert "PHONEDESK_DATA_DIR" in barred.advice
    url = f"postgresql://desk:{SECRET}@127.0.0.1:{free_port()}/desk"
    gone = await seen(database_url=url)
    assert gone.status is CheckStatus.FAILED
    assert SECRET not in str(gone)


async def test_names_that_set_nothing_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (await look(load(), "settings"))["settings"].status is CheckStatus.OK
    monkeypatch.setenv("PHONEDESK_MODEL_BASE_URL", "http://x/v1")
    result = (await look(load(), "settings"))["settings"]
    assert result.status is CheckStatus.WARNING
    assert "PHONEDESK_MODEL__BASE_URL" in result.advice
    monkeypatch.delenv("PHONEDESK_MODEL_BASE_URL")
    monkeypatch.setenv("PHONEDESK_QQQQ", "1")
    result = (await look(load(), "settings"))["settings"]
    assert result.status is CheckStatus.WARNING
    assert "PHONEDESK_QQQQ" in result.seen
    assert "meant" not in result.advice
    monkeypatch.setenv("PHONEDESK_CONFIG", str(tmp_path / "nowhere.toml"))
    with pytest.raises(ConfigError) as refused:
        load()
    result = (await look(refused.value, "settings"))["settings"]
    assert result.status is CheckStatus.FAILED
    assert "nowhere.toml" in result.seen


async def test_which_files_were_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHONEDESK_CONFIG", "")  # as if it were not there
    neither = (await look(load(), "settings"))["settings"]
    assert neither.status is CheckStatus.OK
    assert "neither .env nor phonedesk.toml" in neither.seen
    (tmp_path / ".env").write_text("PHONEDESK_LANG=en\n")
    assert ".env in this folder was read" in (await look(load(), "settings"))["settings"].seen
    (tmp_path / "phonedesk.toml").write_text('lang = "en"\n')
    assert "read from phonedesk.toml, .env" in (await look(load(), "settings"))["settings"].seen


async def test_ocr_and_time_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    results = await look(load(timezone="Asia/Shanghai", observe={"ocr": "off"}), "settings", "ocr", "timezone")
    assert said(results) == {"ocr": "skipped"}
    assert "+0800" in results["timezone"].seen
    if OcrEngine.available():
        assert said(await look(load(), "settings", "ocr")) == {}
    monkeypatch.setitem(sys.modules, "rapidocr", None)  # what an import finds that is not installed
    results = await look(load(timezone="UTC"), "settings", "ocr", "timezone")
    assert said(results) == {"ocr": "warning", "timezone": "warning"}
    assert "[ocr]" in results["ocr"].advice


async def test_a_check_has_its_time_and_its_accidents() -> None:
    async def hang(_: Exam) -> DoctorVerdict:
        await asyncio.Event().wait()
        raise AssertionError

    async def stumble(_: Exam) -> DoctorVerdict:
        raise RuntimeError(SECRET)

    async def tell(_: Exam) -> DoctorVerdict:
        raise DeviceOffline(f"somebody put {SECRET} into an error")

    checks = (
        Check("adb", hang, seconds=0.05),
        Check("ocr", stumble),
        Check("phone", hang, ("adb",)),
        Check("screen", hang, ("phone",)),
        Check("app", tell),
    )
    settings = load(database_url=f"postgresql://desk:{SECRET}@127.0.0.1/desk")
    results = [result async for result in examine(settings, lang="en", checks=checks)]
    assert [result.status.value for result in results] == ["failed", "failed", "skipped", "skipped", "failed"]
    assert "“adb”" in results[3].seen
    assert "somebody put *** into" in results[4].seen
    assert "0.05 s" in results[0].seen
    assert "RuntimeError" in results[1].seen
    assert SECRET not in str(results)


# -- texts


def _source() -> str:
    files = [file for file in resources.files(bot.app.doctor).iterdir() if file.name.endswith(".py")]
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


def test_the_languages_say_the_same() -> None:
    zh, en = (catalogue(lang) for lang in LANGUAGES)
    assert zh.keys() == en.keys()
    for key, text in zh.items():
        assert _fields(text) == _fields(en[key]), key


def _fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_every_finding_has_its_advice_and_every_text_a_use() -> None:
    cases = set(re.findall(r"\b(ok|note|warning|failed|skipped)\(\s*\"(\w+)\"", _source()))
    cases |= {("warning", case) for case in re.findall(r"warning\(\"(\w+)\" if", _source())}
    texts = {key for key in catalogue("en") if key.partition(".")[0] in {check.key for check in CHECKS}}
    advised = {key.removesuffix("_advice") for key in texts if key.endswith("_advice")}
    found = {key for key in texts if not key.endswith(("_advice", ".title"))}
    assert {key.partition(".")[2] for key in found} <= set(re.findall(r"\"(\w+)\"", _source()))
    assert advised <= found
    for status, case in cases:
        alike = {key for key in found if key.endswith(f".{case}")}
        assert alike, case
        if status in {"warning", "failed"}:
            assert alike & advised, case
    for check in CHECKS:
        assert f"{check.key}.title" in texts


# -- the command


async def command(*arguments: str, **environment: str) -> tuple[int, str, str]:
    with TemporaryFile() as errors:
        process = await forked.start(("doctor", *arguments), {**os.environ, **environment}, Path.cwd(), errors)
        out, _ = await process.communicate()
        errors.seek(0)
        return await process.wait(), out.decode(), errors.read().decode()


async def test_the_command_when_all_is_well(adb: AdbServerProcess) -> None:
    async with phone_of() as running, ScriptedModel(["4719"], repeat_last=True) as model, FakeTelegram() as tg:
        environment = {
            "PHONEDESK_DEVICE__ADB_PORT": str(adb.port),
            "PHONEDESK_MODEL__BASE_URL": model.url,
            "PHONEDESK_MODEL__NAME": "scripted",
            "PHONEDESK_MODEL__API_KEY": SECRET,
            "PHONEDESK_TELEGRAM__TOKEN": tg.token,
            "PHONEDESK_TELEGRAM__API_BASE_URL": tg.root,
            "PHONEDESK_TIMEZONE": "Asia/Shanghai",
            "PHONEDESK_OBSERVE__OCR": "off",  # loading it takes longer than all the rest
        }
        code, out, err = await command("--json", "--device", running.address, "--lang", "en", **environment)
        assert (code, err) == (0, "")
        rows = json.loads(out)
        assert [row["check"] for row in rows] == [check.key for check in CHECKS]
        assert {row["check"]: row["status"] for row in rows if row["status"] != "ok"} == {
            "hdc": "skipped",  # no HarmonyOS phone is looked for
            "wda": "skipped",  # and no iPhone
            "setup": "note",  # not done yet
            "learnt": "note",
            "ocr": "skipped",
            "fallbacks": "skipped",  # none
            "planner": "skipped",  # none
            "prices": "skipped",  # no limit by cost
            "limits": "skipped",  # none
            "knowledge": "warning",  # empty
            "notify": "skipped",  # none
            "webhooks": "skipped",  # none
            "incoming": "skipped",  # none
        }
        assert all(set(row) == {"check", "status", "seen", "advice"} for row in rows)
        code, out, err = await command("--device", running.address, **environment)
        assert code == 0
        assert "✓ 手机连接" in out
        assert "· 认识应用" in out
        assert f'可以开始使用了：phonedesk run "QQ回复联系人11" --device {running.address}' in out
        assert SECRET not in out + err
        assert tg.token not in out + err
        _, out, _ = await command("--lang", "en", "--device", running.address, **environment)
        assert "What models may use today  no limit is set." in out


async def test_the_command_when_settings_are_wrong() -> None:
    code, out, _ = await command("--lang", "en", PHONEDESK_MODEL__TIMEOUT_SECONDS="soon")
    assert code == 1
    assert "✗ Settings" in out
    assert "PHONEDESK_MODEL__TIMEOUT_SECONDS" in out
    assert f"would stand in {Path.cwd() / '.env'}, which is not there yet" in out
    assert (
        f"写在 {Path.cwd() / '.env'} 里" in (await command("--lang", "zh", PHONEDESK_MODEL__TIMEOUT_SECONDS="soon"))[1]
    )
    assert len([line for line in out.splitlines() if line.startswith("–")]) == 1  # not one for each of 23
    assert "– not checked, because of “Settings”: Database, HarmonyOS (hdc), iPhone (WebDriverAgent), adb" in " ".join(
        out.split()
    )
