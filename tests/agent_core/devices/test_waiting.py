from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from PIL import Image

from agent_core.devices.base import Frame, Look, LookedPicture, ScreenState, Window
from agent_core.devices.waiting import Time, finish, wait_until_still
from agent_core.errors import ScreenshotFailed

PICTURE = Image.new("RGB", (1, 1))


async def test_what_must_be_finished_is_finished_and_then_the_cancelling_goes_on() -> None:
    go_on, done = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        await go_on.wait()
        done.set()

    task = asyncio.create_task(finish(work()))
    for _ in range(3):
        await asyncio.sleep(0)
        task.cancel()
    assert not task.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done.is_set()


async def test_finish_gives_the_result_or_the_error() -> None:
    async def work(value: int) -> float:
        return 1 / value

    assert await finish(work(2)) == 0.5
    with pytest.raises(ZeroDivisionError):
        await finish(work(0))


async def test_asks_ever_more_slowly_until_the_time_is_over() -> None:
    now, slept = 0.0, list[float]()

    async def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        slept.append(seconds)

    async def never() -> bool | None:
        return None

    assert await Time(lambda: now, sleep).until(never, 2.0) is None
    assert now == pytest.approx(2.0)
    assert slept[0] == 0.02
    assert max(slept) == 0.25


@dataclass
class Scene:
    """A screen that follows a script: from which second on it shows what ("" is black). A picture takes ``takes``."""

    script: list[tuple[float, str]]
    takes: float = 0.02
    now: float = 100.0
    asked: list[float] = field(default_factory=list)
    looked: list[float] = field(default_factory=list)

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds

    async def look(self) -> Look:
        self.looked.append(self.now - 100)
        return Look(Window("app"), ScreenState(awake=True, locked=False))

    async def observe(self) -> LookedPicture:
        return LookedPicture(await self.screenshot(), await self.look())

    async def screenshot(self) -> Frame:
        at = self.now
        self.asked.append(at - 100)
        self.now += self.takes
        shown = next(text for start, text in reversed(self.script) if at - 100 >= start)
        if not shown:
            raise ScreenshotFailed("black")
        if shown == "moving":
            shown = f"moving at {at}"
        return Frame(PICTURE, shown, at)


async def test_a_still_screen_takes_two_pictures_the_floor_apart() -> None:
    scene = Scene([(0, "a")])
    result = await wait_until_still(scene, clock=scene.clock, sleep=scene.sleep)
    assert (result.still, result.pictures, result.frame.digest) == (True, 2, "a")
    assert scene.asked == pytest.approx([0, 0.05])


async def test_what_is_in_front_is_asked_with_the_second_picture_in_one_call() -> None:
    scene = Scene([(0, "a")])
    result = await wait_until_still(scene, clock=scene.clock, sleep=scene.sleep)
    assert result.look.window.package == "app"
    assert len(scene.looked) == 1
    assert scene.looked[0] >= scene.asked[1]


async def test_a_slow_phone_is_asked_again_at_once() -> None:
    scene = Scene([(0, "a")], takes=0.4)
    result = await wait_until_still(scene, clock=scene.clock, sleep=scene.sleep)
    assert result.pictures == 2
    assert result.seconds == pytest.approx(0.8)


async def test_waits_for_the_end_of_a_movement_and_gives_what_came_to_rest() -> None:
    scene = Scene([(0, "a"), (0.04, "moving"), (0.5, "b")])
    result = await wait_until_still(scene, clock=scene.clock, sleep=scene.sleep)
    assert (result.still, result.frame.digest) == (True, "b")
    assert 0.5 <= result.seconds < 0.7


async def test_gives_up_at_the_ceiling_with_the_newest_picture() -> None:
    scene = Scene([(0, "moving")])
    result = await wait_until_still(scene, ceiling=1.0, clock=scene.clock, sleep=scene.sleep)
    assert not result.still
    assert 1.0 <= result.seconds < 1.1
    assert result.frame.taken_at == pytest.approx(scene.asked[-1] + 100)


async def test_more_quiet_pictures_can_be_asked_for() -> None:
    scene = Scene([(0, "a")])
    result = await wait_until_still(scene, quiet=4, floor=0.1, clock=scene.clock, sleep=scene.sleep)
    assert result.pictures == 4
    assert scene.asked[-1] >= 0.1


async def test_a_screen_that_an_act_has_not_changed_yet_is_not_rest() -> None:
    scene = Scene([(0, "a"), (0.25, "b")])
    result = await wait_until_still(scene, before="a", clock=scene.clock, sleep=scene.sleep)
    assert (result.still, result.frame.digest) == (True, "b")


async def test_an_act_without_effect_is_waited_for_no_longer_than_patience() -> None:
    scene = Scene([(0, "a")])
    result = await wait_until_still(scene, before="a", patience=0.3, clock=scene.clock, sleep=scene.sleep)
    assert (result.still, result.frame.digest) == (True, "a")
    assert 0.3 <= result.seconds < 0.45


async def test_black_for_a_moment_between_two_pages() -> None:
    scene = Scene([(0, "a"), (0.04, ""), (0.2, "a")])
    result = await wait_until_still(scene, clock=scene.clock, sleep=scene.sleep)
    assert result.still
    assert result.seconds > 0.2


async def test_never_anything_but_black() -> None:
    scene = Scene([(0, "")])
    with pytest.raises(ScreenshotFailed):
        await wait_until_still(scene, ceiling=0.5, clock=scene.clock, sleep=scene.sleep)
