"""The next picture is taken while a step is stored, and the effect of an act is waited for a moment."""

from __future__ import annotations

import asyncio

import pytest

from agent_core.devices.base import Device, Frame, LookedPicture
from agent_core.perception.observer import Observer
from agent_core.perception.reader import ScreenReader
from tests.support.lab import Lab

QQ = "com.tencent.mobileqq"


class Counted:
    """A phone whose pictures are counted. ``late``: this many pictures after an act still show the old screen."""

    def __init__(self, device: Device, old: Frame | None = None, late: int = 0) -> None:
        self._device, self._old, self._late = device, old, late
        self.pictures = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._device, name)

    async def screenshot(self) -> Frame:
        self.pictures += 1
        return self._or_old(await self._device.screenshot())

    async def observe(self) -> LookedPicture:
        self.pictures += 1
        looked = await self._device.observe()
        return LookedPicture(self._or_old(looked.frame), looked.look)

    def _or_old(self, frame: Frame) -> Frame:
        return self._old if self._old is not None and self.pictures <= self._late else frame


def observer(device: Counted) -> Observer:
    return Observer(device, ScreenReader(ocr=None, model=None))  # type: ignore[arg-type]  # the rest is the device's own


async def test_a_picture_that_was_begun_is_the_next_one_that_is_observed(bench_lab: Lab) -> None:
    phone = Counted(bench_lab.device)
    eyes = observer(phone)
    eyes.look_ahead()
    while phone.pictures < 2:
        await asyncio.sleep(0)
    seen = await eyes.observe(None, read=False)
    assert phone.pictures == 2
    await eyes.observe(None, read=False)
    assert phone.pictures == 4  # that one was taken afresh
    assert seen.window.package is not None


async def test_an_effect_that_shows_a_moment_later_is_what_is_observed(
    bench_lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_core.perception.observer.EFFECT_SECONDS", 10.0)  # pictures take long on a busy machine
    before = (await observer(Counted(bench_lab.device)).observe(None, read=False)).frame
    await bench_lab.device.launch(QQ)
    late = observer(Counted(bench_lab.device, before, late=2))
    late.look_ahead(before)
    assert (await late.observe(None, read=False)).frame.digest != before.digest


async def test_a_still_screen_is_observed_in_two_calls(bench_lab: Lab) -> None:
    eyes = Observer(bench_lab.device, ScreenReader(ocr=None, model=None), tree="off")
    await eyes.observe(None, read=False)
    before = bench_lab.device.round_trips
    seen = await eyes.observe(None, read=False)
    assert seen.window.package is not None
    assert bench_lab.device.round_trips == before + 2  # and the act is the third call of a step


async def test_a_picture_that_nobody_asks_for_is_dropped(bench_lab: Lab) -> None:
    phone = Counted(bench_lab.device)
    eyes = observer(phone)
    eyes.look_ahead()
    await eyes.end_look_ahead()
    assert "look-ahead" not in {task.get_name() for task in asyncio.all_tasks()}
    before = phone.pictures
    await eyes.observe(None, read=False)
    assert phone.pictures == before + 2


async def test_a_picture_that_is_old_by_now_is_not_used(bench_lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_core.perception.observer.AHEAD_SECONDS", 0.0)
    phone = Counted(bench_lab.device)
    eyes = observer(phone)
    eyes.look_ahead()
    while "look-ahead" in {task.get_name() for task in asyncio.all_tasks()}:
        await asyncio.sleep(0.01)
    await bench_lab.device.launch(QQ)
    taken = phone.pictures
    assert (await eyes.observe(None, read=False)).window.package == QQ
    assert phone.pictures == taken + 2
