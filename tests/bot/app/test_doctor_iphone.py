"""``phonedesk doctor`` of an iPhone: the virtual one, behind its WebDriverAgent."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.app.doctor.examine import CHECKS, CheckResult, CheckStatus, examine
from bot.app.settings.loading import load
from simulator.phone.scenario import PhonePart, Scenario
from simulator.phone.wda.server import RunningIPhone, serve_iphone
from tests.support.environment import without_settings


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_settings(monkeypatch, tmp_path)


async def checked(*addresses: str, serial: str = "") -> dict[str, CheckResult]:
    chosen = [check for check in CHECKS if check.key in {"settings", "wda", "adb", "phone"}]
    settings = load(device={"wda": addresses, "adb_port": 1})
    return {one.check: one async for one in examine(settings, serial=serial, lang="en", checks=chosen)}


def serial_of(running: RunningIPhone) -> str:
    return f"wda:{running.address}"


async def test_an_iphone_that_is_well() -> None:
    async with serve_iphone() as running:
        found = await checked(serial=serial_of(running))
    assert found["wda"].status is CheckStatus.OK
    assert "VP-1, iOS 17, 1080×2400, a picture in" in found["wda"].seen
    assert found["wda"].seen.endswith("with QQ, WeChat.")
    assert {found["adb"].status, found["phone"].status} == {CheckStatus.SKIPPED}


async def test_an_iphone_that_does_not_answer() -> None:
    result = (await checked(serial="wda:127.0.0.1:1"))["wda"]
    assert result.status is CheckStatus.FAILED
    assert "No WebDriverAgent answers at 127.0.0.1:1" in result.seen
    assert "trust its developer" in result.advice


async def test_a_locked_iphone_and_one_without_chat_apps() -> None:
    scenario = Scenario(phone=PhonePart(apps=["settings"]))
    async with serve_iphone(scenario) as running:
        running.phone.set_fault("locked")
        assert (await checked(serial=serial_of(running)))["wda"].status is CheckStatus.WARNING
        running.phone.set_fault("locked", False)
        result = (await checked(serial=serial_of(running)))["wda"]
    assert result.status is CheckStatus.FAILED
    assert "none of the chat apps" in result.seen


async def test_phones_of_the_settings_are_looked_at_though_another_is_chosen() -> None:
    assert (await checked())["wda"].status is CheckStatus.SKIPPED
    async with serve_iphone() as running:
        assert (await checked(f"http://{running.address}/"))["wda"].status is CheckStatus.OK
        result = (await checked(running.address, "127.0.0.1:1"))["wda"]
    assert result.status is CheckStatus.WARNING
    assert result.seen.endswith("do not answer: wda:127.0.0.1:1.")
