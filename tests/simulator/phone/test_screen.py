"""The screen of the virtual phone: turned, resized, one of two, asleep, and pictures that fail."""

from __future__ import annotations

import io

from PIL import Image

from agent_core.devices.pictures import is_black
from simulator.phone.files import FileTree
from simulator.phone.geometry import Geometry
from simulator.phone.png import as_png
from simulator.phone.shell import Shell
from tests.simulator.phone.hand import Hand


async def test_a_phone_that_falls_asleep_unless_its_settings_keep_it_on() -> None:
    hand = Hand('[faults]\nsleeps = true\n[phone]\npin = "1234"')
    hand.wait(59)
    await hand.phone.key("VOLUME_UP")
    hand.wait(59)
    assert hand.phone.screen().awake
    hand.wait(1)
    assert (hand.phone.screen().awake, hand.phone.screen().locked) == (False, True)
    await hand.phone.key("WAKEUP")
    hand.phone.set_setting("global", "stay_on_while_plugged_in", "7")
    hand.wait(86400)
    assert hand.phone.screen().awake


def test_places_on_a_phone_that_lies() -> None:
    upright, lying = Geometry((1080, 2400)), Geometry((1080, 2400), 1)
    assert (upright.size, lying.size, lying.page.as_tuple()) == ((1080, 2400), (2400, 1080), (957, 0, 1443, 1080))
    assert upright.units(540, 1200) == (540, 1200)
    assert [round(place) for place in lying.units(1200, 540)] == [540, 1200]
    assert Geometry((720, 1600), 2).units(360, 800) == (540, 1200)


async def test_of_two_displays_the_first_is_taken_and_one_is_black() -> None:
    hand = Hand()
    shell = Shell(hand.phone, FileTree())
    for on, black in (("first", [False, True]), ("second", [True, False])):
        hand.phone.set_fault("two_displays", on)
        listed = (await shell.run("dumpsys SurfaceFlinger --display-id")).out.decode().split("\n")
        numbers = [line.split(" ")[1] for line in listed if line]
        seen = [Image.open(io.BytesIO((await shell.run(f"screencap -p -d {number}")).out)) for number in numbers]
        assert [is_black(picture.convert("RGB")) for picture in seen] == black
        unnamed = await shell.run("screencap -p")
        assert b"Multiple displays were found" in unnamed.err
        assert is_black(Image.open(io.BytesIO(unnamed.out)).convert("RGB")) == black[0]
    assert (await shell.run("screencap -p -d 7")).exit_code == 1


def test_a_png_has_the_pixels_of_the_picture() -> None:
    picture = Image.effect_noise((31, 17), 80).convert("RGB")
    picture.putpixel((0, 0), (1, 2, 3))
    picture.putpixel((30, 16), (250, 251, 252))
    with Image.open(io.BytesIO(as_png(picture)), formats=["PNG"]) as read:
        read.verify()  # the checksums, which decoding forgives
    with Image.open(io.BytesIO(as_png(picture)), formats=["PNG"]) as read:
        assert (read.mode, read.size, read.tobytes()) == ("RGB", picture.size, picture.tobytes())


async def test_a_picture_that_fails_leaves_the_file_of_the_one_before() -> None:
    hand = Hand()
    shell = Shell(hand.phone, FileTree())
    await shell.run("screencap -p /sdcard/a.png")
    before = (await shell.run("cat /sdcard/a.png")).out
    hand.phone.set_fault("capture")
    await hand.phone.launch("com.android.settings")
    assert (await shell.run("screencap -p /sdcard/a.png")).exit_code == 1
    assert (await shell.run("cat /sdcard/a.png")).out == before


async def test_a_size_that_was_set_is_told_beside_the_panels_own() -> None:
    hand = Hand("[phone]\noverride_size = [720, 1600]\noverride_density = 320")
    shell = Shell(hand.phone, FileTree())
    assert (await shell.run("wm size")).out == b"Physical size: 1080x2400\nOverride size: 720x1600\n"
    assert (await shell.run("wm density")).out == b"Physical density: 440\nOverride density: 320\n"
    assert (await hand.phone.picture()).size == (720, 1600)
    hand.phone.set_fault("rotation")
    assert (await hand.phone.picture()).size == (1600, 720)
    assert b"init=1080x2400 440dpi cur=1600x720" in (await shell.run("dumpsys window displays")).out
    assert b"orientation=1" in (await shell.run("dumpsys display")).out
    for line in ("wm size reset", "wm size 1000", "wm density big"):
        await shell.run(line)
    assert (await shell.run("wm size; wm density")).out.count(b"Override") == 1
    hand.phone.set_fault("settings_denied")
    assert (await shell.run("wm size 720x1600")).exit_code == 255
    assert (await hand.phone.picture()).size == (2400, 1080)
