"""What a live view costs, counted in calls: one a picture while a screen rests, and nothing if nobody looks."""

from __future__ import annotations

import asyncio

import pytest

from agent_core.devices.base import Device
from agent_core.errors import DeviceOffline
from agent_core.perception.observer import screen_for_people
from bot.desk.live_screens import LiveScreens
from tests.support.lab import QQ, Lab, lab


class Door:
    """Opens the phone of a lab, and counts it."""

    def __init__(self, at: Lab) -> None:
        self._at = at
        self.opened = 0

    async def __call__(self, serial: str) -> Device:
        self.opened += 1
        return self._at.device


async def test_a_screen_that_rests_costs_one_call_a_picture_and_is_encoded_once() -> None:
    now = 0.0
    async with lab() as at:
        door, screens = Door(at), LiveScreens(screen_for_people, clock=lambda: now)
        jpeg = await screens.jpeg("", door)
        for _ in range(6):
            now += 0.2
            before = at.device.round_trips
            assert await screens.jpeg("", door) is jpeg
            assert at.device.round_trips == before + 1
        full = await screens.jpeg("", door, full=True)
        assert len(full) > len(jpeg)
        assert await screens.jpeg("", door, full=True) is full
        now += 0.2
        await at.device.launch(QQ)
        before = at.device.round_trips
        changed = await screens.jpeg("", door)
        assert changed != jpeg
        assert at.device.round_trips <= before + 5  # look and picture, the tree, whether both are of one moment
        assert door.opened == 1


async def test_whoever_else_looks_in_the_same_moment_costs_nothing() -> None:
    async with lab() as at:
        door, screens = Door(at), LiveScreens(screen_for_people, clock=lambda: 0.0)
        first, *others = await asyncio.gather(*(screens.jpeg("", door) for _ in range(5)))
        before = at.device.round_trips
        assert all(other is first for other in others)
        assert await screens.jpeg("", door) is first
        assert at.device.round_trips == before


async def test_nobody_sees_the_screen_of_before_their_own_act() -> None:
    async with lab() as at:
        now = 0.0

        def clock() -> float:
            nonlocal now
            now += 0.001  # a look right after another one
            return now

        door, screens = Door(at), LiveScreens(screen_for_people, clock=clock)
        before = await screens.jpeg("", door)
        await at.device.launch(QQ)
        assert await screens.jpeg("", door) != before


async def test_a_phone_is_let_go_if_nobody_looks_and_opened_anew_after_an_error() -> None:
    async with lab() as at:
        door, screens = Door(at), LiveScreens(screen_for_people, kept=0.0)
        await screens.jpeg("", door)
        await asyncio.sleep(0.05)
        assert screens._live == {}
        await screens.jpeg("", door)
        assert door.opened == 2

        async def away(serial: str) -> Device:
            raise DeviceOffline("It is away.")

        kept = LiveScreens(screen_for_people)
        with pytest.raises(DeviceOffline):
            await kept.jpeg("", away)
        at.phone.set_fault("black")
        with pytest.raises(Exception, match="black"):
            await kept.jpeg("", door)
        assert kept._live == {}
        at.phone.set_fault("black", False)
        assert await kept.jpeg("", door)
        await kept.close()
        assert (kept._live, kept._closing) == ({}, set())
